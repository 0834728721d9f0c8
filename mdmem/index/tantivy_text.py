"""The text index on tantivy: its postings choose candidates, our formula scores them, so that ranks are those of Whoosh.

tantivy scores BM25 per field with lengths rounded to one byte; ours is BM25F with exact lengths. So one field holds the terms
of all fields (the title's twice, as its boost says), tantivy's order over it gives more candidates than are wanted, and the
frequencies of each (tantivy_rows.py) are scored again as in score.py. A second field holds each note's terms once, for
questions about whole notes. Which engine is in a folder is told by its header file; the same folder serves either.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import tantivy

from mdmem.index.engine import Health
from mdmem.index.score import Corpus, Settings, TextHits
from mdmem.index.segment import FIELDS, Row, frequencies
from mdmem.index.tantivy_corpus import TantivyCorpus, TantivySegment
from mdmem.index.tantivy_rows import Place, RowFiles, pack
from mdmem.index.text import TextIndexDamaged
from mdmem.index.versions import ANALYZER

HEADER_FILE = "tantivy.json"
META = "meta.json"
HEADER = {"engine": "tantivy", "format": 2, "analyzer": ANALYZER}
HEAP = 64_000_000  # bytes of a writer
MERGE_AT = 8
SLACK = 4_000_000  # bytes of rows of notes that are gone which do not count
_REPEATS = (1, 2, 1, 2)  # how often the terms of each field stand in the field of candidates
_TRIES = 4

T = TypeVar("T")


def schema() -> Any:
    """Return tantivy's schema of a window."""
    made = tantivy.SchemaBuilder()
    made.add_text_field("all", tokenizer_name="whitespace", index_option="freq")
    made.add_text_field("whole", tokenizer_name="whitespace", index_option="basic")
    made.add_unsigned_field("note", indexed=True, fast=True)
    made.add_unsigned_field("window", fast=True)
    made.add_unsigned_field("first", indexed=True)
    for number in range(len(FIELDS)):
        made.add_unsigned_field(f"length{number}", fast=True)
    for name in Place._fields:
        made.add_unsigned_field(name, fast=True)
    return made.build()


class TantivyText:
    """The text index in a folder, as text.TextIndex. `epoch` names the catalog whose rowids it holds."""

    def __init__(self, folder: Path, epoch: str, settings: Settings | None = None) -> None:
        self.folder = folder
        self.header = {**HEADER, "library": tantivy.__version__, "epoch": epoch}
        self.settings = settings or Settings()
        self.looked_at: tuple[int, ...] | None = None
        self._index: Any = None
        self._stamp: tuple[int, ...] | None = None
        self._corpus: tuple[Any, TantivyCorpus] | None = None

    def create(self) -> None:
        """Make it empty, in the place of whatever is there."""
        self._forget()
        if self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, mode=0o700)

        def work() -> None:
            tantivy.Index(schema(), path=str(self.folder))
            # The header comes last: without it there is no index.
            path = self.folder / HEADER_FILE
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
                json.dump(self.header, stream)

        self._guarded(work)

    def exists(self) -> bool:
        """Tell whether there is a text index of this engine (not whether it is sound)."""
        return (self.folder / HEADER_FILE).exists()

    def _forget(self) -> None:
        self._index, self._stamp, self._corpus = None, None, None

    def stamp(self) -> tuple[int, ...] | None:
        """Return what tells one generation from another, None when there is none."""
        try:
            header, meta = os.stat(self.folder / HEADER_FILE), os.stat(self.folder / META)
        except FileNotFoundError:
            return None
        return header.st_ino, header.st_mtime_ns, meta.st_ino, meta.st_mtime_ns, meta.st_size

    def replaced(self) -> bool:
        """Tell whether the generation that was last looked at is no longer the latest."""
        return self.stamp() != self.looked_at

    def _open(self) -> Any:
        """Return the index at its latest generation."""
        stamp = self.looked_at = self.stamp()
        if stamp is None or self._index is None or self._stamp is None or stamp[:2] != self._stamp[:2]:
            with open(self.folder / HEADER_FILE, encoding="utf-8") as stream:
                if json.load(stream) != self.header:
                    raise ValueError("it was written by another version, or for another catalog")
            self._index = tantivy.Index.open(str(self.folder))
            # No watching thread: the files are looked at before each search.
            self._index.config_reader("manual")
        if stamp != self._stamp:
            self._index.reload()
            self._stamp, self._corpus = stamp, None
        return self._index

    def _guarded(self, work: Callable[[], T]) -> T:
        """Return work(); a fault becomes TextIndexDamaged, unless another process has just written and a new try helps."""
        for attempt in range(_TRIES):
            before = self.stamp()
            try:
                return work()
            except (MemoryError, KeyboardInterrupt, SystemExit, TextIndexDamaged):
                raise
            except BaseException as error:  # a panic of the library is no Exception
                self._forget()
                if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
                    raise
                if attempt + 1 == _TRIES or self.stamp() == before:
                    why = f"{type(error).__name__}: {error}"
                    raise TextIndexDamaged("the text index cannot be used", why=why) from error
        raise AssertionError("unreachable")

    def kept(self, stamp: Any) -> TantivyCorpus | None:
        """Return the corpus that was made last, when neither the index nor `stamp` has changed since."""
        self._guarded(self._open)
        return self._corpus[1] if self._corpus is not None and self._corpus[0] == stamp else None

    def corpus(self, gone: Collection[int] = (), fresh: Iterable[Row] = (), stamp: Any = None) -> TantivyCorpus:
        """Return everything as one searchable corpus; see text.TextIndex.corpus."""
        rows = list(fresh)

        def work() -> TantivyCorpus:
            index = self._open()
            return TantivyCorpus(index.searcher(), index.schema, gone, rows, self.folder, self.settings)

        made = self._guarded(work)
        if stamp is not None:
            self._corpus = (stamp, made)
        return made

    def search(self, corpus: Corpus, words: list[tuple[str, float]], allowed: Collection[int] | None, limit: int) -> TextHits:
        """Return corpus.search(…); raises TextIndexDamaged when the postings cannot be read."""
        return self._guarded(lambda: corpus.search(words, allowed, limit))

    def update(self, gone: Collection[int], rows: Iterable[Row], merge: bool = False) -> None:
        """Delete the windows of the notes in `gone`, add `rows`, in one commit, and wait for the merges that this begins: with
        the writer they end, and every following commit would begin them anew. `merge` asks for no more than that."""
        found = list(rows)

        def work() -> None:
            index = self._open()
            files = RowFiles(self.folder)
            writer = index.writer(HEAP, 1)
            try:
                if gone:
                    # Deleting by term makes a signed number of it, which an unsigned field does not hold.
                    writer.delete_documents_by_query(tantivy.Query.term_set_query(index.schema, "note", sorted(gone)))
                for document in _documents(found, files.append([pack(frequencies(row)) for row in found])):
                    writer.add_document(document)
                writer.commit()
            except BaseException:
                writer.rollback()
                raise
            writer.wait_merging_threads()
            if len(files.numbers()) > 1:
                index.reload()
                files.drop(int(self._over(index, "min", "file") or files.numbers()[-1]))

        self._guarded(work)
        self._stamp = None

    def _over(self, index: Any, what: str, field: str) -> float | None:
        """Return the `min` or `sum` of a field over all living windows, None when there are none."""
        found = index.searcher().aggregate(tantivy.Query.all_query(), {"found": {what: {"field": field}}})
        value: float | None = found["found"]["value"]
        return value

    def renew(self) -> bool:
        """Tell whether more than half of the rows are of notes that are gone. Then all notes are to be written again: they go
        to a new file, and the old one goes with its last note."""

        def work() -> bool:
            files = RowFiles(self.folder)
            worn = files.size() > 2 * (self._over(self._open(), "sum", "size") or 0) + SLACK
            if worn:
                files.turn()
            return worn

        return self._guarded(work)

    def segments(self) -> list[TantivySegment]:
        """Return all that was written as one segment."""

        def work() -> list[TantivySegment]:
            index = self._open()
            return [TantivySegment(index.searcher(), index.schema, RowFiles(self.folder).open())]

        return self._guarded(work)

    def health(self) -> Health:
        """Return windows and segments, or the trouble."""
        try:
            searcher = self._guarded(self._open).searcher()
        except (TextIndexDamaged, OSError) as error:
            return Health("tantivy", trouble=str(error))
        return Health("tantivy", searcher.num_docs, searcher.num_segments)

    def scattered(self) -> bool:
        """Tell whether tantivy would merge what a bulk load has left."""
        return self.health().segments >= MERGE_AT

    def worn(self) -> bool:
        """Tell whether merging pays: many segments."""
        return self.health().segments > MERGE_AT

    def optimize(self) -> bool:
        """Let tantivy merge as its policy says; returns False when there was nothing to do."""
        before = self.health().segments
        if before < MERGE_AT:
            return False
        self.update((), (), merge=True)
        return self.health().segments < before


def _documents(rows: Sequence[Row], places: Sequence[Place]) -> Iterable[Any]:
    """Yield tantivy's documents; the rows of a note follow one another, and its first one also stands for the whole note."""
    notes: dict[int, list[tuple[Row, Place]]] = {}
    for row, place in zip(rows, places):
        notes.setdefault(row.note, []).append((row, place))
    for note, parts in notes.items():
        whole = dict.fromkeys(term for row, _ in parts for terms in row.fields for term in terms)
        for number, (row, place) in enumerate(parts):
            document = tantivy.Document()
            document.add_text(
                "all", " ".join(" ".join(terms) for terms, times in zip(row.fields, _REPEATS) for _ in range(times))
            )
            if number == 0:
                document.add_text("whole", " ".join(whole))
            document.add_unsigned("first", int(number == 0))
            document.add_unsigned("note", note)
            document.add_unsigned("window", row.window)
            for field, terms in enumerate(row.fields):
                document.add_unsigned(f"length{field}", len(terms))
            for name, value in zip(Place._fields, place):
                document.add_unsigned(name, value)
            yield document
