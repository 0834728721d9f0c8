"""Files of JSON lines that many processes append to and one takes away. Imports nothing heavy: hooks live on it."""

from __future__ import annotations

import errno
import os
import time

from mdmem.quickjson import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Seconds that an appender waits for another one before it appends all the same (a single write is whole anyway).
PATIENCE = 0.2


def _lock(descriptor: int, patience: float) -> bool:
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows: one write with O_APPEND has to do
        return True
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR) or time.monotonic() >= deadline:
                return False
            time.sleep(0.002)


def open_locked(path: str, patience: float = PATIENCE) -> tuple[int, bool]:
    """Return (descriptor open for reading and appending, whether it is locked); creates folder (0700) and file (0600).

    A file that was taken away while we waited is opened anew. Raises OSError.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    for _ in range(20):
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            descriptor = os.open(path, flags, 0o600)
        held = _lock(descriptor, patience)
        try:
            if os.fstat(descriptor).st_ino == os.stat(path).st_ino:
                return descriptor, held
        except FileNotFoundError:
            pass
        os.close(descriptor)
    raise OSError(errno.EAGAIN, "the file is being taken away again and again", path)


def line(record: dict[str, Any]) -> bytes:
    """Return a record as one line of ASCII JSON."""
    return dumps(record).encode("ascii") + b"\n"


def append(path: str, record: dict[str, Any]) -> None:
    """Add one record by a single write; a torn line left by a crash is closed first. Raises OSError."""
    descriptor, _ = open_locked(path)
    try:
        write(descriptor, line(record))
    finally:
        os.close(descriptor)


def write(descriptor: int, data: bytes) -> None:
    """Append whole lines to a file opened by `open_locked`."""
    size = os.fstat(descriptor).st_size
    torn = size > 0 and read_at(descriptor, 1, size - 1) != b"\n"
    os.write(descriptor, b"\n" + data if torn else data)


def read_at(descriptor: int, size: int, start: int) -> bytes:
    """Return up to `size` bytes from `start`, on every system."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, start)
    os.lseek(descriptor, start, os.SEEK_SET)  # pragma: no cover - Windows; appending does not mind the position
    return os.read(descriptor, size)  # pragma: no cover


def parse(data: bytes) -> list[dict[str, Any]]:
    """Return the records in `data`; what is not a JSON object on a line of its own is skipped."""
    records = []
    for raw in data.split(b"\n"):
        if not raw.strip():
            continue
        try:
            record = loads(raw)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def read(path: str) -> list[dict[str, Any]]:
    """Return the records of a file, [] when it is absent."""
    try:
        with open(path, "rb") as stream:
            return parse(stream.read())
    except (FileNotFoundError, NotADirectoryError):
        return []


def take(path: str, taken: str) -> list[dict[str, Any]]:
    """Move the file to `taken` and return its records, after those that an earlier taker left in `taken` unfinished.

    The taker deletes `taken` when its work is done. Raises OSError.
    """
    left = read(taken)
    if not os.path.exists(path):
        return left
    descriptor, _ = open_locked(path, patience=2.0)
    try:
        fresh = parse(read_at(descriptor, os.fstat(descriptor).st_size, 0))
        if left:
            # Both in one file before the source goes: a crash in between repeats items, and repeats are harmless.
            temporary = f"{taken}.{os.getpid()}"
            with open(temporary, "wb") as stream:
                stream.write(b"".join(line(record) for record in [*left, *fresh]))
            os.replace(temporary, taken)
            os.unlink(path)
        else:
            os.replace(path, taken)
    finally:
        os.close(descriptor)
    return [*left, *fresh]
