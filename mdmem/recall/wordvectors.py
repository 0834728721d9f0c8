"""The vectors of the synonyms that ship with mdmem, beside the bundled model: what the words for a thing have in common with
the passages that tell of it, without running the model once more.

One int8 row a member of synonyms.txt, in the order in which they first stand there, less the mean of its script
(tools/build_model_common.py). Members of the user's own list, and other models, have none: there synonyms count as words."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.recall import expand

if TYPE_CHECKING:
    from mdmem.recall.expand import Concept
    from mdmem.store import Store

UNIT = 400.0  # of the stored numbers
ADDED = 0.7  # length of what is added, in lengths of what a word says beyond what all words have in common


def shipped_list() -> bytes:
    """Return the list that ships with mdmem."""
    return Path(expand.__file__).with_name(expand.NAME).read_bytes()


def members(data: bytes) -> list[str]:
    """Return the members of a list, each once, in order."""
    lines = (line for line in data.decode().splitlines() if line and line[0] not in "#!")
    return list(dict.fromkeys(part.strip() for line in lines for part in line.replace(">", ",").split(",")))


def file_name(data: bytes) -> str:
    """Return the name of the vectors of a list: another list has others."""
    return f"synonyms-{zlib.crc32(data):08x}.npy"


def direction(store: Store, concepts: Sequence[Concept]) -> Any:
    """Return the vector to add to a question, float64 [dims], the mean over its concepts; None without any vector."""
    embedder = store.index.dense.embedder()
    folder = getattr(getattr(embedder, "model", None), "folder", None)
    if embedder is None or not isinstance(folder, Path):
        return None
    rows = _rows(folder, embedder.dims)
    if rows is None:
        return None
    import numpy as np

    means = []
    for one in concepts:
        known = [member.row for member in one.others if member.row >= 0]
        if known:
            means.append(rows[known].astype(np.float64).mean(0))
    return ADDED / UNIT * np.mean(means, axis=0) if means else None


@lru_cache(maxsize=4)
def _rows(folder: Path, dims: int) -> Any:
    import numpy as np

    try:
        rows = np.load(folder / file_name(shipped_list()), mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return rows if rows.dtype == np.int8 and rows.shape == (expand.shipped_size(), dims) else None
