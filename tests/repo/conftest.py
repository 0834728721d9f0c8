"""Real repositories for the tests of the git room."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

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
