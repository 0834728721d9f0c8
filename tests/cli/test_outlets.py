"""Where the output of a command goes: streams that the caller closed, a full disk behind `>`, a folder that is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mdmem.cli.main import run

FULL = Path("/dev/full")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one note."""
    top = tmp_path / "store"
    assert run(["init", str(top)]) == 0
    assert run(["-C", str(top), "remember", "fact", "the harbor opens at nine"]) == 0
    return top


def shell(words: str, cwd: Path, unbuffered: str = "") -> subprocess.CompletedProcess[str]:
    """Run a line of the shell in which `mdmem` is this program; an empty `unbuffered` is Python's usual way of printing."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONUNBUFFERED": unbuffered}
    line = f"mdmem() {{ '{sys.executable}' -m mdmem \"$@\"; }}; {words}"
    return subprocess.run(
        ["bash", "-c", line], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


ALL_CLOSED = "0<&- 1>&- 2>&-"


@pytest.mark.parametrize(
    ("words", "closed"),
    [("recall harbor", "1>&-"), ("recall harbor", ALL_CLOSED), ("remember fact 'closed streams'", ALL_CLOSED)]
    + [("status --json", "0<&- 1>&-"), ("status", "2>&-"), ("--version", ALL_CLOSED)],
)
def test_a_command_whose_streams_are_closed_does_its_work(words: str, closed: str, store: Path) -> None:
    """As cron and some supervisors start programs; a file that is opened next must not become the standard output."""
    done = shell(f"mdmem {words} {closed}", store)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "unexpected" not in done.stderr
    if words.startswith("remember"):
        assert run(["-C", str(store), "show", "closed streams"]) == 0


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("words", "unbuffered"),
    [(words, "") for words in ("recall harbor", "status --json", "remember fact 'on a full disk'", "--help", "hook --help")]
    + [("status", "1"), ("--help", "1"), ("--version", "1")],
)
def test_output_that_cannot_be_written_is_not_taken_for_a_full_store(words: str, unbuffered: str, store: Path) -> None:
    """`mdmem … > report` on a full disk: the store was told to be full, or a traceback came."""
    done = shell(f"mdmem {words} > /dev/full", store, unbuffered)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
    assert "what was to be printed could not be written" in done.stderr and "file of the store" not in done.stderr
    if words.startswith("remember"):
        assert "what the command does is done" in done.stderr
        assert run(["-C", str(store), "show", "on a full disk"]) == 0


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("words", "code"), [("status", 0), ("show nothing", 3), ("show nothing --json > /dev/full", 3), ("wrong", 2)]
)
def test_messages_that_cannot_be_written_change_no_exit_code(words: str, code: int, store: Path) -> None:
    assert shell(f"mdmem {words} 2> /dev/full", store).returncode == code


def test_a_folder_that_is_gone_is_said_so_and_a_named_store_is_used_all_the_same(store: Path, tmp_path: Path) -> None:
    """A shell stands in a worktree that was removed: every command ended in a report of a crash."""
    (tmp_path / "gone").mkdir()
    there = f'cd "{tmp_path}/gone" && rmdir "{tmp_path}/gone" && '
    for words in ("status", "init here", "recall harbor", "install claude-code"):
        done = shell(f"mkdir -p '{tmp_path}/gone'; {there} mdmem {words}", tmp_path)
        assert done.returncode == 1 and "the folder that this was called in is gone" in done.stderr, done.stderr
    done = shell(f"mkdir -p '{tmp_path}/gone'; {there} mdmem -C '{store}' remember fact 'from nowhere'", tmp_path)
    assert done.returncode == 0, done.stderr
    assert run(["-C", str(store), "show", "from nowhere"]) == 0
