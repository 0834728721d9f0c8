"""Sync and commit when the Nth step fails, and when the process is killed: each note is its old or its new bytes, and the
next command repairs the rest by itself.

The long forms: `--nightly` fails every step in turn and kills at 200 random moments.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mdmem.clock import FixedClock
from mdmem.notes import disk
from mdmem.repo import git as runner
from tests.injected import count

from .conftest import Clone, World
from .test_sync import note

FAULTS: dict[str, Callable[[], BaseException]] = {
    "full disk": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "i/o error": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "no access": lambda: OSError(errno.EACCES, os.strerror(errno.EACCES)),
    "git fails": lambda: runner.GitFailed("git failed", why="fatal: injected", status=128, err="fatal: injected"),
    "git hangs": lambda: runner.GitTimeout("git did not end"),
    "interrupt": KeyboardInterrupt,
}


def prepared(folder: Path) -> tuple[Clone, Clone]:
    """Two clones before a sync of everything: an edit on each side of one note, new, moved and deleted notes, a clash."""
    world = World(folder)
    files = {f"n{i}.md": note(f"mem-{i}", f"one {i}\n\ntwo\n\nthree\n") for i in range(6)}
    one, two = world.pair(files)
    one.write("n0.md", note("mem-0", "ONE 0\n\ntwo\n\nthree\n"))
    one.write("n1.md", note("mem-1", "clash here\n\ntwo\n\nthree\n"))
    one.write("deep/new.md", note("mem-new"))
    (one.top / "n2.md").unlink()
    (one.top / "n3.md").rename(one.top / "moved.md")
    one.sync()
    two.write("n0.md", note("mem-0", "one 0\n\ntwo\n\nTHREE\n"))
    two.write("n1.md", note("mem-1", "clash there\n\ntwo\n\nthree\n"))
    two.write("n2.md", note("mem-2", "edited\n"))
    two.write("mine.md", note("mem-mine"))
    return one, two


def again(template: Path, folder: Path) -> tuple[Clone, Clone]:
    """A fresh copy of the prepared clones; paths inside are made to point at the copy."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(template, folder, symlinks=True)
    clones = []
    for name in ("laptop", "desktop"):
        clone = Clone(folder / name, name, FixedClock(World(folder / "unused").clock.now()))
        clone.sh("remote", "set-url", "origin", str(folder / "remote.git"))
        clones.append(clone)
    return clones[0], clones[1]


def in_order(clone: Clone, seen: dict[str, set[bytes]]) -> None:
    """Check that no note is torn: every one is bytes that some version had, or a merge that still holds its words."""
    for path, data in clone.files().items():
        if path.endswith(".md") and path not in ("n0.md", "n1.md", "n2.md"):
            assert data in seen[path], (path, data)
    for path, words in (("n0.md", b"three"), ("n1.md", b"three"), ("n2.md", b"edited")):
        assert words in (clone.top / path).read_bytes().lower(), path


def healed(one: Clone, two: Clone) -> None:
    for clone in (two, one, two, one):
        result = clone.sync()
        assert result.state not in ("refused", "offline"), result
    assert one.files() == two.files()
    for clone in (one, two):
        clone.healthy()
    everything = b"\n".join(one.files().values())
    for words in (b"ONE 0", b"THREE", b"clash here", b"clash there", b"edited", b"mem-new", b"mem-mine"):
        assert words in everything, words


def versions(template: Path) -> dict[str, set[bytes]]:
    found: dict[str, set[bytes]] = {}
    for name in ("laptop", "desktop"):
        clone = Clone(template / name, name, FixedClock(World(template / "unused").clock.now()))
        for path, data in clone.files().items():
            found.setdefault(path, set()).add(data)
    return found


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("template") / "w"


def made(template: Path) -> Path:
    if not template.exists():
        prepared(template)
    return template


class Failing:
    """Counts steps (git calls and changes of the disk); the Nth one fails, before or after it was done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException, after: bool) -> None:
        self.left, self.hit = number, False
        self.error = error
        call = runner.run_git

        def run_git(*args: object, **options: object) -> object:
            if self.now():
                if after:
                    call(*args, **options)  # type: ignore[arg-type]
                raise self.error
            return call(*args, **options)  # type: ignore[arg-type]

        def step(name: str, path: Path) -> None:
            if not isinstance(error, runner.GitFailed) and self.now():
                raise self.error

        monkeypatch.setattr(runner, "run_git", run_git)
        monkeypatch.setattr(disk, "step", step)

    def now(self) -> bool:
        self.left -= 1
        self.hit = self.hit or self.left == 0
        return self.left == 0


def every_step(name: str, template: Path, folder: Path, stride: int, after: bool) -> int:
    """Run a sync again and again, failing a later step each time, until one run is clean; returns the number of steps."""
    seen = versions(template)
    for number in range(1, 400, stride):
        one, two = again(template, folder)
        with pytest.MonkeyPatch.context() as patch:
            failing = Failing(patch, number, FAULTS[name](), after)
            try:
                result = two.sync()
            except KeyboardInterrupt:
                result = None
        if not failing.hit:
            assert result is not None and result.state == "conflict"
            return number
        count(f"steps of a sync that failed: {name}{', after it was done' if after else ''}")
        in_order(two, seen)
        healed(one, two)
    raise AssertionError("there is no end of steps")


@pytest.mark.parametrize("name", ["full disk", "git fails", "interrupt"])
def test_a_sync_whose_nth_step_fails_loses_nothing(name: str, template: Path, tmp_path: Path) -> None:
    assert every_step(name, made(template), tmp_path / "w", 13, after=False) > 30


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", FAULTS)
def test_every_step_of_a_sync_may_fail(name: str, after: bool, template: Path, tmp_path: Path) -> None:
    assert every_step(name, made(template), tmp_path / "w", 1, after) > 30


WORKER = """
import sys
from datetime import datetime, timezone
from pathlib import Path
from mdmem.clock import FixedClock
from mdmem.notes.folder import Folder, sha
from mdmem.repo.commit import commit_paths
from mdmem.repo.git import Git
from mdmem.repo.sync import sync
top = Path(sys.argv[1])
lock = top / ".git" / "mdmem" / "write.lock"
folder = Folder(top, lock=lock)
print("ready", flush=True)
for i in range(1000):
    path = f"w/{i:03d}.md"
    data = f"---\\nid: mem-w{i}\\n---\\nkept {i}\\n".encode()
    folder.create(path, data)
    print(path, flush=True)
    commit_paths(Git(top), [path], f"remember: {i}", {"Device": "w"})
    if i % 3 == 1:
        before = folder.read_bytes(f"w/{i - 1:03d}.md")
        folder.write(f"w/{i - 1:03d}.md", before + b"edited\\n", sha(before))
    if i % 4 == 3:
        sync(Git(top), lock)
"""


def kills(world: World, times: int, seed: int) -> None:
    """Kill -9 a process that remembers, edits and syncs, at random moments; then look and let the next command repair."""
    one, two = world.pair()
    rng = random.Random(seed)
    root = str(Path(__file__).resolve().parents[2])
    program = WORKER
    told: set[str] = set()
    for round_ in range(times):
        program = WORKER.replace('"w/', f'"w{round_}-').replace("mem-w", f"mem-{round_}-")
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(one.top)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root}
        )
        assert process.stdout and process.stdout.readline() == b"ready\n"
        two.save("other.md", note("mem-o", f"round {round_}\n"))
        two.sync()
        time.sleep(rng.random() * 1.5)
        process.send_signal(signal.SIGKILL)
        count("kills: notes, commits and syncs in one process")
        told |= {line.decode().strip() for line in process.stdout.read().splitlines(keepends=True) if line.endswith(b"\n")}
        process.wait()
        for path in told:
            data = (one.top / path).read_bytes()
            assert data.startswith(b"---\nid: mem-") and data.rstrip().split(b"\n")[-1].startswith((b"kept", b"edited"))
        wait_for_git(one)
        result = one.sync()
        assert result.state not in ("refused", "offline"), result
        assert told <= set(one.files())
    for clone in (one, two, one):
        clone.sync()
    assert one.files() == two.files()
    assert told <= set(two.files())
    for clone in (one, two):
        clone.healthy()


def wait_for_git(clone: Clone) -> None:
    """A git that the killed process had started goes on for a moment, in a process group of its own."""
    for _ in range(100):
        if not any((clone.top / ".git" / name).exists() for name in ("index.lock", "HEAD.lock", "refs/heads/main.lock")):
            return
        time.sleep(0.05)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_kill_9_at_random_moments(world: World) -> None:
    kills(world, 6, 1)


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_kill_9_at_two_hundred_random_moments(world: World) -> None:
    kills(world, 200, 2)
