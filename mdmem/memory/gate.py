"""The relevance gate: does the memory hold anything for this prompt at all? Decided by raw evidence, never by a fused score.

Evidence for a note, from the words of the prompt that say something (no stop words; everyday words of programming count
little; weights are idf, as a share of that of a word found nowhere):

    share   weight of the prompt's words that stand in the note / weight of all of them
    mass    the same sum, not divided: one rare word is 1.0
    near    with a model: how far the note's nearest window stands out among the windows of the store, in standard
            deviations of their cosines, less what the nearest of so many strangers would reach, sqrt(2 ln n)

A logistic function of these gives the chance that the note answers the prompt. Its weights are fitted by
`benchmarks/gate.py --fit` on `tests/hooks/gate/` with cross-validation, over stores of many sizes.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from mdmem.index.analyzer import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Weights: constant, share, mass, near.
DENSE = (-3.51, 1.74, 2.12, 0.73)
WORDS = (-4.96, 2.58, 2.77)
# Chance from which a note is given: with a model, without one; lower when the prompt asks for the past by name.
DENSE_LIMIT, WORDS_LIMIT = 0.24, 0.22
FORCED = 0.6
# In a small store the spread of a few cosines says little: it is mixed with that of STRANGERS unrelated texts, as the
# bundled model sees them.
STRANGERS, STRANGE_MEAN, STRANGE_SPREAD = 20, 0.80, 0.022
MASS_CAP = 3.0
# Windows that a store is taken to have at least.
FEWEST = 50

_STOP = """a an the of in on at to for from by with about into over after before under and or not no nor but if then else when
while than as is are was were be been being am do does did done doing have has had having can could may might shall should will
would must i you he she it we they me him her us them my your his its our their mine this that these those there here what which
who whom whose where why how all any some each every both few more most other such only own same so too very just also still
again once now today yesterday ever never please tell say said get got go goes let us make made use used using want wanted need
needed like know think look show give take put keep see mean thing things way lot bit one two first last new old good bad right
much many long often exactly actually really maybe always s t d ll re ve m don doesn didn isn aren wasn won shouldn couldn
cannot im ive whats thats remember recall previously earlier decide decided agree agreed discussed hi hello thanks thank"""

_EVERYDAY = """write wrote add fix change update remove delete rename move refactor convert replace implement create generate
print check run build test tests testing code file files folder function method class variable line lines script program module
library import helper loop list string number value type error bug issue problem fail fails failing failed work works working
explain describe summary difference between compile compiler parse parser sort count split merge commit branch version set up
setup start stop handle call return page button text name word words comment docstring unit example project repository repo team
company user data time day"""

# Longest first where one begins another.
_STOP_ZH = (
    "什么时候 是什么 为什么 什么 怎么样 怎么 怎样 如何 哪里 哪个 哪家 哪些 哪 我们 你们 他们 我的 你的 这个 那个 这段 这些 "
    "那些 一下 一个 一些 可以 需要 应该 现在 之前 上次 以前 当时 记得 多少 多久 没有 改成 换成 加上 帮我 请问 是不是 有没有 "
    "我 你 他 她 它 这 那 要 的 了 吗 呢 吧 啊 把 被 给 和 与 或 是 有 在 从 到 用 做 让 帮 请 几 谁 还 都 也 就 会 能 不 没 "
    "里 上 下 个 为 对 来 去 找 由 写 加"
)
_EVERYDAY_ZH = (
    "代码 函数 文件 变量 测试 修改 修复 删除 注释 循环 按钮 页面 命令 格式 名字 脚本 错误 报错 编译 模块 方法 数据 时间 "
    "处理 问题 安排 负责"
)
_ZH = re.compile("|".join(_STOP_ZH.split()))
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


@lru_cache(maxsize=1)
def _vocabulary() -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms of stop words and of everyday words, as the analyzer makes them."""
    stop = {term for word in _STOP.split() for term in (word, *tokens(word))}
    everyday = {term for word in _EVERYDAY.split() for term in tokens(word)}
    everyday |= {term for word in _EVERYDAY_ZH.split() for term in tokens(word) if len(term) == 2}
    return frozenset(stop), frozenset(everyday - stop)


def telling_words(prompt: str) -> list[tuple[str, float]]:
    """Return the (term, weight) pairs of a prompt that say what it is about: 1.0, or less for everyday words."""
    stop, everyday = _vocabulary()
    found: dict[str, float] = {}
    for term in tokens(_ZH.sub(" ", prompt)):
        if _CJK.match(term):
            # Pairs carry the meaning; a single character stands in half of all notes.
            if len(term) == 1:
                continue
        elif term in stop or len(term) < 2:
            continue
        found[term] = 0.35 if term in everyday else 1.0
    return list(found.items())


class Weighing:
    """The words of one prompt against one index: what each is worth there."""

    def __init__(self, terms: Iterable[tuple[str, float, int, float]], windows: int) -> None:
        # In a store of a few notes every word is in a large part of them; they are taken as part of fifty windows.
        count = max(windows, FEWEST)
        self.rarest = math.log(1.0 + (count + 0.5) / 0.5)
        self.worth = [weight * math.log(1.0 + (count - df + 0.5) / (df + 0.5)) / self.rarest for _, weight, df, _ in terms]
        self.total = sum(self.worth)

    def evidence(self, matched: Iterable[int]) -> tuple[float, float]:
        """Return (share, mass) for a window in which these terms (indices) stand."""
        mass = sum(self.worth[number] for number in matched)
        return (mass / self.total if self.total else 0.0), mass


class Spread:
    """How near the windows of a store are to one prompt: mean and standard deviation of a sample of their cosines."""

    def __init__(self, sample: Sequence[float], windows: int) -> None:
        count = len(sample) + STRANGERS
        self.mean = (sum(sample) + STRANGERS * STRANGE_MEAN) / count
        variance = sum((c - self.mean) ** 2 for c in sample) + STRANGERS * STRANGE_SPREAD**2
        self.deviation = math.sqrt(variance / count) or STRANGE_SPREAD
        self.expected = math.sqrt(2.0 * math.log(max(windows, 2)))

    def near(self, cosine: float) -> float:
        """Return by how many deviations a cosine stands out beyond what chance would reach in a store of this size."""
        return (cosine - self.mean) / self.deviation - self.expected


def chance(share: float, mass: float, near: float | None) -> float:
    """Return the chance (0 to 1) that a note with this evidence answers the prompt; `near` None: there is no model."""
    features = (1.0, share, min(mass, MASS_CAP)) if near is None else (1.0, share, min(mass, MASS_CAP), near)
    weights = WORDS if near is None else DENSE
    return 1.0 / (1.0 + math.exp(-sum(w * f for w, f in zip(weights, features, strict=True))))


def limit(dense: bool, forced: bool) -> float:
    """Return the chance from which a note is given."""
    return (DENSE_LIMIT if dense else WORDS_LIMIT) * (FORCED if forced else 1.0)
