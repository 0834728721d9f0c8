"""What the tests of the index share: notes as a person writes them, a search by path, an embedder without a model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mdmem.index.index import Index


class FakeEmbedder:
    """Vectors of hashed words: texts that share words are near; counts what it embeds."""

    def __init__(self, fingerprint: str = "fake1", dims: int = 64) -> None:
        self.fingerprint = fingerprint
        self.dims = dims
        self.embedded: list[str] = []

    def _vector(self, text: str) -> np.ndarray:
        vector = np.full(self.dims, 1e-3, dtype=np.float64)
        for word in text.lower().split():
            vector[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big") % self.dims] += 1
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def passages(self, texts: Sequence[str]) -> np.ndarray:
        self.embedded += texts
        return np.stack([self._vector(text) for text in texts])

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self._vector(text) for text in texts])

    def count_tokens(self, text: str) -> int:
        return len(text.split())


def write(root: Path, path: str, body: str, **fields: str) -> Path:
    """Write a note as a person would."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    block = "".join(f"{key}: {value}\n" for key, value in fields.items())
    target.write_text(f"---\n{block}---\n\n{body}\n" if fields else f"{body}\n", encoding="utf-8")
    return target


def found(index: Index, query: str, limit: int = 50) -> list[str]:
    """Return the paths of the notes that a literal query finds, best first."""
    index.refresh(embed_budget_s=0.0)
    notes = dict.fromkeys(hit.note for hit in index.text_hits(query, None, limit).hits)
    paths = {row["rowid"]: row["path"] for row in index.catalog.rows("SELECT rowid, path FROM notes")}
    return [paths[note] for note in notes]
