"""Which window has which row of the vectors: arrays kept in step with the catalog, of which only what came is read.

The rows of a hundred thousand windows take a third of a second to read and, as Python objects, forty megabytes: too much for
each note that is saved. Windows are never changed in what is held here, and their numbers are never used again."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mdmem.index.catalog import Catalog
    from mdmem.index.vectors import Vectors

PART = 5_000  # rows that are Python objects at a time


class WindowTable:
    """`rowids`, `notes` and `rows` int64 [n] (row of the vectors, -1: none yet) and `wide` bool [n], by ascending rowid;
    `lacking`: {window without a vector: hash of its text}."""

    def __init__(self) -> None:
        self._clear(())

    def _clear(self, belongs: tuple[object, ...]) -> None:
        self.rowids = self.notes = self.rows = np.zeros(0, np.int64)
        self.wide = np.zeros(0, bool)
        self.lacking: dict[int, str] = {}
        self._belongs = belongs
        self._vectors = 0

    def follow(self, catalog: Catalog, stored: Vectors) -> None:
        """Bring the arrays up to catalog and vectors. Raises what these raise."""
        belongs = (str(catalog.path), catalog.meta("epoch"), stored.fingerprint, stored.generation)
        if belongs != self._belongs or len(stored) < self._vectors:
            self._clear(belongs)
        last = int(self.rowids[-1]) if len(self.rowids) else 0
        parts, lacking, count = catalog.read(lambda connection: _after(connection, last, stored))
        came = sum(len(part[0]) for part in parts)
        if count != len(self.rowids) + came and len(self.rowids):
            self._keep(catalog.read(lambda connection: _rowids(connection, last)))
        if len(stored) != self._vectors and self.lacking:
            self._fill(stored)
        self._vectors = len(stored)
        if came:
            columns = [np.concatenate(column) for column in zip((self.rowids, self.notes, self.rows, self.wide), *parts)]
            self.rowids, self.notes, self.rows, self.wide = columns
            self.lacking.update(lacking)

    def _keep(self, there: Any) -> None:
        """Drop the windows that are gone; `there`: int64, ascending, those that stand."""
        places = np.minimum(np.searchsorted(there, self.rowids), max(0, len(there) - 1))
        kept = there[places] == self.rowids if len(there) else np.zeros(len(self.rowids), bool)
        self.rowids, self.notes, self.rows, self.wide = (
            column[kept] for column in (self.rowids, self.notes, self.rows, self.wide)
        )
        standing = set(self.rowids[self.rows < 0].tolist())
        self.lacking = {window: digest for window, digest in self.lacking.items() if window in standing}

    def _fill(self, stored: Vectors) -> None:
        """Look up the windows that had no vector."""
        windows = np.array(list(self.lacking), np.int64)
        found = stored.rows_of(list(self.lacking.values()))
        self.rows = self.rows.copy()
        self.rows[np.searchsorted(self.rowids, windows)] = found
        for window in windows[found >= 0].tolist():
            del self.lacking[window]


def _after(connection: sqlite3.Connection, last: int, stored: Vectors) -> tuple[list[Any], dict[int, str], int]:
    """Return ([rowids, notes, rows, wide], …) of the windows above a rowid, what of them has no vector, and how many windows
    there are."""
    cursor = connection.cursor()
    cursor.row_factory = None
    cursor.execute("SELECT rowid, note, hash, wide FROM windows WHERE rowid > ? ORDER BY rowid", (last,))
    parts: list[Any] = []
    lacking: dict[int, str] = {}
    while some := cursor.fetchmany(PART):
        rowids, notes, hashes, wide = zip(*some)
        rows = stored.rows_of(hashes)
        lacking.update((rowids[place], hashes[place]) for place in np.flatnonzero(rows < 0).tolist())
        parts.append((np.array(rowids, np.int64), np.array(notes, np.int64), rows, np.array(wide, bool)))
    return parts, lacking, int(cursor.execute("SELECT count(*) FROM windows").fetchone()[0])


def _rowids(connection: sqlite3.Connection, last: int) -> Any:
    cursor = connection.cursor()
    cursor.row_factory = None
    cursor.execute("SELECT rowid FROM windows WHERE rowid <= ? ORDER BY rowid", (last,))
    return np.fromiter((row[0] for row in cursor), np.int64)


def marked(rows: Any, count: int) -> Any:
    """Return the different ones of some numbers below `count`, ascending: marking them costs less than sorting."""
    mark = np.zeros(count, bool)
    mark[rows] = True
    return np.flatnonzero(mark)
