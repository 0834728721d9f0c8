"""What changed between two commits, note by note: fields by name, the body by lines."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mdmem.notes.note import Note, load
from mdmem.notes.values import Value
from mdmem.repo.git import Git
from mdmem.repo.moves import follow
from mdmem.repo.own import is_note, is_own
from mdmem.repo.tree import Contents, Item, similar


@dataclass(frozen=True)
class NoteChange:
    """One note in two commits. `status`: added, removed, changed or moved (only its path changed). `fields`: name -> (before,
    after), None where a field is absent. `added` and `removed` are lines of the body."""

    status: str
    path: str
    old_path: str
    id: str
    title: str
    kind: str
    fields: dict[str, tuple[Value | None, Value | None]] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        fields = {name: {"before": before, "after": after} for name, (before, after) in self.fields.items()}
        body = {"added": self.added, "removed": self.removed}
        head = {"status": self.status, "path": self.path, "id": self.id, "title": self.title, "kind": self.kind}
        return {**head, **({"old_path": self.old_path} if self.old_path else {}), "fields": fields, "body": body}


def diff_notes(
    git: Git, old: str, new: str, roots: Sequence[str] = ("",), see: Callable[[Note], bool] = lambda note: True
) -> list[NoteChange]:
    """Return the notes that differ between two commits, by path; a note is followed by its id, then by likeness.

    A version for which `see` is false is taken as not there. Raises GitFailed.
    """
    with Contents(git) as contents:
        delta = {path: d for path, d in contents.changes(old, new).items() if is_note(path) and is_own(path, roots)}
        side = follow(delta, contents, lambda: similar(git, old, new))
        found = [_change(contents, None, path, item, see) for path, item in side.added.items()]
        for path, now in side.kept.items():
            where, left = now if now is not None else (path, None)
            found.append(_change(contents, (path, side.base[path]), where, left, see))
    return sorted((change for change in found if change is not None), key=lambda change: change.path)


def _note(contents: Contents, path: str, item: Item | None) -> Note | None:
    return load(path, contents.of(item)) if item is not None and item.regular else None


def _change(
    contents: Contents,
    before: tuple[str, Item] | None,
    path: str,
    item: Item | None,
    see: Callable[[Note], bool],
) -> NoteChange | None:
    old = _note(contents, *before) if before is not None else None
    new = _note(contents, path, item)
    old = old if old is not None and see(old) else None
    new = new if new is not None and see(new) else None
    known = new or old
    if known is None:
        return None
    fields: dict[str, tuple[Value | None, Value | None]] = {}
    one, two = (old.doc.fields if old else {}), (new.doc.fields if new else {})
    for name in dict.fromkeys([*one, *two]):
        if one.get(name) != two.get(name):
            fields[name] = (one.get(name), two.get(name))
    added, removed = _lines(old.body if old else "", new.body if new else "")
    moved_from = before[0] if before is not None and old is not None and before[0] != path else ""
    status = "added" if old is None else "removed" if new is None else "changed"
    if status == "changed" and moved_from and not fields and not added and not removed:
        status = "moved"
    return NoteChange(status, path, moved_from, known.id or "", known.title, known.kind, fields, added, removed)


def _lines(old: str, new: str) -> tuple[list[str], list[str]]:
    added: list[str] = []
    removed: list[str] = []
    # The first two lines of the form are its head, which a line of a body can look like.
    for line in list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm=""))[2:]:
        if line[:1] in "+-":
            (added if line[0] == "+" else removed).append(line[1:])
    return added, removed
