"""A real store for the index: a git repository with notes, and an embedder that needs no model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from mdmem.index import dense
from mdmem.index.index import Index
from mdmem.setup import init
from mdmem.store import Store


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


@pytest.fixture(autouse=True)
def embedder(monkeypatch: pytest.MonkeyPatch) -> FakeEmbedder:
    """The embedder that every store of this process uses."""
    fake = FakeEmbedder()
    monkeypatch.setattr(dense, "load_embedder", lambda config, state_dir, chunking="": fake)
    return fake


@pytest.fixture(autouse=True)
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The merge driver is not these tests' business."""
    monkeypatch.setattr("mdmem.setup._driver", lambda *_: None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty dedicated store."""
    init(tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def opened(root: Path) -> Callable[[], Store]:
    """A function that opens the store afresh, as a new process would."""
    return lambda: Store.open(root)


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
