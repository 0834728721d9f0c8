"""A segment of the text index: flat files that are read without the engine, and the same thing in memory.

Three files hold n windows (native byte order, named in the magic):
- `.doc`  magic, n, window rowids q[n], note rowids q[n], and for each field its lengths in terms I[n];
- `.trm`  magic, count, then for each term, sorted by bytes: end of its text in the blob I, documents I, offset in `.pst` Q,
          CRC-32 of its postings I, fields present B; then the blob;
- `.pst`  for each term: document numbers I[df], then for each field present one byte per document, the frequency
          (255 stands for more).
Lengths are exact, unlike Whoosh's one-byte lengths. A checksum stands over each part, so that damage is found when it
is read, not in a wrong answer.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

KEPT = 2_000_000  # postings that a segment keeps decoded: some 10 MB
FIELDS = ("body", "title", "headings", "tags")
VERSION = 1
_MAGIC = b"mdx" + (b"<" if sys.byteorder == "little" else b">") + bytes([VERSION])
_HEAD = struct.Struct("=5s3xII")  # magic, count, CRC-32 of the rest


class Damaged(Exception):
    """A file of the segment is not what was written."""


class Row(NamedTuple):
    """One window as the text index sees it: rowids, and the terms of each field."""

    window: int
    note: int
    fields: tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]


class Postings(NamedTuple):
    """Where a term stands: ascending document numbers, and per field one frequency byte per document (None: nowhere)."""

    docs: Sequence[int]
    tfs: tuple[bytes | None, ...]


def frequencies(row: Row) -> dict[str, int]:
    """Return {term: its frequency in each field, one byte each, the first field lowest}."""
    found: dict[str, int] = dict(Counter(row.fields[0]))
    if found and max(found.values()) > 255:
        found = {term: min(count, 255) for term, count in found.items()}
    for number in range(1, len(FIELDS)):
        if row.fields[number]:
            for term, count in Counter(row.fields[number]).items():
                found[term] = found.get(term, 0) | min(count, 255) << 8 * number
    return found


class Builder:
    """Collects windows; gives the three files or a segment in memory."""

    def __init__(self) -> None:
        self.windows = array("q")
        self.notes = array("q")
        self.lengths = tuple(array("I") for _ in FIELDS)
        # One number per posting: the document in the upper half, four frequencies in the lower.
        self.terms: dict[str, array[int]] = {}

    def __len__(self) -> int:
        return len(self.windows)

    def add_row(self, window: int, note: int, lengths: Sequence[int]) -> int:
        """Add a window and return its document number."""
        self.windows.append(window)
        self.notes.append(note)
        for column, length in zip(self.lengths, lengths):
            column.append(length)
        return len(self.windows) - 1

    def add(self, row: Row) -> None:
        """Add a window with its terms."""
        place = self.add_row(row.window, row.note, [len(terms) for terms in row.fields]) << 32
        terms = self.terms
        for term, packed in frequencies(row).items():
            slot = terms.get(term)
            if slot is None:
                terms[term] = array("Q", (place | packed,))
            else:
                slot.append(place | packed)

    def absorb(self, segment: Segment, dead: Collection[int]) -> None:
        """Add the living windows of a segment (merging)."""
        base = len(self)
        numbers: dict[int, int] = {}
        for doc in range(segment.size):
            if doc not in dead:
                lengths = [column[doc] for column in segment.lengths]
                numbers[doc] = self.add_row(segment.windows[doc], segment.notes[doc], lengths)
        for term, found in segment.every():
            values: Sequence[int] = ()
            for number, column in enumerate(found.tfs):
                if column is not None:
                    shift = 8 * number
                    values = [v | tf << shift for v, tf in zip(values, column)] if values else [tf << shift for tf in column]
            if dead:
                fresh = [numbers[doc] << 32 | value for doc, value in zip(found.docs, values) if doc in numbers]
            else:
                fresh = [doc + base << 32 | value for doc, value in zip(found.docs, values)]
            if fresh:
                slot = self.terms.get(term)
                if slot is None:
                    self.terms[term] = array("Q", fresh)
                else:
                    slot.extend(fresh)

    def doc_file(self) -> bytes:
        """Return the content of `.doc`."""
        data = b"".join(part.tobytes() for part in (self.windows, self.notes, *self.lengths))
        return _HEAD.pack(_MAGIC, len(self.windows), zlib.crc32(data)) + data

    def term_files(self) -> tuple[bytes, bytes]:
        """Return the content of `.trm` and `.pst`."""
        ends, dfs, offsets, sums, masks = array("I"), array("I"), array("Q"), array("I"), bytearray()
        blob = bytearray()
        body = bytearray()
        for term, packed in sorted((term.encode(), packed) for term, packed in self.terms.items()):
            docs, tfs = _unpacked(packed)
            mask = 0
            start = len(body)
            body += docs.tobytes()
            for number, column in enumerate(tfs):
                if column is not None:
                    mask |= 1 << number
                    body += column
            blob += term
            ends.append(len(blob))
            dfs.append(len(docs))
            offsets.append(start)
            sums.append(zlib.crc32(memoryview(body)[start:]))
            masks.append(mask)
        data = b"".join(part.tobytes() for part in (offsets, ends, dfs, sums)) + bytes(masks) + bytes(blob)
        return _HEAD.pack(_MAGIC, len(ends), zlib.crc32(data)) + data, bytes(body)

    def segment(self) -> MemorySegment:
        """Return what was collected as a segment in memory."""
        return MemorySegment(self)


def _unpacked(packed: array[int]) -> tuple[array[int], tuple[bytes | None, ...]]:
    """Return the postings in numbers of document and frequencies."""
    if sys.byteorder == "big":
        packed = array("Q", packed)
        packed.byteswap()
    raw = packed.tobytes()
    docs = array("I", raw)[1::2]
    if sys.byteorder == "big":
        docs.byteswap()
    columns = [raw[number::8] for number in range(len(FIELDS))]
    return docs, tuple(column if any(column) else None for column in columns)


class Segment(ABC):
    """What scoring needs: `size`, `windows`, `notes`, `lengths` (one array per field), `dead` document numbers, and
    `postings(term)`. `name` tells segments apart in caches."""

    name: str
    windows: array[int]
    notes: array[int]
    lengths: tuple[array[int], ...]
    dead: frozenset[int]

    @property
    def size(self) -> int:
        """Documents, dead ones included."""
        return len(self.windows)

    @cached_property
    def totals(self) -> tuple[int, ...]:
        """The terms of each field in all documents, dead ones included."""
        return tuple(map(sum, self.lengths))

    @abstractmethod
    def postings(self, term: str) -> Postings | None:
        """Return where a term stands, None when it stands nowhere."""

    @abstractmethod
    def terms(self, prefix: str = "") -> Iterator[str]:
        """Yield the terms that start with `prefix`, in byte order."""

    @abstractmethod
    def every(self) -> Iterator[tuple[str, Postings]]:
        """Yield each term with its postings (nothing is kept)."""


class MemorySegment(Segment):
    """A segment that was never written: notes just changed, or those of another revision."""

    def __init__(self, builder: Builder) -> None:
        self.name = f"memory-{id(builder):x}"
        self.windows = builder.windows
        self.notes = builder.notes
        self.lengths = builder.lengths
        self.dead = frozenset()
        self._terms = builder.terms
        self._cache: dict[str, Postings] = {}

    def postings(self, term: str) -> Postings | None:
        found = self._cache.get(term)
        if found is None:
            packed = self._terms.get(term)
            if packed is None:
                return None
            found = self._cache[term] = Postings(*_unpacked(packed))
        return found

    def terms(self, prefix: str = "") -> Iterator[str]:
        return iter(sorted((term for term in self._terms if term.startswith(prefix)), key=str.encode))

    def every(self) -> Iterator[tuple[str, Postings]]:
        for term, packed in self._terms.items():
            yield term, Postings(*_unpacked(packed))


def memory(rows: Iterable[Row]) -> MemorySegment:
    """Return a segment in memory of these windows."""
    builder = Builder()
    for row in rows:
        builder.add(row)
    return builder.segment()


class FileSegment(Segment):
    """A segment on disk. Opening reads `.doc` and `.trm` whole; postings are read when a term is asked for, and kept.

    Raises Damaged, or OSError when a file is gone (another process merged it away)."""

    def __init__(self, folder: Path, name: str, dead: Iterable[int] = ()) -> None:
        self.name = name
        self.dead = frozenset(dead)
        base = str(folder / name)
        count, data = _checked(base + ".doc")
        width = 16 + 4 * len(FIELDS)
        if len(data) != count * width:
            raise Damaged(f"{name}.doc has the wrong length")
        self.windows, self.notes = array("q"), array("q")
        self.windows.frombytes(data[: 8 * count])
        self.notes.frombytes(data[8 * count : 16 * count])
        columns = []
        for number in range(len(FIELDS)):
            column = array("I")
            column.frombytes(data[(16 + 4 * number) * count : (20 + 4 * number) * count])
            columns.append(column)
        self.lengths = tuple(columns)
        if any(doc >= count for doc in self.dead):
            raise Damaged(f"{name} lists a deleted document that it does not have")
        count, data = _checked(base + ".trm")
        if len(data) < 21 * count:
            raise Damaged(f"{name}.trm has the wrong length")
        self._count = count
        self._offsets, self._ends, self._dfs, self._sums = array("Q"), array("I"), array("I"), array("I")
        at = 0
        for column in (self._offsets, self._ends, self._dfs, self._sums):
            end = at + column.itemsize * count
            column.frombytes(data[at:end])
            at = end
        self._masks = data[at : at + count]
        self._blob = data[at + count :]
        self._descriptor = os.open(base + ".pst", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        self._cache: dict[str, Postings | None] = {}
        self._held = 0

    def __del__(self) -> None:
        descriptor = getattr(self, "_descriptor", None)
        if descriptor is not None:
            os.close(descriptor)

    def _term(self, number: int) -> bytes:
        return self._blob[self._ends[number - 1] if number else 0 : self._ends[number]]

    def _find(self, term: bytes) -> int:
        """Return the number of the first term that is not below `term`."""
        low, high = 0, self._count
        blob, ends = self._blob, self._ends
        while low < high:
            middle = (low + high) // 2
            if blob[ends[middle - 1] if middle else 0 : ends[middle]] < term:
                low = middle + 1
            else:
                high = middle
        return low

    def postings(self, term: str) -> Postings | None:
        try:
            return self._cache[term]
        except KeyError:
            pass
        key = term.encode("utf-8", "replace")
        number = self._find(key)
        found = self._read(number) if number < self._count and self._term(number) == key else None
        self._held += 16 + (len(found.docs) if found is not None else 0)
        if self._held > KEPT:
            self._cache.clear()
            self._held = 0
        self._cache[term] = found
        return found

    def _read(self, number: int) -> Postings:
        count, mask = self._dfs[number], self._masks[number]
        length = count * (4 + mask.bit_count())
        data = _pread(self._descriptor, length, self._offsets[number])
        if len(data) != length or zlib.crc32(data) != self._sums[number]:
            raise Damaged(f"{self.name}.pst does not hold what was written")
        docs = array("I")
        docs.frombytes(data[: 4 * count])
        tfs: list[bytes | None] = []
        at = 4 * count
        for field in range(len(FIELDS)):
            if mask >> field & 1:
                tfs.append(data[at : at + count])
                at += count
            else:
                tfs.append(None)
        return Postings(docs, tuple(tfs))

    def terms(self, prefix: str = "") -> Iterator[str]:
        start = prefix.encode("utf-8", "replace")
        for number in range(self._find(start), self._count):
            term = self._term(number)
            if not term.startswith(start):
                return
            yield term.decode()

    def every(self) -> Iterator[tuple[str, Postings]]:
        for number in range(self._count):
            yield self._term(number).decode(), self._read(number)


def _pread(descriptor: int, length: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)  # pragma: no cover - Windows
    return os.read(descriptor, length)  # pragma: no cover


def _checked(path: str) -> tuple[int, bytes]:
    """Return (count, data) of a file that starts with the head; raises Damaged."""
    with open(path, "rb") as stream:
        data = stream.read()
    if len(data) < _HEAD.size:
        raise Damaged(f"{os.path.basename(path)} is too short")
    magic, count, checksum = _HEAD.unpack_from(data)
    rest = data[_HEAD.size :]
    if magic != _MAGIC or zlib.crc32(rest) != checksum:
        raise Damaged(f"{os.path.basename(path)} does not hold what was written")
    return count, rest
