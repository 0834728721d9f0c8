"""Which note went where on one side of a merge: by id first, then by equal bytes, then by likeness."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from mdmem.notes.note import load
from mdmem.repo.own import is_note
from mdmem.repo.tree import Contents, Delta, Item


@dataclass
class Side:
    """One side against the base. `kept`: base path -> (path now, entry), None when deleted; `added`: new paths.

    Only what differs from the base is listed.
    """

    kept: dict[str, tuple[str, Item] | None] = field(default_factory=dict)
    added: dict[str, Item] = field(default_factory=dict)
    base: dict[str, Item] = field(default_factory=dict)

    def where(self, path: str, base: Item) -> tuple[str, Item] | None:
        """Return where a base path is on this side and with which entry, None when it was deleted."""
        return self.kept.get(path, (path, base))


def note_id(contents: Contents, path: str, item: Item | None) -> str | None:
    """Return the id in a note's frontmatter, None when there is none."""
    if item is None or not item.regular or not is_note(path):
        return None
    return load(path, contents.of(item)).id


_ID_LINE = re.compile(rb"(?m)^[ \t]*id[ \t]*:.*$")


def same_id_line(change: Delta, contents: Contents) -> bool:
    """Return whether a file that was only edited names the same id, without parsing it."""
    if change.old is None or change.new is None or not (change.old.regular and change.new.regular):
        return False
    return _ID_LINE.findall(contents.of(change.old)) == _ID_LINE.findall(contents.of(change.new))


def follow(delta: dict[str, Delta], contents: Contents, likeness: Callable[[], dict[str, str]]) -> Side:
    """Return what became of each changed path. `likeness` is asked only when something may have moved unseen."""
    side = Side(base={path: d.old for path, d in delta.items() if d.old is not None})
    contents.fetch([item for path, d in delta.items() if is_note(path) for item in (d.old, d.new)])
    gone = {path: d.old for path, d in delta.items() if d.old is not None and d.new is None}
    come = {path: d.new for path, d in delta.items() if d.new is not None and d.old is None}
    _break_swaps(delta, contents, gone, come)
    for path, d in delta.items():
        if d.old is not None and d.new is not None and path not in gone:
            side.kept[path] = (path, d.new)
    ids_gone = _by_key(gone, lambda path, item: note_id(contents, path, item))
    ids_come = _by_key(come, lambda path, item: note_id(contents, path, item))
    _pair(side, gone, come, ids_gone, ids_come)
    _pair(side, gone, come, _by_key(gone, lambda _, item: item.oid), _by_key(come, lambda _, item: item.oid))
    if gone and come:
        for old, new in likeness().items():
            if old in gone and new in come:
                ids = (note_id(contents, old, gone[old]), note_id(contents, new, come[new]))
                if None in ids or ids[0] == ids[1]:
                    side.kept[old] = (new, come.pop(new))
                    gone.pop(old)
    side.kept.update(dict.fromkeys(gone))
    side.added.update(come)
    return side


def _break_swaps(delta: dict[str, Delta], contents: Contents, gone: dict[str, Item], come: dict[str, Item]) -> None:
    """Take a path whose note was replaced by another known note as one that went and one that came."""
    changed = [
        (path, d.old, d.new, note_id(contents, path, d.old), note_id(contents, path, d.new))
        for path, d in delta.items()
        if d.old is not None and d.new is not None and is_note(path) and not same_id_line(d, contents)
    ]
    changed = [row for row in changed if row[3] and row[4] and row[3] != row[4]]
    if not changed:
        return
    left = {note_id(contents, path, item) for path, item in gone.items()} | {row[3] for row in changed}
    arrived = {note_id(contents, path, item) for path, item in come.items()} | {row[4] for row in changed}
    for path, old, new, old_id, new_id in changed:
        if old_id in arrived or new_id in left:
            gone[path], come[path] = old, new


def _by_key(items: dict[str, Item], key: Callable[[str, Item], str | None]) -> dict[str, str]:
    """Return {key: path} of the keys that exactly one path has."""
    found: dict[str, list[str]] = {}
    for path, item in items.items():
        name = key(path, item)
        if name:
            found.setdefault(name, []).append(path)
    return {name: paths[0] for name, paths in found.items() if len(paths) == 1}


def _pair(side: Side, gone: dict[str, Item], come: dict[str, Item], old: dict[str, str], new: dict[str, str]) -> None:
    for key, path in old.items():
        if key in new:
            side.kept[path] = (new[key], come.pop(new[key]))
            gone.pop(path)
