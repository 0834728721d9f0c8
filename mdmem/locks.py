"""A lock between processes: fair, with a time limit, gone when its holder dies.

Two files are used. `<path>` is the lock proper; `<path>.queue` is held by the one process that
waits next, so that a process that releases and asks again cannot overtake it. The kernel drops
both when a holder dies, so that no process id is ever trusted.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from mdmem.errors import Locked

if os.name == "nt":  # pragma: no cover - written for Windows, not run there
    import msvcrt

    def _try_lock(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
            return True
        except OSError:
            return False
else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                return False
            raise


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    return os.open(path, flags, 0o600)


def _wait(fd: int, deadline: float) -> bool:
    pause = 0.001
    while not _try_lock(fd):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 2, 0.05)
    return True


class FileLock:
    """`with FileLock(path, timeout=10):` holds the lock; raises Locked after `timeout` seconds, or where the disk refuses."""

    def __init__(self, path: Path, timeout: float = 10.0) -> None:
        self.path = path
        self.timeout = timeout
        self._fd: int | None = None

    def acquire(self) -> bool:
        """Return True once held, False after the time limit."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        deadline = time.monotonic() + self.timeout
        queue = _open(self.path.with_name(self.path.name + ".queue"))
        try:
            if not _wait(queue, deadline):
                return False
            fd = _open(self.path)
            try:
                held = _wait(fd, deadline)
            except BaseException:
                os.close(fd)
                raise
            if not held:
                os.close(fd)
                return False
            self._fd = fd
            return True
        finally:
            os.close(queue)

    def release(self) -> None:
        """Give the lock back; nothing happens when it is not held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> FileLock:
        try:
            held = self.acquire()
        except OSError as error:
            why, hint = error.strerror or str(error), "try again when the disk is well"
            raise Locked(f"the lock {self.path.name} cannot be taken", why=why, hint=hint) from error
        if not held:
            raise Locked(
                "another mdmem process is writing",
                why=f"the lock {self.path.name} was not free within {self.timeout:g} s",
                hint="try again",
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Yield True when the lock was free and is now held, False when another process has it."""
    lock = FileLock(path, timeout=0.0)
    held = lock.acquire()
    try:
        yield held
    finally:
        lock.release()
