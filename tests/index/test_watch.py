"""Looking for changes: by the kernel's word in a process that lives on, by the last look's bytes in a new one."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from notes_at_hand import found, write

from mdmem.errors import Locked
from mdmem.index import last_look, watch
from mdmem.index.index import Index
from mdmem.index.refresh import unsettled
from mdmem.locks import FileLock
from mdmem.store import Store

Opened = Callable[[], Store]

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")


def watching(store: Store) -> Index:
    """Return an index that has looked often enough to be told of changes."""
    index = store.index
    index.refresh()
    _grown_up(store)
    index.known.forget()
    for _ in range(watch.LONE):
        index.refresh()
    if index.lookout._watch is None:
        pytest.skip("the tests' folder lies on a file system that is not watched")
    return index


@linux
def test_a_process_that_lives_on_looks_at_all_files_once_and_is_told_of_changes(root: Path, opened: Opened) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    write(root, "memories/b.md", "the walrus sleeps", title="B")
    index = watching(opened())
    whole = index.lookout.whole
    assert not index.refresh().changed and index.lookout.whole == whole
    write(root, "memories/a.md", "the penguin sings", title="A")
    write(root, "memories/c.md", "the penguin dives", title="C")
    (root / "memories/b.md").rename(root / "memories/d.md")
    out = index.refresh()
    assert (out.added, out.changed, out.renamed, out.removed) == (1, 1, 1, 0)
    assert found_after(index, "penguin") == ["memories/a.md", "memories/c.md"]
    (root / "memories/d.md").unlink()
    assert index.refresh().removed == 1
    assert index.lookout.whole == whole
    assert index.verify() == []


@linux
def test_f3_an_edit_that_keeps_size_and_times_is_seen_by_a_watching_process(root: Path, opened: Opened) -> None:
    path = write(root, "memories/a.md", "the walrus sings", title="A")
    index = watching(opened())
    before = path.stat()
    with open(path, "r+b") as stream:
        data = stream.read().replace(b"walrus", b"badger")
        stream.seek(0)
        stream.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert found(index, "badger") == ["memories/a.md"]


@linux
def test_new_moved_and_removed_folders_are_looked_at_whole(root: Path, opened: Opened) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    index = watching(opened())
    write(root, "deep/er/b.md", "the walrus sleeps", title="B")
    assert found_after(index, "walrus") == ["deep/er/b.md", "memories/a.md"]
    # The folder that was new is watched from then on.
    write(root, "deep/er/c.md", "the walrus eats", title="C")
    assert found_after(index, "walrus") == ["deep/er/b.md", "deep/er/c.md", "memories/a.md"]
    (root / "deep").rename(root / "far")
    assert found_after(index, "walrus") == ["far/er/b.md", "far/er/c.md", "memories/a.md"]
    write(root, "far/er/c.md", "the penguin eats", title="C")
    assert found_after(index, "penguin") == ["far/er/c.md"]
    shutil.rmtree(root / "far")
    assert found_after(index, "walrus") == ["memories/a.md"]
    subprocess.run(["git", "init", "-q", str(root / "memories")], check=True)
    assert found_after(index, "walrus") == []  # another repository's notes are not this store's


def found_after(index: Index, words: str) -> list[str]:
    index.refresh()
    return sorted(found(index, words))


@linux
def test_lost_events_lead_to_a_whole_look(root: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    index = watching(opened())
    whole = index.lookout.whole
    write(root, "memories/b.md", "the walrus sleeps", title="B")
    lost = [struct.pack("iIII", -1, 0x4000, 0, 0)]
    read = os.read
    monkeypatch.setattr(watch.os, "read", lambda descriptor, size: lost.pop() if lost else read(descriptor, size))
    assert index.refresh().added == 1
    assert index.lookout.whole == whole + 1


@linux
def test_a_whole_look_stands_behind_it_every_minute(root: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    index = watching(opened())
    assert index.lookout._watch is not None
    monkeypatch.setattr(index.lookout._watch, "changed", lambda: set())  # a kernel that says nothing
    write(root, "memories/b.md", "the walrus sleeps", title="B")
    assert index.refresh().added == 0
    now = index.lookout.clock() + watch.WHOLE
    index.lookout.clock = lambda: now
    # In the warm process no question waits for it: it is done between two answers.
    index.lookout.behind = True
    assert index.refresh().added == 0
    assert unsettled(index) == ["memories/b.md"]
    assert index.refresh().added == 1
    write(root, "memories/c.md", "the walrus dives", title="C")
    monkeypatch.setattr(index.lookout._watch, "changed", lambda: set())
    now += watch.WHOLE
    index.lookout.behind = False
    assert index.refresh().added == 1


@linux
def test_a_whole_look_that_takes_long_comes_less_often(root: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    index = watching(opened())
    lookout, seconds = index.lookout, [1000.0]
    lookout.clock = lambda: seconds[0]
    slow = watch.looking.look

    def look(*words: object) -> object:
        seconds[0] += 2.0
        return slow(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(watch.looking, "look", look)
    lookout.close()
    index.refresh()
    whole = lookout.whole
    for later, looked in ((watch.WHOLE, 0), (2.0 * watch.SHARE - watch.WHOLE - 1.0, 0), (1.0, 1)):
        seconds[0] += later
        index.refresh()
        assert lookout.whole == whole + looked


def test_a_save_looks_at_all_files_once(root: Path, opened: Opened) -> None:
    from mdmem.memory.remember import Memory, remember

    write(root, "memories/a.md", "the walrus sings", title="A")
    store = opened()
    remember(store, Memory("fact", "The walrus sings at night."))
    assert store.index.lookout.whole == 1
    assert len(found(store.index, "night")) == 1
    assert store.index.verify() == []


@linux
def test_a_change_that_could_not_be_folded_in_is_told_again(root: Path, opened: Opened) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    index = watching(opened())
    write(root, "memories/b.md", "the walrus sleeps", title="B")
    (root / "memories/a.md").unlink()
    with FileLock(index.lock_path, 1.0):
        assert index.refresh(wait_s=0.0).busy
    out = index.refresh()
    assert (out.added, out.removed) == (1, 1)
    with pytest.raises(Locked), FileLock(index.lock_path, 1.0), FileLock(index.lock_path, 0.0):
        pass


@linux
def test_what_another_process_folded_in_is_not_folded_in_again(root: Path, opened: Opened) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    index = watching(opened())
    write(root, "memories/b.md", "the walrus sleeps", title="B")
    assert opened().index.refresh().added == 1
    out = index.refresh()
    assert (out.added, out.removed) == (0, 0)
    assert found_after(index, "walrus") == ["memories/a.md", "memories/b.md"]


@linux
def test_a_watching_process_holds_nothing_of_files_that_did_not_change(root: Path, opened: Opened) -> None:
    for number in range(20):
        write(root, f"memories/n{number}.md", f"the walrus sings {number}", title="A")
    index = watching(opened())
    write(root, "memories/n3.md", "the penguin sings", title="A")
    assert index.refresh().changed == 1
    assert list(index.lookout._files) == ["memories/n3.md"]
    assert index.lookout._seen is not None and not index.lookout._seen.stats
    assert not index.known.files and not index.known.loaded


@linux
def test_what_another_process_wrote_of_an_older_look_is_read_again(root: Path, opened: Opened) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    index = watching(opened())
    path = write(root, "memories/a.md", "the penguin sings", title="A")
    index.refresh()
    _grown_up(index.store)  # type: ignore[arg-type]
    index.refresh()
    other = sqlite3.connect(index.state_dir / "catalog.db")
    other.execute("UPDATE notes SET size = 7, mtime_ns = mtime_ns - 1")
    other.commit()
    other.close()
    index.refresh()
    row = index.catalog.row("SELECT size, mtime_ns FROM notes")
    assert row is not None and tuple(row) == (path.stat().st_size, path.stat().st_mtime_ns)


@linux
def test_a_note_with_a_second_name_outside_is_asked_for_each_time(root: Path, opened: Opened, tmp_path: Path) -> None:
    path = write(root, "memories/a.md", "the walrus sings", title="A")
    os.link(path, tmp_path / "twin")
    index = watching(opened())
    with open(tmp_path / "twin", "a") as stream:
        stream.write("\nand the penguin dives\n")
    assert found_after(index, "penguin") == ["memories/a.md"]


@linux
def test_a_file_system_that_others_write_to_is_never_watched(
    root: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    monkeypatch.setattr(watch, "LOCAL", frozenset())
    index = opened().index
    for number in range(3):
        index.refresh()
        assert index.lookout.whole == number + 1 and index.lookout._watch is None


@linux
def test_a_forked_process_leaves_the_queue_alone(root: Path, opened: Opened) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    index = watching(opened())
    write(root, "memories/b.md", "the walrus sleeps", title="B")
    child = os.fork()
    if child == 0:
        told = index.lookout._watch.changed() if index.lookout._watch else set()
        os._exit(0 if told is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert index.refresh().added == 1


@linux
def test_links_and_large_files_are_named_as_by_a_whole_look(root: Path, opened: Opened, tmp_path: Path) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    index = watching(opened())
    (root / "memories/link.md").symlink_to(root / "memories/a.md")
    (root / "memories/more").symlink_to(tmp_path)
    (root / "memories/big.md").write_text("word " * 1_000_000)
    index.refresh()
    named = {(row["path"], row["code"]) for row in index.catalog.rows("SELECT path, code FROM problems WHERE note IS NULL")}
    assert {("memories/link.md", "symlink"), ("memories/more", "symlink"), ("memories/big.md", "large")} <= named
    (root / "memories/link.md").unlink()
    index.refresh()
    assert not index.catalog.value("SELECT 1 FROM problems WHERE path = 'memories/link.md'")


@linux
@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_to_the_files_a_watching_index_agrees_with_them(root: Path, opened: Opened, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(6):
        write(root, f"memories/n{number}.md", f"word{number} walrus", title=f"N{number}")
    index = watching(opened())
    for _ in range(25):
        for _ in range(rng.randint(1, 3)):
            _something(root, rng)
        index.refresh(embed_budget_s=0.0)
        on_disk = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.md") if path.is_file())
        rows = index.catalog.rows("SELECT path FROM notes ORDER BY path")
        assert [row["path"] for row in rows] == on_disk
    assert index.verify() == []


def _something(root: Path, rng: random.Random) -> None:
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and ".git" not in path.parts)]
    notes = list(root.rglob("*.md"))
    folder = rng.choice(folders)
    what = rng.choice(("write", "append", "delete", "rename", "replace", "folder", "move folder"))
    name = f"x{rng.randint(0, 40)}"
    if what == "write" or not notes:
        (folder / f"{name}.md").write_text(f"# {name}\n\nword{rng.randint(0, 99)} walrus\n")
    elif what == "append":
        with open(rng.choice(notes), "a") as stream:
            stream.write(f"more{rng.randint(0, 99)}\n")
    elif what == "delete":
        rng.choice(notes).unlink()
    elif what == "rename":
        rng.choice(notes).rename(folder / f"{name}.md")
    elif what == "replace":
        (root / "draft.tmp").write_text(f"# {name}\n\nagain{rng.randint(0, 99)}\n")
        (root / "draft.tmp").replace(rng.choice(notes))
    elif what == "folder":
        (folder / f"{name}d").mkdir(exist_ok=True)
    elif folder != root and not (root / f"{name}d").exists():
        folder.rename(root / f"{name}d")


def test_an_index_is_settled_when_it_has_every_file_and_every_vector(root: Path, opened: Opened) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    _grown_up(index.store)  # type: ignore[arg-type]
    index.known.forget()
    assert unsettled(index) == []  # a vector is lacking
    index.refresh(embed_budget_s=None)
    assert unsettled(index) is None
    write(root, "memories/a.md", "the penguin sings", title="A")
    assert unsettled(index) == ["memories/a.md"]


def test_a_new_process_compares_with_the_last_look_instead_of_the_rows(
    root: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    old = 1_600_000_000
    os.utime(root / "memories/a.md", (old, old))
    opened().index.refresh()
    _grown_up(opened())
    opened().index.refresh()
    assert (opened().index.state_dir / last_look.NAME).exists()
    store = opened()
    monkeypatch.setattr(store.index.known, "load", lambda catalog: pytest.fail("the rows were read"))
    store.index.refresh()
    monkeypatch.undo()
    # Any difference is found the long way.
    write(root, "memories/a.md", "the penguin sings", title="A")
    assert opened().index.refresh().changed == 1
    (root / "memories/a.md").unlink()
    assert opened().index.refresh().removed == 1


def _grown_up(store: Store) -> None:
    """Let every file count as older than the tick of the clock, as it is some seconds later."""
    with store.index.catalog.writing() as connection:
        connection.execute("UPDATE notes SET checked_ns = checked_ns + 10000000000")


def test_the_last_look_counts_for_the_catalog_that_agreed_with_it_alone(root: Path, opened: Opened) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    opened().index.refresh()
    _grown_up(opened())
    opened().index.refresh()
    place = opened().index.state_dir / last_look.NAME
    kept = place.read_bytes()
    opened().index.rebuild("catalog")
    assert opened().index.refresh().added == 1
    _grown_up(opened())
    opened().index.refresh()
    assert place.read_bytes() != kept
    for damage in (b"", kept, place.read_bytes()[:-3]):
        place.write_bytes(damage)
        assert found(opened().index, "walrus") == ["memories/a.md"]
