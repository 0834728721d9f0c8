"""Which note a person means: an id or the start of one, a path, a title, a file name or an alias."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from mdmem.errors import Ambiguous, NotFound
from mdmem.index.catalog import ID, Catalog, listed
from mdmem.index.edges import look_up, target_key

SHORTEST = 4  # characters of an id's beginning


def note_by(catalog: Catalog, reference: str, among: Collection[int] | None = None) -> sqlite3.Row:
    """Return the row of `notes` that a reference names; raises NotFound, or Ambiguous with the candidates.

    `among`: the notes (rowids) that there are for whoever asks; None: all."""
    key = target_key(reference)
    notes, _ = catalog.read(lambda connection: look_up(connection, key, "", among))
    if not notes and len(key) >= SHORTEST:
        notes = _by_beginning(catalog, key, among) or _by_beginning(catalog, "mem-" + key, among)
    if not notes:
        raise NotFound(f"no note is named {reference!r}", hint='look for it: mdmem recall "…", or: mdmem list')
    rows = catalog.rows("SELECT * FROM notes WHERE rowid IN (SELECT value FROM json_each(?)) ORDER BY path", (listed(notes),))
    if len(rows) == 1:
        return rows[0]
    if not rows:
        raise NotFound(f"no note is named {reference!r}")
    # Names that differ only in case or in how an accent is written are looked up as one: said to the letter, one is meant.
    exact = [row for row in rows if reference.removeprefix("./") in (row["path"], row["id"])]
    if len(exact) == 1:
        return exact[0]
    some = ", ".join(f"{row['id'] or row['path']} ({row['path']})" if row["id"] else row["path"] for row in rows[:5])
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    raise Ambiguous(f"{reference!r} fits {len(rows)} notes", why=some + more, hint="give the path or the whole id")


def _by_beginning(catalog: Catalog, key: str, among: Collection[int] | None) -> list[int]:
    some = "LIMIT 100" if among is None else ""
    rows = catalog.rows(
        f"SELECT DISTINCT note FROM names WHERE key >= ? AND key < ? AND how = ? {some}", (key, key + "\U0010ffff", ID)
    )
    return [row["note"] for row in rows if among is None or row["note"] in among]


def path_of_id(catalog: Catalog, identity: str) -> str | None:
    """Return the path of the note with exactly this id (the first, if there are several), or None."""
    found = catalog.value("SELECT path FROM notes WHERE id = ? AND folder = '' ORDER BY path", (identity,))
    return None if found is None else str(found)
