"""Whoosh's side of the text index: a codec that writes flat segments, and a writer that publishes them.

Whoosh keeps what it is good at: generations, the atomic table of contents, segments with deletions, merging policy. Its
own codec is replaced, because decoding its compressed, pickled blocks of 128 postings costs more than scoring them, and
because importing the package costs seven bare Python starts: a reader needs only `segments.json` and the flat files.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from whoosh import fields
from whoosh.codec import base
from whoosh.filedb.filestore import FileStorage
from whoosh.index import TOC, FileIndex, clean_files
from whoosh.writing import SegmentWriter

from mdmem.index.segment import Builder, FileSegment, Row

MANIFEST = "segments.json"
NAME = "MAIN"


class FlatSegment(base.Segment):  # type: ignore[misc]
    """What the table of contents keeps of a segment: name, size, deleted documents."""

    def __init__(self, indexname: str) -> None:
        super().__init__(indexname)
        self.count = 0
        self.deleted: set[int] = set()

    def codec(self) -> FlatCodec:
        return FlatCodec()

    def set_doc_count(self, doccount: int) -> None:
        self.count = doccount

    def doc_count_all(self) -> int:
        return self.count

    def deleted_count(self) -> int:
        return len(self.deleted)

    def deleted_docs(self) -> Iterator[int]:
        return iter(self.deleted)

    def delete_document(self, docnum: int, delete: bool = True) -> None:
        (self.deleted.add if delete else self.deleted.discard)(docnum)

    def is_deleted(self, docnum: int) -> bool:
        return docnum in self.deleted


class FlatCodec(base.Codec):  # type: ignore[misc]
    """Writes the three files of segment.py; the two halves of a segment share one builder."""

    length_stats = False

    def __init__(self) -> None:
        self.builder = Builder()

    def per_document_writer(self, storage: FileStorage, segment: FlatSegment) -> _DocWriter:
        return _DocWriter(self, storage, segment)

    def field_writer(self, storage: FileStorage, segment: FlatSegment) -> _TermWriter:
        return _TermWriter(self, storage, segment)

    def new_segment(self, storage: FileStorage, indexname: str) -> FlatSegment:
        return FlatSegment(indexname)


class _Half:
    """One half of a segment being written."""

    def __init__(self, codec: FlatCodec, storage: FileStorage, segment: FlatSegment) -> None:
        self.builder = codec.builder
        self.folder = Path(storage.folder)
        self.segment = segment
        self.is_closed = False

    def _write(self, suffix: str, data: bytes) -> None:
        path = self.folder / self.segment.make_filename(suffix)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.write(data)


class _DocWriter(_Half):
    def close(self) -> None:
        self.is_closed = True
        if len(self.builder):
            self._write(".doc", self.builder.doc_file())


class _TermWriter(_Half):
    def add_postings(self, schema: Any, lengths: Any, items: Iterable[Any]) -> None:
        """Nothing: the builder has the postings already, grouped by term; nothing has to be sorted or spilled."""

    def close(self) -> None:
        self.is_closed = True
        if len(self.builder):
            terms, postings = self.builder.term_files()
            self._write(".trm", terms)
            self._write(".pst", postings)


class FlatWriter(SegmentWriter):  # type: ignore[misc]
    """A writer of one commit. The caller holds the index lock, so Whoosh's own (which never waits) is not taken.

    The manifest is replaced after the table of contents and before old files go, so a reader has always a whole
    generation to read; a kill at any point leaves the one before."""

    def __init__(self, index: FileIndex, header: dict[str, Any]) -> None:
        codec = FlatCodec()
        super().__init__(index, _lk=False, codec=codec, compound=False)
        self.header = header

    def add(self, row: Row) -> None:
        """Add a window: straight into the builder, since Whoosh's way costs five calls for each posting."""
        self.codec.builder.add(row)
        self._counted()

    def _counted(self) -> None:
        self.docnum = len(self.codec.builder)
        self._added = self.docnum > 0

    def delete_notes(self, notes: set[int], opened: Callable[[str], FileSegment]) -> None:
        """Mark the windows of notes as deleted in the segments of earlier commits."""
        for segment in self.segments:
            rows = opened(segment.segment_id()).notes
            segment.deleted.update(doc for doc, note in enumerate(rows) if note in notes)

    def absorb(self, segment: FileSegment, dead: set[int]) -> None:
        """Copy the living windows of a segment into the one being written (merging)."""
        self.codec.builder.absorb(segment, dead)
        self._counted()

    def _commit_toc(self, segments: Sequence[FlatSegment]) -> None:
        _write_contents(TOC(self.schema, segments, self.generation), self.storage, self.indexname)
        listed = [[s.segment_id(), s.doc_count_all(), sorted(s.deleted)] for s in segments]
        write_manifest(Path(self.storage.folder), {**self.header, "generation": self.generation, "segments": listed})
        clean_files(self.storage, self.indexname, self.generation, segments)


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """Replace the list of segments that readers go by."""
    body = json.dumps(content, sort_keys=True)
    text = json.dumps({"sum": zlib.crc32(body.encode()), "body": body})
    temporary = folder / f"{MANIFEST}.{os.getpid()}"
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(temporary, folder / MANIFEST)


def schema() -> fields.Schema:
    """Return the schema that Whoosh keeps; what a window holds is up to the codec."""
    return fields.Schema(window=fields.STORED())


def _write_contents(contents: TOC, storage: FileStorage, indexname: str) -> None:
    contents.write(storage, indexname)
    os.chmod(Path(storage.folder) / TOC._filename(indexname, contents.generation), 0o600)


def create(folder: Path, header: dict[str, Any]) -> None:
    """Make an empty index in an empty folder."""
    _write_contents(TOC(schema(), [], 0), FileStorage(str(folder)), NAME)
    write_manifest(folder, {**header, "generation": 0, "segments": []})


def writer(folder: Path, header: dict[str, Any]) -> FlatWriter:
    """Return a writer on top of the latest generation."""
    # With the schema given, the pickled one in the table of contents is not read.
    return FlatWriter(FileIndex(FileStorage(str(folder)), schema()), header)
