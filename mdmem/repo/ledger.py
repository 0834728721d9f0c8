"""The ledger of a merge: which notes a commit would take away, by id and not by path. Checks objects, trusts no merge code."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mdmem.notes.note import load
from mdmem.repo.git import Git
from mdmem.repo.moves import same_id_line
from mdmem.repo.own import is_note
from mdmem.repo.tree import Contents, Delta, Item

# The valve: a sync may take away this share of the notes, or this many, without being told to.
VALVE_SHARE, VALVE_COUNT = 5, 10
VALVE_ALL = 3


@dataclass(frozen=True)
class Names:
    """The names of one note: its id, or `path:…` where it has none, and its aliases."""

    key: str
    others: frozenset[str]


def names_of(path: str, data: bytes) -> Names:
    """Return the names of a note. One that cannot be read is known by its path."""
    note = load(path, data)
    return Names(note.id or f"path:{path}", frozenset(note.aliases))


def _names(contents: Contents, path: str, item: Item | None) -> Names | None:
    if item is None or not item.regular or not is_note(path):
        return None
    return names_of(path, contents.of(item))


def lost_in(delta: Mapping[str, Delta], contents: Contents, moved: Mapping[str, str] | None = None) -> set[str]:
    """Return the keys of the notes that the old tree of a delta has and the new one has not, under no name.

    `moved` tells where notes without an id went: such a path is not lost when a note is there now.
    """
    notes = {path: d for path, d in delta.items() if is_note(path)}
    contents.fetch([d.old for d in notes.values()])
    contents.fetch([d.new for d in notes.values() if d.old is not None])
    had: dict[str, str] = {}
    for path, d in notes.items():
        if d.old is None or same_id_line(d, contents):
            continue
        names = _names(contents, path, d.old)
        if names is not None:
            had[names.key] = path
    if not had:
        return set()
    contents.fetch([d.new for d in notes.values()])
    # Few are missed, many may have come: look closer only at files in which a missed name stands at all.
    sought = None if len(had) > 200 else re.compile(b"|".join(re.escape(os.fsencode(key)) for key in had))
    has: set[str] = set()
    for path, d in notes.items():
        if d.new is None or not d.new.regular:
            continue
        has.add(f"path:{path}")
        if sought is None or sought.search(contents.of(d.new)):
            new = names_of(path, contents.of(d.new))
            has |= {new.key, *new.others}
    lost = set(had) - has
    for key in list(lost):
        where = (moved or {}).get(had[key])
        if key.startswith("path:") and where is not None and where in delta and delta[where].new is not None:
            lost.discard(key)
    return lost


def unaccounted(contents: Contents, base: str, sides: tuple[str, str], merged: str, moved: Mapping[str, str]) -> set[str]:
    """Return the keys of notes of either side that a merge lost although the other side did not delete them."""
    missing: set[str] = set()
    deleted = [lost_in(contents.changes(base, side), contents) for side in sides]
    for place, side in enumerate(sides):
        missing |= lost_in(contents.changes(side, merged), contents, moved) - deleted[1 - place]
    return missing


def too_many(lost: int, total: int) -> bool:
    """Return whether the valve closes: more than a fifth of the notes, and at least ten; or all of them, and at least three,
    as when a folder that another program keeps in step is gone for a moment."""
    return (lost >= VALVE_COUNT and lost * VALVE_SHARE > total) or (lost >= VALVE_ALL and lost >= total)


def note_count(git: Git, rev: str) -> int:
    """Return how many notes a commit holds."""
    listed = git.run("ls-tree", "-r", "-z", "--full-tree", "--name-only", rev, read=True, timeout=60)
    return sum(1 for name in listed.out.split(b"\0") if name.lower().endswith(b".md"))
