"""The lock between processes: exclusive, fair, bounded, gone with its holder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mdmem.errors import Locked
from mdmem.locks import FileLock, try_lock

HOLD = """
import sys
from pathlib import Path
from mdmem.locks import FileLock
with FileLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""

COUNT = """
import sys
from pathlib import Path
from mdmem.locks import FileLock
lock, counter = Path(sys.argv[1]), Path(sys.argv[2])
for _ in range(50):
    with FileLock(lock, timeout=60):
        counter.write_text(str(int(counter.read_text()) + 1))
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=-1, stdout=-1, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_held_lock_is_a_clear_error_within_its_time(tmp_path: Path) -> None:
    other = holder(tmp_path / "lock")
    began = time.monotonic()
    with pytest.raises(Locked) as caught, FileLock(tmp_path / "lock", timeout=0.2):
        pass
    assert time.monotonic() - began < 5
    assert caught.value.exit_code == 5 and caught.value.hint
    with try_lock(tmp_path / "lock") as held:
        assert not held
    other.communicate("")


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    other = holder(tmp_path / "lock")
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    with FileLock(tmp_path / "lock", timeout=5), try_lock(tmp_path / "lock") as held:
        assert not held
    other.communicate()


def test_four_processes_never_meet_and_all_get_through(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    command = [sys.executable, "-c", COUNT, str(tmp_path / "lock"), str(counter)]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(120) for process in processes] == [0, 0, 0, 0]
    assert counter.read_text() == "200"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("x")
    (tmp_path / "lock").symlink_to(victim)
    with pytest.raises(OSError), FileLock(tmp_path / "lock", timeout=1):
        pass
