"""The commands of this room as a user types them: exit codes, one JSON document, and the next thing to type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mdmem.cli.main import run

from .conftest import Sh, plain_git


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    plain_git(tmp_path, "init", "-q", "--bare", "r.git")
    return tmp_path / "r.git"


class Box:
    """Runs commands in one folder and reads what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self.capsys, self.folder = capsys, folder

    def __call__(self, *args: str, code: int = 0) -> str:
        self.capsys.readouterr()
        assert run(["-C", str(self.folder), *args]) == code, (args, self.capsys.readouterr())
        out = self.capsys.readouterr()
        self.err = out.err
        return out.out

    def json(self, *args: str, code: int = 0) -> Any:
        return json.loads(self(*args, "--json", code=code))


@pytest.fixture
def pair(remote: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Box, Box]:
    assert run(["clone", str(remote), str(tmp_path / "a")]) == 0
    a = Box(capsys, tmp_path / "a")
    a("sync")
    assert run(["clone", str(remote), str(tmp_path / "b")]) == 0
    return a, Box(capsys, tmp_path / "b")


def test_two_machines_share_memories(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a("remember", "decision", "We stay with PostgreSQL 16")
    assert a("sync") == "Pushed: 1 commit pushed.\n"
    assert a("sync") == "Nothing new.\n"
    assert b.json("sync")["state"] == "merged"
    assert "PostgreSQL" in b("list")
    assert [row["status"] for row in b.json("history", "We stay with PostgreSQL 16")["changes"]] == ["A"]


def test_conflicts_exit_4_and_refusals_6_with_a_hint(pair: tuple[Box, Box], sh: Sh) -> None:
    a, b = pair
    path = a.json("remember", "fact", "the office is in Basel")["path"]
    a("sync")
    b("sync")
    for box, word in ((a, "Bern"), (b, "Chur")):
        file = box.folder / path
        file.write_text(file.read_text().replace("in Basel", f"in {word}"))
    a("sync")
    out = b("sync", code=4)
    assert "conflict: " in out and "mdmem resolve" in out
    sh(b.folder, "switch", "-q", "--detach")
    data = b.json("sync", code=6)
    assert data["state"] == "refused" and data["reason"].startswith("detached head") and data["hint"] == "git switch BRANCH"


def test_offline_exits_0_and_says_what_waits(pair: tuple[Box, Box], remote: Path) -> None:
    a, _ = pair
    remote.rename(remote.with_name("away"))
    a("remember", "fact", "one fact")
    assert a("sync") == "Offline: 1 commit waits for the remote.\n"
    git = a.json("status")["git"]
    assert (git["unpushed"], git["behind"], git["last_sync"]["state"]) == (1, 0, "offline")
    assert any("the last sync" in text for text in a.json("status")["needs"])


def test_restore_diff_and_undo(pair: tuple[Box, Box]) -> None:
    a, _ = pair
    path = a.json("remember", "fact", "the office is in Basel")["path"]
    before = (a.folder / path).read_bytes()
    a("set", path, "importance=0.9")
    changed = a.json("diff", "HEAD~1", "HEAD")["notes"]
    assert [(c["status"], c["fields"]["importance"]) for c in changed] == [("changed", {"before": None, "after": "0.9"})]
    assert a.json("restore", path, "--at", "HEAD~1")["changed"]
    assert (a.folder / path).read_bytes() == before
    assert not a.json("restore", path, "--at", "HEAD")["changed"]
    assert a("undo").startswith("Undone: restore: ")
    assert b"0.9" in (a.folder / path).read_bytes()
    assert a.json("undo", "--dry-run")["subject"].startswith("set:")
    (a.folder / path).unlink()
    a("sync")
    assert a.json("history", Path(path).stem)["path"] == path
    a("restore", path, "--at", "HEAD~1")
    assert (a.folder / path).exists()
    a("restore", "nothing", "--at", "HEAD", code=3)
    a("diff", "not-a-date", code=3)
    assert a.json("diff", "2001-01-01")["notes"]


def test_undo_refuses_to_lose_an_edit(pair: tuple[Box, Box]) -> None:
    a, _ = pair
    path = a.json("remember", "fact", "the office is in Basel")["path"]
    (a.folder / path).write_text((a.folder / path).read_text() + "\nmore\n")
    a("undo", code=4)
    assert "mdmem sync" in a.err and (a.folder / path).read_text().endswith("more\n")


def test_leases(pair: tuple[Box, Box], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = pair
    path = a.json("remember", "fact", "the office is in Basel")["path"]
    a("sync")
    b("sync")
    monkeypatch.setenv("MDMEM_DEVICE", "one")
    lease = a.json("lease", "acquire", path, "--ttl", "5m")
    assert not lease["local"]
    monkeypatch.setenv("MDMEM_DEVICE", "two")
    assert b.json("lease", "acquire", path, code=5)["error"]["code"] == "lease_held"
    assert [row["mine"] for row in b.json("lease", "list")] == [False]
    b("lease", "renew", path, code=3)
    monkeypatch.setenv("MDMEM_DEVICE", "one")
    a("lease", "renew", path)
    assert a.json("lease", "release", path)["released"]
    assert a.json("lease", "list") == []


def test_remotes(pair: tuple[Box, Box]) -> None:
    a, _ = pair
    assert a.json("remote", "add", "backup", "https://bob:s3cr3t@host/x.git")["url"] == "https://***@host/x.git"
    assert "s3cr3t" not in a("remote", "list")
    a("remote", "set", "backup", "git@host:x.git")
    a("remote", "remove", "backup")
    a("remote", "remove", "backup", code=3)
    a("remote", "add", "x", "ext::sh -c id", code=2)


def test_a_secret_exits_1_and_is_named_without_its_value(pair: tuple[Box, Box]) -> None:
    a, _ = pair
    key = "AKIA" + "Z7QX4MPL2VTRW9KD"
    (a.folder / "hand.md").write_text(f"my key {key}\n")
    out = a("sync", code=1)
    assert "hand.md:1" in a.err and key not in a.err + out
    assert a.json("sync", "--allow-secret", "hand.md")["state"] == "pushed"


def test_two_stores_made_apart_are_joined_by_name(remote: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    boxes = []
    for name in ("a", "b"):
        assert run(["init", str(tmp_path / name), "--remote", str(remote)]) == 0
        box = Box(capsys, tmp_path / name)
        box("remember", "fact", f"a fact of {name}")
        boxes.append(box)
    a, b = boxes
    a("sync")
    data = b.json("sync", code=6)
    assert "unrelated histories" in data["reason"] and data["hint"] == "mdmem sync --join"
    b("sync", "--join", code=4)
    a("sync")
    for box in boxes:
        assert {"a fact of a", "a fact of b"} <= {row["title"] for row in box.json("list")["notes"]}
        box("remember", "fact", f"later, in {box.folder.name}")  # still trusted, whichever id was kept


def test_in_a_code_repository_nothing_happens_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str], sh: Sh) -> None:
    sh(tmp_path, "init", "-q", "app")
    app = tmp_path / "app"
    (app / "main.py").write_text("1")
    sh(app, "add", ".")
    sh(app, "commit", "-qm", "code")
    assert run(["init", str(app)]) == 0
    box = Box(capsys, app)
    box("remember", "fact", "one fact")
    before = sh(app, "rev-parse", "HEAD")
    assert box.json("sync")["state"] == "clean"
    assert "--commit" in box.err and sh(app, "rev-parse", "HEAD") == before
    assert box.json("sync", "--commit")["counts"]["committed"] == 1
    assert all(name.startswith("memories/") for name in sh(app, "show", "--name-only", "--format=", "HEAD").split())


def test_edit_holds_the_lease_and_others_are_warned(pair: tuple[Box, Box], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = pair
    path = a.json("remember", "fact", "the office is in Basel")["path"]
    a("sync")
    b("sync")
    # The "editor" looks from the other machine while the note is open.
    script = a.folder.parent / "editor.sh"
    script.write_text(f'#!/bin/sh\ngit -C "{a.folder}" for-each-ref refs/mdmem > "{a.folder.parent}/seen"\necho more >> "$1"\n')
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(script))
    monkeypatch.setenv("MDMEM_DEVICE", "one")
    assert a.json("edit", path, "--lease")["committed"]
    assert "/leases/" in (a.folder.parent / "seen").read_text()
    assert a.json("lease", "list") == []
    a("lease", "acquire", path, "--ttl", "10m")
    b("sync")
    monkeypatch.setenv("MDMEM_DEVICE", "two")
    assert "user@one" in b.json("set", path, "importance=0.5")["notice"]
    assert "is leased by user@one" in b.err
    b("edit", path, "--lease", code=5)
    monkeypatch.setenv("MDMEM_DEVICE", "one")
    assert "notice" not in a.json("set", path, "importance=0.6")
