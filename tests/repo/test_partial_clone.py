"""A partial clone syncs like any other: what a merge needs is fetched with the branch, and nothing in secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdmem.cli.main import run
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
