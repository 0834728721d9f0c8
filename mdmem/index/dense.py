"""Vectors of the windows: filling in what is missing, and search by meaning with the catalog's filters.

Any trouble here (no model, damaged files) leaves search by words as it is; it is told once, in `trouble`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError
from mdmem.index.catalog import Catalog, listed
from mdmem.index.embed import Embedder, EmbeddingUnavailable, load_embedder
from mdmem.index.language import SAMPLE, Level, level
from mdmem.index.vectors import Vectors, VectorsDamaged
from mdmem.index.versions import WINDOWS
from mdmem.locks import try_lock

if TYPE_CHECKING:
    from mdmem.config import Config
    from mdmem.index.changes import Tell
    from mdmem.index.window_table import WindowTable

Lock = Callable[[], AbstractContextManager[object]]

CHUNKING = f"windows-{WINDOWS}"
PART = 5_000  # rows of the catalog that are Python objects at a time
BATCH = 32  # windows embedded between two writes: what a kill can lose
COMPACT = 2.0  # rows per living window from which on the file is written anew


class Dense:
    """The vectors of one store. The embedder is chosen by its configuration; nothing is loaded before it is needed."""

    def __init__(self, config: Config, state_dir: Path) -> None:
        self.config = config
        self.state_dir = state_dir
        self.folder = state_dir / "vectors"
        self.trouble = ""
        self._embedder: Embedder | None = None
        self._vectors: Vectors | None = None
        self._windows: WindowTable | None = None
        self._map: tuple[Any, Any] | None = None
        self._pending: tuple[str, list[int]] | None = None  # what it belongs to, windows without a vector
        # Windows by script: what it belongs to, which places, their rows.
        self._masks: dict[bool | None, tuple[Any, Collection[int] | None, Any, Any]] = {}

    def embedder(self) -> Embedder | None:
        """Return the embedder, or None when there is none (`trouble` says why, empty when that is wanted)."""
        if self._embedder is None:
            try:
                self._embedder = load_embedder(self.config, self.state_dir, CHUNKING)
                self.trouble = ""
            except EmbeddingUnavailable as error:
                self._tell(error)
        return self._embedder

    def use(self, embedder: Embedder) -> None:
        """Take an embedder that is loaded already, of the same settings (a process with several stores loads one model)."""
        self._embedder = embedder

    @property
    def loaded(self) -> Embedder | None:
        """The embedder, if it was loaded."""
        return self._embedder

    def beside(self) -> bool:
        """Whether a question can be embedded in a thread of its own: by a model of this process that is ready."""
        return bool(getattr(self._embedder, "ready", False))

    def _tell(self, error: MdmemError) -> None:
        wanted = isinstance(error, EmbeddingUnavailable) and error.wanted
        self.trouble = "" if wanted else f"{error}; searching by words only"

    def vectors(self) -> Vectors | None:
        """Return the stored vectors of the embedder in force, up to date; None without an embedder."""
        embedder = self.embedder()
        if embedder is None:
            return None
        fingerprint, dims = embedder.fingerprint, embedder.dims
        if self._vectors is None or (self._vectors.fingerprint, self._vectors.dims) != (fingerprint, dims):
            self._vectors = Vectors(self.folder, fingerprint, dims)
        else:
            self._vectors.refresh()
        return self._vectors

    def forget(self) -> None:
        """Drop what is open; the next use opens the files again."""
        self._vectors = self._windows = None
        self._map = self._pending = None
        self._masks.clear()

    def rest(self) -> None:
        """Give back the memory that holds the vectors: what is searched next is read again, mostly from the system's cache."""
        vectors = self._vectors  # another thread may be at work
        if vectors is not None:
            vectors.rest()

    def missing(self, catalog: Catalog) -> list[int]:
        """Return the rowids of windows without a vector, one for each text: first windows of notes before later ones,
        newer notes before older. Raises VectorsDamaged."""
        stored = self.vectors()
        if stored is None:
            return []

        def read(connection: sqlite3.Connection) -> list[int]:
            cursor = connection.cursor()
            cursor.row_factory = None
            # By the index on hashes alone, so that no text is read.
            cursor.execute("SELECT rowid, hash FROM windows")
            found: list[int] = []
            while some := cursor.fetchmany(PART):
                have = stored.has([digest for _, digest in some])
                found += [rowid for (rowid, _), known in zip(some, have) if not known]
            return found

        if self._windows is not None:
            # This process has searched: what came since is all that is to be read.
            self._windows.follow(catalog, stored)
        lacking = listed(self._windows.lacking if self._windows is not None else catalog.read(read))
        ordered = catalog.rows(
            "SELECT w.rowid, w.hash FROM windows w JOIN notes n ON n.rowid = w.note "
            "WHERE w.rowid IN (SELECT value FROM json_each(?)) "
            "ORDER BY w.ord / 8, n.kind = 'session', n.updated DESC, w.rowid",
            (lacking,),
        )
        first: dict[str, int] = {}
        for row in ordered:
            first.setdefault(row["hash"], row["rowid"])
        return list(first.values())

    def pending(self, catalog: Catalog) -> int:
        """Return how many texts have no vector yet; 0 without a model. Raises VectorsDamaged."""
        stored = self.vectors()
        if stored is None:
            return 0
        stamp = self._stamp(catalog, stored)
        before, _, count = (catalog.meta("pending") or "").rpartition("=")
        if before == stamp:
            return int(count)
        return len(self._lacking(catalog, stamp))

    def _lacking(self, catalog: Catalog, stamp: str) -> list[int]:
        """Return what `missing` does, found once for each state of catalog and vectors."""
        if self._pending is None or self._pending[0] != stamp:
            self._pending = stamp, self.missing(catalog)
        return self._pending[1]

    def _stamp(self, catalog: Catalog, stored: Vectors) -> str:
        return f"{catalog.meta('epoch')} {catalog.changed()} {stored.fingerprint} {stored.generation} {len(stored)}"

    def newly_complete(self, catalog: Catalog) -> str:
        """Return what to write down in `pending` when no text lacks a vector and the catalog does not say so, else "": a new
        process would count them all, which takes longer than a search."""
        stored = self.vectors()
        if stored is None or self.pending(catalog):
            return ""
        known = f"{self._stamp(catalog, stored)}=0"
        return known if catalog.meta("pending") != known else ""

    def fill(self, catalog: Catalog, lock: Lock, deadline: float | None, tell: Tell | None = None) -> int:
        """Embed windows that have no vector, until the monotonic `deadline`; returns how many texts still lack one. One short
        batch is always done: on a busy machine the time may be over before it begins, and a first note would not be found.

        One process embeds at a time; the index lock is held only to write a batch, so that others save notes meanwhile.
        A kill loses one batch at most. Raises VectorsDamaged, Locked, OSError."""
        left = self.pending(catalog)
        if not left:
            return left
        with try_lock(self.state_dir / "embed.lock") as mine:
            if mine:
                left = self._fill(catalog, lock, deadline, tell)
        return left

    def _fill(self, catalog: Catalog, lock: Lock, deadline: float | None, tell: Tell | None) -> int:
        stored, notes = self.vectors(), catalog.changed()
        if stored is None:
            return 0
        wanted = self._lacking(catalog, self._stamp(catalog, stored))
        total, done = len(wanted), 0
        while done < total and (not done or deadline is None or time.monotonic() < deadline):
            # A short time limit gets short batches: a note just saved is there in time, and the command ends in time.
            part = wanted[done : done + (BATCH if deadline is None or deadline - time.monotonic() > 8 else 4)]
            if not self._embed(catalog, lock, part):
                break
            done += len(part)
            if tell is not None:
                tell(done, total, "meanings")
        stored = self.vectors()
        if stored is not None and done == total:
            # The stamp comes first: what is added from here on makes another one. With nothing added nothing is looked for.
            stamp = self._stamp(catalog, stored)
            left = [] if catalog.changed() == notes else self.missing(catalog)
            self._pending = stamp, left
            with lock():
                catalog.put_meta("pending", f"{stamp}={len(left)}")
        return total - done

    def _embed(self, catalog: Catalog, lock: Lock, rowids: list[int]) -> bool:
        from mdmem.index.rows import embed_text

        embedder, stored = self.embedder(), self.vectors()
        if embedder is None or stored is None:
            return False
        rows = catalog.rows(
            "SELECT w.hash, n.title, w.heading, w.text FROM windows w JOIN notes n ON n.rowid = w.note "
            "WHERE w.rowid IN (SELECT value FROM json_each(?))",
            (listed(rowids),),
        )
        try:
            matrix = embedder.passages([embed_text(row["title"], row["heading"], row["text"]) for row in rows])
        except EmbeddingUnavailable as error:
            self._tell(error)
            return False
        with lock():
            stored.refresh()
            stored.add([row["hash"] for row in rows], matrix)
        return True

    def compact(self, catalog: Catalog) -> int:
        """Drop vectors of texts that no window has any more, when they are many; returns how many went."""
        stored = self.vectors()
        if stored is None:
            return 0
        live = [row[0] for row in catalog.rows("SELECT DISTINCT hash FROM windows")]
        return stored.compact(live) if len(stored) > 64 + COMPACT * len(live) else 0

    def question(self, text: str) -> Any:
        """Return the unit vector of a question, float32 [dims], or None when there is no model."""
        embedder = self.embedder()
        if embedder is None:
            return None
        try:
            return embedder.queries([text])[0]
        except EmbeddingUnavailable as error:
            self._tell(error)
            return None

    def search(
        self, catalog: Catalog, query: Any, allowed: Collection[int] | None, limit: int, script: bool | None = None
    ) -> list[tuple[int, float]]:
        """Return (window rowid, cosine), best first, equal ones by rowid, among windows of the notes in `allowed`.

        `script`: only windows in a CJK script (True), or only others (False). Raises VectorsDamaged."""
        table = self._table(catalog)
        if table is None or limit <= 0:
            return []
        import numpy as np

        stored, rowids, notes, rows, order, distinct, wide = table
        if not len(rows):
            return []
        permitted = None
        if allowed is None and script is None:
            usable = None if len(distinct) == len(stored) else distinct
        else:
            permitted, usable = self._permitted(allowed, notes, rows, wide, script)
            if not len(usable):
                return []
        found = stored.search(query, usable, limit)
        # One text may stand in several windows.
        ordered, wanted = rows[order], np.array([hit.row for hit in found], dtype=np.int64)
        spans = zip(np.searchsorted(ordered, wanted, "left").tolist(), np.searchsorted(ordered, wanted, "right").tolist())
        out: list[tuple[int, float]] = []
        for hit, (start, end) in zip(found, spans):
            for place in order[start:end].tolist():
                if permitted is None or permitted[place]:
                    out.append((int(rowids[place]), hit.cosine))
        out.sort(key=lambda pair: (-pair[1], pair[0]))
        return out[:limit]

    def _permitted(
        self, allowed: Collection[int] | None, notes: Any, rows: Any, wide: Any, script: bool | None
    ) -> tuple[Any, Any]:
        """Return (which places are of allowed notes and of the script, their vector rows); a set that cannot change is looked
        up once."""
        import numpy as np

        from mdmem.index.window_table import marked

        kept = self._masks.get(script)
        same = kept is not None and kept[0] is notes and kept[1] is allowed
        if kept is None or not same or not isinstance(allowed, (frozenset, type(None))):
            mask = np.ones(len(notes), bool) if script is None else wide == script
            if allowed is not None:
                mask &= np.isin(notes, np.fromiter(allowed, dtype=np.int64, count=len(allowed)))
            kept = self._masks[script] = notes, allowed, mask, marked(rows[mask], int(rows.max(initial=-1)) + 1)
        return kept[2], kept[3]

    def cosines(self, catalog: Catalog, query: Any, wanted: Sequence[int]) -> dict[int, float]:
        """Return {window rowid: cosine} for those of `wanted` that have a vector. Raises VectorsDamaged."""
        table = self._table(catalog)
        if table is None or not wanted:
            return {}
        import numpy as np

        windows, rows = self._standing(table, wanted)
        if not len(rows):
            return {}
        matrix = table[0].get(rows).astype(np.float64)
        # Row by row, so that the other rows in the call do not move a digit; as in an exact search.
        found = (matrix * np.asarray(query, dtype=np.float64)).sum(axis=1)
        return dict(zip(windows.tolist(), found.tolist()))

    def _standing(self, table: Any, wanted: Sequence[int]) -> tuple[Any, Any]:
        """Return those windows of `wanted` that have a vector, and its rows."""
        import numpy as np

        _, rowids, _, rows, *_ = table
        asked = np.array(wanted if len(rowids) else (), dtype=np.int64)
        places = np.minimum(np.searchsorted(rowids, asked), len(rowids) - 1)
        there = rowids[places] == asked
        return asked[there], rows[places[there]]

    def level(self, catalog: Catalog, query: Any, asked: bool, allowed: Collection[int] | None) -> Level | None:
        """Return what evens out the cosines to windows of two scripts among the notes in `allowed`; None: one script only.

        `asked`: whether the question is in a CJK script. Raises VectorsDamaged."""
        table = self._table(catalog)
        if table is None or not table[6].any() or table[6].all():
            return None
        import numpy as np

        question = np.asarray(query, np.float32)
        cosines = []
        for script in (asked, not asked):
            rows = self._permitted(allowed, table[2], table[3], table[6], script)[1]
            # Two thousand tell mean and spread well enough.
            rows = rows[:: max(1, len(rows) // SAMPLE)]
            cosines.append(table[0].get(rows) @ question)
        return level(asked, *cosines)

    def two_scripts(self, catalog: Catalog, allowed: Collection[int] | None, least: int = 1) -> bool:
        """Tell whether the notes in `allowed` have windows of both kinds of script with a vector, `least` texts of each. Raises
        VectorsDamaged."""
        table = self._table(catalog)
        if table is None or not table[6].any() or table[6].all():
            return False
        held = (len(self._permitted(allowed, table[2], table[3], table[6], script)[1]) for script in (False, True))
        return all(count >= least for count in held)

    def window_vectors(self, catalog: Catalog, wanted: Sequence[int]) -> dict[int, Any]:
        """Return {window rowid: vector} for those of `wanted` that have one. Raises VectorsDamaged."""
        table = self._table(catalog)
        if table is None or not wanted:
            return {}
        windows, rows = self._standing(table, wanted)
        return dict(zip(windows.tolist(), table[0].get(rows)))

    def _table(self, catalog: Catalog) -> Any:
        """Return (vectors, window rowids, notes, vector rows, places in the order of these, the rows in use, whether each
        window is in a CJK script), kept until something changes."""
        stored = self.vectors()
        if stored is None or not len(stored):
            return None
        import numpy as np

        from mdmem.index.window_table import WindowTable, marked

        stamp = (catalog.meta("epoch"), catalog.changed(), stored.generation, len(stored))
        if self._map is None or self._map[0] != stamp:
            if self._windows is None:
                self._windows = WindowTable()
            self._windows.follow(catalog, stored)
            table = self._windows
            have = table.rows >= 0
            rows = table.rows[have]
            rest = (rows, np.argsort(rows, kind="stable"), marked(rows, len(stored)), table.wide[have])
            self._map = (stamp, (table.rowids[have], table.notes[have], *rest))
        return (stored, *self._map[1])


__all__ = ["BATCH", "Dense", "VectorsDamaged"]
