"""A partial clone syncs like any other: what a merge needs is fetched with the branch, and nothing in secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdmem.cli.main import run
from mdmem.repo import exchange
from mdmem.repo.git import Git
from mdmem.repo.remotes import Upstream
from tests.repo.conftest import plain_git


def said(top: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    capsys.readouterr()
    run(["-C", str(top), *words, "--json"])
    return dict(json.loads(capsys.readouterr().out))


def test_a_partial_clone_syncs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remote, whole, part = tmp_path / "remote.git", tmp_path / "whole", tmp_path / "part"
    plain_git(tmp_path, "init", "-q", "--bare", str(remote))
    plain_git(remote, "config", "uploadpack.allowFilter", "true")
    plain_git(remote, "config", "uploadpack.allowAnySHA1InWant", "true")
    assert run(["init", str(whole)]) == 0
    first = str(said(whole, capsys, "remember", "fact", "The harbor opens at nine.")["path"])
    assert run(["-C", str(whole), "remote", "add", "origin", remote.as_uri()]) == 0
    assert run(["-C", str(whole), "sync"]) == 0
    plain_git(tmp_path, "clone", "-q", "--filter=blob:none", remote.as_uri(), str(part))
    assert run(["-C", str(part), "trust"]) == 0
    for number in range(3):
        said(whole, capsys, "set", first, f"importance=0.{number + 1}")
        said(whole, capsys, "remember", "fact", f"The lantern number {number} is green.")
        said(whole, capsys, "sync")
        said(part, capsys, "set", first, f"category=c{number}")
        said(part, capsys, "remember", "fact", f"The walnut number {number} is brown.")
        done = said(part, capsys, "sync")
        assert done["state"] == "merged", done
        assert said(whole, capsys, "sync")["state"] in ("merged", "pushed", "clean")
    text = (part / first).read_text()
    assert "importance: 0.3" in text and "category: c2" in text and (whole / first).read_text() == text
    assert plain_git(part, "status", "--porcelain") == ""


def test_an_old_text_that_a_partial_clone_lacks_is_named_with_what_to_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remote, whole, part = tmp_path / "remote.git", tmp_path / "whole", tmp_path / "part"
    plain_git(tmp_path, "init", "-q", "--bare", str(remote))
    plain_git(remote, "config", "uploadpack.allowFilter", "true")
    assert run(["init", str(whole)]) == 0
    first = str(said(whole, capsys, "remember", "fact", "The harbor opens at nine.")["path"])
    said(whole, capsys, "set", first, "importance=0.9")
    assert run(["-C", str(whole), "remote", "add", "origin", remote.as_uri()]) == 0
    assert run(["-C", str(whole), "sync"]) == 0
    plain_git(tmp_path, "clone", "-q", "--filter=blob:none", remote.as_uri(), str(part))
    assert run(["-C", str(part), "trust"]) == 0
    capsys.readouterr()
    code = run(["-C", str(part), "restore", first, "--at", "HEAD~1"])
    told = capsys.readouterr()
    if code:  # this git fetches nothing by itself
        assert "Traceback" not in told.err and ("fsck" in told.err or "refetch" in told.err), told.err


def test_texts_that_a_remote_no_longer_gives_are_the_reason_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The remote goes away between the fetch of a branch and that of the texts which a partial clone left out."""
    remote, whole, part = tmp_path / "remote.git", tmp_path / "whole", tmp_path / "part"
    plain_git(tmp_path, "init", "-q", "--bare", str(remote))
    plain_git(remote, "config", "uploadpack.allowFilter", "true")
    assert run(["init", str(whole)]) == 0
    said(whole, capsys, "remember", "fact", "The harbor opens at nine.")
    assert run(["-C", str(whole), "remote", "add", "origin", remote.as_uri()]) == 0
    assert run(["-C", str(whole), "sync"]) == 0
    plain_git(tmp_path, "clone", "-q", "--filter=blob:none", remote.as_uri(), str(part))
    git, upstream = Git(part), Upstream("origin", "main", True)
    first = git.rev("HEAD") or ""
    said(whole, capsys, "remember", "fact", "The lantern is green.")
    said(whole, capsys, "sync")
    plain_git(part, "fetch", "-q", "origin")
    tip = git.rev("refs/remotes/origin/main") or ""
    remote.rename(tmp_path / "away.git")
    assert first and exchange._complete(git, upstream, first, 5.0) == ""  # nothing lacks there
    assert "remote.git" in exchange._complete(git, upstream, tip, 5.0)


@pytest.mark.parametrize(
    "words", [("diff", "HEAD~1", "HEAD"), ("undo",), ("restore", "NOTE", "--at", "HEAD~1"), ("history", "NOTE")]
)
def test_an_object_that_is_missing_is_named_with_what_to_type_by_every_command(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top = tmp_path / "store"
    assert run(["init", str(top)]) == 0
    note = str(said(top, capsys, "remember", "fact", "The harbor opens at nine.")["path"])
    said(top, capsys, "set", note, "importance=0.9")
    oid = plain_git(top, "rev-parse", f"HEAD~1:{note}").strip()
    (top / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    before = (top / note).read_bytes()
    capsys.readouterr()
    code = run(["-C", str(top), *(note if word == "NOTE" else word for word in words)])
    told = capsys.readouterr().err
    assert code in (1, 6) and oid in told and "unexpected" not in told, told
    assert (top / note).read_bytes() == before
