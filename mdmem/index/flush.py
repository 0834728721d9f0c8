"""From the catalog into the text index: the queue of notes whose words changed, and the rows of a window.

A note stays in the queue until a commit of the text index holds it; doing it twice is harmless. Until then its windows
are searched in memory, so that an added note is found at once and the engine is not loaded for it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mdmem.index.analyzer import tokens
from mdmem.index.catalog import ALIAS, ID, STEM, Catalog, listed
from mdmem.index.segment import Row

if TYPE_CHECKING:
    from mdmem.index.changes import Tell
    from mdmem.index.engine import TextEngine

OVERLAY = 64  # windows that may wait in the queue; more are written
BATCH = 2_000  # windows in one commit
LABELS = 64  # terms of tags that the windows after the first carry
SEARCHED = 1_000  # windows of the queue that a search takes in while a long rebuild goes on


def queued(catalog: Catalog) -> tuple[int, int]:
    """Return how many notes wait in the queue, and how many windows they have."""
    row = catalog.row(
        "SELECT (SELECT count(*) FROM text_queue), (SELECT count(*) FROM windows WHERE note IN (SELECT note FROM text_queue))"
    )
    return (int(row[0]), int(row[1])) if row else (0, 0)


def queue_all(catalog: Catalog) -> None:
    """Put every note into the queue (the text index starts again from nothing)."""
    with catalog.writing() as connection:
        connection.execute("INSERT OR IGNORE INTO text_queue SELECT rowid FROM notes")


def text_rows(connection: sqlite3.Connection, notes: Iterable[int]) -> list[Row]:
    """Return the windows of some notes as the text index takes them, in the order of their rowids.

    The first window of a note also carries its id, file name and aliases, so that these words find it."""
    wanted = listed(notes)
    inside = "IN (SELECT value FROM json_each(?))"
    titles = dict(connection.execute(f"SELECT rowid, title FROM notes WHERE rowid {inside}", (wanted,)).fetchall())
    tags: dict[int, list[str]] = {}
    for note, tag in connection.execute(f"SELECT note, tag FROM tags WHERE note {inside} ORDER BY note, tag", (wanted,)):
        tags.setdefault(note, []).append(tag)
    names: dict[int, list[str]] = {}
    sql = f"SELECT note, key FROM names WHERE note {inside} AND how IN (?, ?, ?) ORDER BY note, how, key"
    for note, key in connection.execute(sql, (wanted, ID, STEM, ALIAS)):
        names.setdefault(note, []).append(key)
    sql = f"SELECT rowid, note, ord, heading, text FROM windows WHERE note {inside} ORDER BY rowid"
    title_terms = {note: tokens(title) for note, title in titles.items()}
    tag_terms = {note: tokens("\n".join(words)) for note, words in tags.items()}
    rows = []
    for rowid, note, number, heading, text in connection.execute(sql, (wanted,)):
        extra = tag_terms.get(note, [])[: None if number == 0 else LABELS]
        if number == 0:
            said = set(title_terms.get(note, ()))
            extra = extra + [term for term in tokens("\n".join(names.get(note, ()))) if term not in said]
        rows.append(Row(rowid, note, (tokens(text), title_terms.get(note, []), tokens(heading) if heading else [], extra)))
    return rows


def flush(catalog: Catalog, text: TextEngine, deadline: float | None = None, tell: Tell | None = None) -> int:
    """Write the queue into the text index, batch by batch; returns how many notes were written.

    The caller holds the index lock. Raises TextIndexDamaged, CatalogDamaged, OSError."""
    written = 0
    total = queued(catalog)[0]
    while deadline is None or time.monotonic() < deadline:
        notes = _next(catalog)
        if not notes:
            break
        text.update(notes, catalog.read(lambda connection, n=notes: text_rows(connection, n)))  # type: ignore[misc]
        with catalog.writing() as connection:
            connection.execute("DELETE FROM text_queue WHERE note IN (SELECT value FROM json_each(?))", (listed(notes),))
        written += len(notes)
        if tell is not None:
            tell(written, max(total, written), "words")
    return written


def _next(catalog: Catalog) -> list[int]:
    """Return the notes of the next commit: up to BATCH windows, at least one note."""
    rows = catalog.rows(
        "SELECT q.note, (SELECT count(*) FROM windows w WHERE w.note = q.note) FROM text_queue q ORDER BY q.note LIMIT ?",
        (BATCH,),
    )
    notes: list[int] = []
    size = 0
    for note, count in rows:
        if notes and size + count > BATCH:
            break
        notes.append(note)
        size += count
    return notes


def waiting_stamp(catalog: Catalog) -> tuple[str, int]:
    """Return what changes whenever a note enters or leaves the queue, or changes in it."""
    sql = "SELECT (SELECT value FROM meta WHERE key = 'changes'), (SELECT count(*) FROM text_queue)"
    row = catalog.row(sql)
    return (str(row[0]), int(row[1])) if row and row[1] else ("", 0)


def overlay(catalog: Catalog) -> tuple[list[int], list[Row]]:
    """Return the queue as a search sees it: the notes to hide in the segments, and their windows now.

    In a rebuild only the newest windows are taken in; the rest is found as the segments have it."""

    def read(connection: sqlite3.Connection) -> tuple[list[int], list[Row]]:
        notes: list[int] = []
        size = 0
        counted = "SELECT q.note, (SELECT count(*) FROM windows w WHERE w.note = q.note) FROM text_queue q"
        for note, windows in connection.execute(f"{counted} ORDER BY q.note DESC LIMIT ?", (SEARCHED,)):
            size += windows
            if notes and size > SEARCHED:
                break
            notes.append(note)
        return notes, text_rows(connection, notes) if notes else []

    return catalog.read(read)
