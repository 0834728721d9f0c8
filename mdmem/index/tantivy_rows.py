"""The frequencies of each window in a file beside tantivy's, read a row at a time, and their scores by the formula of score.py.

tantivy's own store would be mapped, and each look at a row leaves the pages around it in memory: after some questions all of
it. Here a row is read by its place. A term is six bytes of its BLAKE2 hash: among 300 passages of 335 terms, fourteen terms of
a question meet another one's by chance once in 200 million questions.

A row, in the order of the machine: CRC-32 of the rest I, terms n I, exceptions m I; then for each term the low four bytes of
its hash I[n], the high two H[n], its frequency in the body B[n] (255 stands for more); then for each term that stands elsewhere
too its number I[m] and the frequencies in the other fields, B[m] each. The files are only written at their end; `file`, `at`
and `size` of tantivy's document say where a row stands.
"""

from __future__ import annotations

import os
import re
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from mdmem.index.score import Settings, Term
from mdmem.index.segment import FIELDS

ORDER = sys.byteorder
_HEAD = struct.Struct("=III")  # checksum, terms, exceptions
_NAME = re.compile(r"rows-(\d+)\.bin")
_OTHERS = len(FIELDS) - 1
OFTEN = 8  # searches after which a process will search again, so that numpy pays
_done = {"searches": 0}


class Place(NamedTuple):
    """Where a row stands: number of the file, offset, bytes."""

    file: int
    at: int
    size: int


class Window(NamedTuple):
    """One row: the terms' hashes, and for each the frequencies in all fields, those of the other fields by its number."""

    low: array[int]
    high: array[int]
    body: bytes
    others: dict[int, tuple[int, ...]]

    def frequencies(self, number: int) -> tuple[int, ...]:
        """Return the frequencies of a term in each field."""
        return (self.body[number], *self.others.get(number, (0,) * _OTHERS))

    def numbers(self) -> dict[int, int]:
        """Return {hash: number of the term}."""
        return {high << 32 | low: number for number, (low, high) in enumerate(zip(self.low, self.high))}


@lru_cache(1 << 17)
def hashed(term: str) -> int:
    """Return the 48 bits that stand for a term."""
    return int.from_bytes(blake2b(term.encode("utf-8", "replace"), digest_size=6).digest(), "little")


def pack(frequencies: dict[str, int]) -> bytes:
    """Return the row for {term: its frequency in each field, one byte each, the first field lowest}."""
    keys = list(map(hashed, frequencies))
    values = frequencies.values()
    more = [(number, value) for number, value in enumerate(values) if value > 255]
    rest = b"".join(
        (
            array("I", [key & 0xFFFFFFFF for key in keys]).tobytes(),
            array("H", [key >> 32 for key in keys]).tobytes(),
            bytes([value & 255 for value in values]),
            array("I", [number for number, _ in more]).tobytes(),
            *(bytes([value >> 8 * field & 255 for _, value in more]) for field in range(1, len(FIELDS))),
        )
    )
    sizes = struct.pack("=II", len(keys), len(more))
    return zlib.crc32(rest, zlib.crc32(sizes)).to_bytes(4, ORDER) + sizes + rest


def sizes(row: bytes) -> tuple[int, int]:
    """Return how many terms and exceptions a row has. Raises ValueError when it is not what was written."""
    if len(row) < _HEAD.size:
        raise ValueError("a row of frequencies is missing")
    checksum, terms, more = _HEAD.unpack_from(row)
    if len(row) != _HEAD.size + 7 * terms + (4 + _OTHERS) * more or zlib.crc32(memoryview(row)[4:]) != checksum:
        raise ValueError("a row of frequencies does not hold what was written")
    return terms, more


def unpack(row: bytes) -> Window:
    """Return what a row holds; raises ValueError as sizes."""
    terms, more = sizes(row)
    low, high, numbers = array("I"), array("H"), array("I")
    at = _HEAD.size
    low.frombytes(row[at : at + 4 * terms])
    high.frombytes(row[at + 4 * terms : at + 6 * terms])
    at += 7 * terms
    numbers.frombytes(row[at : at + 4 * more])
    columns = [row[at + (4 + field) * more : at + (5 + field) * more] for field in range(_OTHERS)]
    return Window(low, high, row[at - terms : at], dict(zip(numbers, zip(*columns))))


class RowFiles:
    """The files of rows in a folder. Readers keep those that they have opened; the writer holds the index lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened: dict[int, int] = {}

    def __del__(self) -> None:
        for descriptor in self._opened.values():
            os.close(descriptor)

    def open(self) -> RowFiles:
        """Open all files there are, so that they can be read when another process has replaced them."""
        for number in self.numbers():
            self.read([Place(number, 0, 0)])
        return self

    def numbers(self) -> list[int]:
        """Return the numbers of the files there are, ascending."""
        return sorted(int(found[1]) for name in os.listdir(self.folder) if (found := _NAME.fullmatch(name)))

    def path(self, number: int) -> Path:
        """Return where a file is."""
        return self.folder / f"rows-{number}.bin"

    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(self.path(number).stat().st_size for number in self.numbers())

    def read(self, places: Iterable[Place]) -> list[bytes]:
        """Return the rows at these places; what is cut off comes short. Raises FileNotFoundError for a file that went."""
        found = []
        for number, at, size in places:
            descriptor = self._opened.get(number)
            if descriptor is None:
                flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
                descriptor = self._opened[number] = os.open(self.path(number), flags)
            if hasattr(os, "pread"):
                found.append(os.pread(descriptor, size, at))
            else:  # pragma: no cover - Windows
                os.lseek(descriptor, at, os.SEEK_SET)
                found.append(os.read(descriptor, size))
        return found

    def append(self, rows: Sequence[bytes]) -> list[Place]:
        """Write rows at the end of the latest file and wait for the disk; returns where they stand."""
        number = (self.numbers() or [1])[-1]
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(self.path(number), flags, 0o600), "wb") as stream:
            at = stream.seek(0, os.SEEK_END)
            places = []
            for row in rows:
                places.append(Place(number, at, len(row)))
                at += len(row)
            stream.write(b"".join(rows))
            stream.flush()
            os.fsync(stream.fileno())
        return places

    def turn(self) -> None:
        """Begin a new file for what is written from now on."""
        number = (self.numbers() or [0])[-1] + 1
        os.close(os.open(self.path(number), os.O_WRONLY | os.O_CREAT, 0o600))

    def drop(self, below: int) -> None:
        """Remove the files with numbers below; whoever reads them has them open."""
        for number in self.numbers():
            if number < below:
                try:
                    os.unlink(self.path(number))
                except OSError:
                    continue  # open elsewhere on a system that forbids it; the next writer removes it


def scored(
    rows: Sequence[bytes],
    lengths: Sequence[Sequence[int]],
    terms: Sequence[tuple[int, Term]],
    averages: Sequence[float],
    settings: Settings,
) -> list[tuple[float, tuple[int, ...]]]:
    """Return for each row (score, numbers of the terms that stand in it); `terms` have numbers. Raises ValueError as sizes."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        _done["searches"] += 1
        if _done["searches"] > OFTEN:
            import numpy
    if numpy is not None and rows:
        return _with_numpy(numpy, rows, lengths, terms, averages, settings)
    keys = [(number, term, hashed(term.text).to_bytes(6, "little")) for number, term in terms]
    halves = [(number, term, _native(key[:4]), _native(key[4:])) for number, term, key in keys]
    found = []
    for row, sides in zip(rows, lengths):
        held, more = sizes(row)
        counted = [(number, term, _stored(row, held, more, low, high)) for number, term, low, high in halves]
        found.append(score(counted, sides, averages, settings))
    return found


def _native(number: bytes) -> bytes:
    return number if ORDER == "little" else number[::-1]


def _at(row: bytes, number: bytes, start: int, end: int) -> int:
    """Return the place of four bytes among the numbers that stand from `start` to `end`, -1 where they are not."""
    at = row.find(number, start, end)
    while at >= 0 and (at - start) % 4:  # half of one number and half of the next
        at = row.find(number, at + 1, end)
    return -1 if at < 0 else (at - start) // 4


def _stored(row: bytes, terms: int, more: int, low: bytes, high: bytes) -> Sequence[int]:
    """Return the frequencies of a term in each field, without taking the row apart; empty: it does not stand there."""
    start = _HEAD.size
    end = start + 4 * terms
    place = _at(row, low, start, end)
    if place < 0:
        return ()
    if row[end + 2 * place : end + 2 * place + 2] != high:
        # Another term with the same low half; the one that is asked for may stand behind it.
        number = unpack(row).numbers().get(int.from_bytes(low, ORDER) | int.from_bytes(high, ORDER) << 32)
        return () if number is None else unpack(row).frequencies(number)
    body = row[end + 2 * terms + place]
    if not more:
        return (body,)
    start = end + 3 * terms
    other = _at(row, place.to_bytes(4, ORDER), start, start + 4 * more)
    start += 4 * more
    return (body,) if other < 0 else (body, *(row[start + field * more + other] for field in range(_OTHERS)))


def score(
    counted: Iterable[tuple[int, Term, Sequence[int]]], lengths: Sequence[int], averages: Sequence[float], settings: Settings
) -> tuple[float, tuple[int, ...]]:
    """Return (score, numbers of the terms that stand there) for terms with their frequencies, by the formula of score.py."""
    k1, top, b = settings.k1, settings.k1 + 1.0, settings.b
    norms = [1.0 / ((1.0 - b) + b * length / average) for length, average in zip(lengths, averages)]
    total = 0.0
    matched = []
    for number, term, tfs in counted:
        if tfs:
            x = 0.0
            for tf, boost, norm in zip(tfs, settings.boosts, norms):
                x += tf * boost * norm
            total += term.weight * term.idf * (x * top / (k1 + x))
            matched.append(number)
    return total, tuple(matched)


def _with_numpy(
    np: Any,
    rows: Sequence[bytes],
    lengths: Sequence[Sequence[int]],
    terms: Sequence[tuple[int, Term]],
    averages: Sequence[float],
    settings: Settings,
) -> list[tuple[float, tuple[int, ...]]]:
    """All rows as one: the same additions in the same order as `score` does them."""
    counts = [sizes(row) for row in rows]
    ends = [_HEAD.size + 4 * terms_of for terms_of, _ in counts]
    low = np.frombuffer(b"".join([row[_HEAD.size : end] for row, end in zip(rows, ends)]), np.uint32)
    high = np.frombuffer(b"".join([r[end : end + 2 * n] for r, end, (n, _) in zip(rows, ends, counts)]), np.uint16)
    body = np.frombuffer(b"".join([r[end + 2 * n : end + 3 * n] for r, end, (n, _) in zip(rows, ends, counts)]), np.uint8)
    held = np.array([n for n, _ in counts])
    owner = np.repeat(np.arange(len(rows)), held)
    # What stands outside the body, in columns as long as that: most of it is nothing.
    more = np.array([m for _, m in counts])
    starts = [end + 3 * n for end, (n, _) in zip(ends, counts)]
    numbers = np.frombuffer(b"".join([r[s : s + 4 * m] for r, s, (_, m) in zip(rows, starts, counts)]), np.uint32)
    at = numbers + np.repeat(np.cumsum(held) - held, more)
    columns = [body]
    for field in range(_OTHERS):
        column = np.zeros(len(body), np.uint8)
        data = b"".join([r[s + (4 + field) * m : s + (5 + field) * m] for r, s, (_, m) in zip(rows, starts, counts)])
        column[at] = np.frombuffer(data, np.uint8)
        columns.append(column)
    k1, top, b = settings.k1, settings.k1 + 1.0, settings.b
    sides = [np.array(column, np.float64) for column in zip(*lengths)]
    norms = [1.0 / ((1.0 - b) + b * side / average) for side, average in zip(sides, averages)]
    totals = np.zeros(len(rows))
    matched: list[list[int]] = [[] for _ in rows]
    for number, term in terms:
        key = hashed(term.text)
        places = np.flatnonzero(low == np.uint32(key & 0xFFFFFFFF))
        places = places[high[places] == key >> 32]
        owners = owner[places]
        x = np.zeros(len(places))
        for column, boost, norm in zip(columns, settings.boosts, norms):
            x += column[places].astype(np.float64) * boost * norm[owners]
        totals[owners] += term.weight * term.idf * (x * top / (k1 + x))
        for owning in owners.tolist():
            matched[owning].append(number)
    return list(zip(totals.tolist(), map(tuple, matched)))
