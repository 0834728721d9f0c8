"""Secrets in what git holds: found in the index, in unpushed commits, in all of history; a scan that cannot run stops."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdmem.errors import MdmemError
from mdmem.repo.git import Git
from mdmem.repo.scan import Hit, scan_bytes, scan_history, scan_staged, scan_unpushed
from tests.repo.conftest import Sh

KEY = "AKIA" + "A1B2C3D4E5F6G7H8"


def write(top: Path, name: str, text: str) -> None:
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_kind_line_and_commit_but_never_the_value(repo: Path, sh: Sh) -> None:
    write(repo, '记录 "q".md', f"one\ntwo {KEY}\n")
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "second")
    rev = sh(repo, "rev-parse", "HEAD").strip()
    sh(repo, "rm", "-q", "--", '记录 "q".md')
    sh(repo, "commit", "-qm", f"third password=hunter2x!\n\nbody {KEY}")
    last = sh(repo, "rev-parse", "HEAD").strip()
    hits = scan_history(Git(repo))
    assert hits[0] == Hit('记录 "q".md', 2, "aws-key", rev)
    assert {(hit.path, hit.line, hit.kind, hit.rev) for hit in hits[1:]} == {
        ("", 1, "password", last),
        ("", 3, "aws-key", last),
    }
    assert KEY not in repr(hits) + "".join(map(str, hits)) and "hunter2" not in repr(hits)


def test_only_what_no_remote_has_is_unpushed(repo: Path, sh: Sh, tmp_path: Path) -> None:
    write(repo, "old.md", f"{KEY}\n")
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "old")
    assert [hit.path for hit in scan_unpushed(Git(repo))] == ["old.md"]
    sh(tmp_path, "init", "-q", "--bare", "remote.git")
    sh(repo, "remote", "add", "origin", str(tmp_path / "remote.git"))
    sh(repo, "push", "-q", "origin", "HEAD:main")
    assert scan_unpushed(Git(repo)) == []
    write(repo, "new.md", f"x\n{KEY}\n")
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "new")
    assert [(hit.path, hit.line) for hit in scan_unpushed(Git(repo))] == [("new.md", 2)]
    assert scan_unpushed(Git(repo), known=[sh(repo, "rev-parse", "HEAD").strip()]) == []
    assert scan_unpushed(Git(repo), wanted=lambda path: path == "old.md") == []
    assert len(scan_history(Git(repo))) == 2


def test_p8_a_scan_that_cannot_read_an_object_stops(repo: Path, sh: Sh) -> None:
    write(repo, "b.md", "b\n")
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "b")
    oid = sh(repo, "rev-parse", "HEAD:b.md").strip()
    (repo / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(MdmemError):
        scan_unpushed(Git(repo))
    with pytest.raises(MdmemError):
        scan_unpushed(Git(repo), "refs/heads/absent")


def test_staged_is_what_counts_not_the_work_tree(repo: Path, sh: Sh) -> None:
    write(repo, "a.md", f"{KEY}\n")
    assert scan_staged(Git(repo)) == []
    sh(repo, "add", "-A")
    write(repo, "a.md", "clean\n")
    assert [(hit.path, hit.line, hit.kind) for hit in scan_staged(Git(repo))] == [("a.md", 1, "aws-key")]
    sh(repo, "commit", "-qm", "x")
    assert scan_staged(Git(repo)) == []
    sh(repo, "rm", "-q", "-f", "a.md")
    assert scan_staged(Git(repo)) == []


def test_an_unborn_branch_and_an_empty_history(tmp_path: Path, sh: Sh) -> None:
    sh(tmp_path, "init", "-q")
    assert scan_history(Git(tmp_path)) == []
    write(tmp_path, "a.md", f"{KEY}\n")
    sh(tmp_path, "add", "-A")
    assert [hit.path for hit in scan_staged(Git(tmp_path))] == ["a.md"]


def test_allowed_lines_and_binary_files_are_left_out() -> None:
    assert scan_bytes("a.md", f"{KEY} mdmem:allow-secret\n".encode()) == []
    assert scan_bytes("a.png", b"\x89PNG\0" + KEY.encode()) == []
    assert scan_bytes("a.md", b"\xff\xfe bad utf-8 " + KEY.encode()) == [Hit("a.md", 1, "aws-key")]


def test_what_is_staged_beside_notes_and_what_is_not_here(repo: Path, sh: Sh, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "link.md").symlink_to(KEY)
    write(repo, "b.md", f"{KEY}\n")
    sh(repo, "add", "-A")
    git = Git(repo)
    assert [hit.path for hit in scan_staged(git)] == ["b.md"]  # where a link leads to is no text
    assert scan_staged(git, lambda path: path == "a.md") == []
    oid = sh(repo, "rev-parse", ":b.md").strip()
    (repo / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(MdmemError, match="could not run") as caught:
        scan_staged(git)
    assert "b.md is not here" in caught.value.why and "git fsck" in caught.value.hint


def test_inside_a_hook_the_index_of_that_commit_counts_and_of_no_other_repository(
    repo: Path, tmp_path: Path, sh: Sh, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repo, "b.md", f"{KEY}\n")
    index = repo / ".git" / "next-index"
    sh(repo, "add", "b.md", env={"GIT_INDEX_FILE": str(index)})
    git = Git(repo)
    assert scan_staged(git) == []
    monkeypatch.chdir(repo)
    for named in (str(index), ".git/next-index"):
        monkeypatch.setenv("GIT_INDEX_FILE", named)
        assert [hit.path for hit in scan_staged(git)] == ["b.md"]
    other = tmp_path / "other"
    other.mkdir()
    sh(other, "init", "-q", env={"GIT_INDEX_FILE": ""})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert scan_staged(git) == []
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    assert scan_staged(git) == []
