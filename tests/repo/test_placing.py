"""Bringing the work tree along: a kill is made good by the next command, and what somebody writes meanwhile stays."""

from __future__ import annotations

import pytest

from mdmem.repo import place as placing
from mdmem.repo.git import GitFailed
from mdmem.repo.merge import find_conflicts

from .conftest import World
from .test_sync import meet, note
from .test_sync_states import both_ahead


def test_an_interrupted_placement_is_finished_by_the_next_command(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = both_ahead(world)
    one.save("gone.md", note("mem-g"))
    one.sync()
    two.sync()
    one.save("gone.md", None)
    one.save("x/new.md", note("mem-n"))
    one.sync()

    def stop(*args: object, **kwargs: object) -> None:
        raise GitFailed("stopped")

    monkeypatch.setattr(placing, "_index", stop)
    assert two.sync().state == "refused"
    monkeypatch.undo()
    assert placing.journal_path(two.git).exists()
    two.save("mine.md", note("mem-m"))  # any command finishes it first
    assert not placing.journal_path(two.git).exists()
    meet(one, two)
    assert "gone.md" not in two.files() and "x/new.md" in two.files() and "mine.md" in one.files()


def test_an_interrupted_placement_whose_branch_moved_on_loses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = both_ahead(world)
    one.sync()
    one.save("a.md", one.read("a.md").replace("one", "ONE"))
    one.sync()

    def stop(*args: object, **kwargs: object) -> None:
        raise GitFailed("stopped")

    monkeypatch.setattr(placing, "_index", stop)
    assert two.sync().state == "refused"
    monkeypatch.undo()
    two.write("hand.md", note("mem-h"))
    two.sh("add", "hand.md")
    two.sh("commit", "-qm", "by hand")
    assert two.sync().state == "merged"
    meet(one, two)
    assert "ONE" in two.read("a.md") and "hand.md" in one.files()


def test_an_edit_while_files_come_in_is_merged(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = world.pair()
    one.save("a.md", one.read("a.md").replace("one", "ONE"))
    one.save("b.md", note("mem-b", "theirs\n"))
    one.sync()
    original = placing.write_journal

    def edited(*args: object, **kwargs: object) -> None:
        two.write("a.md", two.read("a.md").replace("three", "THREE"))
        two.write("b.md", note("mem-b", "mine\n"))
        original(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(placing, "write_journal", edited)
    result = two.sync()
    monkeypatch.undo()
    assert result.state == "merged" and sum("changed meanwhile" in text for text in result.notices) == 2
    assert "ONE" in two.read("a.md") and "THREE" in two.read("a.md")
    meet(one, two)
    assert "theirs" in one.read("b.md") and "mine" in one.read("b.md")


def test_a_time_in_the_future_is_judged_by_the_machines_clock_while_files_come_in(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "---\nid: task-a\nkind: task\nstatus: {}\nupdated: {}\n---\none\n"
    one, two = world.pair({"a.md": text.format("open", "2026-02-01T00:00:00Z")})
    one.save("a.md", text.format("done", "2026-02-02T00:00:00Z"))
    one.sync()
    original = placing.write_journal

    def edited(*args: object, **kwargs: object) -> None:
        two.write("a.md", text.format("blocked", "2036-02-01T00:00:00Z"))
        original(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(placing, "write_journal", edited)
    two.sync()
    monkeypatch.undo()
    assert [found.name for found in find_conflicts((two.top / "a.md").read_bytes())] == ["status"]
    meet(one, two)
