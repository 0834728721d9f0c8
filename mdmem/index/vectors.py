"""One unit vector for each window text, on disk: exact search over a memory-mapped float32 matrix.

A row is found by the hash of the text it stands for, so that a renamed note or a checkout costs no
embedding. Knows nothing of notes or models. Files in the folder:

    head.json      format, fingerprint, dims, generation; replaced in one step
    keys-G.bin     one record a row: hash (16 bytes), crc32 of hash and vector, row number
    rows-G.f32     the matrix, row after row

A row counts once its key record is complete, and its vector is on disk before the record is
written, so that a process killed at any moment leaves whole rows only. The caller holds the
writer's lock for `add`, `compact` and `clear`; any number of processes may read meanwhile.
Opening checks sizes and a sample of rows, a search checks the rows it returns, `verify` checks
all. What is wrong raises VectorsDamaged, whose cure is `clear`.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.errors import MdmemError
from mdmem.index.sieve import ROUNDING, RowFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mdmem.index.sieve import Sieve

    Matrix = NDArray[np.float32]
    Rows = NDArray[np.int64]

FORMAT = 1
KEY = 24  # bytes of a key record
HASH = 16  # of these, the hash
SAMPLE = 16  # rows whose checksum is compared on opening
LARGE = 32 << 20  # bytes of a matrix that a process which searches again and again does not hold whole
AGAIN = 2  # searches after which a process is taken for one of these
EXACT = 4_096  # rows that are scored at a time in double precision


class VectorsDamaged(MdmemError):
    """The stored vectors cannot be trusted; clear them and embed again. Search by words is not affected.

    With the code `vectors_unreadable` the system refused to read them (permissions, too many open
    files): nothing is known to be wrong, so that they are to be left as they are.
    """

    code, exit_code = "vectors_damaged", 1


class Found(NamedTuple):
    """A stored vector near the question: the text's hash (32 hex digits), its row, the cosine."""

    hash: str
    row: int
    cosine: float


def hash_bytes(hashes: Iterable[str]) -> list[bytes]:
    """Return the 16 bytes that stand for each hash, given as at least 32 hex digits. Raises ValueError otherwise."""
    digits = [text[: 2 * HASH] for text in hashes]
    raw = bytes.fromhex("".join(digits))
    if not {2 * HASH}.issuperset(map(len, digits)) or len(raw) != HASH * len(digits):
        raise ValueError(f"a window hash has at least {2 * HASH} hex digits")
    return [key for (key,) in struct.iter_unpack(f"{HASH}s", raw)]


class Vectors:
    """The vectors of one model. Rows of another fingerprint or length are not seen, and go at the next write."""

    def __init__(self, folder: Path, fingerprint: str, dims: int) -> None:
        """Open what is there, or an empty store; writes nothing. Raises VectorsDamaged when the files disagree."""
        if dims < 1:
            raise ValueError("a vector has at least one dimension")
        self.folder = folder
        self.fingerprint = fingerprint
        self.dims = dims
        self.generation = ""
        self.count = 0
        self._keys = b""
        self._map: mmap.mmap | None = None
        # The first half of each hash in ascending order, and the rows they stand for.
        self._sorted: tuple[Rows, Rows] | None = None
        self._searches = 0
        self._sieve: Sieve | None = None
        self._file: RowFile | None = None
        self.refresh()

    def __len__(self) -> int:
        return self.count

    # -- reading

    def refresh(self) -> bool:
        """Take in what another process wrote; returns True when anything changed. Raises VectorsDamaged."""
        try:
            generation = self._read_head()
            if not generation:
                changed = self.count > 0 or self.generation != ""
                self._set("", b"", None)
                return changed
            keys_path, rows_path = self._paths(generation)
            if generation == self.generation and os.stat(keys_path).st_size // KEY == self.count:
                return False
            keys = keys_path.read_bytes()
            count = len(keys) // KEY
            with open(rows_path, "rb") as stream:
                have = os.fstat(stream.fileno()).st_size // (4 * self.dims)
                if have < count:
                    raise VectorsDamaged("the stored vectors are cut short", why=f"{rows_path.name} has {have} of {count} rows")
                mapped = mmap.mmap(stream.fileno(), count * 4 * self.dims, access=mmap.ACCESS_READ) if count else None
                opened = RowFile(os.dup(stream.fileno()))
        except FileNotFoundError as error:
            # A compaction by another process removes old files after naming the new ones.
            if self._read_head() not in ("", self.generation, generation):
                return self.refresh()
            raise VectorsDamaged("a file of the stored vectors is missing", why=str(error.filename)) from error
        except OSError as error:
            why = error.strerror or str(error)
            raise VectorsDamaged("the stored vectors cannot be read", why=why, code="vectors_unreadable") from error
        self._set(generation, keys[: count * KEY], mapped, opened)
        for row in {*range(0, count, max(1, count // SAMPLE)), *range(count)[-1:]}:
            self._check(row)
        return True

    def rest(self) -> None:
        """Let the system have the memory that the matrix takes until it is looked at again."""
        mapped = self._map
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)

    def rows_of(self, hashes: Sequence[str]) -> Rows:
        """Return int64 [len(hashes)]: the row of each hash, -1 where there is none."""
        return self._find(hash_bytes(hashes))

    def has(self, hashes: Iterable[str]) -> list[bool]:
        """Return for each hash whether a vector is stored."""
        found: list[bool] = (self._find(hash_bytes(hashes)) >= 0).tolist()
        return found

    def _find(self, keys: list[bytes]) -> Rows:
        """Return int64 [len(keys)]: the row of each key, -1 where there is none. Arrays: a dictionary of a hundred thousand
        hashes takes twenty times the memory."""
        import numpy as np

        out = np.full(len(keys), -1, np.int64)
        if not self.count or not keys:
            return out
        stored = np.frombuffer(self._keys, np.uint8).reshape(self.count, KEY)[:, :HASH]
        if self._sorted is None:
            halves = np.ascontiguousarray(stored[:, : HASH // 2]).view("<i8").ravel()
            order = np.argsort(halves, kind="stable")
            self._sorted = halves[order], order
        halves, order = self._sorted
        asked = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), HASH)
        wanted = np.ascontiguousarray(asked[:, : HASH // 2]).view("<i8").ravel()
        places = np.searchsorted(halves, wanted)
        left = np.arange(len(keys))
        # Two hashes may share their first half: then the next place is looked at.
        while len(left):
            left = left[places[left] < self.count]
            left = left[halves[places[left]] == wanted[left]]
            rows = order[places[left]]
            same = (stored[rows] == asked[left]).all(axis=1)
            out[left[same]] = rows[same]
            left = left[~same]
            places[left] += 1
        return out

    def get(self, rows: Rows) -> Matrix:
        """Return a copy of these rows, float32 [len(rows), dims]."""
        # Read, not looked at in the map, where that is not in use: each look at a row would leave the pages around it there.
        return self._matrix()[rows] if self._sieve is None or self._file is None else self._file.read(rows, self.dims)

    def _sifted(self) -> Sieve | None:
        """Return a sieve of all rows in a process that searches a large matrix again and again, else None. It costs seven
        searches to make: whoever asks once does without."""
        self._searches += 1
        if self._searches <= AGAIN or self.count * 4 * self.dims < LARGE:
            return None
        from mdmem.index.sieve import Sieve

        if self._sieve is None or len(self._sieve) > self.count:
            self._sieve = Sieve(self.dims)
        if len(self._sieve) < self.count:
            self._sieve.extend(self._matrix())
            self.rest()
        return self._sieve

    def search(self, query: Matrix, allowed: Rows | None, limit: int) -> list[Found]:
        """Return the `limit` nearest of the `allowed` rows (None: all) by cosine, best first, equal ones by hash.

        `query` is float32 [dims] of length 1. Exact: the best are scored again in float64, row by
        row, so that neither the order of the rows nor their number moves a digit. Raises
        VectorsDamaged when a score is not a cosine.
        """
        import numpy as np

        if allowed is not None:
            # Sorted and each row once: two windows may hold the same text.
            mask = np.zeros(self.count, bool)
            mask[allowed[(allowed >= 0) & (allowed < self.count)]] = True
            allowed = np.flatnonzero(mask)
        among = self.count if allowed is None else len(allowed)
        if not among or limit < 1:
            return []
        query = np.asarray(query, np.float32).reshape(self.dims)
        sieve = self._sifted()
        # Products, and how far each may be off.
        off: Any = ROUNDING
        if sieve is not None:
            scores, off = sieve.products(query, allowed)
        elif allowed is not None and len(allowed) * 3 < self.count:
            scores = self._matrix()[allowed] @ query
        else:
            scores = self._matrix() @ query
            if allowed is not None:
                scores = scores[allowed]
        if limit < among:
            least = scores - off
            floor = np.partition(least, among - limit)[among - limit]
            best = np.flatnonzero(~(scores + off < floor))  # also keeps NaN, which the check below names
        else:
            best = np.arange(among)
        rows = best if allowed is None else allowed[best]
        stored = [self.get(rows[start : start + EXACT]) for start in range(0, len(rows), EXACT)]
        wide = query.astype(np.float64)
        exact = np.concatenate([(part.astype(np.float64) * wide).sum(axis=1) for part in stored])
        if not (np.abs(exact) <= 1.001).all():
            raise VectorsDamaged("a stored vector is not of length 1")
        found = [
            (-cosine, self._hash(row), row, place) for place, (row, cosine) in enumerate(zip(rows.tolist(), exact.tolist()))
        ]
        found = sorted(found)[:limit]
        for _, _, row, place in found:
            self._check(row, stored[place // EXACT][place % EXACT].tobytes())
        return [Found(digest, row, -negative) for negative, digest, row, _ in found]

    def verify(self) -> int:
        """Check every byte that counts; returns the number of rows. Raises VectorsDamaged naming the first bad row."""
        for row in range(self.count):
            self._check(row)
        return self.count

    def _check(self, row: int, data: bytes | None = None) -> None:
        """Compare a row, or the `data` that was read of it, with its checksum."""
        assert self._map is not None
        width = 4 * self.dims
        record = self._keys[row * KEY : (row + 1) * KEY]
        data = self._map[row * width : (row + 1) * width] if data is None else data
        crc = zlib.crc32(data, zlib.crc32(record[:HASH]))
        if crc.to_bytes(4, "little") + row.to_bytes(4, "little") != record[HASH:]:
            raise VectorsDamaged("the stored vectors are damaged", why=f"row {row} does not have its checksum")

    # -- writing; the caller holds the lock

    def add(self, hashes: Sequence[str], matrix: Matrix) -> int:
        """Store float32 [len(hashes), dims] rows of length 1; returns how many were new. Raises OSError, VectorsDamaged."""
        import numpy as np

        matrix = np.ascontiguousarray(matrix, "<f4")
        if matrix.shape != (len(hashes), self.dims):
            raise ValueError(f"{len(hashes)} hashes need a [{len(hashes)}, {self.dims}] matrix, not {list(matrix.shape)}")
        if not (np.abs(np.einsum("ij,ij->i", matrix, matrix) - 1) < 1e-3).all():
            raise ValueError("a stored vector has length 1")
        self.refresh()
        keys = hash_bytes(hashes)
        fresh: dict[bytes, int] = {}
        for position, (key, row) in enumerate(zip(keys, self._find(keys).tolist())):
            if row < 0:
                fresh.setdefault(key, position)
        if not fresh:
            return 0
        if not self.generation:
            self._start()
        keys_path, rows_path = self._paths(self.generation)
        width = 4 * self.dims
        chosen = [matrix[position].tobytes() for position in fresh.values()]
        # What a killed writer left behind the last whole record is written over.
        _write_at(rows_path, self.count * width, b"".join(chosen))
        records = b"".join(
            key + zlib.crc32(data, zlib.crc32(key)).to_bytes(4, "little") + (self.count + number).to_bytes(4, "little")
            for number, (key, data) in enumerate(zip(fresh, chosen, strict=True))
        )
        _write_at(keys_path, self.count * KEY, records)
        self.refresh()
        return len(fresh)

    def compact(self, live: Iterable[str]) -> int:
        """Drop the rows whose hash is not in `live`; returns how many went. Raises OSError, VectorsDamaged."""
        import numpy as np

        self.refresh()
        found = self._find(hash_bytes(live))
        keep = np.unique(found[found >= 0])
        gone = self.count - len(keep)
        if gone:
            hashes = [self._hash(row) for row in keep]
            matrix = self.get(keep)
            self._start()
            self.add(hashes, matrix)
        return gone

    def clear(self) -> None:
        """Start again with no rows."""
        self._start()

    # -- files

    def _paths(self, generation: str) -> tuple[Path, Path]:
        return self.folder / f"keys-{generation}.bin", self.folder / f"rows-{generation}.f32"

    def _read_head(self) -> str:
        """Return the generation of this model's rows; "" when there is none. Raises VectorsDamaged, OSError."""
        try:
            data = (self.folder / "head.json").read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return ""
        try:
            head = json.loads(data)
            generation, check = str(head["generation"]), head.pop("check")
            if check != _head_check(head):
                raise ValueError("its checksum differs")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise VectorsDamaged("the stored vectors have a damaged head", why=str(error)) from error
        wanted = {"format": FORMAT, "fingerprint": self.fingerprint, "dims": self.dims, "generation": generation}
        return generation if head == wanted else ""

    def _start(self) -> None:
        """Begin an empty generation and remove every other file of ours."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._set("", b"", None)
        generation = os.urandom(6).hex()
        for path in self._paths(generation):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        head = {"format": FORMAT, "fingerprint": self.fingerprint, "dims": self.dims, "generation": generation}
        temporary = self.folder / "head.json.new"
        temporary.unlink(missing_ok=True)
        _write_at(temporary, 0, json.dumps({**head, "check": _head_check(head)}).encode())
        os.replace(temporary, self.folder / "head.json")
        self.generation = generation
        for path in self.folder.iterdir():
            if path.name.startswith(("keys-", "rows-")) and generation not in path.name:
                try:
                    path.unlink()
                except OSError:
                    pass  # open elsewhere on a system that forbids it; the next start removes it

    def _set(self, generation: str, keys: bytes, mapped: mmap.mmap | None, opened: RowFile | None = None) -> None:
        if generation != self.generation:
            self._sieve = None
        self._file = opened
        self.generation, self._keys, self._map, self._sorted = generation, keys, mapped, None
        self.count = len(keys) // KEY

    def _hash(self, row: int) -> str:
        return self._keys[row * KEY : row * KEY + HASH].hex()

    def _matrix(self) -> Matrix:
        import numpy as np

        if self._map is None:
            return np.zeros((0, self.dims), np.float32)
        return np.frombuffer(self._map, "<f4").reshape(self.count, self.dims)


def _head_check(head: dict[str, object]) -> int:
    return zlib.crc32(json.dumps(head, sort_keys=True).encode())


def _write_at(path: Path, offset: int, data: bytes) -> None:
    """Write `data` at `offset`, drop what stood behind it, and wait for the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.truncate(offset)
        stream.seek(offset)
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
