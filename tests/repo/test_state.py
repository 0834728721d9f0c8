"""Each git state has its name, and only known ones are safe."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdmem.repo.git import Git

from .conftest import Sh


def clash(repo: Path, sh: Sh) -> None:
    sh(repo, "switch", "-qc", "side")
    (repo / "a.md").write_text("side\n")
    sh(repo, "commit", "-qam", "side")
    sh(repo, "switch", "-q", "main")
    (repo / "a.md").write_text("main\n")
    sh(repo, "commit", "-qam", "main")


STATES = {
    "rebase in progress": lambda repo, sh: (clash(repo, sh), sh(repo, "rebase", "side", check=False)),
    "merge in progress": lambda repo, sh: (clash(repo, sh), sh(repo, "merge", "side", check=False)),
    "cherry-pick in progress": lambda repo, sh: (clash(repo, sh), sh(repo, "cherry-pick", "side", check=False)),
    "revert in progress": lambda repo, sh: (clash(repo, sh), sh(repo, "revert", "--no-edit", "HEAD~1", check=False)),
    "bisect in progress": lambda repo, sh: (clash(repo, sh), sh(repo, "bisect", "start")),
    "detached head": lambda repo, sh: sh(repo, "switch", "-q", "--detach"),
    "index locked": lambda repo, sh: (repo / ".git/index.lock").touch(),
    "config locked": lambda repo, sh: (repo / ".git/config.lock").touch(),
    "bare repository": lambda repo, sh: sh(repo, "config", "core.bare", "true"),
}


@pytest.mark.parametrize("name", STATES)
def test_unsafe_states_are_named(name: str, repo: Path, sh: Sh) -> None:
    assert Git(repo).state().name == "ok"
    STATES[name](repo, sh)
    state = Git(repo).state()
    assert (state.name, state.safe) == (name, False)
    assert state.hint


def test_am_is_told_from_rebase(repo: Path, sh: Sh, tmp_path: Path) -> None:
    clash(repo, sh)
    patch = tmp_path / "p"
    patch.write_text(sh(repo, "format-patch", "-1", "--stdout", "side"))
    sh(repo, "am", str(patch), check=False)
    assert Git(repo).state().name == "am in progress"
    sh(repo, "am", "--abort")
    assert Git(repo).state().name == "ok"


def test_harmless_states_are_marked_and_safe(repo: Path, sh: Sh, tmp_path: Path) -> None:
    sh(repo, "worktree", "add", "-q", str(tmp_path / "wt"), "-b", "side")
    state = Git(tmp_path / "wt").state()
    assert state.safe and state.branch == "side" and "linked worktree" in state.marks
    sh(repo, "sparse-checkout", "set", "x")
    assert "sparse" in Git(repo).state().marks
    sh(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "flat")
    state = Git(tmp_path / "flat").state()
    assert state.safe and "shallow" in state.marks


def test_an_unborn_branch_is_safe(tmp_path: Path, sh: Sh) -> None:
    sh(tmp_path, "init", "-q", "new")
    state = Git(tmp_path / "new").state()
    assert state.safe and state.branch == "main"
