"""Clones and remotes: careful settings, no option or program in a URL, no credential shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdmem.errors import MdmemError, NotFound, Refused, UsageError
from mdmem.repo import remotes
from mdmem.repo.git import Git
from mdmem.repo.init import clone, init_repo

from .conftest import Sh


@pytest.mark.parametrize("url", ["", " ", "-x", "--upload-pack=touch x", "ext::sh -c touch% x", "fd::1", "a\nb", "https://h/\x1b"])
def test_unsafe_urls_are_refused(url: str, repo: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        remotes.add_remote(Git(repo), "origin", url)
    with pytest.raises(UsageError):
        clone(url, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_remotes_are_listed_without_credentials(repo: Path, sh: Sh) -> None:
    git = Git(repo)
    remotes.add_remote(git, "origin", "https://bob:s3cr3t@host/x.git")
    remotes.add_remote(git, "disk", "../other", cwd=repo)
    assert remotes.remotes(git) == [
        remotes.Remote("disk", str(repo.parent / "other")),
        remotes.Remote("origin", "https://***@host/x.git"),
    ]
    assert "s3cr3t" in sh(repo, "remote", "get-url", "origin")
    remotes.set_remote(git, "origin", "git@host:x.git")
    assert sh(repo, "remote", "get-url", "origin").strip() == "git@host:x.git"
    remotes.remove_remote(git, "origin")
    with pytest.raises(NotFound):
        remotes.remove_remote(git, "origin")
    remotes.set_remote(git, "origin", "git@host:x.git")
    with pytest.raises(Refused):
        remotes.add_remote(git, "disk", "https://h/x")
    with pytest.raises(UsageError):
        remotes.add_remote(git, "-x", "https://h/x")


def test_a_clone_makes_links_text_and_checks_objects(repo: Path, tmp_path: Path, sh: Sh) -> None:
    (repo / "link.md").symlink_to("/etc/passwd")
    sh(repo, "add", ".")
    sh(repo, "commit", "-qm", "link")
    done = clone(str(repo), tmp_path / "c")
    assert not done.empty and not (tmp_path / "c" / "link.md").is_symlink()
    assert sh(tmp_path / "c", "config", "transfer.fsckObjects").strip() == "true"
    assert sh(tmp_path / "c", "status", "--porcelain") == ""
    with pytest.raises(Refused):
        clone(str(repo), tmp_path / "c")


def test_a_clone_of_an_empty_remote_is_empty(tmp_path: Path, sh: Sh) -> None:
    sh(tmp_path, "init", "-q", "--bare", "r.git")
    done = clone(str(tmp_path / "r.git"), tmp_path / "c")
    assert done.empty and done.git.state().branch == "main"
    up = remotes.upstream_of(done.git, "main")
    assert up and (up.remote, up.branch) == ("origin", "main")


def test_a_remote_whose_head_names_no_branch_is_checked_out_all_the_same(repo: Path, tmp_path: Path, sh: Sh) -> None:
    sh(tmp_path, "init", "-q", "--bare", "-b", "trunk", "r.git")
    sh(repo, "push", "-q", str(tmp_path / "r.git"), "main")
    done = clone(str(tmp_path / "r.git"), tmp_path / "c")
    assert not done.empty and done.git.state().branch == "main" and (tmp_path / "c" / "a.md").exists()
    up = remotes.upstream_of(done.git, "main")
    assert up and up.configured


def test_a_failed_clone_leaves_nothing_and_shows_no_credential(tmp_path: Path) -> None:
    with pytest.raises(MdmemError) as caught:
        clone("https://bob:s3cr3t@127.0.0.1:9/x.git", tmp_path / "c")
    assert "s3cr3t" not in str(caught.value) and not (tmp_path / "c").exists()


def test_init_keeps_an_existing_repository(repo: Path, tmp_path: Path, sh: Sh, own_home: Path) -> None:
    before = (repo / ".git" / "config").read_text()
    init_repo(repo)
    assert (repo / ".git" / "config").read_text() == before
    assert init_repo(tmp_path / "deep" / "new").state().branch == "main"
    (own_home / ".gitconfig").write_text("[init]\n\tdefaultBranch = trunk\n")
    assert init_repo(tmp_path / "other").state().branch == "trunk"


def test_the_upstream_is_the_setting_or_the_only_remote(repo: Path, sh: Sh) -> None:
    git = Git(repo)
    assert remotes.upstream_of(git, "main") is None
    remotes.add_remote(git, "backup", "https://h/x")
    assert remotes.upstream_of(git, "main") == remotes.Upstream("backup", "main", False)
    remotes.add_remote(git, "other", "https://h/y")
    assert remotes.upstream_of(git, "main") is None
    remotes.set_upstream(git, "main", remotes.Upstream("other", "trunk", False))
    assert remotes.upstream_of(git, "main") == remotes.Upstream("other", "trunk", True)
