"""A quarter of a matrix of unit vectors, in bytes: tells which rows may be among the nearest, so that only these are read.

Each row v is kept as whole numbers c of -127…127, a scale s, and the length of what is lost, |v - s·c|. A product q·v then lies
within |q|·|v - s·c| of s·(q·c), whatever the vectors are (Cauchy and Schwarz): the rows whose upper bound is below the lower
bounds of as many others as are wanted cannot be among these. What is left is scored from the vectors themselves, so that the
answer is that of a search through all of them. The bytes are turned into floats a block at a time, which stays in the
processor's cache: less memory goes by than with the matrix, and none of its pages stay mapped.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
    Column = NDArray[np.float32]
    Rows = NDArray[np.int64]

BLOCK = 512  # rows
# Two float32 sums of the same products differ by less than this, whatever the order (384 terms of unit vectors).
ROUNDING = 1e-5


class Sieve:
    """The first `len()` rows of a growing matrix of vectors with `dims` numbers."""

    def __init__(self, dims: int) -> None:
        import numpy as np

        self.dims = dims
        self._blocks: list[NDArray[np.int8]] = []
        self._scales = np.zeros(0, np.float32)
        self._lost = np.zeros(0, np.float32)

    def __len__(self) -> int:
        return len(self._scales)

    def extend(self, matrix: Matrix) -> None:
        """Take in the rows of float32 [rows, dims] that came since; the earlier ones are those that it had."""
        import numpy as np

        scales, lost = [self._scales], [self._lost]
        at = len(self)
        # A row that is damaged may hold anything: it stays in the sieve's results, and is named by whoever scores it.
        with np.errstate(all="ignore"):
            while at < len(matrix):
                end = min(len(matrix), at // BLOCK * BLOCK + BLOCK)
                part = matrix[at:end]
                scale = np.maximum(np.abs(part).max(axis=1), np.float32(1e-30)) / np.float32(127)
                work = part / scale[:, None]
                np.rint(work, out=work)
                if at % BLOCK == 0:
                    self._blocks.append(np.empty((BLOCK, self.dims), np.int8))
                self._blocks[-1][at % BLOCK : at % BLOCK + len(part)] = work.astype(np.int8)
                work *= scale[:, None]
                work -= part
                scales.append(scale)
                lost.append(np.sqrt(np.einsum("ij,ij->i", work, work)) + np.float32(ROUNDING))
                at = end
        self._scales, self._lost = np.concatenate(scales), np.concatenate(lost)

    def products(self, query: Column, rows: Rows | None) -> tuple[Column, Column]:
        """Return for each of the ascending `rows` (None: all) its product with `query`, and how far that may be off."""
        import numpy as np

        scales, lost = (self._scales, self._lost) if rows is None else (self._scales[rows], self._lost[rows])
        out = np.empty(len(scales), np.float32)
        work = np.empty((BLOCK, self.dims), np.float32)
        ends = None if rows is None else np.searchsorted(rows, np.arange(1, len(self._blocks) + 1) * BLOCK).tolist()
        start = 0
        for number, block in enumerate(self._blocks):
            end = min(len(self), (number + 1) * BLOCK) if ends is None else ends[number]
            if end > start:
                part = work[: end - start]
                part[:] = block[: end - start] if rows is None else block[rows[start:end] - number * BLOCK]
                np.dot(part, query, out=out[start:end])
                start = end
        with np.errstate(all="ignore"):
            out *= scales
            return out, lost * np.float32(np.linalg.norm(query) * (1 + ROUNDING))


class RowFile:
    """The file of the vectors, by its descriptor, which is closed with the last who holds this."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __del__(self) -> None:
        os.close(self._descriptor)

    def read(self, rows: Rows, dims: int) -> Matrix:
        """Return these rows of `dims` numbers, float32 [len(rows), dims]. Raises OSError; a row beyond the end is NaN."""
        import numpy as np

        width = 4 * dims
        out = np.full((len(rows), dims), np.nan, "<f4")
        if not len(rows):  # has no bytes to look at
            return out
        data, at = out.data.cast("B"), 0
        for row in rows.tolist():
            if hasattr(os, "preadv"):
                os.preadv(self._descriptor, (data[at : at + width],), row * width)
            else:  # pragma: no cover - macOS before 11, Windows
                os.lseek(self._descriptor, row * width, os.SEEK_SET)
                data[at : at + width] = os.read(self._descriptor, width)
            at += width
        return out
