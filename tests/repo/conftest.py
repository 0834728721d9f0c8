"""Real repositories for the tests of the git room."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.clock import FixedClock
from mdmem.repo.commit import commit_paths
from mdmem.repo.git import Git
from mdmem.repo.init import clone

if TYPE_CHECKING:
    from mdmem.repo.sync import SyncResult

Sh = Callable[..., str]


def plain_git(top: Path, *args: str, check: bool = True, env: dict[str, str] | None = None) -> str:
    """Run git as a user would, outside our runner; returns stdout."""
    import os

    done = subprocess.run(
        ["git", "-C", str(top), *args], capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
    )
    if check and done.returncode:
        raise AssertionError(f"git {args}: {done.stderr}")
    return done.stdout


@pytest.fixture
def sh() -> Sh:
    return plain_git


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit of one note."""
    top = tmp_path / "store"
    top.mkdir()
    plain_git(top, "init", "-q")
    (top / "a.md").write_text("---\nid: mem-a\n---\none\n")
    plain_git(top, "add", "a.md")
    plain_git(top, "commit", "-qm", "first")
    return top


class Clone:
    """One device: a clone of a shared bare remote, with its own clock and name."""

    def __init__(self, top: Path, name: str, clock: FixedClock) -> None:
        self.top, self.name, self.clock = top, name, clock
        self.slept: list[float] = []

    @property
    def git(self) -> Git:
        return Git(self.top)

    @property
    def lock_path(self) -> Path:
        return self.top / ".git" / "mdmem" / "write.lock"

    def write(self, path: str, text: str | bytes) -> None:
        target = self.top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)

    def read(self, path: str) -> str:
        return (self.top / path).read_text()

    def save(self, path: str, text: str | None, message: str = "remember: x") -> None:
        if text is None:
            (self.top / path).unlink()
        else:
            self.write(path, text)
        self.clock.advance(seconds=1)
        done = commit_paths(
            self.git, [path], message, {"Agent": "claude", "Device": self.name}, when=self.clock.now(), sleep=self.slept.append
        )
        assert done.done, done

    def sync(
        self, mode: str = "dedicated", roots: tuple[str, ...] = ("",), scan: object = None, **options: object
    ) -> SyncResult:
        from mdmem.repo.sync import SyncOptions, sync

        self.clock.advance(seconds=1)
        return sync(
            self.git, self.lock_path, roots, mode=mode, trailers={"Agent": "claude", "Device": self.name}, clock=self.clock,
            scan=scan, options=SyncOptions(**options), sleep=self.slept.append, rng=lambda: 0.5,  # type: ignore[arg-type]
        )  # fmt: skip

    def sh(self, *args: str, check: bool = True) -> str:
        return plain_git(self.top, *args, check=check)

    def files(self) -> dict[str, bytes]:
        """Every file on disk by path."""
        found = {}
        for path in sorted(self.top.rglob("*")):
            name = path.relative_to(self.top).as_posix()
            if path.is_file() and not name.startswith(".git/"):
                found[name] = path.read_bytes()
        return found

    def healthy(self) -> None:
        """Check what must hold after every scenario."""
        self.sh("fsck", "--strict")
        assert self.sh("status", "--porcelain") == ""
        assert self.sh("ls-files", "-u") == ""
        assert not (self.top / ".git" / "mdmem" / "placing.json").exists()


class World:
    """A bare remote and its clones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remote = folder / "remote.git"
        self.clock = FixedClock(datetime(2026, 3, 1, 12, tzinfo=timezone.utc))
        folder.mkdir(exist_ok=True)
        plain_git(folder, "init", "-q", "--bare", str(self.remote))

    def clone(self, name: str) -> Clone:
        top = self.folder / name
        clone(str(self.remote), top)
        return Clone(top, name, self.clock)

    def pair(self, files: dict[str, str] | None = None) -> tuple[Clone, Clone]:
        """Two clones that both hold these files."""
        one = self.clone("laptop")
        one.write(".gitattributes", "*.md -text merge=mdmem\n")
        for path, text in (files or {"a.md": "---\nid: mem-a\ntitle: A\n---\none\n\ntwo\n\nthree\n"}).items():
            one.write(path, text)
        result = one.sync()
        assert result.state == "pushed", result
        return one, self.clone("desktop")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


@pytest.fixture
def repo_clone(repo: Path) -> Clone:
    """The repository of `repo` as a device without a remote."""
    return Clone(repo, "laptop", FixedClock(datetime(2026, 3, 1, 12, tzinfo=timezone.utc)))
