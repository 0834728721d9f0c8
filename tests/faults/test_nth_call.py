"""Every command that writes, with its Nth system call failing: each note is its old or its new bytes, nothing that was there
is lost, and the next command puts the rest right by itself.

The short form fails every 9th call with two kinds of error. The long form fails each call in turn with every kind:
`pytest tests/faults/test_nth_call.py --nightly`; it prints how many were failed.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mdmem.cli.main import run
from mdmem.notes.note import load
from tests.repo.conftest import Clone, World, plain_git

from .failing import ERRORS, failing

CODES = (0, 1, 3, 4, 5, 6, 130)
_TIMES = re.compile(rb"(?m)^(?:updated|created): .*\n")


@dataclass
class Bench:
    """A store at a fixed place that is put back to how it was before each try. `args` is the command under test, `words` must
    stand in the notes whatever fails, `new` once the command went through."""

    root: Path
    args: list[str] = field(default_factory=list)
    words: tuple[bytes, ...] = ()
    new: tuple[bytes, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def store(self) -> Path:
        return self.root / "world" / "store"

    def run(self, *args: str) -> int:
        return run(["-C", str(self.store), *args])

    def keep(self) -> None:
        shutil.copytree(self.root / "world", self.root / "kept", symlinks=True)

    def reset(self) -> None:
        shutil.rmtree(self.root / "world")
        shutil.copytree(self.root / "kept", self.root / "world", symlinks=True)

    def notes(self) -> dict[str, bytes]:
        """Return {path: bytes without dates} of every note on the disk."""
        found = {}
        for path in self.store.rglob("*.md"):
            if ".git" not in path.parts:
                found[path.relative_to(self.store).as_posix()] = _TIMES.sub(b"", path.read_bytes())
        return found

    def leftovers(self) -> list[Path]:
        return [path for path in self.store.rglob("*.tmp") if ".git" not in path.parts]


def note_path(bench: Bench, word: str) -> str:
    return next(path for path, data in bench.notes().items() if word.encode() in data)


def _basic(bench: Bench) -> None:
    assert run(["init", str(bench.store)]) == 0
    assert bench.run("remember", "fact", "the office is in Basel") == 0
    assert bench.run("remember", "fact", "deploys happen on Thursdays") == 0
    bench.words = (b"deploys happen on Thursdays",)


def prepare_remember(bench: Bench) -> None:
    _basic(bench)
    bench.args = ["remember", "decision", "we stay with PostgreSQL 16"]
    bench.words += (b"the office is in Basel",)
    bench.new = (b"we stay with PostgreSQL 16",)


def prepare_set(bench: Bench) -> None:
    _basic(bench)
    bench.args = ["set", note_path(bench, "Basel"), "importance=0.77"]
    bench.words += (b"the office is in Basel",)
    bench.new = (b"0.77",)


def prepare_edit(bench: Bench) -> None:
    _basic(bench)
    bench.args = ["edit", note_path(bench, "Basel")]
    bench.words += (b"the office is in Basel",)
    bench.new = (b"added in the editor",)


def prepare_forget(bench: Bench) -> None:
    _basic(bench)
    bench.args = ["forget", note_path(bench, "Basel")]
    bench.words += (b"the office is in Basel",)
    bench.new = (b"forgotten",)


def prepare_purge(bench: Bench) -> None:
    _basic(bench)
    path = note_path(bench, "Basel")
    bench.args, bench.gone = ["forget", path, "--purge"], (path,)


def prepare_restore(bench: Bench) -> None:
    _basic(bench)
    path = note_path(bench, "Basel")
    assert bench.run("set", path, "importance=0.77") == 0
    bench.args = ["restore", path, "--at", "HEAD~1"]
    bench.words += (b"the office is in Basel",)


def prepare_undo(bench: Bench) -> None:
    _basic(bench)
    assert bench.run("set", note_path(bench, "Basel"), "importance=0.77") == 0
    bench.args = ["undo"]
    bench.words += (b"the office is in Basel",)


def _two_sides(bench: Bench) -> None:
    """The store and a second machine that has pushed: a note merged, one in conflict, one new, one deleted."""
    _basic(bench)
    world = bench.root / "world"
    plain_git(world, "init", "-q", "--bare", "remote.git")
    assert bench.run("remember", "fact", "this one goes") == 0
    assert bench.run("remote", "add", "origin", str(world / "remote.git")) == 0
    assert bench.run("sync") == 0
    other = Clone(world / "other", "desktop", World(bench.root / "unused").clock)
    plain_git(world, "clone", "-q", str(world / "remote.git"), "other")
    basel, gone = note_path(bench, "Basel"), note_path(bench, "this one goes")
    deploy = note_path(bench, "Thursdays")
    other.write(basel, other.read(basel).replace("in Basel", "in Bern"))
    other.write(deploy, other.read(deploy) + "\nAdded on the desktop.\n")
    other.write("memories/there-mem-there.md", "---\nid: mem-there\ntitle: there\n---\nfrom there\n")
    (other.top / gone).unlink()
    assert other.sync().state == "pushed"
    for path, old, new in ((basel, b"in Basel", b"in Zug"), (deploy, b"---\nid:", b"---\nlaptop: was here\nid:")):
        file = bench.store / path
        file.write_bytes(file.read_bytes().replace(old, new))
    bench.words += (b"in Zug", b"was here")


def prepare_sync(bench: Bench) -> None:
    _two_sides(bench)
    bench.args = ["sync"]
    bench.new = (b"in Bern", b"Added on the desktop", b"from there")


def prepare_resolve(bench: Bench) -> None:
    _two_sides(bench)
    assert bench.run("sync") == 4
    bench.args = ["resolve", note_path(bench, "Zug"), "--keep", "2"]
    bench.words = (b"deploys happen on Thursdays", b"was here", b"in Zug")


SCENES: dict[str, Callable[[Bench], None]] = {
    name.removeprefix("prepare_"): make for name, make in dict(globals()).items() if name.startswith("prepare_")
}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\necho 'added in the editor' >> \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    (tmp_path / "world").mkdir()
    return Bench(tmp_path)


def every_call(scene: str, error: str, bench: Bench, capsys: pytest.CaptureFixture[str], stride: int) -> int:
    """Run a command again and again with a later call failing each time, until a run is clean; returns how many failed."""
    SCENES[scene](bench)
    before = bench.notes()
    bench.keep()
    assert bench.run(*bench.args) in (0, 4)
    after = bench.notes()
    whole = b"\n".join(after.values())
    for word in (*bench.words, *bench.new):
        assert word in whole, (word, "the scene itself is wrong")
    for number in range(1, 2000, stride):
        bench.reset()
        capsys.readouterr()
        with failing(bench.root / "world", number, error) as state:
            code = bench.run(*bench.args)
        told = capsys.readouterr()
        if not state.hit:
            assert code in (0, 4) and bench.notes() == after
            return (number - 1) // stride
        where = f"{scene}, call {number} ({state.hit}), {error}: exit {code}, {told.err}"
        assert code in CODES and "unexpected" not in told.err, where
        check(bench, before, after, where)
        repaired(bench, code, capsys, where)
    raise AssertionError("there is no end of calls")


def check(bench: Bench, before: dict[str, bytes], after: dict[str, bytes], where: str) -> None:
    """Each note is its old or its new bytes, and what must stay is there."""
    found = bench.notes()
    for path, data in found.items():
        assert data in (before.get(path), after.get(path)), (where, path, data)
        assert load(path, data).ok, (where, path)
    for path in before:
        assert path in found or path not in after, (where, path)
    whole = b"\n".join(found.values())
    for word in bench.words:
        assert word in whole, (where, word)


def repaired(bench: Bench, code: int, capsys: pytest.CaptureFixture[str], where: str) -> None:
    """The next command, sync, brings all into order; what the failed command had reported as done is there."""
    synced = bench.run("sync")
    assert synced in (0, 4), (where, capsys.readouterr())
    told = plain_git(bench.store, "status", "--porcelain")
    assert told == "", (where, told)
    plain_git(bench.store, "fsck", "--strict")
    assert bench.leftovers() == [], where
    whole = b"\n".join(bench.notes().values())
    if code == 0:
        for word in bench.new:
            assert word in whole, (where, word)
        for path in bench.gone:
            assert not (bench.store / path).exists(), (where, path)
    for word in bench.words:
        assert word in whole, (where, word)
    again = bench.run(*bench.args)
    assert again in ((0, 1, 3, 4) if bench.args[0] in ("resolve", "undo", "restore", "forget") else (0, 4)), (where, again)


@pytest.mark.parametrize("error", ["full disk", "interrupt"])
@pytest.mark.parametrize("scene", SCENES)
def test_a_command_whose_nth_call_fails_loses_nothing(
    scene: str, error: str, bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert every_call(scene, error, bench, capsys, 9) >= 1


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("scene", SCENES)
def test_every_call_of_a_command_may_fail(scene: str, error: str, bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    failed = every_call(scene, error, bench, capsys, 1)
    assert failed > 10
    with capsys.disabled():
        print(f"\n{scene}, {error}: {failed} calls failed in turn", end=" ")
