"""The index of a store as the services see it: searched by words and by meaning, asked for notes and edges.

Each question finds the parts (`index.parts`) brought up to the files, and is answered although one of them was damaged: it
is built again first or, with `rebuilds` off, the answer goes without it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mdmem.index.changes import source_for
from mdmem.index.flush import overlay, waiting_stamp
from mdmem.index.parts import Parts
from mdmem.index.score import Corpus, TextHits
from mdmem.index.text import TextIndexDamaged, query_words

if TYPE_CHECKING:
    from datetime import datetime

    from mdmem.index.asof import View
    from mdmem.index.edges import Neighbour, Step
    from mdmem.index.language import Level

T = TypeVar("T")


class Index(Parts):
    """One store's index, and what it can be asked. Calls from several threads take turns."""

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
            self.brought_up()
            try:
                return self.mended(work)
            except TextIndexDamaged as error:
                if not self.rebuilds:
                    self.notices.append(str(error))
                    return TextHits([], [], 0)
                self.rebuild_text(error)
            return self.mended(work)

    def as_of(self, rev: str, moment: datetime | None = None) -> View:
        """Return the index as it was at a commit (reading half only); kept until something changes. Raises GitFailed."""
        from mdmem.index.asof import view_at

        with self.mutex:
            self.brought_up()
            if self._view is None or self._view.rev != rev or not self._view.current():
                self._view = self.mended(lambda: view_at(self, rev, moment))
            return self._view

    def part_of(self, rev: str, tree: Mapping[str, str]) -> View:
        """Return some notes of a commit (path → blob id), to read and not to search. Raises GitFailed."""
        from mdmem.index.asof import part_at

        with self.mutex:
            self.brought_up()
            return self.mended(lambda: part_at(self, rev, tree))

    # -- meaning

    def vector_search(
        self, query: Any, allowed: Collection[int] | None = None, limit: int = 50, script: bool | None = None
    ) -> list[tuple[int, float]]:
        """Return (window rowid, cosine), best first, among the notes in `allowed`. `query`: a question, or its vector;
        `script`: only windows in a CJK script (True), or only others (False).

        Empty when there is no model or nothing is embedded yet."""
        with self.mutex:
            self.brought_up()
            vector = self._vector(query)
            if vector is None:
                return []
            return self._near(lambda: self.dense.search(self.catalog, vector, allowed, limit, script), [])

    def cosines(self, query: Any, wanted: Sequence[int]) -> dict[int, float]:
        """Return {window rowid: cosine} of the windows in `wanted` that have a vector; `query` as in vector_search."""
        with self.mutex:
            vector = self._vector(query)
            if vector is None:
                return {}
            return self._near(lambda: self.dense.cosines(self.catalog, vector, wanted), {})

    def two_scripts(self, allowed: Collection[int] | None = None, least: int = 1) -> bool:
        """Tell whether the notes in `allowed` have windows of both kinds of script with a vector, `least` of each."""
        with self.mutex:
            return self._near(lambda: self.dense.two_scripts(self.catalog, allowed, least), False)

    def level(self, query: Any, asked: bool, allowed: Collection[int] | None = None) -> Level | None:
        """Return what evens out a question's cosines to windows of two scripts; None where there is one only."""
        with self.mutex:
            return self._near(lambda: self.dense.level(self.catalog, query, asked, allowed), None)

    def window_vectors(self, wanted: Sequence[int]) -> dict[int, Any]:
        """Return {window rowid: its vector} of the windows in `wanted` that have one."""
        with self.mutex:
            return self._near(lambda: self.dense.window_vectors(self.catalog, wanted), {})

    def _vector(self, query: Any) -> Any:
        return self.dense.question(query) if isinstance(query, str) else query

    def _near(self, work: Callable[[], T], without: T) -> T:
        """Return work(), which asks the vectors, or `without` when they are damaged."""
        from mdmem.index.vectors import VectorsDamaged

        try:
            return self.mended(work)
        except VectorsDamaged as error:
            self.lost_vectors(error)
            return without

    # -- notes and edges

    def note_by(self, reference: str, among: Collection[int] | None = None) -> sqlite3.Row:
        """Return the row of `notes` for an id, the start of one, a path, a title, a file name or an alias.

        Knows no scopes: a command for an agent asks `recall.select.note_by`. Raises NotFound, Ambiguous."""
        from mdmem.index import resolve

        with self.mutex:
            self.brought_up()
            return self.mended(lambda: resolve.note_by(self.catalog, reference, among))

    def path_of_id(self, identity: str) -> str | None:
        """Return the path of the store's note with exactly this id, or None."""
        from mdmem.index import resolve

        with self.mutex:
            self.brought_up()
            return self.mended(lambda: resolve.path_of_id(self.catalog, identity))

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
            self.brought_up()
            return self.mended(lambda: edges.neighbours(self.catalog, start, depth, rel, direction, limit, links, among))

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
            self.brought_up()
            return self.mended(lambda: edges.path_between(self.catalog, start, end, depth, direction, rel, among))

    # -- care

    def status(self, without: frozenset[int] | None = None) -> dict[str, Any]:
        """Return what the index holds and what waits; `without`: notes that are not there for whoever asks (see care)."""
        from mdmem.index.care import status

        with self.mutex:
            self.brought_up()
            return self.mended(lambda: status(self, without))

    def verify(self, without: frozenset[int] = frozenset()) -> list[str]:
        """Return one line for each difference between the index and the files; empty when they agree."""
        from mdmem.index.care import verify

        with self.mutex:
            return self.mended(lambda: verify(self, without))
