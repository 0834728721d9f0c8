"""Every event under every condition: exit 0, at most one JSON object of the right form, inside its time, no child left."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mdmem.install.command import hook_argv
from tests.hooks.host import ALLOWED, SAMPLES, TOP_LEVEL, add_note, environment, git, index, sample
from tests.patience import within

# Seconds that an event may take: what the installer allows it.
TIME = {"SessionStart": 10.0, "SessionEnd": 10.0}
EVENTS = sorted(set(SAMPLES) - {"CwdChanged"})


class Run:
    """What a condition may change about running one event."""

    def __init__(self, project: Path, store: Path) -> None:
        self.cwd, self.store = project, store
        self.env: dict[str, str | None] = {}
        self.shell = ""
        self.data: Callable[[str], bytes] = lambda event: json.dumps(sample(event, self.cwd)).encode()

    def start(self, event: str) -> subprocess.Popen[bytes]:
        """Start the hook in a process group of its own."""
        argv = hook_argv(event)
        if self.shell:
            argv = ["sh", "-c", f"exec {' '.join(shlex.quote(word) for word in argv)} {self.shell}"]
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.cwd,
            env=environment(self.env),
            start_new_session=True,
        )


def check(run: Run, event: str) -> None:
    """Run one event and look at everything that is promised of it."""
    begin = time.monotonic()
    process = run.start(event)
    out, err = process.communicate(run.data(event), timeout=60)
    within(begin, TIME.get(event, 5.0), event)
    judge(event, process.returncode, out, err)
    assert not group(process.pid), f"{event} left a child in its process group"


def judge(event: str, code: int, out: bytes, err: bytes) -> None:
    """Check exit code and output of one event."""
    assert code == 0, (event, err.decode())
    if not out:
        return
    answer = json.loads(out)
    assert out.startswith(b"{") and isinstance(answer, dict) and set(answer) <= TOP_LEVEL, event
    inside = answer.get("hookSpecificOutput")
    if inside is not None:
        assert event in ALLOWED and inside["hookEventName"] == event and set(inside) <= ALLOWED[event]
        assert len(inside.get("additionalContext", "").encode("utf-16-le")) // 2 <= 9_500


def group(leader: int) -> list[int]:
    """Return the living processes of a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == leader and fields[0] != "Z":
                found.append(int(entry.name))
    return found


@contextmanager
def as_it_is(run: Run) -> Iterator[None]:
    yield


@contextmanager
def empty(run: Run) -> Iterator[None]:
    run.data = lambda event: b""
    yield


@contextmanager
def bom(run: Run) -> Iterator[None]:
    before = run.data
    run.data = lambda event: b"\xef\xbb\xbf" + before(event)
    yield


@contextmanager
def garbage(run: Run) -> Iterator[None]:
    run.data = lambda event: b'{"cwd": "/", \xff\xfe\x00 }{}'
    yield


@contextmanager
def five_megabytes(run: Run) -> Iterator[None]:
    big = "word 词 " * 600_000

    def data(event: str) -> bytes:
        filled: dict[str, Any] = sample(event, run.cwd) | {"prompt": big, "last_assistant_message": big, "compact_summary": big}
        return json.dumps(filled, ensure_ascii=False).encode()[: 8 << 20]

    run.data = data
    yield


@contextmanager
def missing_fields(run: Run) -> Iterator[None]:
    run.data = lambda event: json.dumps({"cwd": str(run.cwd), "hook_event_name": event}).encode()
    yield


@contextmanager
def wrong_types(run: Run) -> Iterator[None]:
    def data(event: str) -> bytes:
        odd = {name: [[{"x": None}], 3, "s", {}][len(name) % 4] for name in sample(event, "x")}
        return json.dumps(odd | {"cwd": str(run.cwd), "hook_event_name": event}).encode()

    run.data = data
    yield


@contextmanager
def closed_stdout(run: Run) -> Iterator[None]:
    run.shell = ">&-"
    yield


@contextmanager
def no_home(run: Run) -> Iterator[None]:
    run.env = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"))
    run.cwd = run.store
    yield


@contextmanager
def path_with_spaces(run: Run) -> Iterator[None]:
    run.cwd = run.cwd / "a folder" / "it's"
    run.cwd.mkdir(parents=True)
    yield


@contextmanager
def chinese_path(run: Run) -> Iterator[None]:
    run.cwd = run.cwd / "项目" / "代码 一"
    run.cwd.mkdir(parents=True)
    yield


@contextmanager
def read_only_store(run: Run) -> Iterator[None]:
    # The owner of everything in a container is root, whom no mode stops: a file in the place of the folder does.
    state = run.store / ".git" / "mdmem"
    os.rename(state, run.store / ".git" / "kept")
    state.write_text("")
    yield
    state.unlink()
    os.rename(run.store / ".git" / "kept", state)


@contextmanager
def locked_index(run: Run) -> Iterator[None]:
    connection = sqlite3.connect(run.store / ".git" / "mdmem" / "catalog.db", isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    yield
    connection.rollback()
    connection.close()


@contextmanager
def no_model(run: Run) -> Iterator[None]:
    run.env = {"MDMEM_EMBEDDING_BACKEND": "onnx", "MDMEM_EMBEDDING_PATH": "/nowhere"}
    yield


@contextmanager
def unreachable_remote(run: Run) -> Iterator[None]:
    git(run.store, "remote", "add", "origin", "https://127.0.0.1:9/nothing.git")
    yield
    git(run.store, "remote", "remove", "origin")


@contextmanager
def recursion(run: Run) -> Iterator[None]:
    run.env = {"MDMEM_HOOK": "1"}
    yield


CONDITIONS = [
    as_it_is, empty, bom, garbage, five_megabytes, missing_fields, wrong_types, closed_stdout, no_home, path_with_spaces,
    chinese_path, read_only_store, locked_index, no_model, unreachable_remote, recursion,
]  # fmt: skip


@pytest.fixture
def run(project: Path, store: Path) -> Run:
    add_note(store, "memories/pg.md", "Billing runs on the database PostgreSQL 16.", type="decision", title="Billing database")
    index(store)
    return Run(project, store)


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.__name__)
def test_every_event_under(condition: Callable[[Run], Any], run: Run) -> None:
    with condition(run):
        for event in EVENTS:
            check(run, event)


def test_ten_at_once(run: Run) -> None:
    for event in EVENTS:
        running = [run.start(event) for _ in range(10 if event in ("Stop", "SessionStart", "PostToolUse") else 2)]
        for process in running:
            assert process.stdin is not None
            process.stdin.write(run.data(event))
            process.stdin.close()
        for process in running:
            assert process.stdout is not None and process.stderr is not None
            out, err = process.stdout.read(), process.stderr.read()
            judge(event, process.wait(60), out, err)
            process.stdout.close()
            process.stderr.close()


def test_the_samples_of_a_real_session(run: Run) -> None:
    """Payloads of one `claude -p` session of Claude Code 2.1.332, paths replaced."""
    lines = (Path(__file__).parent / "real_session.jsonl").read_text("utf-8").splitlines()
    for line in lines:
        payload = json.loads(line)
        data = line.replace("/home/dev/project", str(run.cwd)).encode()
        run.data = lambda event, data=data: data  # type: ignore[misc]
        check(run, payload["hook_event_name"])
