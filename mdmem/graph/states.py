"""How every note stood at a commit: from the catalog where the file is the same now, else parsed from git."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mdmem.index.asof import is_note
from mdmem.index.rows import when
from mdmem.recall.select import may_read

if TYPE_CHECKING:
    import sqlite3

    from mdmem.notes.note import Note
    from mdmem.store import Store


_COLUMNS = ("id", "path", "kind", "type", "title", "status", "priority", "updated", "scope")


@dataclass(frozen=True)
class State:
    """A note at a commit: what its answers show, and what is compared."""

    id: str
    path: str
    kind: str
    type: str
    title: str
    status: str
    priority: str
    updated: str
    scope: str
    blocked_by: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What a note is known by across commits."""
        return self.id or self.path

    def brief(self) -> dict[str, str]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in _COLUMNS}


def tree(store: Store, rev: str | None) -> dict[str, str]:
    """Return {path of the store: blob} of the notes in a commit; {} for None. Raises GitFailed."""
    from mdmem.repo.history import tree_at

    if rev is None:
        return {}
    found = {}
    for path, blob in tree_at(store.git, rev).items():
        inner = store.from_git(path)
        if inner is not None and is_note(inner) and any(not o or inner.startswith(o.rstrip("/") + "/") for o in store.owned):
            found[inner] = blob
    return found


def states(store: Store, wanted: dict[str, str], kinds: Collection[str], patterns: tuple[str, ...] | None) -> list[State]:
    """Return the notes of these kinds among {path: blob} that may be read, by path."""
    from mdmem.notes.note import load
    from mdmem.notes.schema import default_kind
    from mdmem.repo.history import blobs

    known = {
        (row["path"], row["blob"]): row
        for row in store.index.catalog.rows(f"SELECT {', '.join(_COLUMNS)}, blob, fields FROM notes WHERE folder = ''")
    }
    out: list[State] = []
    unknown: dict[str, str] = {}
    for path, blob in wanted.items():
        row = known.get((path, blob))
        if row is None:
            # What lies among sessions, messages or agents is one of them in all but odd cases.
            if default_kind(path) in kinds or default_kind(path) == "note":
                unknown[path] = blob
        elif row["kind"] in kinds:
            texts = {name: row[name] or "" for name in _COLUMNS}
            out.append(State(**texts, blocked_by=_blocked_by(row)))
    data = blobs(store.git, unknown.values())
    for path, blob in unknown.items():
        if blob in data:
            state = state_of(load(path, data[blob]))
            if state.kind in kinds:
                out.append(state)
    return sorted((state for state in out if may_read(state.scope, patterns)), key=lambda state: state.path)


def _blocked_by(row: sqlite3.Row) -> tuple[str, ...]:
    from mdmem.notes.note import as_list

    if "blocked_by" not in (row["fields"] or ""):
        return ()
    return tuple(as_list(json.loads(row["fields"]).get("blocked_by")))


def state_of(note: Note) -> State:
    """Return the state that a note's text gives."""
    return State(
        note.id or "",
        note.path,
        note.kind,
        note.type,
        note.title,
        note.status,
        note.priority,
        when(note.updated) or "",
        note.scope,
        tuple(note.words("blocked_by")),
    )
