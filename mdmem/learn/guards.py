"""What keeps two texts apart that have nearly all words in common: order around a word that points, and small verbs.

A text that is taken for known is not written, so these err on the side of keeping both.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from mdmem.index.analyzer import stem, tokens

if TYPE_CHECKING:
    from mdmem.learn.statement import Statement

# Words whose two sides cannot be exchanged. `before` a comma or the end: what is pointed at.
_POINTS = re.compile(
    r"\b(?:before|after|than|over|under|above|below|behind|ahead of|until|unless|into|"
    r"depends? on|requires?|needs?|replac(?:es?|ed|ing)|blocks?|beats?|calls?|wraps?|extends?|imports?|supersedes?|"
    r"instead of|rather than|from|to)\b|比|依赖|取代|代替|替换|早于|晚于|先于|优先于|而不是|调用|阻塞|变成|转成",
    re.IGNORECASE,
)
# What stands behind its object in Chinese: `提交之前跑测试`.
_POINTS_BACK = re.compile(r"([^,，。;；、\s]{1,12}?)(之前|之后|以前|以后|前先|后再)")
_END = re.compile(r"[,.;:，。；：、]")
_FUNCTION_EN = """a an the of in on at to for by with as and or but is are was were be been being am do does did has have had
we our us my i me you your he she it its they their this that these those all every each any there here
will would shall should must can
may so very just also still again now please s t re ve ll d"""
_FUNCTION = frozenset(_FUNCTION_EN.split())
_FUNCTION_ZH = frozenset("的了是在我们都也就会要请把将被这那有于")


# Words of which one excludes the others where all else is the same: groups, with `/` within and `;` between. None that tells
# things apart more often than it says how a thing is: client and server tests both exist.
_EXCLUDE = """short/long; small/large/big/tiny; fast/slow; strict/loose/lenient; light/dark; tabs/spaces; sync/async;
synchronous/asynchronous; synchronously/asynchronously; manual/automatic; manually/automatically; required/optional;
mandatory/optional; enabled/disabled; single/double; uppercase/lowercase; hourly/daily/weekly/monthly/quarterly/yearly;
morning/afternoon/evening/night; weekdays/weekends; open/closed; on/off; mutable/immutable; verbose/terse/brief/short/long;
squash/rebase; always/sometimes; english/chinese/german/french/spanish/japanese"""
_EXCLUDE_ZH = """简短/详细; 开启/关闭; 启用/禁用; 手动/自动; 同步/异步; 必填/可选; 必须/可选;
上午/下午/晚上; 早上/晚上; 每天/每周/每月/每季度/每年;
空格/制表符; 中文/英文/日文/德文; 单引号/双引号; 大写/小写; 浅色/深色; 严格/宽松; 左边/右边"""
_SAYS_NOW = re.compile(r"\b(?:from now on,?|now|currently)\s+|(?:从现在起|现在|以后|今后)[,,]?", re.IGNORECASE)
_DOES = frozenset(("use", "write", "keep", "prefer", "run", "make", "always", "never"))


@lru_cache(maxsize=1)
def _groups() -> tuple[list[frozenset[str]], list[list[str]]]:
    english = [frozenset(word.strip() for word in group.split("/")) for group in _EXCLUDE.replace("\n", " ").split(";")]
    chinese = [[word.strip() for word in group.split("/")] for group in _EXCLUDE_ZH.replace("\n", " ").split(";")]
    return english, chinese


_PLAIN = re.compile(r"[a-z]+|\d+|[\u3400-\u9fff]")


def excluded(one: str, two: str) -> tuple[str, str] | None:
    """Return the words of two texts of which one excludes the other, None where something else differs too, or nothing does.

    `I prefer short commit messages` and `I now prefer long commit messages`. What a text begins with says of what it speaks."""
    english, chinese = _groups()
    left, right = (_SAYS_NOW.sub("", text.strip().rstrip(".。").lower()) for text in (one, two))
    for group in chinese:
        for here in group:
            for there in group:
                if here != there and left.find(here) > 0 and left.replace(here, "") == right.replace(there, ""):
                    return here, there
    first, second = _PLAIN.findall(left), _PLAIN.findall(right)
    if len(first) != len(second):
        return None
    differing = [place for place, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    if len(differing) != 1 or differing[0] < (1 if first[0] in _DOES else 2):
        return None
    pair = first[differing[0]], second[differing[0]]
    return pair if any(set(pair) <= group for group in english) else None


@lru_cache(maxsize=4096)
def directed(text: str) -> frozenset[tuple[str, frozenset[str]]]:
    """Return {(word that points, the words that it points at)} of a text."""
    found = set()
    for match in _POINTS.finditer(text):
        rest = text[match.end() :]
        end = _END.search(rest)
        found.add((stem(match[0].lower()), spelled(rest[: end.start()] if end else rest)))
    for match in _POINTS_BACK.finditer(text):
        found.add((match[2], spelled(match[1])))
    return frozenset(found)


@lru_cache(maxsize=4096)
def spelled(text: str) -> frozenset[str]:
    """Return the words of a text in their stems, Chinese ones by character, without articles, auxiliaries and the like."""
    out = set()
    for term in tokens(text):
        if "\u3400" <= term[0] <= "\u9fff":
            out |= set(term) - _FUNCTION_ZH
        elif term not in _FUNCTION:
            out.add(term)
    return frozenset(out)


def kinds(statement: Statement) -> frozenset[str]:
    """Return which kinds of values a statement has: number, day, name."""
    from mdmem.learn.statement import shape

    found = {"day" if shape(number) == "day" else "number" for number in statement.numbers}
    return frozenset(found | ({"name"} if statement.names else set()))
