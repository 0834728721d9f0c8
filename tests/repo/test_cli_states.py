"""What `status`, `conflicts` and the writing commands tell of a state that needs a person, and what stands beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdmem.cli.main import run

from .conftest import Sh
from .test_cli import Box, pair, remote

__all__ = ["pair", "remote"]  # fixtures


def clash(pair: tuple[Box, Box], sh: Sh) -> tuple[Box, Box, str]:
    """A note and a picture that both clones changed and committed; the first has pushed."""
    a, b = pair
    path = a.json("remember", "fact", "the office is in Basel")["path"]
    a("sync")
    b("sync")
    for box, word in ((a, "Bern"), (b, "Zug")):
        note = box.folder / path
        note.write_text(note.read_text().replace("in Basel", f"in {word}"))
        (box.folder / "plan.png").write_bytes(b"\0" + word.encode())
        sh(box.folder, "add", ".")
        sh(box.folder, "commit", "-qm", word)
    a("sync")
    return a, b, path


def test_status_in_a_stopped_merge_names_the_files_and_what_to_type(pair: tuple[Box, Box], sh: Sh) -> None:
    _, b, path = clash(pair, sh)
    sh(b.folder, "pull", "-q", "--no-rebase", check=False)
    told = " ".join(b.json("status")["needs"])
    assert path in told and "plan.png" in told and "mdmem resolve" in told and "git merge --abort" in told
    before = sh(b.folder, "rev-parse", "HEAD")
    refused = b.json("sync", code=6)
    assert "2 unmerged files" in refused["hint"] and sh(b.folder, "rev-parse", "HEAD") == before
    b("resolve", path, "--keep", "1")
    told = " ".join(b.json("status")["needs"])
    assert path not in told and "plan.png" in told
    sh(b.folder, "add", "plan.png")
    assert "settle" not in " ".join(b.json("status")["needs"])
    sh(b.folder, "commit", "-qm", "merged by hand")
    assert b.json("sync")["state"] == "pushed"
    sh(b.folder, "fsck", "--strict")


def test_status_after_a_stash_that_did_not_fit(pair: tuple[Box, Box], sh: Sh) -> None:
    _, b, path = clash(pair, sh)
    sh(b.folder, "reset", "-q", "--hard", "origin/main")
    note = b.folder / path
    note.write_text(note.read_text().replace("in Basel", "in Chur"))
    sh(b.folder, "pull", "-q", "--rebase", "--autostash", check=False)
    told = " ".join(b.json("status")["needs"])
    assert path in told and "git stash list" in told
    sh(b.folder, "fsck", "--strict")


def test_conflicts_lists_files_that_stand_in_two_versions(pair: tuple[Box, Box], sh: Sh) -> None:
    _, b, path = clash(pair, sh)
    b("sync", code=4)
    (b.folder / "notes.conflict-later.txt").write_text("a name of the user's own\n")
    found = b.json("conflicts")
    beside = found["files"][0]["path"]
    assert found["files"] == [{"path": beside, "of": "plan.png"}] and beside.startswith("plan.conflict-")
    assert found["count"] == len(found["notes"][0]["conflicts"]) + 1
    assert beside in b("conflicts") and "beside" in " ".join(b.json("status")["needs"])
    b("resolve", path, "--keep", "1")
    assert "No conflicts." not in b("conflicts")
    sh(b.folder, "rm", "-q", beside)
    assert b("conflicts") == "No conflicts.\n"


def test_status_counts_what_waits_also_after_a_push(pair: tuple[Box, Box], sh: Sh) -> None:
    a, b = pair
    a("remember", "fact", "one fact")
    assert a.json("status")["git"]["unpushed"] == 1
    a("sync")
    assert a.json("status")["git"]["unpushed"] == 0
    b("remember", "fact", "another fact")
    b("sync")
    assert (b.json("status")["git"]["unpushed"], b.json("status")["git"]["behind"]) == (0, 0)
    a("remember", "fact", "pushed by hand")
    sh(a.folder, "pull", "-q", "--no-rebase")
    sh(a.folder, "push", "-q")
    assert (a.json("status")["git"]["unpushed"], a.json("status")["git"]["behind"]) == (0, 0)
    sh(b.folder, "fetch", "-q")
    assert b.json("status")["git"]["behind"] == 2


@pytest.mark.parametrize("named", ["id", "path"])
def test_every_command_that_changes_a_note_names_who_leased_it(
    named: str, pair: tuple[Box, Box], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    made = a.json("remember", "fact", "the office is in Basel", "--importance", "0.1")
    task = a.json("task", "add", "Deploy")
    a("set", made["id"], "importance=0.2")
    a("sync")
    b("sync")
    monkeypatch.setenv("MDMEM_DEVICE", "one")
    for note in (made, task):
        a("lease", "acquire", note["id"], "--ttl", "10m")
    b("sync")
    monkeypatch.setenv("MDMEM_DEVICE", "two")
    editor = b.folder.parent / "editor.sh"
    editor.write_text('#!/bin/sh\necho more >> "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    note, work = made[named], task["id"] if named == "id" else task["path"]
    for args in (
        ["set", note, "importance=0.5"],
        ["edit", note],
        ["restore", note, "--at", "HEAD~1"],
        ["undo"],
        ["forget", note],
        ["remember", "fact", "the office is in Bern", "--supersedes", note],
        ["task", "update", work, "--priority", "urgent"],
        ["task", "note", work, "a word"],
        ["task", "claim", work],
        ["task", "done", work, "--force"],
        ["forget", note, "--purge"],
    ):
        b(*args)
        assert b.err.count("is leased by user@one") == 1, args
        assert "both changes will be kept" in b.err
    b("remember", "fact", "about something else")
    assert "leased" not in b.err
    monkeypatch.setenv("MDMEM_DEVICE", "one")
    a("set", made["id"], "importance=0.6")
    assert "leased" not in a.err


def test_resolve_names_who_leased_the_note(pair: tuple[Box, Box], sh: Sh, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, path = clash(pair, sh)
    monkeypatch.setenv("MDMEM_DEVICE", "one")
    a("lease", "acquire", path, "--ttl", "10m")
    monkeypatch.setenv("MDMEM_DEVICE", "two")
    b("sync", code=4)
    assert "user@one" in json.loads(b("resolve", path, "--keep", "1", "--json"))["notice"]
    assert "is leased by user@one" in b.err


def test_mcp_names_who_leased_the_note(pair: tuple[Box, Box], monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem.mcp.server import Memory

    a, b = pair
    path = a.json("remember", "fact", "the office is in Basel")["path"]
    a("sync")
    b("sync")
    monkeypatch.setenv("MDMEM_DEVICE", "one")
    a("lease", "acquire", path, "--ttl", "10m")
    b("sync")
    monkeypatch.setenv("MDMEM_DEVICE", "two")
    memory = Memory(str(Path(b.folder)))
    for _ in range(2):
        done = memory.call("memory_update", {"note": path, "text": "in Bern"})
        assert "is leased by user@one" in done["content"][0]["text"]


def test_a_bare_repository_is_refused_by_name(remote: Path, capsys: pytest.CaptureFixture[str], sh: Sh) -> None:
    before = sorted(path.name for path in remote.iterdir())
    box = Box(capsys, remote)
    for command in ("status", "sync"):
        assert "bare repository" in box.json(command, code=6)["error"]["message"]
    capsys.readouterr()
    assert run(["init", str(remote)]) == 6
    assert "mdmem clone" in capsys.readouterr().err
    assert sorted(path.name for path in remote.iterdir()) == before
    sh(remote, "fsck", "--strict")


def test_a_repository_inside_the_store_is_named_and_left_alone(pair: tuple[Box, Box], sh: Sh) -> None:
    a, _ = pair
    sh(a.folder, "init", "-q", "inner")
    (a.folder / "inner" / "n.md").write_text("the inner note\n")
    told = a.json("sync")
    assert told["state"] == "clean" and any(text.startswith("inner/ is a repository") for text in told["notices"])
    assert "inner" not in sh(a.folder, "ls-files") and a.json("list")["notes"] == []
    sh(a.folder, "fsck", "--strict")
