"""The index of a store as the services see it: refreshed, searched by words and by meaning, asked for notes and edges.

It is derived: every part that turns out to be damaged is rebuilt from the files, or from the part below it, and the
question is then answered. With `rebuilds` off (hooks, requests to the warm process) it answers with what there is.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mdmem.errors import Locked, MdmemError, UsageError
from mdmem.index.catalog import Catalog, CatalogDamaged
from mdmem.index.changes import Known, Source, Tell, source_for
from mdmem.index.engine import TextEngine, text_engine
from mdmem.index.flush import flush, overlay, queue_all, queued, waiting_stamp
from mdmem.index.home import Home, state_places
from mdmem.index.refresh import Refreshed, index_lock, refresh, sources_of
from mdmem.index.score import Corpus, TextHits
from mdmem.index.text import TextIndexDamaged, query_words
from mdmem.index.versions import PARSER, WINDOWS
from mdmem.index.watch import Lookout

if TYPE_CHECKING:
    from datetime import datetime

    from mdmem.index.asof import View
    from mdmem.index.dense import Dense
    from mdmem.index.edges import Neighbour, Step
    from mdmem.index.language import Level

PARTS = ("all", "catalog", "text", "vectors")
HEADER = {"parser": PARSER, "windows": WINDOWS}
BULK = 1_000  # notes written at once that make it worth merging the large segments
EMBED_SECONDS = 0.5  # what a command that did not ask for more spends on vectors

T = TypeVar("T")


class Index:
    """One store's index. Nothing is opened before it is used; used from several threads, calls take turns."""

    def __init__(self, store: Home) -> None:
        self.store = store
        self.rebuilds = True
        self.notices: list[str] = []
        self.mutex = threading.RLock()
        self.locked = False
        self.known = Known()
        self.lookout = Lookout()
        self._catalog: Catalog | None = None
        self._text: TextEngine | None = None
        self._fresh = False
        self._view: View | None = None

    # -- parts

    @cached_property
    def _places(self) -> tuple[Path, Path]:
        return state_places(self.store)

    @property
    def state_dir(self) -> Path:
        """The folder of catalog, text index and vectors."""
        return self._places[0]

    @property
    def lock_path(self) -> Path:
        """The lock of all writers of the index."""
        return self._places[1] / "index.lock"

    @cached_property
    def sources(self) -> list[Source]:
        """The trees of notes that are indexed."""
        return sources_of(self.store)

    @cached_property
    def dense(self) -> Dense:
        """The vectors; loaded on first use, since a search by words does without."""
        from mdmem.index.dense import Dense

        return Dense(self.store.config, self.state_dir)

    @property
    def catalog(self) -> Catalog:
        """The catalog, made anew when it is absent or damaged (a notice says so). Raises CatalogBusy."""
        if self._catalog is not None and self._catalog.replaced():
            self._drop()
        if self._catalog is None:
            path = self.state_dir / "catalog.db"
            try:
                self._catalog = Catalog(path, HEADER)
            except FileNotFoundError:
                self._catalog = self._make_catalog("")
            except CatalogDamaged as error:
                self._catalog = self._make_catalog(f"{error}; it is built again from the files")
        return self._catalog

    def _make_catalog(self, notice: str) -> Catalog:
        path = self.state_dir / "catalog.db"
        with index_lock(self, 10.0):
            try:
                return Catalog(path, HEADER)  # another process was quicker
            except (FileNotFoundError, CatalogDamaged):
                pass
            if notice:
                self.notices.append(notice)
            made = Catalog.create(path, HEADER)
            self._text = None
            return made

    def close(self) -> None:
        """Give back descriptors and what is kept in memory; used again, it opens again.

        This object stands in circles (store, view), so without it they would be held until Python's collector runs."""
        with self.mutex:
            self._drop()

    def _drop(self) -> None:
        if self._catalog is not None:
            self._catalog.close()
        self._catalog = None
        self._text = None
        self._view = None
        self.known.forget()
        self.lookout.close()
        if "dense" in self.__dict__:
            self.dense.forget()

    @property
    def text(self) -> TextEngine:
        """The text index of this catalog, on the engine of the user's choice."""
        if self._text is None:
            made, notice = text_engine(self.store.config, self.state_dir / "text", self.catalog.meta("epoch") or "")
            self._text = made
            if notice:
                self.notices.append(notice)
        return self._text

    def start_text(self) -> None:
        """Make an empty text index and queue every note for it. The caller holds the lock."""
        queue_all(self.catalog)
        self.text.create()

    def flush(self, deadline: float | None = None, tell: Tell | None = None) -> int:
        """Write waiting notes into the text index, rebuilding a damaged one; returns how many. The caller holds the lock.

        What a first build or a large pull left in many pieces is merged at once: it took long anyway."""
        try:
            written = flush(self.catalog, self.text, deadline, tell)
        except TextIndexDamaged as error:
            self.notices.append(f"{error}; it is built again from the catalog")
            self.start_text()
            written = flush(self.catalog, self.text, deadline, tell)
        if written >= BULK and deadline is None and self.text.scattered():
            self.text.optimize()
        return written

    def clear_vectors(self, error: MdmemError | None = None) -> str:
        """Delete the vectors; returns the notice. They are made again by the following commands."""
        import shutil

        with index_lock(self, 10.0):
            self.dense.forget()
            shutil.rmtree(self.state_dir / "vectors", ignore_errors=True)
        return f"{error or 'vectors were deleted'}; they are made again, meanwhile search goes by words"

    # -- keeping up

    def refresh(
        self,
        budget_s: float | None = None,
        embed_budget_s: float | None = EMBED_SECONDS,
        progress: Tell | None = None,
        paths: Iterable[str] | None = None,
        wait_s: float = 2.0,
    ) -> Refreshed:
        """Fold in every file that changed outside, and embed what lacks a vector; returns what was done.

        `budget_s`: seconds for reading files (None: all of them). `embed_budget_s`: seconds for vectors (None: all, 0: none).
        `paths`: look at these alone (as they stand in the catalog). `wait_s`: how long to wait for another writer.
        `progress(done, total, what)` is called between batches. Never raises for a damaged part: it is rebuilt."""
        named = list(paths) if paths is not None else None

        def work() -> Refreshed:
            return refresh(self, budget_s, embed_budget_s, progress, named, wait_s)

        with self.mutex:
            out = self._mended(work)
            self._fresh = True
            out.notices = [*self.take_notices(), *out.notices]
            return out

    def take_notices(self) -> list[str]:
        """Return what a person should know about repairs, and forget it."""
        told, self.notices = list(dict.fromkeys(self.notices)), []
        return told

    def _mended(self, work: Callable[[], T]) -> T:
        """Return work(); when the catalog turns out to be damaged, it is rebuilt and the work done once more."""
        try:
            return work()
        except CatalogDamaged as error:
            if not self.rebuilds:
                raise
            self._replace_catalog(f"{error}; it is built again from the files")
        return work()

    def _replace_catalog(self, notice: str) -> None:
        with index_lock(self, 10.0):
            self._drop()
            self.notices.append(notice)
            self._catalog = Catalog.create(self.state_dir / "catalog.db", HEADER)

    def _ensure(self) -> Catalog:
        """Return the catalog, brought up to the files once in the life of this object."""
        if not self._fresh and self.rebuilds:
            notices = self.refresh(embed_budget_s=0.0).notices
            self.notices += notices
        return self.catalog

    # -- words

    def corpus(self, without: frozenset[int] = frozenset()) -> Corpus:
        """Return all windows as one searchable corpus: the text index, and on top what waits to be written.

        `without`: notes (rowids) that are not there for whoever asks; they count in no statistic."""
        # The queue is looked at before the segments: a note that is written meanwhile is then hidden there, not lost here.
        stamp = (waiting_stamp(self.catalog), without)
        kept = self.text.kept(stamp)
        if kept is not None:
            return kept
        waiting, fresh = overlay(self.catalog)
        rows = [row for row in fresh if row.note not in without] if without else fresh
        return self.text.corpus(without.union(waiting) if without else waiting, rows, stamp)

    def text_hits(
        self,
        query: str | Sequence[tuple[str, float]],
        allowed: Collection[int] | None = None,
        limit: int = 50,
        without: frozenset[int] = frozenset(),
    ) -> TextHits:
        """Return the best windows by BM25F among the notes in `allowed` (rowids; None: all), with the evidence.

        `query` is a person's text, taken literally, or (term, weight) pairs as query_words makes them.
        `without`: see corpus."""
        words = query_words(query) if isinstance(query, str) else list(query)

        def work() -> TextHits:
            return self.text.search(self.corpus(without), words, allowed, limit)

        return self._searched(work)

    def text_search(self, query: str, allowed: Collection[int] | None = None, limit: int = 50) -> list[tuple[int, float]]:
        """Return (window rowid, BM25F score), best first; see text_hits."""
        return [(hit.window, hit.score) for hit in self.text_hits(query, allowed, limit).hits]

    def syntax_hits(
        self, query: str, allowed: Collection[int] | None = None, limit: int = 50, without: frozenset[int] = frozenset()
    ) -> TextHits:
        """Return the windows that a query in Whoosh's language fits. Raises UsageError when it cannot be read."""
        from mdmem.index.syntax import search

        return self._searched(lambda: search(self, query, allowed, limit, without))

    def _searched(self, work: Callable[[], TextHits]) -> TextHits:
        with self.mutex:
            self._ensure()
            try:
                return self._mended(work)
            except TextIndexDamaged as error:
                if not self.rebuilds:
                    self.notices.append(str(error))
                    return TextHits([], [], 0)
                self._rebuild_text(error)
            return self._mended(work)

    def _rebuild_text(self, error: TextIndexDamaged) -> None:
        try:
            with index_lock(self, 10.0):
                if not self.text.replaced():
                    self.notices.append(f"{error}; it is built again from the catalog")
                    self.start_text()
                    self.flush()
        except Locked:
            self.notices.append("another mdmem process is rebuilding the text index")

    def as_of(self, rev: str, moment: datetime | None = None) -> View:
        """Return the index as it was at a commit (reading half only); kept until something changes. Raises GitFailed."""
        from mdmem.index.asof import view_at

        with self.mutex:
            self._ensure()
            if self._view is None or self._view.rev != rev or not self._view.current():
                self._view = self._mended(lambda: view_at(self, rev, moment))
            return self._view

    # -- meaning

    def vector_search(
        self, query: Any, allowed: Collection[int] | None = None, limit: int = 50, script: bool | None = None
    ) -> list[tuple[int, float]]:
        """Return (window rowid, cosine), best first, among the notes in `allowed`. `query`: a question, or its vector;
        `script`: only windows in a CJK script (True), or only others (False).

        Empty when there is no model or nothing is embedded yet."""
        from mdmem.index.vectors import VectorsDamaged

        with self.mutex:
            self._ensure()
            vector = self.dense.question(query) if isinstance(query, str) else query
            if vector is None:
                return []
            try:
                return self._mended(lambda: self.dense.search(self.catalog, vector, allowed, limit, script))
            except VectorsDamaged as error:
                self._lost_vectors(error)
                return []

    def cosines(self, query: Any, wanted: Sequence[int]) -> dict[int, float]:
        """Return {window rowid: cosine} of the windows in `wanted` that have a vector; `query` as in vector_search."""
        from mdmem.index.vectors import VectorsDamaged

        with self.mutex:
            vector = self.dense.question(query) if isinstance(query, str) else query
            if vector is None:
                return {}
            try:
                return self._mended(lambda: self.dense.cosines(self.catalog, vector, wanted))
            except VectorsDamaged as error:
                self._lost_vectors(error)
                return {}

    def level(self, query: Any, asked: bool, allowed: Collection[int] | None = None) -> Level | None:
        """Return what evens out a question's cosines to windows of two scripts; None where there is one only."""
        from mdmem.index.vectors import VectorsDamaged

        with self.mutex:
            try:
                return self._mended(lambda: self.dense.level(self.catalog, query, asked, allowed))
            except VectorsDamaged as error:
                self._lost_vectors(error)
                return None

    def window_vectors(self, wanted: Sequence[int]) -> dict[int, Any]:
        """Return {window rowid: its vector} of the windows in `wanted` that have one."""
        from mdmem.index.vectors import VectorsDamaged

        with self.mutex:
            try:
                return self._mended(lambda: self.dense.window_vectors(self.catalog, wanted))
            except VectorsDamaged as error:
                self._lost_vectors(error)
                return {}

    def _lost_vectors(self, error: MdmemError) -> None:
        if self.rebuilds and error.code != "vectors_unreadable":
            self.notices.append(self.clear_vectors(error))
        else:
            self.notices.append(f"{error}; searching by words only")

    # -- notes and edges

    def note_by(self, reference: str, among: Collection[int] | None = None) -> sqlite3.Row:
        """Return the row of `notes` for an id, the start of one, a path, a title, a file name or an alias.

        Knows no scopes: a command for an agent asks `recall.select.note_by`. Raises NotFound, Ambiguous."""
        from mdmem.index import resolve

        with self.mutex:
            self._ensure()
            return self._mended(lambda: resolve.note_by(self.catalog, reference, among))

    def path_of_id(self, identity: str) -> str | None:
        """Return the path of the store's note with exactly this id, or None."""
        from mdmem.index import resolve

        with self.mutex:
            self._ensure()
            return self._mended(lambda: resolve.path_of_id(self.catalog, identity))

    def read_bytes(self, row: sqlite3.Row) -> bytes:
        """Return the bytes of the file behind a row of `notes`. Raises NotFound, Refused."""
        path = str(row["path"])
        source = source_for(self.sources, path)
        assert source is not None
        return source.folder.read_bytes(path[len(source.prefix) :])

    def neighbours(
        self,
        notes: int | Iterable[int],
        depth: int = 1,
        rel: Iterable[str] | None = None,
        direction: str = "both",
        limit: int | None = None,
        links: bool = True,
        among: Collection[int] | None = None,
    ) -> list[Neighbour]:
        """Return the notes within `depth` edges of one or some notes (rowids); see edges.neighbours."""
        from mdmem.index import edges

        start = [notes] if isinstance(notes, int) else list(notes)
        with self.mutex:
            self._ensure()
            return self._mended(lambda: edges.neighbours(self.catalog, start, depth, rel, direction, limit, links, among))

    def path_between(
        self,
        start: int,
        end: int,
        depth: int = 6,
        direction: str = "both",
        rel: Iterable[str] | None = None,
        among: Collection[int] | None = None,
    ) -> tuple[Step, ...] | None:
        """Return the edges of a shortest way between two notes (rowids), or None."""
        from mdmem.index import edges

        with self.mutex:
            self._ensure()
            return self._mended(lambda: edges.path_between(self.catalog, start, end, depth, direction, rel, among))

    # -- care

    def status(self, without: frozenset[int] | None = None) -> dict[str, Any]:
        """Return what the index holds and what waits; `without`: notes that are not there for whoever asks (see care)."""
        from mdmem.index.care import status

        with self.mutex:
            self._ensure()
            return self._mended(lambda: status(self, without))

    def verify(self, without: frozenset[int] = frozenset()) -> list[str]:
        """Return one line for each difference between the index and the files; empty when they agree."""
        from mdmem.index.care import verify

        with self.mutex:
            return self._mended(lambda: verify(self, without))

    def rebuild(self, part: str = "all") -> None:
        """Throw away a part (all, catalog, text, vectors); the next refresh makes it anew. Raises UsageError, Locked."""
        if part not in PARTS:
            raise UsageError(f"the index has no part {part!r}", why=f"it is one of {', '.join(PARTS)}")
        with self.mutex, index_lock(self, 30.0):
            if part in ("all", "catalog"):
                self._drop()
                self._catalog = Catalog.create(self.state_dir / "catalog.db", HEADER)
            if part in ("all", "catalog", "text"):
                self.start_text()
            if part in ("all", "vectors"):
                self.clear_vectors()
            self._fresh = False

    def maintain(self, thorough: bool = False) -> bool:
        """Do what is kept off the hot path: write the queue, merge segments once they are many, drop unused vectors.

        `thorough`: merge all segments into one. Returns whether anything was done. Raises Locked."""
        with self.mutex, index_lock(self, 10.0):
            written = self.flush() if queued(self.catalog)[0] else 0
            merged = (thorough or self.text.worn()) and self.text.optimize()
            return bool(written or merged or self.dense.compact(self.catalog))
