"""kill -9 at random moments of `remember`, `edit` and `sync`, run as the commands that a user types: every note is its old or
its new bytes, and the next command repairs the rest by itself.

The long form kills each command 200 times: `pytest tests/faults/test_kill.py --nightly -s` (or MDMEM_KILLS times); it prints
how many died on their way.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from mdmem.cli.main import run
from mdmem.clock import FixedClock
from mdmem.notes.note import load
from mdmem.repo.merge import merge
from mdmem.store import Store
from tests.injected import count
from tests.repo.conftest import Clone, plain_git
from tests.repo.test_faults import wait_for_git

# Read here: the fixtures take MDMEM_ variables away.
SHORT, LONG = (int(os.environ.get("MDMEM_KILLS", default)) for default in (4, 200))
ROOT = str(Path(__file__).resolve().parents[2])

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")


class Machine:
    """A store in a clone, and a second clone that pushes to the same remote."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.remote = folder / "remote.git"
        plain_git(folder, "init", "-q", "--bare", str(self.remote))
        self.here = Clone(folder / "here", "laptop", FixedClock(datetime(2026, 3, 1, tzinfo=timezone.utc)))
        assert run(["clone", str(self.remote), str(self.here.top)]) == 0
        self.mdmem("remember", "fact", "deploys happen on Thursdays")
        self.mdmem("sync")
        plain_git(folder, "clone", "-q", str(self.remote), str(folder / "there"))
        self.there = Clone(folder / "there", "desktop", self.here.clock)
        self.lasts = 0.0
        self.died = 0

    def mdmem(self, *args: str, codes: tuple[int, ...] = (0,)) -> None:
        """Run a command in this process."""
        assert run(["-C", str(self.here.top), *args]) in codes, args

    def killed(self, *args: str, env: dict[str, str] | None = None) -> str:
        """Run a command as a process and kill it at a random moment of the time that it takes; returns its stdout."""
        words = [sys.executable, "-m", "mdmem", "-C", str(self.here.top), *args]
        began = time.monotonic()
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "PYTHONPATH": ROOT, **(env or {})},
        )  # fmt: skip
        moment = None if not self.lasts else self.lasts * self.rng.uniform(0.15, 1.05)
        try:
            out, _ = process.communicate(timeout=moment)
            lasted = time.monotonic() - began
            self.lasts = lasted if not self.lasts else 0.8 * self.lasts + 0.2 * lasted
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            self.died += 1
            count("kills: remember, edit, sync as processes")
        self.settle(process.pid)
        return out.decode()

    def settle(self, group: int) -> None:
        """Wait for what the killed process had started: the editor, in its group, and git, in one of its own."""
        for _ in range(200):
            try:
                os.killpg(group, 0)
            except ProcessLookupError:
                break
            time.sleep(0.02)
        wait_for_git(self.here)

    def notes(self) -> dict[str, bytes]:
        return {path: data for path, data in files(self.here.top).items() if path.endswith(".md")}

    def repaired(self, whole: bool) -> None:
        """The next command was run: nothing waits, nothing is left over."""
        assert self.here.sh("status", "--porcelain") == ""
        assert not [path for path in files(self.here.top) if path.endswith(".tmp")]
        if whole:
            self.here.healthy()
            plain_git(self.remote, "fsck", "--strict")


def files(top: Path) -> dict[str, bytes]:
    """Return {path: bytes} of the work tree; not a look into .git, where a git that goes on may be busy."""
    found = {}
    for folder, below, names in os.walk(top):
        below[:] = [name for name in below if name != ".git"]
        for name in names:
            path = Path(folder, name)
            found[path.relative_to(top).as_posix()] = path.read_bytes()
    return found


def remember(machine: Machine, number: int) -> None:
    text = f"the number of round {number} is {machine.rng.randint(1000, 9999)}"
    before = machine.notes()
    out = machine.killed("remember", "fact", text, "--json")
    after = machine.notes()
    assert {path: after.get(path) for path in before} == before
    new = {path: data for path, data in after.items() if path not in before}
    assert len(new) <= 1
    for path, data in new.items():
        note = load(path, data)
        assert note.ok and note.body.strip() == text and note.id and note.id in path
    if out.strip():
        assert json.loads(out)["path"] in new  # what was reported as saved is saved
    machine.mdmem("remember", "fact", text)
    assert len([1 for data in machine.notes().values() if text.encode() in data]) == 1
    machine.repaired(number % 10 == 0)


def edit(machine: Machine, number: int) -> None:
    path, old = next((path, data) for path, data in machine.notes().items() if b"Thursdays" in data)
    line = f"\nadded in round {number}\n"
    script = machine.here.top.parent / "editor.sh"
    # Two habits of editors: writing into the file, and renaming a new one over it.
    append = 'printf "%s" "$LINE" >> "$1"'
    rename = 'cp "$1" "$1.new~"; printf "%s" "$LINE" >> "$1.new~"; mv "$1.new~" "$1"'
    script.write_text(f"#!/bin/sh\n{rename if number % 2 else append}\n")
    script.chmod(0o755)
    before = machine.notes()
    out = machine.killed("edit", path, "--json", env={"VISUAL": str(script), "LINE": line})
    after = machine.notes()
    assert after.pop(path) in (old, old + line.encode())
    before.pop(path)
    assert after == before
    data = machine.notes()[path]
    if out.strip():
        assert data == old + line.encode()
    machine.mdmem("sync")
    assert machine.notes()[path] == data
    assert plain_git(machine.here.top, "show", f"HEAD:{path}").encode() == data
    machine.repaired(number % 10 == 0)


def sync(machine: Machine, number: int) -> None:
    """Each round both machines change one note, and the other one changes, makes and deletes further ones."""
    here, there = machine.here, machine.there
    form = "---\nid: mem-{0}\ntitle: {0}\n{3}---\nfirst {1}\n\nmiddle\n\nlast {2}\n"
    if number == 0:
        for name in ("both", "theirs", "gone-1"):
            there.write(f"memories/{name}.md", form.format(name, -1, -1, ""))
    else:
        assert there.sync().state in ("merged", "clean")
    there.sync()
    machine.mdmem("sync")
    base, both = files(here.top), "memories/both.md"
    there.write(both, form.format("both", number, number - 1, ""))
    there.write("memories/theirs.md", form.format("theirs", number, number, ""))
    there.write(f"memories/gone{number}.md", form.format(f"gone{number}", number, number, ""))
    (there.top / f"memories/gone{number - 1}.md").unlink()
    assert there.sync().state == "pushed"
    here.write(both, form.format("both", number - 1, number, ""))
    here.write("memories/mine.md", form.format("mine", number, number, ""))
    mine, theirs = files(here.top), files(there.top)
    merged = merge(base[both], mine[both], theirs[both], both).text
    wanted = {**theirs, "memories/mine.md": mine["memories/mine.md"], both: merged}
    machine.killed("sync")
    for path, data in machine.notes().items():
        assert data in (mine.get(path), wanted.get(path)), (path, data)
    for path in mine:
        assert path in machine.notes() or path not in wanted or not path.endswith(".md"), path
    machine.mdmem("sync")
    assert machine.notes() == {path: data for path, data in wanted.items() if path.endswith(".md")}
    machine.repaired(number % 10 == 0)


COMMANDS: dict[str, Callable[[Machine, int], None]] = {"remember": remember, "edit": edit, "sync": sync}


def kills(name: str, folder: Path, count: int, seed: int) -> int:
    """Kill a command `count` times; returns how often it had not ended before. The first runs only measure its time."""
    machine = Machine(folder, seed)
    number = 0
    while machine.died < count:
        assert number < 3 * count + 10, "the command ends before it can be killed"
        COMMANDS[name](machine, number)
        number += 1
    machine.mdmem("sync")
    machine.repaired(True)
    return machine.died


@pytest.mark.parametrize("name", COMMANDS)
def test_kill_9_at_random_moments(name: str, tmp_path: Path) -> None:
    assert kills(name, tmp_path, SHORT, 1) == SHORT


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", COMMANDS)
def test_kill_9_at_two_hundred_random_moments(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    died = kills(name, tmp_path, LONG, 2)
    with capsys.disabled():
        print(f"\n{name}: killed at {died} random moments", end=" ")


def test_a_note_whose_writer_died_before_the_commit_is_committed_by_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mdmem.repo import commit

    machine = Machine(tmp_path, 3)

    def die(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    for next_command in (["remember", "fact", "quite another fact"], ["sync"]):
        with monkeypatch.context() as patch:
            patch.setattr(commit, "_commit_locked", die)
            machine.mdmem("remember", "fact", f"written and not committed, before {next_command[0]}", codes=(130,))
        assert machine.here.sh("status", "--porcelain", "-uall").startswith("?? memories/written-and")
        machine.mdmem(*next_command)
        machine.repaired(True)
    # Killed even before it could note that a commit is due: the same words again are known, and committed.
    text = "written and nothing else"
    machine.mdmem("remember", "fact", text)
    machine.here.sh("reset", "-q", "--mixed", "HEAD~1")
    machine.mdmem("remember", "fact", text)
    machine.repaired(True)


LEFT = ".mdmem-0123456789abcdef.tmp"


def left_by_a_killed_writer(machine: Machine, scene: str, text: str) -> Path:
    """What `kill -9` leaves of a `remember`: half a file, or the whole note under its second name as well."""
    left = machine.here.top / "memories" / LEFT
    if scene == "half a file":
        left.write_bytes(b"---\nid: mem-")
        return left
    machine.mdmem("remember", "fact", text)
    machine.here.sh("reset", "-q", "--mixed", "HEAD~1")
    new = next(machine.here.top / path for path, data in machine.notes().items() if text.encode() in data)
    os.link(new, left)
    return left


NEXT = {
    "the same again": ["remember", "fact", "written as it died"],
    "another fact": ["remember", "fact", "quite another fact"],
    "what is known": ["remember", "fact", "deploys happen on Thursdays"],
    "set": ["set", "PATH", "importance=0.7"],
    "forget": ["forget", "PATH"],
    "sync": ["sync"],
}


@pytest.mark.parametrize("scene", ["half a file", "the note under two names"])
@pytest.mark.parametrize("command", NEXT)
def test_what_a_killed_writer_left_is_taken_away_by_the_next_that_writes(command: str, scene: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, 4)
    path = next(path for path, data in machine.notes().items() if b"Thursdays" in data)
    left = left_by_a_killed_writer(machine, scene, "written as it died")
    before = machine.notes()
    machine.mdmem(*(path if word == "PATH" else word for word in NEXT[command]))
    assert not left.exists()
    kept = machine.notes()
    assert {name: kept.get(name) for name in before if name != path} == {name: before[name] for name in before if name != path}
    machine.mdmem("sync")  # it died before it could note that a commit is due
    machine.repaired(True)


def test_what_a_killed_writer_left_among_local_notes_is_taken_away_by_the_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(tmp_path, 5)
    local = ["remember", "fact", "only here", "--scope", "local"]
    machine.mdmem(*local)
    folder = Store.open(machine.here.top, need="read", cwd=machine.here.top).local_folder.root / "memories"
    for words in (local, [*local[:2], "another one only here", *local[3:]]):
        (folder / LEFT).write_bytes(b"half")
        machine.mdmem(*words)
        assert not (folder / LEFT).exists() and len(list(folder.glob("*.md"))) >= 1
