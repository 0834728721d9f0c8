"""Words that mean the same: a list that ships with mdmem, and the user's own beside the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from mdmem.config import config_home
from mdmem.index.analyzer import tokens

NAME = "synonyms.txt"
WEIGHT = 0.5  # of a synonym beside the word that was asked for
MOST = 8  # synonyms of one question
_BYTES = 1 << 18

Group = tuple[tuple[str, ...], ...]  # each member as the terms of the analyzer


def expanded(text: str, terms: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return (term, weight) of the synonyms of what `text` says, none of them among `terms`; at most MOST members."""
    line = tokens(text)
    known = {term for term, _ in terms}
    out: dict[str, float] = {}
    added = 0
    for group in groups():
        if not any(_stands(member, line) for member in group):
            continue
        for member in group:
            # Single characters are parts of the pairs beside them.
            fresh = [term for term in member if term not in known and (len(term) > 1 or len(member) == 1)]
            if not fresh or _stands(member, line) or added == MOST:
                continue
            added += 1
            for term in fresh:
                # Of a synonym of several words each counts less, so that together they weigh as one.
                out[term] = max(out.get(term, 0.0), WEIGHT / len(fresh))
    return list(out.items())


def _stands(member: tuple[str, ...], line: Sequence[str]) -> bool:
    size = len(member)
    return any(tuple(line[at : at + size]) == member for at in range(len(line) - size + 1))


def groups() -> tuple[Group, ...]:
    """Return the groups in force: the user's own first, then those that ship with mdmem unless the user drops them."""
    path = config_home() / NAME
    try:
        found = path.stat()
        own, only = _read(str(path), (found.st_size, found.st_mtime_ns))
    except OSError:
        own, only = (), False
    return own if only else own + _read(str(Path(__file__).with_name(NAME)), (0, 0))[0]


@lru_cache(maxsize=4)
def _read(path: str, stamp: tuple[int, int]) -> tuple[tuple[Group, ...], bool]:
    """Return (groups of a file, whether it drops the shipped ones); `stamp`: its size and time, so that an edit is seen."""
    try:
        with open(path, "rb") as stream:
            lines = stream.read(_BYTES).decode("utf-8-sig", "replace").splitlines()
    except OSError:
        return (), False
    return tuple(group for line in lines if (group := _group(line))), "!only" in (line.strip() for line in lines)


def _group(line: str) -> Group:
    line = line.strip()
    if not line or line[0] in "#!":
        return ()
    members = [tuple(tokens(part)) for part in line.replace("，", ",").split(",")]
    kept = tuple(dict.fromkeys(member for member in members if member))
    return kept if len(kept) > 1 else ()
