"""The relevance gate: does the memory hold anything for this prompt at all? Decided by raw evidence, never by a fused score.

Evidence for a note, from the words of the prompt that say something (no stop words; everyday words of programming count
little; another name of the same concept, see concepts.txt, counts in part; weights are idf, as a share of that of a word found
nowhere):

    share   weight of the prompt's words that stand in the note / weight of all of them
    mass    the same sum, not divided: one rare word is 1.0
    near, plain   with a model: how near the note's nearest window is in meaning, on the scales of memory/near.py
    asks    with a model: how much the prompt by itself looks like a question about what a team knows

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
    from collections.abc import Iterable

# Weights: constant, share, mass, near, plain, asks.
DENSE = (-4.93, 1.63, 1.34, 5.4, 5.5, 0.87)
WORDS = (-3.65, 2.33, 1.95)
# Chance from which a note is given: with a model, without one; lower when the prompt asks for the past by name.
DENSE_LIMIT, WORDS_LIMIT = 0.365, 0.44
FORCED = 0.6
MASS_CAP = 3.0
# Power of the number of windows (as a multiple of FEWEST, at least half of it) that the odds grow with.
CROWD = 0.4
# Weight of an everyday word of programming, and of a word that a note has under another name of the same concept.
EVERYDAY, OTHER = 0.35, 0.9
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


@lru_cache(maxsize=1)
def _lines() -> tuple[str, ...]:
    """Return the lines of the list of concepts, () when it cannot be read."""
    from pathlib import Path

    try:
        text = Path(__file__).with_name("concepts.txt").read_text("utf-8")
    except OSError:
        return ()
    return tuple(line for line in text.splitlines() if not line.startswith("#"))


@lru_cache(maxsize=1)
def _concepts() -> dict[str, tuple[str, ...]]:
    """Return {term: terms of the same concepts}, as the analyzer makes them."""
    found: dict[str, set[str]] = {}
    for line in _lines():
        terms = set()
        for word in line.split():
            made = [term for term in tokens(word) if len(term) > 1]
            # A longer Chinese word is known by its pairs only as a whole; its first pair stands for it.
            terms.add(made[0] if made else word)
        for term in terms:
            found.setdefault(term, set()).update(terms)
    return {term: tuple(sorted(others - {term})) for term, others in found.items()}


@lru_cache(maxsize=1)
def _known_zh() -> re.Pattern[str]:
    """Return what matches a Chinese word of the list of concepts, the longest first."""
    words = {word for line in _lines() for word in line.split() if len(word) > 1 and _CJK.match(word)}
    return re.compile("|".join(sorted(words, key=lambda word: (-len(word), word))) or "(?!)")


def telling_words(prompt: str) -> list[tuple[str, float]]:
    """Return the (term, weight) pairs of a prompt that say what it is about: 1.0, or less for everyday words."""
    stop, everyday = _vocabulary()
    found: dict[str, float] = {}
    # A known word stands by itself: pairs that reach into its neighbours say nothing.
    words = _known_zh()
    text = words.sub(lambda found: f" {found[0]} ", _ZH.sub(" ", prompt))
    inner: set[str] = set()
    whole: set[str] = set()
    for word in words.findall(text):
        pairs = [term for term in tokens(word) if len(term) == 2]
        if len(pairs) > 1:
            # A longer one is known by its first pair (see _concepts), which is then no everyday word.
            whole.add(pairs[0])
            inner.update(pairs[1:])
    for term in tokens(text):
        if _CJK.match(term):
            # Pairs carry the meaning; a single character stands in half of all notes.
            if len(term) == 1 or term in inner - whole:
                continue
        elif term in stop or len(term) < 2:
            continue
        found[term] = EVERYDAY if term in everyday - whole else 1.0
    return list(found.items())


def with_concepts(words: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the words with, behind them, other words of the same concepts at a lower weight."""
    known = dict(words)
    for term, weight in words:
        for other in _concepts().get(term, ()):
            known.setdefault(other, weight * OTHER)
    return list(known.items())


class Weighing:
    """The words of one prompt against one index: what each is worth there.

    `terms` are (term, weight, df, idf) of `with_concepts(words)`, in that order.
    """

    def __init__(self, terms: Iterable[tuple[str, float, int, float]], windows: int, words: int | None = None) -> None:
        # In a store of a few notes every word is in a large part of them; they are taken as part of fifty windows.
        count = max(windows, FEWEST)
        listed = list(terms)
        place = {term: number for number, (term, _, _, _) in enumerate(listed)}
        rarest = math.log(1.0 + (count + 0.5) / 0.5)
        rarity = [math.log(1.0 + (count - df + 0.5) / (df + 0.5)) / rarest for _, _, df, _ in listed]
        # For each word of the prompt: its own place, those of the other names of its concept, its worth by either.
        self.groups: list[tuple[int, frozenset[int], float, float]] = []
        for number, (term, weight, df, _) in enumerate(listed[:words]):
            others = frozenset(place[o] for o in _concepts().get(term, ()) if o in place and listed[place[o]][2])
            own = weight * rarity[number]
            if not df and others:
                # The store has the thing under another name: the word is as rare as that is.
                own = weight * max(rarity[other] for other in others)
            self.groups.append((number, others, own, OTHER * own))
        self.total = sum(own for _, _, own, _ in self.groups)

    def evidence(self, matched: Iterable[int]) -> tuple[float, float]:
        """Return (share, mass) for a window in which these terms (indices) stand."""
        there = frozenset(matched)
        mass = 0.0
        for number, others, own, other in self.groups:
            mass += own if number in there else other if others & there else 0.0
        return (mass / self.total if self.total else 0.0), mass


def chance(share: float, mass: float, meaning: tuple[float, float, float] | None) -> float:
    """Return the chance (0 to 1) that a note with this evidence answers the prompt; `meaning` (near, plain, asks) is None where
    there is no model."""
    features = (1.0, share, min(mass, MASS_CAP), *(meaning or ()))
    weights = WORDS if meaning is None else DENSE
    return 1.0 / (1.0 + math.exp(-sum(w * f for w, f in zip(weights, features, strict=True))))


def limit(dense: bool, forced: bool, windows: int = FEWEST) -> float:
    """Return the chance from which a note is given. Among more windows the best stranger is nearer by mere luck, so the odds
    that are asked for grow with their number."""
    least = (DENSE_LIMIT if dense else WORDS_LIMIT) * (FORCED if forced else 1.0)
    odds: float = least / (1.0 - least) * max(windows / FEWEST, 0.5) ** CROWD
    return odds / (1.0 + odds)
