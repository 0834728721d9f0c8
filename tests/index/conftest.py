"""A real store for the index: a git repository with notes, and an embedder that needs no model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from notes_at_hand import FakeEmbedder

from mdmem.index import dense
from mdmem.setup import init
from mdmem.store import Store


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
