"""The text index: which windows hold which words. Opens, updates and merges segments; answers literal queries.

Readers take no lock. Writers hold the index lock of the caller. Any fault on opening or reading becomes
`TextIndexDamaged`, and the caller rebuilds; a segment that another process merged away is looked for again first.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

from mdmem.errors import MdmemError
from mdmem.index import analyzer
from mdmem.index.engine import Health
from mdmem.index.score import Corpus, Settings, TextHits
from mdmem.index.segment import VERSION, Damaged, FileSegment, Row, Segment, memory
from mdmem.index.versions import ANALYZER

MANIFEST = "segments.json"
HEADER = {"format": 1, "segment": VERSION, "analyzer": ANALYZER}
MERGE_AT = 8  # segments of about one size are merged when there are so many of them
HOT = 2_000  # windows that a commit on the hot path may rewrite
LARGE, PIECES = 1_000, 3  # more than so many segments of so many windows are merged after a bulk load
_TRIES = 4

T = TypeVar("T")


class TextIndexDamaged(MdmemError):
    """The text index is absent, broken or of another version: rebuild it from the catalog."""

    code = "index_damaged"


def query_words(text: str) -> list[tuple[str, float]]:
    """Return the (term, weight) pairs of a literal query: nothing in it is an operator.

    A repeated term counts as often as it is said. A CJK character inside a longer run counts less than its pairs."""
    found = Counter(analyzer.tokens(text))
    pairs = {char for term in found if len(term) == 2 and not term.isascii() for char in term}
    return [(term, count * (0.5 if term in pairs else 1.0)) for term, count in found.items()]


class TextIndex:
    """The text index in a folder. `epoch` names the catalog whose rowids it holds; another epoch counts as damage."""

    def __init__(self, folder: Path, epoch: str, settings: Settings | None = None) -> None:
        self.folder = folder
        self.header: dict[str, Any] = {**HEADER, "epoch": epoch}
        self.settings = settings or Settings()
        self._opened: dict[str, FileSegment] = {}
        self._stamp: tuple[int, ...] | None = None
        self.looked_at: tuple[int, ...] | None = None
        self._segments: list[Segment] = []
        self._corpus: tuple[tuple[Any, ...], Corpus] | None = None

    def create(self) -> None:
        """Make it empty, in the place of whatever is there."""
        import shutil

        from mdmem.index import codec

        self._forget()
        if self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, mode=0o700)
        codec.create(self.folder, self.header)

    def exists(self) -> bool:
        """Tell whether there is a text index (not whether it is sound)."""
        return (self.folder / MANIFEST).exists()

    def _forget(self) -> None:
        self._opened.clear()
        self._stamp, self._segments, self._corpus = None, [], None

    def segments(self) -> list[Segment]:
        """Return the segments of the latest generation; raises TextIndexDamaged."""
        return self._guarded(self._load)

    def _load(self) -> list[Segment]:
        stamp = self.looked_at = self.stamp()
        if stamp != self._stamp:
            listed = self._manifest()["segments"]
            opened = {}
            for name, count, dead in listed:
                segment = self._opened.get(name)
                if segment is None or segment.dead != frozenset(dead):
                    segment = FileSegment(self.folder, name, dead)
                if segment.size != count:
                    raise Damaged(f"{name} has {segment.size} windows, not {count}")
                opened[name] = segment
            self._opened, self._segments, self._stamp = opened, list(opened.values()), stamp
        return self._segments

    def stamp(self) -> tuple[int, ...] | None:
        """Return what tells one generation from another, None when there is none."""
        try:
            found = os.stat(self.folder / MANIFEST)
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def replaced(self) -> bool:
        """Tell whether the generation that was last looked at is no longer the latest (another process rebuilt it)."""
        return self.stamp() != self.looked_at

    def _manifest(self) -> dict[str, Any]:
        with open(self.folder / MANIFEST, "rb") as stream:
            outer = json.loads(stream.read())
        if zlib.crc32(outer["body"].encode()) != outer["sum"]:
            raise Damaged("the list of segments does not hold what was written")
        content: dict[str, Any] = json.loads(outer["body"])
        if {key: content.get(key) for key in self.header} != self.header:
            raise Damaged("the text index was written by another version, or for another catalog")
        return content

    def _guarded(self, work: Callable[[], T]) -> T:
        """Return work(), tried again when a file vanished; every other fault is damage."""
        for attempt in range(_TRIES):
            try:
                return work()
            except FileNotFoundError as error:
                # Another process has just merged: its new list names other files.
                self._stamp = None
                if attempt + 1 == _TRIES or not (self.folder / MANIFEST).exists():
                    raise TextIndexDamaged("the text index is incomplete", why=str(error)) from error
            except MemoryError:
                raise
            except Exception as error:
                self._stamp = None
                raise TextIndexDamaged("the text index cannot be read", why=f"{type(error).__name__}: {error}") from error
        raise AssertionError("unreachable")

    def kept(self, stamp: Any) -> Corpus | None:
        """Return the corpus that was made last, when neither the segments nor `stamp` have changed since."""
        self.segments()
        return self._corpus[1] if self._corpus is not None and self._corpus[0] == (self._stamp, stamp) else None

    def corpus(self, gone: Collection[int] = (), fresh: Iterable[Row] = (), stamp: Any = None) -> Corpus:
        """Return everything as one searchable corpus: the segments without the notes in `gone`, and the windows `fresh`.

        With a `stamp`, which stands for the content of both, it is kept for `kept`."""
        segments = self.segments()
        key = (self._stamp, stamp)
        rows = list(fresh)
        extra: list[Segment] = [memory(rows)] if rows else []
        made = self._guarded(lambda: Corpus(segments, gone, extra, self.settings))
        if stamp is not None:
            self._corpus = (key, made)
        return made

    def search(self, corpus: Corpus, words: list[tuple[str, float]], allowed: Collection[int] | None, limit: int) -> TextHits:
        """Return corpus.search(…); raises TextIndexDamaged when the postings cannot be read."""
        return self._guarded(lambda: corpus.search(words, allowed, limit))

    def update(self, gone: Collection[int], rows: Iterable[Row], merge: bool = False) -> None:
        """Delete the windows of the notes in `gone`, add `rows`, in one commit.

        A note to be replaced is in both. Small segments are merged on the way, all of them with `merge`."""
        from mdmem.index import codec

        def work() -> None:
            # What the table of contents lists may be one commit ahead of the manifest after a kill.
            writer = codec.writer(self.folder, self.header)
            try:
                if gone:
                    writer.delete_notes(set(gone), self._segment)
                for row in rows:
                    writer.add(row)
                self._commit(writer, merge)
            except BaseException:
                if not writer.is_closed:
                    writer.cancel()
                raise

        self._manifest_or_damaged()
        self._guarded_write(work)
        self._stamp = None

    def _manifest_or_damaged(self) -> None:
        self._guarded(self._manifest)

    def _guarded_write(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (MemoryError, KeyboardInterrupt):
            raise
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                raise TextIndexDamaged("the text index is incomplete", why=str(error)) from error
            raise
        except Exception as error:
            raise TextIndexDamaged("the text index cannot be written", why=f"{type(error).__name__}: {error}") from error

    def _segment(self, name: str) -> FileSegment:
        found = self._opened.get(name)
        return found if found is not None else FileSegment(self.folder, name)

    def _commit(self, writer: Any, everything: bool) -> None:
        def policy(writer: Any, segments: list[Any]) -> list[Any]:
            chosen = segments if everything else _small(segments, writer.docnum)
            for segment in chosen:
                writer.absorb(self._segment(segment.segment_id()), segment.deleted)
            return [segment for segment in segments if segment not in chosen and segment.doc_count()]

        writer.commit(mergetype=policy)

    def health(self) -> Health:
        """Return windows and segments, or the trouble."""
        try:
            segments = self.segments()
        except (TextIndexDamaged, OSError) as error:
            return Health("whoosh", trouble=str(error))
        return Health("whoosh", sum(segment.size - len(segment.dead) for segment in segments), len(segments))

    def scattered(self) -> bool:
        """Tell whether a bulk load has left several large segments."""
        return sum(segment.size >= LARGE for segment in self.segments()) > PIECES

    def worn(self) -> bool:
        """Tell whether merging pays: many segments, or a quarter of the windows deleted."""
        segments = self.segments()
        dead = sum(len(segment.dead) for segment in segments)
        return len(segments) > MERGE_AT or dead * 4 > sum(segment.size for segment in segments)

    def renew(self) -> bool:
        """Return False: merging leaves out what is gone."""
        return False

    def optimize(self) -> bool:
        """Merge everything into one segment; returns False when there was nothing to do."""
        segments = self.segments()
        if len(segments) < 2 and not any(segment.dead for segment in segments):
            return False
        self.update((), (), merge=True)
        return True


def _small(segments: list[Any], adding: int) -> list[Any]:
    """Return the segments to merge now: the small ones once there are enough of one size, and those mostly deleted."""
    chosen: list[Any] = []
    size = 64
    while size <= HOT:
        level = [segment for segment in segments if segment.doc_count() < size]
        if len(level) + 1 >= MERGE_AT and sum(segment.doc_count() for segment in level) + adding <= HOT:
            chosen = level
        size *= MERGE_AT
    mostly = [s for s in segments if s.deleted_count() * 2 > s.doc_count_all() and s.doc_count() <= HOT]
    return list(dict.fromkeys([*chosen, *mostly]))
