"""Bringing the work tree along: a kill is made good by the next command, and what somebody writes meanwhile stays."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from mdmem.repo import place as placing
from mdmem.repo.git import GitFailed
from mdmem.repo.merge import find_conflicts
from mdmem.repo.own import unsafe

from .conftest import Clone, World
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


def incoming(world: World) -> tuple[Clone, Clone]:
    """Two clones; the second lacks a new note, a change, and a deletion that the remote has."""
    one, two = world.pair({"a.md": note("mem-a", "one\n\ntwo\n"), "gone.md": note("mem-g")})
    one.save("x/new.md", note("mem-n"))
    one.save("a.md", one.read("a.md").replace("one", "ONE"))
    one.save("gone.md", None)
    one.sync()
    return one, two


@pytest.mark.parametrize("way", ["link above", "repository above", "file above", "link", "pipe", "folder"])
def test_what_stands_where_a_note_comes_is_named_and_never_written_through(
    world: World, tmp_path: Path, way: str
) -> None:
    one, two = incoming(world)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "new.md").write_text("not ours")
    if way == "link above":
        (two.top / "x").symlink_to(outside)
    elif way == "file above":
        (two.top / "x").write_text("a file of my own")
    else:
        (two.top / "x").mkdir()
    if way == "repository above":
        two.sh("init", "-q", "x")
    if way == "link":
        (two.top / "x/new.md").symlink_to(outside / "new.md")
    if way == "pipe":
        os.mkfifo(two.top / "x/new.md")
    if way == "folder":
        (two.top / "x/new.md").mkdir()
    result = two.sync()
    assert result.state == "refused" and result.hint
    above, no_file = "x is a link or another repository", "something that is no file stands there"
    said = {"link above": above, "repository above": above, "link": "a symbolic link stands there"}
    said |= {"pipe": no_file, "folder": no_file, "file above": "x is a file of your own"}
    assert said[way] in result.reason
    assert (outside / "new.md").read_text() == "not ours" and list(outside.iterdir()) == [outside / "new.md"]
    again = two.sync()  # still in the way: what had come is committed, and the reason is given again
    assert again.state == "refused" and said[way] in again.reason
    if (two.top / "x").is_symlink() or not (two.top / "x").is_dir():
        (two.top / "x").unlink()
    else:
        shutil.rmtree(two.top / "x")
    meet(one, two)
    assert two.read("x/new.md") == note("mem-n") and "ONE" in two.read("a.md") and "gone.md" not in two.files()


@pytest.mark.parametrize("saved", ["the same", "another text", "nothing"])
def test_an_editor_that_saves_while_the_disk_is_busy_is_merged(
    world: World, monkeypatch: pytest.MonkeyPatch, saved: str
) -> None:
    one, two = incoming(world)
    original = placing._sync_all

    def edited(temps: object) -> None:
        original(temps)  # type: ignore[arg-type]
        monkeypatch.setattr(placing, "_sync_all", original)
        if saved == "nothing":
            (two.top / "a.md").unlink()
        elif saved == "the same":
            two.write("a.md", note("mem-a", "ONE\n\ntwo\n"))
        else:
            two.write("a.md", note("mem-a", "one\n\nTWO\n"))
        two.write("gone.md", note("mem-g", "kept after all\n"))

    monkeypatch.setattr(placing, "_sync_all", edited)
    assert two.sync().state == "merged"
    monkeypatch.undo()
    assert "ONE" in two.read("a.md") and ("TWO" in two.read("a.md")) == (saved == "another text")
    assert two.read("gone.md") == note("mem-g", "kept after all\n")  # edited while it was to go: it stays
    meet(one, two)
    assert "kept after all" in one.read("gone.md")


def test_a_note_that_is_edited_twice_while_files_come_in_is_told_of_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = incoming(world)
    journal, busy = placing.write_journal, placing._sync_all

    def first(*args: object, **kwargs: object) -> None:
        two.write("a.md", note("mem-a", "one\n\nTWO\n"))
        journal(*args, **kwargs)  # type: ignore[arg-type]

    def second(temps: object) -> None:
        busy(temps)  # type: ignore[arg-type]
        monkeypatch.setattr(placing, "_sync_all", busy)
        two.write("a.md", note("mem-a", "one\n\nTWO\n\nthree\n"))

    monkeypatch.setattr(placing, "write_journal", first)
    monkeypatch.setattr(placing, "_sync_all", second)
    result = two.sync()
    monkeypatch.undo()
    assert [text for text in result.notices if "a.md" in text] == [
        "a.md was changed meanwhile: both changes are in it, and the next sync commits it"
    ]
    meet(one, two)
    assert two.read("a.md") == note("mem-a", "ONE\n\nTWO\n\nthree\n")


def test_a_note_that_is_edited_before_it_goes_is_kept_and_asked_about(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = incoming(world)
    original = placing.write_journal

    def edited(*args: object, **kwargs: object) -> None:
        two.write("gone.md", note("mem-g", "kept after all\n"))
        original(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(placing, "write_journal", edited)
    assert two.sync().state == "merged"
    monkeypatch.undo()
    assert [found.kind for found in find_conflicts((two.top / "gone.md").read_bytes())] == ["deleted"]
    meet(one, two)
    assert "kept after all" in one.read("gone.md")


def test_a_journal_of_work_that_is_done_and_one_that_is_none_only_go(world: World) -> None:
    one, _ = world.pair()
    one.save("b.md", note("mem-b"))
    old, new = one.sh("rev-parse", "HEAD~1", "HEAD").split()
    assert placing.finish(one.git, one.clock.now()) == ""
    placing.write_journal(one.git, old, new, "main", one.lock_path)  # killed after the branch had moved
    assert "finished" in placing.finish(one.git, one.clock.now())
    assert not placing.journal_path(one.git).exists() and one.sh("rev-parse", "HEAD").strip() == new
    one.healthy()
    placing.journal_path(one.git).write_text('{"old": 1}')
    assert placing.finish(one.git, one.clock.now()) == "" and not placing.journal_path(one.git).exists()
    placing.finish_first(one.git, one.clock.now())  # another process was quicker


def test_a_journal_cannot_name_a_lock_outside_the_repository(world: World, tmp_path: Path) -> None:
    one, _ = world.pair()
    one.save("b.md", note("mem-b"))
    old, new = one.sh("rev-parse", "HEAD~1", "HEAD").split()
    placing.write_journal(one.git, old, new, "main", tmp_path / "elsewhere" / "write.lock")
    one.save("c.md", note("mem-c"))
    assert not (tmp_path / "elsewhere").exists() and not placing.journal_path(one.git).exists()


def test_an_unsafe_path_is_refused_before_anything_is_written(world: World) -> None:
    one, _ = world.pair()
    head = one.sh("rev-parse", "HEAD").strip()
    blob = one.git.run("hash-object", "-w", "--stdin", input=b"[core]\n").text()
    entry = b"100644 .GIT\0" + bytes.fromhex(blob)
    tree = one.git.run("hash-object", "-t", "tree", "-w", "--literally", "--stdin", input=entry).text()
    evil = one.sh("commit-tree", tree, "-p", head, "-m", "x").strip()
    before = one.files()
    with pytest.raises(GitFailed, match="not safe"):
        placing.place(one.git, head, evil, "main", one.lock_path, one.clock.now())
    assert one.files() == before and one.sh("rev-parse", "HEAD").strip() == head
    for path in ("", "/a.md", "a/", "a\0", "a//b", "a/../b", "./a", ".GIT/x", "git~1 /x", ".g\u200cit/x"):
        assert unsafe(path), path
    assert not unsafe(".github/x.md")


def test_a_git_directory_on_another_disk_works_too(world: World, tmp_path: Path) -> None:
    other = next((Path(place) for place in ("/dev/shm", "/var/tmp", "/tmp")
                  if os.path.isdir(place) and os.stat(place).st_dev != os.stat(tmp_path).st_dev), None)  # fmt: skip
    if other is None:
        pytest.skip("there is only one disk")
    _, two = incoming(world)
    with tempfile.TemporaryDirectory(dir=other) as folder:
        shutil.move(two.top / ".git", Path(folder) / "git")
        (two.top / ".git").write_text(f"gitdir: {folder}/git\n")
        two.__class__ = Apart
        result = two.sync()
        assert result.state == "merged" and "ONE" in two.read("a.md") and "gone.md" not in two.files()
        assert list(two.top.rglob(".mdmem-*")) == []


class Apart(Clone):
    """A clone whose git directory lies elsewhere."""

    @property
    def lock_path(self) -> Path:
        return self.git.common_dir / "mdmem" / "write.lock"


@pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
def test_a_journal_that_cannot_be_written_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    one, _ = world.pair()
    before = sorted(os.listdir(one.git.path("mdmem")))

    def step(name: str, path: Path) -> None:
        if name == failing:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(placing.disk, "step", step)
    with pytest.raises(OSError, match="No space"):
        placing.write_journal(one.git, "a", "b", "main", one.lock_path)
    assert sorted(os.listdir(one.git.path("mdmem"))) == before
