"""Makes the Nth system call that changes a store fail, or the Nth git: counted in this process, in the order of the calls."""

from __future__ import annotations

import builtins
import errno
import io
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mdmem.repo import git as runner
from tests.injected import count

ERRORS: dict[str, Callable[[], BaseException]] = {
    "full disk": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "i/o error": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "no access": lambda: OSError(errno.EACCES, os.strerror(errno.EACCES)),
    "interrupt": KeyboardInterrupt,
    "interrupt after": KeyboardInterrupt,
}
# Calls by path that change a folder; `open` counts where it makes or changes a file.
_BY_PATH = ("mkdir", "rename", "replace", "link", "unlink", "remove", "rmdir")
_CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Failing:
    """Counts the calls; `hit` is the name of the one that failed, "" while none did."""

    def __init__(self, root: Path, number: int, error: str) -> None:
        self.root, self.left, self.error = str(root), number, error
        self.hit = ""
        self.after = error == "interrupt after"
        self._lock = threading.Lock()
        self._files: set[int] = set()

    def now(self, name: str) -> bool:
        """Count one call; returns whether it is the one to fail."""
        with self._lock:
            self.left -= 1
            if self.left == 0:
                self.hit = name
                count(f"calls that failed: {self.error}")
            return self.left == 0

    def inside(self, path: Any) -> bool:
        return isinstance(path, (str, Path)) and os.path.abspath(path).startswith(self.root)

    def around(self, name: str, call: Callable[..., Any], counts: Callable[..., bool]) -> Callable[..., Any]:
        """Return `call`, which fails when it is its turn: before it was done, or after where the error is of that kind."""

        def wrapped(*args: Any, **options: Any) -> Any:
            if not counts(*args, **options) or not self.now(name):
                return call(*args, **options)
            if self.after:
                call(*args, **options)
            raise ERRORS[self.error]()

        return wrapped

    def git(self, start: Callable[..., Any]) -> Callable[..., Any]:
        """Return the starter of git processes; in its turn a process that fails as git does stands in for git."""

        def wrapped(*args: Any, **options: Any) -> Any:
            if not self.now("git " + " ".join(args[1])[:60]):
                return start(*args, **options)
            if self.error.startswith("interrupt"):
                if self.after:
                    start(*args, **options).communicate()
                raise KeyboardInterrupt
            _, _, env, stdin, stderr = args
            text = f"fatal: injected: {ERRORS[self.error]().args[1]}"
            script = f"echo '{text}' >&2; exit 128"
            return subprocess.Popen(
                ["sh", "-c", script], stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, env=env, start_new_session=True
            )

        return wrapped


@contextmanager
def failing(root: Path, number: int, error: str) -> Iterator[Failing]:
    """Let the call with this number fail among those that change something below `root`, and among the starts of git."""
    state = Failing(root, number, error)
    real_open, real_close = os.open, os.close

    def open_(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & _CHANGING and state.inside(path):
            descriptor: int = state.around("open", real_open, lambda *a, **o: True)(path, flags, *args, **options)
            state._files.add(descriptor)
            return descriptor
        return real_open(path, flags, *args, **options)

    def close(descriptor: int) -> None:
        state._files.discard(descriptor)
        real_close(descriptor)

    def text_open(real: Callable[..., Any]) -> Callable[..., Any]:
        def counts(path: Any, mode: str = "r", *args: Any, **options: Any) -> bool:
            return any(letter in mode for letter in "wax+") and state.inside(path)

        return state.around("open", real, counts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", open_)
        patch.setattr(os, "close", close)
        patch.setattr(io, "open", text_open(io.open))
        patch.setattr(builtins, "open", text_open(builtins.open))
        for name in _BY_PATH:
            patch.setattr(os, name, state.around(name, getattr(os, name), lambda path, *a, **o: state.inside(path)))
        for name in ("write", "fsync"):
            patch.setattr(os, name, state.around(name, getattr(os, name), lambda fd, *a, **o: fd in state._files))
        patch.setattr(runner, "_start", state.git(runner._start))
        yield state
