"""What tasks and messages share: making, finding and changing a note of one kind, all of it offline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.errors import Ambiguous, BadNote, ConflictFound, NotFound, UsageError
from mdmem.memory.leasing import warnings
from mdmem.memory.write import commit, subject

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.store import Store

FOLDERS = {"task": "tasks", "message": "messages"}


def gate(text: str) -> str:
    """Return a text given to mdmem with secrets and control characters taken out."""
    from mdmem.notes.redact import redact
    from mdmem.notes.values import clean

    return clean(redact(text).text)


def all_of(store: Store, kind: str) -> list[Note]:
    """Return every note of a kind in its own folder that this agent may read, by path. Reads files: it is right also
    without an index."""
    from mdmem.notes.scan import Scan
    from mdmem.recall.select import agent_scopes, may_read

    patterns = agent_scopes(store)
    found = []
    for entry in Scan(store.root, (FOLDERS[kind],)):
        note = store.folder.read(entry.path)
        if note.ok and note.kind == kind and may_read(note.scope, patterns):
            found.append(note)
    return sorted(found, key=lambda note: note.path)


def find(store: Store, kind: str, reference: str) -> Note:
    """Return the one note of a kind that an id, unambiguous prefix, path or exact title names. Raises NotFound, Ambiguous."""
    wanted = reference.strip()
    notes = all_of(store, kind)
    for test in _tests(wanted):
        fits = [note for note in notes if test(note)]
        if len(fits) == 1:
            return fits[0]
        if fits:
            names = ", ".join(note.id or note.path for note in fits[:5])
            raise Ambiguous(f"{reference!r} fits {len(fits)} {kind}s", why=names, hint="use the whole id")
    raise NotFound(f"no {kind} is named {reference!r}", hint=f"mdmem {'task list' if kind == 'task' else 'inbox'}")


def _tests(wanted: str) -> list[Callable[[Note], bool]]:
    low = wanted.lower()
    return [
        lambda note: note.id == wanted or note.path == wanted,
        lambda note: note.title.lower() == low,
        lambda note: len(wanted) >= 4 and (note.id or "").startswith(wanted),
        # The random end of a time-ordered id is what people copy.
        lambda note: len(wanted) >= 6 and (note.id or "").endswith(wanted),
    ]


def change(
    store: Store,
    note: Note,
    make: Callable[[Note], Mapping[str, Any]],
    verb: str,
    *,
    batch: bool = False,
    body: str | None = None,
) -> tuple[Note, bool, str]:
    """Apply `make(note)` to a note, again on the newer text when it changed meanwhile.

    Returns (note as written, committed, reason). With `batch` the commit is left to the next sync or session end.
    """
    from mdmem.notes.frontmatter import edit

    for _ in range(5):
        if not note.ok:
            raise BadNote(f"{note.path} cannot be changed", why="it cannot be parsed", hint="mdmem check")
        changes = dict(make(note))
        if not changes and body is None:
            return note, True, ""
        changes["updated"] = stamp(store.clock.now())
        try:
            store.folder.write(note.path, edit(note.data, changes, body=body), note.sha)
            break
        except ConflictFound:
            note = store.folder.read(note.path)
    else:
        raise ConflictFound(f"{note.path} keeps changing under this command", hint="try again")
    written = store.folder.read(note.path)
    if batch:
        store.notices += warnings(store, [note.path])
        return written, False, ""
    done = commit(store, [note.path], subject(verb, note.title))
    return written, done.done, done.reason


def create(
    store: Store, path: str, fields: Mapping[str, Any], text: str, verb: str, *, batch: bool = False
) -> tuple[Note, bool, str]:
    """Write a new note; returns (note, committed, reason)."""
    from mdmem.notes.frontmatter import render

    kept = {key: value for key, value in fields.items() if value not in ("", [], None)}
    if not str(kept.get("title", "x")).strip():
        raise UsageError("a title is needed")
    store.folder.create(path, render(kept, text + "\n" if text else ""))
    note = store.folder.read(path)
    if batch:
        return note, False, ""
    done = commit(store, [path], subject(verb, note.title))
    return note, done.done, done.reason
