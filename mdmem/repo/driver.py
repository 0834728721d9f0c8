"""`mdmem merge-driver %O %A %B %L %P`: git's call for one file of a merge. Installing that call, and looking at it.

git takes a driver that failed without writing markers for a conflict whose file is "ours": finishing that merge by hand
would drop the other side. So the driver catches everything and falls back to git's own text merge, the file is replaced
in one step, and the configured command does the same text merge when the driver itself is missing, broken or killed. To
tell these apart from a conflict, a guarded call reports a conflict by a code that no interpreter exits with by itself.

Nothing heavy is imported: this runs once per conflicting file.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from mdmem.repo.driver_install import DriverStatus, Runner

GUARDED = "--guarded"
GUARDED_CONFLICT = 101
MAX_BYTES = 8 << 20  # of all three files; beyond it, git's own merge is the better tool


class _Stopped(BaseException):
    """SIGTERM came before the result was written."""


def run_driver(args: Sequence[str]) -> int:
    """Merge the files that git names (base, ours, theirs, marker size, path) into ours.

    Returns 0 when clean and 1 for a conflict (101 when called with `--guarded`), 2 for a wrong call. Never raises. The
    path is a label only; labels (%S %X %Y) are accepted.
    """
    if len(args) < 3:
        print("usage: mdmem merge-driver %O %A %B %L %P", file=sys.stderr)
        return 2
    base, ours, theirs = args[:3]
    size = int(args[3]) if len(args) > 3 and args[3].isdigit() and len(args[3]) < 4 else 7
    label = args[4] if len(args) > 4 else ours
    code = _drive(base, ours, theirs, size, label)
    return GUARDED_CONFLICT if code and GUARDED in args[5:] else code


def _drive(base: str, ours: str, theirs: str, size: int, label: str) -> int:
    restore = _on_term(_stop)
    try:
        texts = [_read(path) for path in (base, ours, theirs)]
        from mdmem.clock import SystemClock
        from mdmem.repo.merge import merge

        merged = merge(texts[0], texts[1], texts[2], label, now=SystemClock().now())
        _ignore_signals()
        if merged.text != texts[1]:
            _write(ours, merged.text)
        return 1 if merged.conflicts else 0
    except BaseException as error:
        _ignore_signals()
        reason = str(error) or type(error).__name__
        print(f"mdmem: {ascii(label)[1:-1]}: merged as plain text ({ascii(reason)[1:-1][:200]})", file=sys.stderr)
        try:
            return _as_text(base, ours, theirs, size)
        except BaseException as second:
            print(f"mdmem: not merged: {type(second).__name__}; both versions are in the index", file=sys.stderr)
            return 1
    finally:
        restore()


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise _Stopped("stopped by a signal")


class _on_term:
    """Set the handler of SIGTERM; calling the object puts all handlers back. Does nothing outside the main thread."""

    def __init__(self, handler: object) -> None:
        self.old: list[tuple[int, object]] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                self.old.append((number, signal.getsignal(number)))
                if number == signal.SIGTERM:
                    signal.signal(number, handler)  # type: ignore[arg-type]
            except ValueError:
                self.old = []
                return

    def __call__(self) -> None:
        for number, handler in self.old:
            signal.signal(number, handler)  # type: ignore[arg-type]


def _ignore_signals() -> None:
    """From here on the file is being written: a few milliseconds that no signal may cut in two."""
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            signal.signal(number, signal.SIG_IGN)
        except ValueError:
            return


def _read(path: str) -> bytes:
    size = os.stat(path).st_size
    if size > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES >> 20} MB")
    with open(path, "rb") as stream:
        return stream.read()


def _write(path: str, data: bytes) -> None:
    """Replace a file in one step; what git finds there is the old text or the new one."""
    mode = os.stat(path).st_mode & 0o777
    folder = os.path.dirname(os.path.abspath(path))
    name = os.path.join(folder, f".merge_file_{os.getpid():x}{os.urandom(4).hex()}")
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        try:
            os.unlink(name)
        except OSError:
            pass
        raise


def _as_text(base: str, ours: str, theirs: str, size: int) -> int:
    """Merge as git does without a driver: markers where both sides changed a place. Returns 0 or 1."""
    import subprocess

    names = ["-L", "ours", "-L", "base", "-L", "theirs"]
    command = ["git", "merge-file", "-p", f"--marker-size={max(size, 7)}", *names, ours, base, theirs]
    code, out = 255, b""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
        code, out = done.returncode, done.stdout
    except OSError as error:
        print(f"mdmem: git merge-file did not start: {error.strerror}", file=sys.stderr)
    if not 0 <= code <= 127:
        out, code = _both(ours, theirs, max(size, 7)), 1
    _write(ours, out)
    return min(code, 1)


def _both(ours: str, theirs: str, size: int) -> bytes:
    """Return both files whole between markers: what is left when not even git can merge them (binary, git missing)."""
    found = []
    for path in (ours, theirs):
        with open(path, "rb") as stream:
            data = stream.read()
        found.append(data if data.endswith(b"\n") or not data else data + b"\n")
    return b"%s ours\n%s%s\n%s%s theirs\n" % (b"<" * size, found[0], b"=" * size, found[1], b">" * size)


def driver_command() -> str:
    """Return the guarded shell command for `merge.mdmem.driver`; see driver_install."""
    from mdmem.repo import driver_install

    return driver_install.driver_command()


def install_driver(git: Runner, lines: Sequence[str] = ("*.md -text merge=mdmem",)) -> bool:
    """Write the driver into a clone's configuration and attributes; see driver_install."""
    from mdmem.repo import driver_install

    return driver_install.install_driver(git, lines)


def driver_status(git: Runner, note: str = "memories/x.md", trusted: bool = True) -> DriverStatus:
    """Return whether git will call the driver, and whether it works; see driver_install."""
    from mdmem.repo import driver_install

    return driver_install.driver_status(git, note, trusted)
