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
