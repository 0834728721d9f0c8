"""Fixtures of the hook tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hooks.host import make_store, wait_until, workers_of


@pytest.fixture(autouse=True)
def quick_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edits are not waited for in tests, and nothing is embedded unless a test wants it."""
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "off")
    monkeypatch.setenv("MDMEM_WORKER_SETTLE", "0.05")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A trusted, dedicated store; its workers are gone when the test ends."""
    root = make_store(tmp_path / "store")
    yield root
    try:
        wait_until(lambda: not workers_of(tmp_path), 20)
    finally:
        for process in workers_of(tmp_path):
            os.kill(process, signal.SIGKILL)


@pytest.fixture
def project(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A code project beside the store, which is the default one."""
    from mdmem.config import user_file
    from tests.hooks.host import git

    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(f'default_store = "{store}"\n')
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", "https://example.org/team/shop.git")
    return folder.resolve()
