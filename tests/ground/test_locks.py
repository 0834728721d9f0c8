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
from tests.patience import within

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
    within(began, 5)
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
    with pytest.raises(Locked), FileLock(tmp_path / "lock", timeout=1):
        pass
    assert victim.read_text() == "x"


def test_without_fcntl_the_lock_is_windows_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The branch for Windows, run here with a stand-in for its byte-range lock: held is held, released is free."""
    import types

    from mdmem import locks

    held: dict[tuple[int, int], int] = {}

    def locking(descriptor: int, mode: int, count: int) -> None:
        found = os.fstat(descriptor)
        key = (found.st_dev, found.st_ino)
        owner = held.get(key)
        if owner is not None and owner != descriptor:
            try:
                os.fstat(owner)
                raise OSError(13, "Permission denied")  # what msvcrt says of a range that another handle holds
            except OSError as error:
                if error.errno == 13:
                    raise
        held[key] = descriptor

    monkeypatch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(LK_NBLCK=2, locking=locking))
    source = Path(locks.__file__).read_text("utf-8")
    assert source.count('if os.name == "nt":') == 1
    windows = types.ModuleType("windows_locks")
    monkeypatch.setitem(sys.modules, "windows_locks", windows)
    exec(compile(source.replace('if os.name == "nt":', "if True:"), "windows_locks", "exec"), windows.__dict__)
    path = tmp_path / "a.lock"
    with windows.FileLock(path, timeout=0.1):
        with pytest.raises(Locked), windows.FileLock(path, timeout=0.1):
            pass
    with windows.FileLock(path, timeout=0.1), windows.try_lock(tmp_path / "b.lock") as free:
        assert free
