"""Fixtures of the fault tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mdmem import locks
from tests.repo.conftest import World

from .hostile import Trap
from .state_scene import Machine, build


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Trap]:
    made = Trap(tmp_path / "trap")
    made.folder.mkdir()
    made.arm()
    yield made
    made.unsprung()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with pytest.MonkeyPatch.context() as patch:
        yield build(tmp_path_factory.mktemp("machine"), patch)


@pytest.fixture
def machine(built: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    for name, value in built.environ().items():
        monkeypatch.setenv(name, value)
    # Whoever holds a lock in these tests holds it for good: there is nothing to wait for.
    monkeypatch.setattr(locks.FileLock.__init__, "__defaults__", (0.2,))
    built.reset()
    return built
