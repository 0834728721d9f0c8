"""A machine on which everything was used once, and what each file of its local state is.

The files are looked for, not listed: one that fits no row of KINDS makes the tests that damage state fail, so that nobody adds
a kind of state without saying what its damage may cost.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import pytest

from mdmem.cli.main import run
from tests.hooks.host import SESSION, sample
from tests.repo.conftest import plain_git

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 30, 9, tzinfo=timezone.utc)

REBUILT, TOLD, FORGOTTEN, MEMORY = "rebuilt", "told", "forgotten", "memory"
# (pattern of the path below .git/mdmem, the data folder or the runtime folder, what its damage may cost, what it holds)
#   rebuilt    nothing: it is made anew
#   told       a command refuses with a clear error, and one command puts it right
#   forgotten  what this device noted for itself (a rating, what a session saw), never a memory
#   memory     a note of this device alone: it is treated as any damaged note, named and left as it is
KINDS: tuple[tuple[str, str, str], ...] = (
    (r"git/catalog\.db(-wal|-shm)?", REBUILT, "the catalog"),
    (r"git/(text|vectors)/.*", REBUILT, "words and vectors"),
    (r"git/last-look", REBUILT, "what the last look saw"),
    (r"git/[^/]+\.(lock|queue)", REBUILT, "a lock"),
    (r"git/automemory/[0-9a-f]+/lock(\.queue)?", REBUILT, "a lock"),
    (r"git/automemory/.*", FORGOTTEN, "what both sides of Claude's own memory looked like"),
    (r"git/spool/.*", FORGOTTEN, "observations of open sessions"),
    (r"git/(seen|given|cited)/.*", FORGOTTEN, "what a session was given, and what it cited of that"),
    (r"git/beats/.*", FORGOTTEN, "signs of life of sessions"),
    (r"git/queue\.jsonl", FORGOTTEN, "what hooks left for the worker"),
    (r"git/uncommitted(\.taken)?", REBUILT, "saved notes that wait for a commit: every sync looks for them itself"),
    (r"git/placing\.json", TOLD, "a sync that was cut off while it wrote files"),
    (r"git/model-checks\.json", REBUILT, "which files of the model were looked at"),
    (r"git/shared-index-down\.json", FORGOTTEN, "which shared index did not answer a moment ago"),
    (r"git/index-push\.id", REBUILT, "this clone's name among those that push to a shared index"),
    (r"git/sync\.json", FORGOTTEN, "how the last sync went"),
    (r"git/(leases|claims|heartbeats|feedback)\.json", FORGOTTEN, "leases, claims, signs of life, ratings"),
    (r"git/opinions\.json", FORGOTTEN, "what the language model said of pairs in doubt"),
    (r"data/trusted\.json", TOLD, "which stores are trusted"),
    (r"data/device", FORGOTTEN, "this device's name"),
    (r"data/places\.json", REBUILT, "where the store of a folder is"),
    (r"data/installed\.json", FORGOTTEN, "how files were before the install"),
    (r"data/llm\.json(\.lock(\.queue)?)?", FORGOTTEN, "calls of the language model"),
    (r"data/llm-rests", FORGOTTEN, "that the language model gave no answer a moment ago"),
    (r"data/[^/]+\.lock(\.queue)?", REBUILT, "a lock"),
    (r"data/(learn|gate)/.*", REBUILT, "what was measured of the model"),
    (r"data/log/.*", FORGOTTEN, "logs"),
    (r"data/local/[^/]+/\..*", REBUILT, "a lock"),
    (r"(run|data/run)/[0-9a-f]{8}\.(sock|lock)", REBUILT, "the warm process' socket and lock"),
    (r"data/shared/[0-9a-f]+(/.*|\.lock(\.queue)?)", REBUILT, "a clone that is kept for pushing to a shared index"),
    (r"data/local/.*\.md", MEMORY, "notes of this device alone"),
)


@dataclass
class Machine:
    """A store, its remote and a home, put back to how they were before each try."""

    root: Path

    @property
    def world(self) -> Path:
        return self.root / "world"

    @property
    def store(self) -> Path:
        return self.world / "store"

    @property
    def git_state(self) -> Path:
        return self.store / ".git" / "mdmem"

    @property
    def data(self) -> Path:
        return self.world / "home" / ".local" / "share" / "mdmem"

    @property
    def runtime(self) -> Path:
        return self.world / "home" / "run" / "mdmem"

    def environ(self) -> dict[str, str]:
        home = self.world / "home"
        return {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local/share"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "XDG_RUNTIME_DIR": str(home / "run"),
            "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "MDMEM_NOW": "2026-11-30T09:00:00Z",
            "MDMEM_SERVE": "off",
            "MDMEM_WORKER_SETTLE": "0.01",
            "MDMEM_AGENT": "claude",
        }

    def run(self, *args: str) -> int:
        """Run a command in this process."""
        return run(["-C", str(self.store), *args])

    def process(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command as a process."""
        return subprocess.run(
            [sys.executable, "-m", "mdmem", *args], cwd=self.store, input=stdin, capture_output=True, text=True, timeout=120,
            env={**os.environ, **self.environ(), "PYTHONPATH": str(ROOT)}, check=False,
        )  # fmt: skip

    def hook(self, event: str, **fields: object) -> subprocess.CompletedProcess[str]:
        """Run a hook of a session in the store."""
        return self.process("hook", event, stdin=json.dumps({**sample(event, self.store), **fields}))

    def trusted(self) -> bool:
        """Return whether the list of trusted stores says so."""
        from mdmem.locate import at

        return at(self.store).trusted

    def keep(self) -> None:
        shutil.copytree(self.world, self.root / "kept", symlinks=True, copy_function=copied)

    def reset(self) -> None:
        subprocess.run(["chmod", "-R", "u+rwX", str(self.world)], check=False)
        shutil.rmtree(self.world)
        shutil.copytree(self.root / "kept", self.world, symlinks=True, copy_function=copied)

    def notes(self) -> dict[str, bytes]:
        """Return {path: bytes} of every note, those of this device alone included."""
        found = {}
        for top in (self.store, self.data / "local"):
            for path in top.rglob("*.md"):
                if ".git" not in path.parts and path.is_file():
                    found[path.relative_to(self.world).as_posix()] = path.read_bytes()
        return found

    def state(self) -> dict[str, Path]:
        """Return {name: file} of all local state; the name starts with the place: `git/`, `data/` or `run/`."""
        found = {}
        for place, top in (("git", self.git_state), ("data", self.data), ("run", self.runtime)):
            for path in sorted(top.rglob("*")):
                if not path.is_dir():
                    found[f"{place}/{path.relative_to(top).as_posix()}"] = path
        return found


def copied(source: str, target: str) -> str:
    """Copy a file; a socket is made anew, as a killed process leaves one."""
    if stat.S_ISSOCK(os.lstat(source).st_mode):
        with socket.socket(socket.AF_UNIX) as made:
            here = os.getcwd()
            os.chdir(os.path.dirname(target))  # an address has 108 bytes
            try:
                made.bind(os.path.basename(target))
            finally:
                os.chdir(here)
        return target
    return str(shutil.copy2(source, target))


def kind_of(name: str) -> str:
    """Return what damage of a file may cost, '' for a kind that nobody classified."""
    return next((cost for pattern, cost, _ in KINDS if re.fullmatch(pattern, name)), "")


def settled(machine: Machine) -> None:
    """Wait until no worker of the store is left."""
    from tests.hooks.host import wait_until, workers_of

    wait_until(lambda: not workers_of(machine.world), 60)


def build(root: Path, patch: pytest.MonkeyPatch) -> Machine:
    """Use everything once, so that every kind of local state is there. Returns the machine, kept for `reset`."""
    machine = Machine(root)
    home = machine.world / "home"
    (home / "run").mkdir(parents=True, mode=0o700)
    (home / ".gitconfig").write_text("[user]\n\tname = Test\n\temail = test@example.org\n[init]\n\tdefaultBranch = main\n")
    for name, value in machine.environ().items():
        patch.setenv(name, value)
    assert run(["init", str(machine.store)]) == 0
    plain_git(machine.world, "init", "-q", "--bare", "remote.git")
    assert machine.run("remote", "add", "origin", str(machine.world / "remote.git")) == 0
    assert machine.run("remember", "decision", "deploys happen on Thursdays") == 0
    assert machine.run("remember", "fact", "the office is in Basel") == 0
    assert machine.run("remember", "fact", "the key ring lies in the drawer", "--scope", "local") == 0
    assert machine.run("task", "add", "Write the release notes") == 0
    assert machine.run("sync") == 0
    fact = next(path for path, data in machine.notes().items() if b"Basel" in data).removeprefix("store/")
    task = next(path for path in machine.notes() if "/tasks/" in path).removeprefix("store/")
    assert machine.run("task", "claim", task) == 0
    assert machine.run("lease", "acquire", fact, "--ttl", "1h") == 0
    assert machine.run("heartbeat", "--doing", "writing") == 0
    assert machine.run("feedback", fact, "useful") == 0
    assert machine.run("install", "claude-code") in (0, 1)
    theirs = home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(machine.store)) / "memory"
    theirs.mkdir(parents=True)
    (theirs / "likes-tea.md").write_text("---\nname: likes tea\ntype: user\n---\nThe user likes tea.\n")
    assert machine.run("sync-memories", str(machine.store)) in (0, 1)
    ledger(machine)
    killed_warm_process()
    for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"):
        done = machine.hook(event)
        assert done.returncode == 0, done.stderr
    settled(machine)
    (machine.store / ".git" / "index.lock").write_text("")  # saved, and it waits for a commit
    assert machine.run("remember", "fact", "lunch is at noon") == 0
    (machine.store / ".git" / "index.lock").unlink()
    assert machine.run("recall", "when do deploys happen") == 0
    assert (machine.git_state / "spool" / f"{SESSION}.jsonl").exists()
    (machine.git_state / "queue.jsonl").write_text("")
    machine.keep()
    return machine


def killed_warm_process() -> None:
    """Start the warm process and kill it: what it leaves is its socket and its lock."""
    from mdmem.warm import address, client, starting
    from tests.hooks.host import wait_until

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "GREETING", 2.0)
        assert starting.start()
        wait_until(lambda: client.ask({"op": "status"}) is not None, 30)
        status = client.ask({"op": "status"})
    assert status is not None
    os.kill(int(status["pid"]), signal.SIGKILL)
    assert os.path.exists(address.socket_path())


def ledger(machine: Machine) -> None:
    """Account one call of a language model."""
    from mdmem.clock import FixedClock
    from mdmem.llm.ledger import Ledger
    from mdmem.llm.model import Answer

    Ledger(machine.data / "llm.json", FixedClock(NOW)).account("test", Answer("", 10, 10, 0.1))
