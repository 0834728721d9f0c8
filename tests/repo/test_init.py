"""Making and cloning repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdmem.errors import MdmemError, NotFound, Refused, UsageError
from mdmem.repo.git import Git, GitFailed
from mdmem.repo.init import clone, init_repo
from mdmem.repo.layout import git_dir_of
from mdmem.repo.version import git_version

from .conftest import Sh, World


def test_the_branch_is_the_one_named_else_the_users_own_else_main(tmp_path: Path, own_home: Path) -> None:
    assert init_repo(tmp_path / "a", "trunk").state().branch == "trunk"
    assert init_repo(tmp_path / "b").state().branch == "main"
    (own_home / ".gitconfig").write_text("[init]\n\tdefaultBranch = mine\n")
    assert init_repo(tmp_path / "c").state().branch == "mine"
    (own_home / ".gitconfig").write_text("")
    assert init_repo(tmp_path / "d").state().branch == "main"
    assert init_repo(tmp_path / "a", "other").state().branch == "trunk"  # it is a repository already
    with pytest.raises(UsageError):
        init_repo(tmp_path / "e", "no branch")


def test_nothing_is_cloned_over_what_is_there(world: World, tmp_path: Path) -> None:
    world.pair()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("full", "file"):
        with pytest.raises(Refused, match="is not empty"):
            clone(str(world.remote), tmp_path / name)
    assert (tmp_path / "full" / "x").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert not clone(str(world.remote), tmp_path / "empty").empty
    with pytest.raises(GitFailed, match="could not be cloned"):
        clone(str(tmp_path / "nowhere.git"), tmp_path / "new")


@pytest.mark.parametrize(("branches", "expected"), [(("master", "x"), "master"), (("x", "main"), "main"), (("y", "z"), "y")])
def test_a_remote_whose_head_names_no_branch_is_still_checked_out(
    world: World, tmp_path: Path, sh: Sh, branches: tuple[str, ...], expected: str
) -> None:
    one, _ = world.pair()
    for name in branches:
        one.sh("push", "-q", "origin", f"main:{name}")
    sh(world.remote, "symbolic-ref", "HEAD", "refs/heads/nowhere")
    if "main" not in branches:
        sh(world.remote, "update-ref", "-d", "refs/heads/main")
    made = clone(str(world.remote), tmp_path / "late")
    assert not made.empty and made.git.state().branch == expected and (tmp_path / "late" / "a.md").exists()


def test_a_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path) -> None:
    for text in ("", "nonsense\n", "gitdir: nowhere\n", f"gitdir: {tmp_path}/nowhere\n"):
        (tmp_path / ".git").write_text(text)
        assert git_dir_of(tmp_path) is None
    with pytest.raises(NotFound, match="not the top") as caught:
        Git(tmp_path)
    assert caught.value.hint == f"git init {tmp_path}"


def test_a_git_that_does_not_tell_its_version_is_an_error_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert git_version() >= (2, 30)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MdmemError):
        git_version()
