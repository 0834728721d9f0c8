"""The only writer: safe paths, whole files or none, no twin, and a scan that never lies about absence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mdmem.errors import ConflictFound, MdmemError, NotFound, Refused, WriteFailed
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


def test_readonly_writes_nothing(folder: Folder) -> None:
    folder.create("a.md", b"1")
    seen = Folder(folder.root, readonly=True)
    for act in (lambda: seen.write("a.md", b"2", None), lambda: seen.delete("a.md", None), lambda: seen.create("b.md", b"")):
        with pytest.raises(MdmemError):
            act()
    assert seen.read_bytes("a.md") == b"1"
