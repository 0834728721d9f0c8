"""Words that mean the same: a list that ships with mdmem, and the user's own beside the configuration.

Of the list only the lines that a question may touch are taken apart: a table of how each member begins is made once, and a
question looks up the beginnings of its own words in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from mdmem.config import config_home
from mdmem.index.analyzer import fold, grams, tokens

NAME = "synonyms.txt"
WEIGHT = 0.3  # of a synonym beside the word that was asked for
MOST = 8  # synonyms of one question
_BYTES = 1 << 18
_KEY = 3  # letters of a word, two characters of a CJK run, that it is looked up by: stems begin as their words do


class Member(NamedTuple):
    """A word of a group, or several words for one thing: as it is written, and as the terms of the analyzer."""

    text: str
    terms: tuple[str, ...]


Group = tuple[Member, ...]


@dataclass(frozen=True)
class _List:
    """A file of groups, not yet taken apart: {beginning of a member: numbers of the lines that have one}."""

    lines: tuple[str, ...] = ()
    begins: dict[str, list[int]] = field(default_factory=dict)
    only: bool = False  # it drops the shipped list


def alike(text: str) -> list[Group]:
    """Return for each thing that `text` names the other words for it, none of which stands in the text; what is named by more
    words first, since it is meant more surely."""
    line = tokens(text)
    found = []
    for group in groups(text):
        named = [member for member in group if _stands(member.terms, line)]
        others = tuple(member for member in group if member not in named)
        if named and others:
            found.append((max(len(member.terms) for member in named), others))
    return [others for _, others in sorted(found, key=lambda pair: -pair[0])]


def held(concepts: Sequence[Group], there: Callable[[Sequence[str]], set[str]]) -> list[Group]:
    """Return the concepts with those members only that a store may hold. `there`: which of some terms stand anywhere in it."""
    terms = list(dict.fromkeys(term for group in concepts for member in group for term in member.terms))
    known = there(terms) if terms else set()
    kept = [tuple(member for member in group if known.issuperset(member.terms)) for group in concepts]
    return [group for group in kept if group]


def expanded(concepts: Sequence[Group], terms: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return (term, weight) of the members of `concepts`, none of them among `terms`; at most MOST members."""
    known = {term for term, _ in terms}
    out: dict[str, float] = {}
    added = 0
    for member in (member for group in concepts for member in group):
        # Single characters are parts of the pairs beside them.
        fresh = [term for term in member.terms if term not in known and (len(term) > 1 or len(member.terms) == 1)]
        if not fresh or added == MOST:
            continue
        added += 1
        for term in fresh:
            # Of a synonym of several words each counts less, so that together they weigh as one.
            out[term] = max(out.get(term, 0.0), WEIGHT / len(fresh))
    return list(out.items())


def _stands(member: tuple[str, ...], line: Sequence[str]) -> bool:
    size = len(member)
    return any(tuple(line[at : at + size]) == member for at in range(len(line) - size + 1))


def groups(text: str) -> tuple[Group, ...]:
    """Return the groups in force that `text` may touch: the user's own first, then those that ship with mdmem unless the
    user drops them. Some may have no member in it."""
    path = config_home() / NAME
    try:
        found = path.stat()
        own = _read(str(path), (found.st_size, found.st_mtime_ns))
    except OSError:
        own = _List()
    lists = [own] if own.only else [own, _read(str(Path(__file__).with_name(NAME)), (0, 0))]
    keys = _keys(text)
    lines = [held.lines[number] for held in lists for number in sorted({n for key in keys for n in held.begins.get(key, ())})]
    return tuple(group for line in lines if (group := _group(line)))


def _keys(text: str) -> set[str]:
    """Return the beginnings that a member which stands in `text` may have: of its words as they are written and as the
    analyzer makes them (`bought` is a form of buy), and of each place in a CJK run."""
    words = {*fold(text).split(), *tokens(text)}
    return {word[:size] for word in words for size in (1, 2, _KEY)} | {word[1:] for word in words if len(word) == 2}


@lru_cache(maxsize=4)
def _read(path: str, stamp: tuple[int, int]) -> _List:
    """Return a file of groups; `stamp`: its size and time, so that an edit is seen."""
    try:
        with open(path, "rb") as stream:
            lines = tuple(stream.read(_BYTES).decode("utf-8-sig", "replace").splitlines())
    except OSError:
        return _List()
    begins: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if not line or line[0] in "#!":
            continue
        for member in _members(line):
            begins.setdefault(_beginning(member), []).append(number)
    return _List(lines, begins, "!only" in (line.strip() for line in lines))


def _members(line: str) -> list[str]:
    return line.replace("，", ",").split(",")


def _beginning(member: str) -> str:
    member = member.strip()
    if not "\u3400" <= member[:1] <= "\u9fff":
        member = fold(member)
    return member[:_KEY] if member[:1].isascii() else member[:2]


@lru_cache(maxsize=4096)
def _group(line: str) -> Group:
    kept: dict[tuple[str, ...], Member] = {}
    for part in _members(line.strip()):
        part = part.strip()
        # What the analyzer gives for ideographs, without its patterns, which take longer to make than all else here.
        ideographs = part and all("\u4e00" <= char <= "\u9fff" for char in part)
        if terms := tuple(grams(part) if ideographs else tokens(part)):
            kept.setdefault(terms, Member(part, terms))
    return tuple(kept.values()) if len(kept) > 1 else ()
