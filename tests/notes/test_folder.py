"""The only writer: safe paths, whole files or none, no twin, and a scan that never lies about absence."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mdmem.errors import ConflictFound, Locked, MdmemError, NotFound, Refused, WriteFailed
from mdmem.notes import disk
from mdmem.notes.folder import Folder, sha


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = tmp_path / "store"
    root.mkdir()
    return Folder(root, lock=tmp_path / "state" / "write.lock")


def paths(folder: Folder) -> list[str]:
    return sorted(file.path for file in folder.scan())


def problems(folder: Folder) -> dict[str, str]:
    return {found.path: found.code for found in folder.problems}


def test_create_write_rename_delete(folder: Folder) -> None:
    folder.create("memories/a.md", b"---\ntitle: a\n---\nx\n")
    note = folder.read("memories/a.md")
    assert (note.title, note.kind, note.body) == ("a", "memory", "x\n")
    folder.write("memories/a.md", b"new\n", note.sha)
    with pytest.raises(ConflictFound):
        folder.write("memories/a.md", b"newer\n", note.sha)
    folder.rename("memories/a.md", "tasks/b.md")
    assert paths(folder) == ["tasks/b.md"] and folder.read_bytes("tasks/b.md") == b"new\n"
    with pytest.raises(ConflictFound):
        folder.delete("tasks/b.md", note.sha)
    folder.delete("tasks/b.md", sha(b"new\n"))
    with pytest.raises(NotFound):
        folder.read("tasks/b.md")
    assert [name for _, _, names in os.walk(folder.root) for name in names] == []


def test_create_never_overwrites(folder: Folder) -> None:
    folder.create("a.md", b"1")
    with pytest.raises(ConflictFound):
        folder.create("a.md", b"2")
    assert folder.read_bytes("a.md") == b"1"


@pytest.mark.parametrize(
    "path",
    ["../x.md", "a/../../x.md", "/etc/x.md", "", ".", "a//b.md", ".git/x.md", "a/.GIT/x.md", "a/.git./x.md", "a/git~1/x.md",
     "a/.g\u200cit/x.md", "x\0.md"],
)  # fmt: skip
def test_paths_stay_inside(folder: Folder, path: str) -> None:
    for act in (lambda: folder.create(path, b""), lambda: folder.write(path, b"", None), lambda: folder.read(path)):
        with pytest.raises(Refused):
            act()


def test_no_symlink_is_followed(folder: Folder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("secret")
    (folder.root / "link").symlink_to(outside)
    (folder.root / "x.md").symlink_to(outside / "x.md")
    for path in ("link/x.md", "x.md", "link/new.md"):
        for act in (lambda p=path: folder.read(p), lambda p=path: folder.write(p, b"", None)):
            with pytest.raises(Refused):
                act()
    assert paths(folder) == [] and problems(folder) == {"link": "symlink", "x.md": "symlink"}
    assert (outside / "x.md").read_text() == "secret" and not (outside / "new.md").exists()


def test_owned_folders_only(folder: Folder) -> None:
    mine = Folder(folder.root, ("memories",), lock=folder.lock_path)
    mine.create("memories/a.md", b"")
    mine.create(".mdmem.toml", b"")
    with pytest.raises(Refused):
        mine.create("src/a.md", b"")
    (folder.root / "README.md").write_text("x")
    assert paths(mine) == ["memories/a.md"]


def test_i25_a_folder_that_cannot_be_read_is_reported(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.create("a/x.md", b"")
    folder.create("b/y.md", b"")
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert paths(folder) == ["b/y.md"]
    assert folder.unread == ["a"] and problems(folder) == {"a": "unreadable_folder"}


def test_f_one_file_that_cannot_be_read_stops_no_other(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        folder.create(f"{name}.md", b"x")
    real = disk.open_read

    def open_read(path: Path) -> int:
        if path.name == "b.md":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(disk, "open_read", open_read)
    assert sorted(note.path for note in folder.notes()) == ["a.md", "c.md"]
    assert problems(folder) == {"b.md": "unreadable"}


def test_n21_a_folder_named_like_a_note_is_skipped(folder: Folder) -> None:
    (folder.root / "2026-01-01.md").mkdir()
    (folder.root / "2026-01-01.md" / "x.md").write_text("x")
    assert paths(folder) == [] and problems(folder) == {"2026-01-01.md": "folder_named_md"}


def test_g33_a_nested_repository_is_named_and_left_alone(folder: Folder) -> None:
    (folder.root / "sub" / ".git").mkdir(parents=True)
    (folder.root / "sub" / "x.md").write_text("x")
    (folder.root / "mod").mkdir()
    (folder.root / "mod" / ".git").write_text("gitdir: ../.git/modules/mod")
    assert paths(folder) == []
    assert problems(folder) == {"sub": "nested_repository", "mod": "nested_repository"}
    with pytest.raises(Refused):
        folder.create("sub/y.md", b"")


def test_f34_a_large_file_is_read_in_part_and_flagged(folder: Folder) -> None:
    (folder.root / "big.md").write_bytes(b"---\ntitle: big\n---\n" + "| é | b |\n".encode() * 600_000)
    assert paths(folder) == ["big.md"] and problems(folder) == {"big.md": "large"}
    note = folder.read("big.md")
    assert note.title == "big" and note.doc.problem is not None and note.doc.problem.code == "cut"
    assert len(note.data) <= 4 * 1024 * 1024 and note.data.endswith(b"b |\n")


@pytest.mark.parametrize("twin", ["Readme.md", "README.MD"])
def test_n7_no_case_twin_is_made(folder: Folder, twin: str) -> None:
    folder.create("readme.md", b"")
    with pytest.raises(ConflictFound, match=r"readme\.md"):
        folder.create(twin, b"")


def test_n5_an_nfd_name_is_found_and_gets_no_second_file(folder: Folder) -> None:
    import unicodedata

    nfc = unicodedata.normalize("NFC", "테스트_맥.md")
    nfd = unicodedata.normalize("NFD", nfc)
    (folder.root / nfd).write_text("x")
    assert folder.find(nfc) == nfd
    with pytest.raises(ConflictFound):
        folder.create(nfc, b"")
    assert os.listdir(folder.root) == [nfd]


def test_every_failing_call_leaves_the_old_or_the_new_file(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the Nth call until a run passes: the file is whole at every N, and no other file appears."""
    folder.create("d/a.md", b"old")
    for nth in range(1, 50):
        calls: list[str] = []

        def step(name: str, path: Path, nth: int = nth, calls: list[str] = calls) -> None:
            calls.append(name)
            if len(calls) == nth:
                raise OSError(28, "No space left on device")

        monkeypatch.setattr(disk, "step", step)
        before = folder.read_bytes("d/a.md")
        try:
            folder.write("d/a.md", b"new%d" % nth, sha(before))
        except WriteFailed:
            assert folder.read_bytes("d/a.md") in (before, b"new%d" % nth)
            assert os.listdir(folder.root / "d") == ["a.md"]
            continue
        assert nth > 3 and folder.read_bytes("d/a.md") == b"new%d" % nth
        return
    raise AssertionError("never passed")


@pytest.mark.parametrize("act", ["create", "rename", "delete"])
def test_every_failing_call_of_another_change_loses_nothing(folder: Folder, monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    for nth in range(1, 50):
        base = Folder(folder.root / str(nth), lock=folder.lock_path)
        base.root.mkdir()
        base.create("a.md", b"kept")
        calls: list[str] = []

        def step(name: str, path: Path, nth: int = nth, calls: list[str] = calls) -> None:
            calls.append(name)
            if len(calls) == nth:
                raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(disk, "step", step)
            try:
                if act == "create":
                    base.create("d/e/b.md", b"new")
                elif act == "rename":
                    base.rename("a.md", "d/b.md")
                else:
                    base.delete("a.md", sha(b"kept"))
                done = len(calls) < nth
            except WriteFailed:
                done = False
        there = {path: base.read_bytes(path) for path in paths(base)}
        if act == "create":
            assert there in ({"a.md": b"kept"}, {"a.md": b"kept", "d/e/b.md": b"new"})
            assert base.last_scan.leftovers == []
        elif act == "rename":
            assert set(there.values()) == {b"kept"} and set(there) <= {"a.md", "d/b.md"}
        else:
            assert there in ({}, {"a.md": b"kept"})
        if done:
            assert there == {"create": {"a.md": b"kept", "d/e/b.md": b"new"}, "rename": {"d/b.md": b"kept"}, "delete": {}}[act]
            return
    raise AssertionError("never passed")


def test_a_file_that_appears_while_a_new_one_is_written_is_kept(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    real = disk.fsync

    def fsync(fd: int, path: Path) -> None:
        (folder.root / "a.md").write_bytes(b"editor")
        real(fd, path)

    monkeypatch.setattr(disk, "fsync", fsync)
    with pytest.raises(ConflictFound):
        folder.create("a.md", b"ours")
    assert folder.read_bytes("a.md") == b"editor" and os.listdir(folder.root) == ["a.md"]


def test_readonly_writes_nothing(folder: Folder) -> None:
    folder.create("a.md", b"1")
    seen = Folder(folder.root, readonly=True)
    for act in (lambda: seen.write("a.md", b"2", None), lambda: seen.delete("a.md", None), lambda: seen.create("b.md", b"")):
        with pytest.raises(MdmemError):
            act()
    assert seen.read_bytes("a.md") == b"1"


def test_bulk_writes_sync_each_folder_once_and_still_see_twins(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(disk, "step", lambda name, path: calls.append(name))
    with folder.bulk():
        for number in range(20):
            folder.create(f"memories/n{number}.md", b"x")
        with pytest.raises(ConflictFound):
            folder.create("memories/N3.md", b"x")
        with pytest.raises(ConflictFound):
            folder.create("Memories/new.md", b"x")
        folder.delete("memories/n3.md", None)
        folder.create("memories/N3.md", b"x")
    assert calls.count("fsync") == 21 and calls.count("fsync_folder") == 2
    assert len(paths(folder)) == 20


def test_locked_may_be_nested_and_keeps_others_out(folder: Folder) -> None:
    other = Folder(folder.root, lock=folder.lock_path, lock_timeout=0.0)
    with folder.locked():
        folder.create("a.md", b"1")
        with folder.locked():
            folder.write("a.md", b"2", sha(b"1"))
        with pytest.raises(Locked):
            other.write("a.md", b"3", None)
    other.write("a.md", b"3", sha(b"2"))


def test_i23_two_processes_write_without_mixing(folder: Folder) -> None:
    """Two real processes, a shared file each time and files of their own: nothing is lost or interleaved."""
    script = (
        "import sys; from pathlib import Path; from mdmem.notes.folder import Folder\n"
        "root, lock, me = sys.argv[1:]\n"
        "f = Folder(Path(root), lock=Path(lock))\n"
        "for n in range(25):\n"
        "    f.create(f'memories/{me}-{n}.md', (me * 5000).encode())\n"
        "    with f.locked():\n"
        "        old = f.read_bytes('count.md')\n"
        "        f.write('count.md', b'%d' % (int(old) + 1), None)\n"
    )
    folder.create("count.md", b"0")
    arguments = [str(folder.root), str(folder.lock_path)]
    started = [subprocess.Popen([sys.executable, "-c", script, *arguments, me], env={"PYTHONPATH": "."}) for me in "ab"]
    assert [process.wait(60) for process in started] == [0, 0]
    assert folder.read_bytes("count.md") == b"50"
    files = [path for path in paths(folder) if path.startswith("memories/")]
    assert len(files) == 50
    assert {folder.read_bytes(path) for path in files} == {b"a" * 5000, b"b" * 5000}


def test_a_killed_writer_leaves_the_old_file_and_a_trace_that_is_swept(folder: Folder) -> None:
    folder.create("a.md", b"old")
    script = (
        "import os, sys; from pathlib import Path; from mdmem.notes import disk; from mdmem.notes.folder import Folder\n"
        "disk.replace = lambda old, new: os.kill(os.getpid(), 9)\n"
        "Folder(Path(sys.argv[1]), lock=Path(sys.argv[2])).write('a.md', b'new', None)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(folder.root), str(folder.lock_path)], env={"PYTHONPATH": "."})
    assert done.returncode == -9
    assert folder.read_bytes("a.md") == b"old" and paths(folder) == ["a.md"] and len(folder.last_scan.leftovers) == 1
    assert len(folder.sweep()) == 1 and os.listdir(folder.root) == ["a.md"]
    folder.write("a.md", b"newer", sha(b"old"))


def test_a_pipe_or_device_is_never_waited_for(folder: Folder) -> None:
    os.mkfifo(folder.root / "pipe.md")
    assert paths(folder) == [] and problems(folder) == {"pipe.md": "special_file"}
    with pytest.raises(Refused):
        folder.read("pipe.md")


def test_a_file_keeps_its_mode_and_a_name_that_is_not_utf8_is_named(folder: Folder) -> None:
    folder.create("a.md", b"1")
    os.chmod(folder.root / "a.md", 0o640)
    folder.write("a.md", b"2", None)
    assert os.stat(folder.root / "a.md").st_mode & 0o777 == 0o640
    with open(os.fsencode(folder.root) + b"/caf\xe9.md", "wb") as stream:
        stream.write(b"x")
    assert paths(folder) == ["a.md"] and [found.code for found in folder.problems] == ["name_not_utf8"]


def test_a_change_that_comes_between_check_and_rename_is_seen(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.create("a.md", b"old")
    real = disk.fsync

    def fsync(fd: int, path: Path) -> None:
        (folder.root / "a.md").write_bytes(b"editor")
        real(fd, path)

    monkeypatch.setattr(disk, "fsync", fsync)
    with pytest.raises(ConflictFound):
        folder.write("a.md", b"ours", sha(b"old"))
    assert folder.read_bytes("a.md") == b"editor" and os.listdir(folder.root) == ["a.md"]


def test_n22_same_content_in_two_places_is_two_notes(folder: Folder) -> None:
    for path in ("a/x.md", "b/a/x.md"):
        folder.create(path, b"same")
    assert paths(folder) == ["a/x.md", "b/a/x.md"]


def test_n19_a_file_named_like_a_branch(folder: Folder) -> None:
    folder.create("main/main.md", b"x")
    (folder.root / "master").write_text("no note")
    assert paths(folder) == ["main/main.md"]


def test_the_bytes_and_then_the_name_are_on_the_disk_before_a_write_returns(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, int]] = []
    fsync, replace, link = os.fsync, os.replace, os.link

    def named(call: str, inode: int) -> None:
        done.append((call, inode))

    def watched_fsync(fd: int) -> None:
        named("fsync", os.fstat(fd).st_ino)
        fsync(fd)

    def watched_replace(old: Path, new: Path) -> None:
        named("name", os.stat(old).st_ino)
        replace(old, new)

    def watched_link(old: Path, new: Path) -> None:
        named("name", os.stat(old).st_ino)
        link(old, new)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    monkeypatch.setattr(os, "link", watched_link)
    for write in (lambda: folder.create("memories/a.md", b"old\n"), lambda: folder.write("memories/a.md", b"new\n", None)):
        done.clear()
        write()
        file, above = (os.stat(folder.root / path).st_ino for path in ("memories/a.md", "memories"))
        assert [step for step in done if step[1] in (file, above)] == [("fsync", file), ("name", file), ("fsync", above)]
    done.clear()
    folder.delete("memories/a.md", None)
    assert ("fsync", above) in done


def test_stat_and_find_tell_what_is_there(folder: Folder) -> None:
    folder.create("memories/Caf\u00e9.md", b"1")
    assert folder.stat("memories") is None and folder.stat("memories/none.md") is None
    assert folder.stat("memories/Caf\u00e9.md/x.md") is None and folder.exists("memories/Caf\u00e9.md")
    assert folder.find("MEMORIES/cafe\u0301.md") == "memories/Caf\u00e9.md"
    assert folder.find("memories/Caf\u00e9.md") == "memories/Caf\u00e9.md"
    assert folder.find("memories/none.md") is None and folder.find("memories/Caf\u00e9.md/x.md") is None
    with pytest.raises(NotFound, match="no such file"):
        folder.read_bytes("memories/Caf\u00e9.md/x.md")


def test_a_note_that_goes_while_others_are_read_is_passed_over(folder: Folder) -> None:
    for name in "abc":
        folder.create(f"{name}.md", name.encode())
    seen = folder.notes()
    first = next(seen)
    for name in {"a.md", "b.md", "c.md"} - {first.path}:
        (folder.root / name).unlink()
        break
    assert len([first, *seen]) == 2 and folder.problems == []


def test_writing_what_is_there_already_touches_nothing(folder: Folder) -> None:
    folder.create("a.md", b"1")
    before = folder.stat("a.md")
    folder.write("a.md", b"1", sha(b"1"))
    folder.rename("a.md", "a.md")
    assert folder.stat("a.md") == before
    folder.write("new.md", b"2", None)
    assert folder.read_bytes("new.md") == b"2"
    with pytest.raises(ConflictFound, match="is gone") as caught:
        folder.write("gone.md", b"2", sha(b"1"))
    assert caught.value.hint == "read it again" and not folder.exists("gone.md")


def test_rename_takes_a_change_of_case_and_refuses_what_is_no_name(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.create("memories/a.md", b"1")
    calls: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(disk, "step", lambda name, path: calls.append(name))
        folder.rename("memories/a.md", "memories/A.md")
    # Where both names are one file, a link to the new name would fail and its removal would take the note away.
    assert "rename" in calls and "place" not in calls and "unlink" not in calls
    assert paths(folder) == ["memories/A.md"]
    with pytest.raises(Refused, match="not a name for a note"):
        folder.rename("memories/A.md", "memories/con.md")
    with pytest.raises(NotFound):
        folder.rename("memories/none.md", "memories/b.md")
    folder.create("memories/b.md", b"2")
    with pytest.raises(ConflictFound) as caught:
        folder.rename("memories/A.md", "memories/b.md")
    assert caught.value.code == "exists" and folder.read_bytes("memories/b.md") == b"2"


def test_a_name_that_is_taken_between_look_and_rename_is_not_overwritten(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.create("a.md", b"mine")

    def editor(name: str, path: Path) -> None:
        if name == "place":
            (folder.root / "b.md").write_bytes(b"theirs")

    monkeypatch.setattr(disk, "step", editor)
    with pytest.raises(ConflictFound) as caught:
        folder.rename("a.md", "b.md")
    assert caught.value.code == "exists"
    assert (folder.read_bytes("a.md"), folder.read_bytes("b.md")) == (b"mine", b"theirs")


def test_the_lock_that_cannot_be_taken_is_named(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "write.lock").mkdir()
    with pytest.raises(Locked, match=r"write\.lock cannot be taken") as caught:
        folder.create("a.md", b"1")
    assert caught.value.why == "Is a directory" and not folder.exists("a.md")
    (tmp_path / "state" / "write.lock").rmdir()
    folder.create("a.md", b"1")  # the failure is over, and so is its memory


def test_another_thread_that_writes_for_long_is_told_of(folder: Folder) -> None:
    folder.lock_timeout = 0.05
    told: list[BaseException] = []

    def other() -> None:
        try:
            folder.create("b.md", b"2")
        except Locked as error:
            told.append(error)

    with folder.locked():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert [str(error) for error in told] == ["another thread is writing"] and paths(folder) == []


def test_a_plan_takes_names_without_writing_and_bulk_may_be_nested(folder: Folder) -> None:
    with folder.bulk():
        folder.plan("memories/a.md")
        with pytest.raises(ConflictFound):
            folder.plan("Memories/b.md")
        with folder.bulk():
            folder.create("notes/x.md", b"1")
            with pytest.raises(ConflictFound):
                folder.plan("notes/X.md")
        with pytest.raises(ConflictFound):
            folder.plan("notes/x.md")
    folder.plan("Memories/b.md")  # nothing was written, and the plan is over
    assert paths(folder) == ["notes/x.md"]


def test_sweep_takes_leftovers_of_writers_alone(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.create("memories/a.md", b"1")
    mine, other, stuck = ".mdmem-1.tmp", ".mdmem-1.keep", ".mdmem-2.tmp"
    for name in (mine, other, stuck):
        (folder.root / "memories" / name).write_bytes(b"x")
    list(folder.scan())
    real = disk.unlink

    def unlink(path: Path) -> None:
        if path.name == stuck:
            raise PermissionError(13, "Permission denied")
        real(path)

    monkeypatch.setattr(disk, "unlink", unlink)
    assert folder.sweep() == [f"memories/{mine}"]
    assert sorted(os.listdir(folder.root / "memories")) == sorted([other, stuck, "a.md"])


def test_owned_folders_that_are_none_are_named(tmp_path: Path) -> None:
    root = tmp_path / "code"
    (root / "real").mkdir(parents=True)
    (root / "link").symlink_to(root / "real")
    (root / "file").write_text("x")
    folder = Folder(root, owned=("link", "file", "none", "file/below"))
    assert paths(folder) == []
    assert problems(folder) == {"link": "symlink", "file": "not_a_folder", "file/below": "unreadable_folder"}
    gone = Folder(tmp_path / "gone")
    assert paths(gone) == [] and gone.unread == [""] and problems(gone) == {"": "unreadable_folder"}


def test_odd_entries_are_named_or_left_out(folder: Folder) -> None:
    top = os.fsencode(folder.root)
    os.mkdir(top + b"/\xff")
    with open(top + b"/\xff/inner.md", "wb"), open(top + b"/\xfe.md", "wb"):
        pass
    for name in ("node_modules", "__pycache__", ".hidden"):
        (folder.root / name).mkdir()
        (folder.root / name / "n.md").write_text("x")
    (folder.root / "Upper.MD").write_text("x")
    os.link(folder.root / "Upper.MD", folder.root / "twin.md")
    (folder.root / "picture.png").symlink_to(folder.root / "Upper.MD")
    assert paths(folder) == ["Upper.MD", "twin.md"] and sorted(folder.last_scan.linked) == ["Upper.MD", "twin.md"]
    assert {found.code for found in folder.problems} == {"name_not_utf8"} and len(folder.problems) == 2


@pytest.mark.parametrize("name", ["a.md", "caf\u00e9.md"])
def test_a_file_that_cannot_be_looked_at_is_not_taken_for_gone(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The system refuses one file's numbers: it is named, and `unread` says that nobody may think it deleted."""
    folder.create(name, b"1")
    folder.create("b.md", b"1")
    failure: OSError = PermissionError(13, "Permission denied")

    class Entry:
        def __init__(self, real: os.DirEntry[str]) -> None:
            self.real, self.name, self.is_file = real, real.name, real.is_file

        def stat(self, follow_symlinks: bool = True) -> os.stat_result:
            if self.name == name:
                raise failure
            return self.real.stat(follow_symlinks=follow_symlinks)

    real = os.scandir

    class Listing:
        def __init__(self, place: int | str) -> None:
            self.entries = [Entry(entry) for entry in real(place)]

        def __enter__(self) -> list[Entry]:
            return self.entries

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(os, "scandir", Listing)
    monkeypatch.setattr(os, "supports_fd", {Listing})
    assert paths(folder) == ["b.md"]
    assert folder.unread == [name] and problems(folder) == {name: "unreadable"}
    failure = FileNotFoundError(2, "No such file")
    assert paths(folder) == ["b.md"] and folder.unread == [] and folder.problems == []


def test_a_file_system_without_hard_links_or_folder_sync_works_too(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(old: Path, new: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    folder.create("a.md", b"1")
    folder.rename("a.md", "b.md")
    assert paths(folder) == ["b.md"]
    (folder.root / "c.md").write_bytes(b"theirs")
    with pytest.raises(FileExistsError):
        disk.place(folder.root / "b.md", folder.root / "c.md")
    assert folder.read_bytes("b.md") == b"1" and folder.read_bytes("c.md") == b"theirs"
    real = os.fsync
    answers = {"folder": errno.EINVAL}

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(answers["folder"], os.strerror(answers["folder"]))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    folder.create("d.md", b"2")  # a system that cannot sync folders says EINVAL: nothing can be done about it
    answers["folder"] = errno.EIO
    with pytest.raises(WriteFailed, match=r"e\.md was not written"):
        folder.create("e.md", b"3")


def test_a_path_that_cannot_be_looked_at_is_refused_with_the_systems_words(folder: Folder) -> None:
    with pytest.raises(Refused, match="cannot look at") as caught:
        folder.read_bytes("a" * 300 + ".md")
    assert caught.value.code == "unreadable" and "too long" in caught.value.why


def test_a_large_file_is_cut_between_characters_and_keeps_its_own_problem(folder: Folder) -> None:
    from mdmem.notes.scan import MAX_BYTES

    for head in (b"", b"x", b"xx"):
        (folder.root / "a.md").write_bytes(head + "\u6f22".encode() * (MAX_BYTES // 3 + 2))
        cut = folder.read("a.md")
        assert cut.doc.problem is not None and cut.doc.problem.code == "cut" and "\ufffd" not in cut.body
    (folder.root / "b.md").write_bytes(b"\xff\n" + b"x" * MAX_BYTES)
    both = folder.read("b.md")
    assert both.doc.problem is not None and both.doc.problem.code == "not_utf8"


def test_a_folder_is_no_note_and_its_descriptor_is_given_back(folder: Folder) -> None:
    """Python's own file refuses a folder with an error of its own, and keeps the descriptor open."""
    (folder.root / "memories" / "a.md").mkdir(parents=True)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        with pytest.raises(Refused, match="not a regular file") as caught:
            folder.read_bytes("memories/a.md")
        assert caught.value.code == "special_file"
    assert before == 0 or len(os.listdir("/proc/self/fd")) == before


def test_a_large_note_is_flagged_whatever_its_name_is_written_in(folder: Folder) -> None:
    from mdmem.notes.scan import MAX_BYTES

    for name in ("large.md", "\u5927.md"):
        with open(folder.root / name, "wb") as file:
            file.truncate(MAX_BYTES + 1)
    assert paths(folder) == ["large.md", "\u5927.md"]
    assert problems(folder) == {"large.md": "large", "\u5927.md": "large"}
