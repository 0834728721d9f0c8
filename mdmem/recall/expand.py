"""Words that mean the same: a list that ships with mdmem, and the user's own beside the configuration.

A line is a group of words for one thing, or a kind and what is of it (`editor, ide > vim, emacs`). Of the list only the lines
that a question names are taken apart: it looks up the beginnings of its own words in a table of how each member begins. That of
the list that ships lies beside it (synonyms.json, written by tools/build_model_common.py): a first search would wait for it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from mdmem.config import config_home
from mdmem.index.analyzer import fold, grams, tokens
from mdmem.recall.words import idle

NAME = "synonyms.txt"
TABLE = "synonyms.json"
WEIGHT = 0.3  # of a synonym beside the word that was asked for
MOST = 8  # synonyms of one question
OFTEN = 3  # a word that stands more times as often as any other for its thing is the store's own, or means another one there
_BYTES = 1 << 18
_KEY = 3  # letters of a word, two characters of a CJK run, that it is looked up by: stems begin as their words do


class Member(NamedTuple):
    """A word of a group, or several words for one thing: as it is written, and as the terms of the analyzer. `below`: it is one
    of a kind (`editor, ide > vim, emacs`), not another word for it. `row`: of its vector, -1 without one."""

    text: str
    terms: tuple[str, ...]
    below: bool = False
    row: int = -1


Group = tuple[Member, ...]


class Concept(NamedTuple):
    """The other words for a thing that a question names, and the words that it names it by. `own`: of the user's list, and the
    user knows what is meant."""

    others: Group
    asked: Group
    own: bool = False


@dataclass(frozen=True)
class _List:
    """A file of groups, not yet taken apart: {beginning of a member: (number of its line, a tab, the member) in lines}, and for
    each line the numbers of its members' vectors."""

    lines: Sequence[str] = ()
    begins: dict[str, str] = field(default_factory=dict)
    only: bool = False  # it drops the shipped list
    rows: Sequence[str] = ()
    size: int = 0  # how many vectors there are


def alike(text: str) -> list[Concept]:
    """Return for each thing that `text` names the other words for it, none of which stands in the text; what is named by more
    words first, since it is meant more surely. Who names a kind finds what is of it; who names one of the kind finds the words
    for the kind, not what else is of it. What only adds to the words of the text (`log storage` to `log`) is no other word."""
    line = tokens(text)
    found = []
    for group, own in groups(text):
        named = [member for member in group if _stands(member.terms, line)]
        one = all(member.below for member in named)
        others = tuple(
            member
            for member in group
            if not (one and member.below) and not any(_stands(asked.terms, member.terms) for asked in named)
        )
        if others:
            found.append((max(len(member.terms) for member in named), Concept(others, tuple(named), own)))
    return [concept for _, concept in sorted(found, key=lambda pair: -pair[0])]


def held(concepts: Sequence[Concept], standing: Callable[[Sequence[str]], Mapping[str, int]]) -> list[Concept]:
    """Return the concepts with those members only that a store may hold. `standing`: {term: windows of the store that it stands
    in} of those terms that stand anywhere.

    A synonym is for the store that says a thing in the other word. Where the word of the question stands there much more often
    than any other (`like` beside `prefer` in chats, a table that is booked), that is the store's own word for the thing, or it
    means something else than the shipped list does: the concept is left out."""
    terms = list(dict.fromkeys(term for one in concepts for member in (*one.others, *one.asked) for term in member.terms))
    counts = standing(terms) if terms else {}

    def windows(member: Member) -> int:
        return min(counts.get(term, 0) for term in member.terms)  # of several words: in no more than these

    out = []
    for one in concepts:
        others = tuple(member for member in one.others if windows(member))
        if others and (one.own or max(map(windows, one.asked)) <= OFTEN * max(map(windows, others))):
            out.append(one._replace(others=others))
    return out


def expanded(concepts: Sequence[Concept], terms: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return (term, weight) of the members of `concepts`, none of them among `terms`; at most MOST members."""
    known = {term for term, _ in terms}
    out: dict[str, float] = {}
    added = 0
    for one in concepts:
        for member in one.others:
            # Single characters are parts of the pairs beside them, and `not` of `not allowed` says nothing alone.
            fresh = [t for t in member.terms if t not in known and (len(member.terms) == 1 or (len(t) > 1 and not idle(t)))]
            if not fresh or added == MOST:
                continue
            added += 1
            for term in fresh:
                # Of a synonym of several words each counts less, so that together they weigh as one.
                out[term] = max(out.get(term, 0.0), WEIGHT / len(fresh))
    return list(out.items())


def _stands(member: tuple[str, ...], line: Sequence[str]) -> bool:
    size = len(member)
    # Most do not: their first term tells, before anything is copied.
    return member[0] in line and any(tuple(line[at : at + size]) == member for at in range(len(line) - size + 1))


def groups(text: str) -> list[tuple[Group, bool]]:
    """Return the groups in force of which `text` has a member, and of each whether it is the user's own; these come first, then
    those that ship with mdmem unless the user drops them."""
    path = config_home() / NAME
    try:
        found = path.stat()
        own = _read(str(path), (found.st_size, found.st_mtime_ns))
    except OSError:
        own = _List()
    lists = [own] if own.only else [own, _shipped()]
    words = tokens(text)
    keys = sorted(_keys(text, words))
    found_groups = []
    for held in lists:
        near = [one.split("\t") for key in keys for one in held.begins.get(key, "").split("\n") if one]
        named = {int(number) for number, member in near if (terms := _terms(member)) and _stands(terms, words)}
        found_groups += [(_group(held.lines[n], held.rows[n] if held.rows else ""), held is own) for n in sorted(named)]
    return [(group, mine) for group, mine in found_groups if group]


def _keys(text: str, terms: Sequence[str]) -> set[str]:
    """Return the beginnings that a member which stands in `text` may have: of its words as they are written and as the
    analyzer makes them, its `terms` (`bought` is a form of buy), and of each place in a CJK run."""
    words = {*fold(text).split(), *terms}
    return {word[:size] for word in words for size in (1, 2, _KEY)} | {word[1:] for word in words if len(word) == 2}


@lru_cache(maxsize=4)
def _read(path: str, stamp: tuple[int, int]) -> _List:
    """Return a file of groups; `stamp`: its size and time, so that an edit is seen."""
    try:
        with open(path, "rb") as stream:
            lines = tuple(stream.read(_BYTES).decode("utf-8-sig", "replace").splitlines())
    except OSError:
        return _List()
    return _List(lines, begins_of(lines), "!only" in (line.strip() for line in lines))


@lru_cache(maxsize=1)
def _shipped() -> _List:
    """Return the list that ships; its table is made anew where the one beside it is of another list."""
    path = Path(__file__).with_name(NAME)
    try:
        data = path.read_bytes()
        table = json.loads(path.with_name(TABLE).read_bytes())
        if table["list"] == zlib.crc32(data):
            return _List(data.decode().splitlines(), table["begins"], rows=table["rows"], size=table["size"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return _read(str(path), (0, 0))


def shipped_size() -> int:
    """Return how many members the shipped list has vectors for; 0 without a table."""
    return _shipped().size


def table_of(data: bytes, names: Sequence[str]) -> dict[str, object]:
    """Return what synonyms.json holds for a list; `names`: its members in the order of their vectors."""
    lines = data.decode().splitlines()
    places = {name: number for number, name in enumerate(names)}
    rows = [" ".join(str(places[name]) for name in _members(line)) if _worded(line) else "" for line in lines]
    return {"list": zlib.crc32(data), "size": len(names), "begins": begins_of(lines), "rows": rows}


def begins_of(lines: Sequence[str]) -> dict[str, str]:
    """Return the table of how the members of a list begin."""
    begins: dict[str, list[str]] = {}
    for number, line in enumerate(lines):
        for member in _members(line) if _worded(line) else ():
            begins.setdefault(_beginning(member), []).append(f"{number}\t{member}")
    return {key: "\n".join(found) for key, found in begins.items()}


def _worded(line: str) -> bool:
    return bool(line) and line[0] not in "#!"


def _members(line: str) -> list[str]:
    return [" ".join(member.split()) for member in line.replace("，", ",").replace(">", ",").split(",")]


def _beginning(member: str) -> str:
    if member.isascii():
        return member[:_KEY].lower()
    if not "\u3400" <= member[:1] <= "\u9fff":
        member = fold(member)
    return member[:_KEY] if member[:1].isascii() else member[:2]


@lru_cache(maxsize=8192)
def _terms(member: str) -> tuple[str, ...]:
    """Return a member's terms. What the analyzer gives for ideographs is made without its patterns, which take longer to make
    than all else here."""
    ideographs = member and all("\u4e00" <= char <= "\u9fff" for char in member)
    return tuple(grams(member) if ideographs else tokens(member))


@lru_cache(maxsize=4096)
def _group(line: str, rows: str = "") -> Group:
    kept: dict[tuple[str, ...], Member] = {}
    members = _members(line)
    kinds = len(_members(line.partition(">")[0])) if ">" in line else len(members)
    numbers = [int(row) for row in rows.split()] if rows else [-1] * len(members)
    for place, (member, row) in enumerate(zip(members, numbers, strict=True)):
        if terms := _terms(member):
            kept.setdefault(terms, Member(member, terms, place >= kinds, row))
    return tuple(kept.values()) if len(kept) > 1 else ()
