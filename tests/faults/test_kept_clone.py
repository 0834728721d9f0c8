"""The clone that is kept for pushing to a shared index, damaged file by file: it is made anew, and nobody need delete it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mdmem.cli.main import run
from mdmem.errors import MdmemError
from mdmem.memory.sharing import store_of
from tests.injected import count
from tests.repo.conftest import plain_git

from .test_state import WAYS


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    remote, store = tmp_path / "remote.git", tmp_path / "store"
    plain_git(tmp_path, "init", "-q", "--bare", str(remote))
    assert run(["init", str(store)]) == 0
    assert run(["-C", str(store), "remember", "fact", "The harbor opens at nine."]) == 0
    assert run(["-C", str(store), "remote", "add", "origin", str(remote)]) == 0
    assert run(["-C", str(store), "sync"]) == 0
    yield remote.as_uri()


def good(url: str) -> Path:
    store = store_of(url).writable()
    assert [note.title for note in store.folder.notes() if note.path.startswith("memories/")] == ["The harbor opens at nine"]
    plain_git(store.root, "fsck", "--strict")
    return store.root


@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_kept_clone_is_made_anew(url: str, way: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    top = good(url)
    shutil.copytree(top, tmp_path / "kept", symlinks=True)
    files = (path for path in sorted(top.rglob("*")) if path.is_file() and path.suffix not in (".sample", ".lock"))
    names = [path.relative_to(top) for path in files]
    step = 1 if request.config.getoption("--nightly") else 4
    assert len(names) > 10
    for name in names[len(way) % step :: step]:
        shutil.rmtree(top)
        shutil.copytree(tmp_path / "kept", top, symlinks=True)
        WAYS[way](top / name)
        count("files of a kept clone damaged")
        assert good(url) == top, name


def test_a_damaged_kept_clone_stays_while_the_remote_is_away(url: str, tmp_path: Path) -> None:
    top = good(url)
    (top / ".git" / "HEAD").write_text("nonsense")
    (tmp_path / "remote.git").rename(tmp_path / "away.git")
    with pytest.raises(MdmemError):
        store_of(url)
    assert (top / ".mdmem.toml").is_file()
    (tmp_path / "away.git").rename(tmp_path / "remote.git")
    assert good(url) == top
