"""Rows for the context of a session: from the catalog by SQL alone, and from files that are newer than the catalog.

Nothing is built or written here; a catalog that cannot be read gives no rows.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]

# Seconds that a busy catalog is waited for.
PATIENCE = 0.25
# Files newer than the catalog that are read at most, the newest first.
FRESH = 60
# Bytes of a fresh file that are read.
FRESH_BYTES = 64 << 10

COLUMNS = (
    "n.rowid, n.path, n.id, n.kind, n.type, n.title, n.summary, n.scope, n.agent, n.device, n.session, n.status, n.priority, "
    "n.tier, n.pinned, n.importance, n.initiative, n.due, n.expires, n.created, n.updated, n.folder, n.fields"
)
_FOLDERS = ("memories", "tasks", "messages", "entities", "sessions", "claude")


class CatalogRows:
    """A read-only look at a store's catalog."""

    def __init__(self, state_dir: str) -> None:
        self.path = os.path.join(state_dir, "catalog.db")
        self.connection: sqlite3.Connection | None = None
        name = "file:" + self.path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=rw"
        try:
            connection = sqlite3.connect(name, uri=True, timeout=PATIENCE, isolation_level=None)
            connection.execute("PRAGMA query_only = 1")
            connection.execute("SELECT 1 FROM notes LIMIT 1")
            connection.row_factory = sqlite3.Row
            self.connection = connection
        except sqlite3.Error:
            self.connection = None

    def notes(self, where: str, values: Sequence[Any], order: str, limit: int) -> list[Row]:
        """Return the notes that fit a condition on `n` (good notes of the store and the user's local ones).

        First the rowids alone, then the whole rows: a note's fields make rows long, and sorting them takes most of the time.
        """
        found = self.rows(
            f"SELECT n.rowid AS rowid FROM notes n WHERE n.folder IN ('', 'local') AND n.state = 'ok' AND {where} "
            f"ORDER BY {order} LIMIT {int(limit)}",
            values,
        )
        marks = ",".join("?" * len(found))
        rows = self.rows(f"SELECT {COLUMNS} FROM notes n WHERE n.rowid IN ({marks})", [row["rowid"] for row in found])
        by_id = {row["rowid"]: row for row in rows}
        return [by_id[row["rowid"]] for row in found if row["rowid"] in by_id]

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query, [] when the catalog cannot be read."""
        if self.connection is None:
            return []
        try:
            return [dict(row) for row in self.connection.execute(sql, values)]
        except sqlite3.Error:
            return []

    def text(self, row: Row) -> str:
        """Return the beginning of a note's body, as the catalog's windows have it."""
        if "text" in row:
            return str(row["text"])
        found = self.rows("SELECT text FROM windows WHERE note = ? ORDER BY ord LIMIT 2", (row["rowid"],))
        return "\n".join(str(window["text"]) for window in found)

    def mentions(self, words: Sequence[str], notes: Sequence[int]) -> dict[int, int]:
        """Return {note rowid: how many of these words (plain substrings) stand in one of its windows} for these notes."""
        if not words or not notes:
            return {}
        count = " + ".join("(instr(lower(w.text), ?) > 0)" for _ in words)
        found = self.rows(
            f"SELECT w.note AS note, max({count}) AS hits FROM windows w WHERE w.note IN ({','.join('?' * len(notes))}) "
            f"GROUP BY w.note HAVING hits > 0",
            [*(word.lower() for word in words), *notes],
        )
        return {row["note"]: row["hits"] for row in found}

    def size(self) -> int:
        """Return about how many notes there are (the highest rowid), 0 when the catalog cannot be read."""
        found = self.rows("SELECT max(rowid) AS n FROM notes")
        return int(found[0]["n"] or 0) if found else 0

    def close(self) -> None:
        """Close the connection."""
        if self.connection is not None:
            self.connection.close()


def fields_of(row: Row) -> Row:
    """Return all of a note's fields by name."""
    try:
        found = json.loads(row.get("fields") or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def fresh_rows(root: str, state_dir: str, owned: Sequence[str]) -> list[Row]:
    """Return rows for notes that came after the catalog was last written (a pull, an editor), newest first, at most FRESH.

    Only folders whose own time is newer are looked into, so that this costs nothing in the usual case.
    """
    since = 0
    for name in ("catalog.db", "catalog.db-wal"):
        try:
            found_file = os.stat(os.path.join(state_dir, name))
            # A reader makes an empty journal: that says nothing about when the catalog was written.
            if found_file.st_size:
                since = max(since, found_file.st_mtime_ns)
        except OSError:
            continue
    found: list[tuple[int, str]] = []
    for folder in _FOLDERS:
        if owned == [""] or folder in owned:
            _newer(os.path.join(root, folder), since, found, 3)
    found.sort(reverse=True)
    rows = []
    for _, path in found[:FRESH]:
        row = _row(root, path)
        if row is not None:
            rows.append(row)
    return rows


def _newer(folder: str, since: int, found: list[tuple[int, str]], depth: int) -> None:
    try:
        changed = os.stat(folder).st_mtime_ns > since
        with os.scandir(folder) as entries:
            below = []
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.name.endswith(".md"):
                    if not changed:
                        # Memories lie flat: nothing new here, and no folder below.
                        break
                    status = entry.stat(follow_symlinks=False)
                    if status.st_mtime_ns > since and entry.is_file(follow_symlinks=False):
                        found.append((status.st_mtime_ns, entry.path))
                elif depth and entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
    except OSError:
        return
    for path in below:
        _newer(path, since, found, depth - 1)


def _row(root: str, path: str) -> Row | None:
    from mdmem.notes.note import load

    try:
        with open(path, "rb") as stream:
            data = stream.read(FRESH_BYTES)
    except OSError:
        return None
    note = load(os.path.relpath(path, root).replace(os.sep, "/"), data)
    if not note.ok:
        return None
    fields = note.effective()
    row: Row = {
        name: note.text(name) or None
        for name in (
            "id", "summary", "agent", "device", "session", "status", "priority", "tier", "due", "expires", "created",
            "updated",
        )
    }  # fmt: skip
    row |= {"rowid": None, "path": note.path, "kind": note.kind, "type": note.type, "title": note.title, "folder": ""}
    row["scope"] = note.scope or None
    row |= {"pinned": int(note.pinned), "importance": note.importance, "initiative": next(iter(note.words("initiative")), None)}
    row |= {"fields": json.dumps(fields), "text": note.body}
    row["updated"] = row["updated"] or "9999"
    return row
