"""Changing notes: set fields, supersede, edit the body; only the lines of what changes are touched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.errors import BadNote, ConflictFound, Locked, Refused, UsageError
from mdmem.memory.write import commit, subject

if TYPE_CHECKING:
    from mdmem.notes.folder import Folder
    from mdmem.notes.note import Note
    from mdmem.store import Store

KEY = re.compile(r"[A-Za-z_][\w-]{0,63}$")
# Stable identity: a command never changes it, `mdmem fmt --ids` only gives one where there is none.
FIXED = frozenset({"id"})


@dataclass
class Changed:
    """What a change did: paths with their new bytes on disk, and whether they are committed. `notice` names who holds the
    note's lease, if somebody else does."""

    id: str
    path: str
    changed: bool
    committed: bool
    reason: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    notice: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        out: dict[str, Any] = {"id": self.id, "path": self.path, "changed": self.changed, "committed": self.committed}
        if self.reason:
            out["reason"] = self.reason
        if self.fields:
            out["fields"] = self.fields
        if self.notice:
            out["notice"] = self.notice
        return out


def find(store: Store, reference: str) -> tuple[Folder, Note]:
    """Return (folder, note) for an id, an unambiguous prefix, a path or an exact title. Raises NotFound, Ambiguous,
    and Refused for a note of a folder that is only read."""
    from mdmem.recall.select import note_by

    try:
        row = note_by(store, reference)
    except Locked:
        note = _unindexed(store, reference)
        if note is None:
            raise
        return store.folder, note
    outside, path = row["folder"], row["path"]
    if outside == "":
        return store.folder, store.folder.read(path)
    if outside == LOCAL:
        return store.local_folder, store.local_folder.read(path.removeprefix(LOCAL + ":"))
    raise Refused(f"{path} lies in a folder that mdmem only reads", why=f"it belongs to {outside}", hint="change it there")


def _unindexed(store: Store, reference: str) -> Note | None:
    """Return the note of the store that a path or a whole id names, from the files alone: for as long as another process
    builds the index."""
    from mdmem.recall.select import agent_scopes, may_read

    try:
        named = [reference] if store.folder.exists(reference) else []
    except Refused:
        named = []  # no path of the store
    named += [stat.path for stat in store.folder.scan() if reference and stat.path.endswith(f"-{reference}.md")]
    for path in named:
        note = store.folder.read(path)
        if (path == reference or note.id == reference) and may_read(note.scope, agent_scopes(store)):
            return note
    return None


def read_any(store: Store, reference: str) -> Note:
    """Return the note that a reference names, also one of a folder that is only read. Raises NotFound, Ambiguous."""
    from mdmem.notes.note import load
    from mdmem.recall.select import note_by

    row = note_by(store, reference)
    outside = row["folder"]
    if outside in ("", LOCAL):
        return find(store, reference)[1]
    return load(row["path"], store.index.read_bytes(row))


LOCAL = "local"


def set_fields(
    store: Store,
    reference: str,
    values: Mapping[str, Any] | None = None,
    add: Mapping[str, Iterable[str]] | None = None,
    remove: Mapping[str, Iterable[str]] | None = None,
    unset: Iterable[str] = (),
    *,
    stamp_id: bool = True,
) -> Changed:
    """Change fields of one note. A hand-written note without an id gets one. Raises BadNote, UsageError, ConflictFound."""
    folder, note = find(store, reference)
    for attempt in range(5):
        changes = _changes(store, note, dict(values or {}), dict(add or {}), dict(remove or {}), list(unset))
        if not changes:
            return Changed(note.id or "", note.path, False, True)
        _sound(note, changes)
        if stamp_id and not note.get("id") and note.kind != "note":
            changes = {"id": new_id(store, note), **changes}
        changes["updated"] = stamp(store.clock.now())
        try:
            return _apply(store, folder, note, changes, "set")
        except ConflictFound:
            # The file changed since it was read: read it again, the change still means the same.
            if attempt == 4:
                raise
            note = folder.read(note.path)
    raise AssertionError("unreachable")


def _sound(note: Note, changes: Mapping[str, Any]) -> None:
    """Raise UsageError when a change would bring a value that `mdmem check` complains of."""
    from mdmem.notes.frontmatter import edit
    from mdmem.notes.note import load
    from mdmem.notes.schema import validate

    known = {problem.message for problem in validate(note)}
    wrong = [one.message for one in validate(load(note.path, edit(note.data, dict(changes)))) if one.message not in known]
    if wrong:
        raise UsageError(wrong[0], why="mdmem check would complain of it", hint="mdmem schema shows what each field takes")


def _apply(store: Store, folder: Folder, note: Note, changes: dict[str, Any], verb: str) -> Changed:
    from mdmem.notes.frontmatter import edit

    data = edit(note.data, changes)
    folder.write(note.path, data, note.sha)
    identity = str(changes.get("id") or note.id or "")
    if folder is not store.folder:
        return Changed(identity, note.path, True, False, "a local note is never committed", changes)
    done = commit(store, [note.path], subject(verb, note.title))
    return Changed(identity, note.path, True, done.done, done.reason, changes, done.notice)


def new_id(store: Store, note: Note) -> str:
    """Return a fresh id for a hand-written note, of the form that its kind has."""
    from mdmem.notes import names

    if note.kind == "entity":
        return names.entity_id(note.type or "entity", note.title)
    if note.kind == "memory":
        return names.memory_id("memory", note.scope or "shared", note.path + "\n" + note.body)
    return names.time_id(note.kind, store.clock)


def _changes(
    store: Store,
    note: Note,
    values: dict[str, Any],
    add: dict[str, Iterable[str]],
    remove: dict[str, Iterable[str]],
    unset: list[str],
) -> dict[str, Any]:
    """Return {key: new value or None} for what really changes. Redacts values; raises UsageError."""
    from mdmem.notes.redact import redact
    from mdmem.notes.schema import SET_FIELDS, STATUSES
    from mdmem.notes.values import clean

    if not note.ok:
        problem = note.doc.problem
        where = f"line {problem.line}: " if problem and problem.line else ""
        raise BadNote(
            f"{note.path} cannot be changed",
            why=where + (problem.message if problem else "it cannot be parsed"),
            hint="mend it in an editor, then: mdmem check",
        )
    out: dict[str, Any] = {}
    for key in [*values, *add, *remove, *unset]:
        if not KEY.match(key):
            raise UsageError(f"not a field name: {key!r}", hint="mdmem set NOTE key=value")
        if key in FIXED:
            raise UsageError(f"{key} never changes", why="links and other machines know the note by it")
    allowed = STATUSES.get(note.kind)
    if allowed and str(values.get("status", "")) not in ("", *allowed):
        raise UsageError(f"no status is named {values['status']!r}", why=f"of a {note.kind} it is one of {', '.join(allowed)}")
    for key, value in values.items():
        text = clean(redact(str(value)).text)
        new: Any = sorted({part.strip() for part in text.split(",")} - {""}) if key in SET_FIELDS else text
        if key == "scope":
            store.keep_private(text)
        if note.get(key) != new:
            out[key] = new
    for key, more in add.items():
        have = _list(note, key, out)
        new = sorted({*have, *(clean(redact(item).text) for item in more)} - {""})
        if new != have:
            out[key] = new
    for key, less in remove.items():
        have = _list(note, key, out)
        gone = set(less)
        new = [item for item in have if item not in gone]
        if new != have:
            out[key] = new or None
    for key in unset:
        if note.get(key) is not None:
            out[key] = None
    return out


def _list(note: Note, key: str, out: dict[str, Any]) -> list[str]:
    return list(out[key] or []) if key in out else note.words(key)


def set_body(store: Store, reference: str, text: str) -> Changed:
    """Replace the body of one note, its frontmatter stays. Redacts; raises BadNote, ConflictFound, NotFound."""
    from mdmem.notes.frontmatter import edit
    from mdmem.notes.redact import redact

    folder, note = find(store, reference)
    if not note.ok:
        raise BadNote(f"{note.path} cannot be changed", why="it cannot be parsed", hint="mdmem check")
    changes = {"updated": stamp(store.clock.now())} if note.doc.has_block else {}
    data = edit(note.data, changes, body=redact(text).text.rstrip("\n") + "\n")
    folder.write(note.path, data, note.sha)
    if folder is not store.folder:
        return Changed(note.id, note.path, True, False, "a local note is never committed")
    done = commit(store, [note.path], subject("edit", note.title))
    return Changed(note.id, note.path, True, done.done, done.reason, notice=done.notice)


def supersede(store: Store, old: str, new_identity: str) -> list[str]:
    """Mark `old` as superseded by the note with id `new_identity`, linked both ways; returns the paths changed."""
    from mdmem.notes.frontmatter import edit

    folder, note = find(store, old)
    if not note.ok:
        raise BadNote(f"{note.path} cannot be changed", why="it cannot be parsed", hint="mdmem check")
    if note.id == new_identity:
        raise UsageError("a note cannot supersede itself")
    changes: dict[str, Any] = {}
    if note.status != "superseded":
        changes["status"] = "superseded"
    successors = _list(note, "superseded_by", {})
    if new_identity not in successors:
        changes["superseded_by"] = sorted([*successors, new_identity])
    if not changes:
        return []
    changes["updated"] = stamp(store.clock.now())
    folder.write(note.path, edit(note.data, changes), note.sha)
    return [note.path] if folder is store.folder else []
