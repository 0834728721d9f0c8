"""The clock jumps: back, forward, to 1970, past 2038 and 2106, to the end of time. Every command goes on, nothing is lost, and
git takes the commits."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from mdmem.cli.main import run
from mdmem.clock import FixedClock
from mdmem.notes.note import load
from tests.conftest import NOW
from tests.hooks.host import payload, run_hook, sample
from tests.injected import count
from tests.repo.conftest import World, plain_git

MOMENTS = (
    "2026-11-30T09:00:00Z",
    "1970-01-01T00:00:00Z",
    "2038-01-19T03:14:08Z",
    "2026-11-30T09:00:01Z",
    "2106-02-07T06:28:16Z",
    "2001-09-09T01:46:40Z",
    "9999-12-31T23:59:59Z",
    "2026-11-30T09:00:02Z",
)


def test_commands_go_on_wherever_the_clock_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "off")
    remote, top = tmp_path / "remote.git", tmp_path / "store"
    plain_git(tmp_path, "init", "-q", "--bare", str(remote))
    assert run(["clone", str(remote), str(top)]) == 0
    assert run(["-C", str(top), "task", "add", "Write the notes"]) == 0
    task = next((top / "tasks").rglob("*.md")).relative_to(top).as_posix()
    texts = []
    for number, moment in enumerate(MOMENTS):
        monkeypatch.setenv("MDMEM_NOW", moment)
        texts.append(f"quokka number {number} came at {moment}")
        lines = [
            ["remember", "event", texts[-1]],
            ["set", texts[0], f"importance=0.{number + 1}"] if number else ["list"],
            ["task", "claim" if number % 2 == 0 else "release", task],
            ["heartbeat", "--doing", f"part {number}"],
            ["log", "note", f"did part {number}"],
            ["lease", "acquire", task, "--ttl", "10s"],
            ["lease", "release", task],
            ["recall", "quokka", "--keyword", "--limit", "20"],
            ["recall", "quokka", "--keyword", "--since", "7d"],
            ["handoff", "--no-save"],
            ["sessions"],
            ["agents"],
            ["diff", "1971-01-01", "9999-01-01"],
            ["sync"],
            ["status"],
            ["doctor"],
        ]
        for words in lines:
            capsys.readouterr()
            count("commands with a clock that jumped")
            code = run(["-C", str(top), *words, "--json"])
            told = capsys.readouterr()
            assert "unexpected" not in told.err and code in (0, 1, 3, 5), (moment, words, code, told)
            if words[0] in ("remember", "set", "sync", "status", "heartbeat"):
                assert code == 0, (moment, words, told)
        for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "SessionEnd"):
            done = run_hook(event, {**payload(event, top), **sample(event, top)}, cwd=top)
            assert done.code == 0 and not done.err, (moment, event, done)
    capsys.readouterr()
    assert run(["-C", str(top), "list", "--json", "--limit", "0"]) == 0
    listed = json.loads(capsys.readouterr().out)["notes"]
    kept = "\n".join((top / row["path"]).read_text() for row in listed)
    assert all(text in kept for text in texts)
    assert run(["-C", str(top), "sync"]) == 0
    for repository in (top, remote):
        plain_git(repository, "fsck", "--strict")
    assert plain_git(top, "status", "--porcelain") == ""
    assert plain_git(top, "rev-parse", "HEAD") == plain_git(remote, "rev-parse", "main")


@pytest.mark.parametrize("jump", [timedelta(days=-20_000), timedelta(days=4500), timedelta(days=-1), timedelta(seconds=-1)])
def test_two_machines_with_clocks_apart_merge_both_sides(jump: timedelta, tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    one, two = world.pair()
    two.clock = FixedClock(NOW + jump)
    one.save("a.md", "---\nid: mem-a\ntitle: A\n---\nONE\n\ntwo\n\nthree\n")
    two.save("a.md", "---\nid: mem-a\ntitle: A\n---\none\n\ntwo\n\nTHREE\n")
    two.save("b.md", "---\nid: mem-b\n---\nb\n")
    for clone in (one, two, one):
        assert clone.sync().state not in ("refused", "offline", "conflict")
    assert one.files() == two.files()
    text = one.read("a.md")
    assert "ONE" in text and "THREE" in text and load("a.md", text.encode()).ok
    for clone in (one, two):
        clone.healthy()


def test_files_from_the_future_and_from_1970_are_seen_when_they_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top = tmp_path / "store"
    assert run(["init", str(top)]) == 0
    note = top / "memories" / "a.md"
    note.parent.mkdir(exist_ok=True)
    for number, moment in enumerate((0, 2**31, 2**32 + 5, 1, 253402300799)):
        note.write_text(f"---\nid: mem-a\ntitle: A\n---\nword{number}\n")
        os.utime(note, (moment, moment))
        capsys.readouterr()
        assert run(["-C", str(top), "recall", f"word{number}", "--keyword", "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["results"]) == 1, moment
