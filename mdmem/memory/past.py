"""Notes as git had them at a date or revision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdmem.errors import NotFound, typed

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.store import Store


def note_at(store: Store, reference: str, when: str) -> tuple[Note, str]:
    """Return (note, commit) as git had it at a date (first commit at or before) or revision; follows renames.
    Raises NotFound."""
    from mdmem.memory.timeline import outside
    from mdmem.notes.note import load
    from mdmem.recall.select import agent_scopes, may_read, note_by, unreadable
    from mdmem.repo.history import path_at, read_at, resolve

    rev = resolve(store.git, when, store.clock.now())
    try:
        row = note_by(store, reference)
        path = str(row["path"])
    except NotFound:
        # A note that is gone today is known by its path.
        path = reference
        if path.endswith(".md") and store.folder.exists(path):
            raise  # it is there, and not for this agent
    else:
        if row["folder"] != "":
            raise outside(path)
    then = path_at(store.git, store.to_git(path), rev)
    data = read_at(store.git, rev, then) if then else None
    if then is None or data is None:
        raise NotFound(f"{reference} was not there at {when}", hint=typed("mdmem", "history", reference))
    note = load(store.from_git(then) or then, data)
    # It may live on under another name, in a scope that is not for this agent.
    if not may_read(note.scope, agent_scopes(store)) or note.id in unreadable(store):
        raise NotFound(f"{reference} was not there at {when}", hint=typed("mdmem", "history", reference))
    return note, rev
