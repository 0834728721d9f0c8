"""The system calls that change the disk, each in one place, so that a test can fail the Nth of them.

`step` is called with the name and the path before each call; it does nothing unless it is replaced.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


def step(name: str, path: Path) -> None:
    """Called before each change; the seam for fault tests."""


def open_new(path: Path, mode: int) -> int:
    """Return a descriptor of a new file; raises FileExistsError."""
    step("open", path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC | _BINARY, mode)


def open_read(path: Path) -> int:
    """Return a descriptor for reading that follows no symlink and does not wait for a pipe."""
    return os.open(path, os.O_RDONLY | _NOFOLLOW | _CLOEXEC | _BINARY | _NONBLOCK)


def write_all(fd: int, data: bytes, path: Path) -> None:
    """Write all of data, however often the system takes only a part."""
    view = memoryview(data)
    while view:
        step("write", path)
        view = view[os.write(fd, view) :]


def fsync(fd: int, path: Path) -> None:
    """Wait until a file's bytes are on the disk."""
    step("fsync", path)
    os.fsync(fd)


def fsync_folder(path: Path) -> None:
    """Wait until a folder's entries are on the disk, where the system can do that for folders."""
    step("fsync_folder", path)
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(fd)


def replace(old: Path, new: Path) -> None:
    """Put old in the place of new in one step."""
    step("replace", new)
    if os.name != "nt":
        os.replace(old, new)
        return
    for pause in (0.01, 0.05, 0.2, 0.5):  # an editor or a virus scanner holds the file for a moment
        try:
            os.replace(old, new)
            return
        except PermissionError:
            time.sleep(pause)
    os.replace(old, new)


def place(old: Path, new: Path) -> None:
    """Move old to new, which must not exist; raises FileExistsError."""
    step("place", new)
    if os.name == "nt":
        os.rename(old, new)  # refuses an existing target there
        return
    try:
        os.link(old, new)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV):
            raise
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new)) from None
        os.rename(old, new)
        return
    try:
        step("unlink", old)
        os.unlink(old)
    except OSError:
        pass  # new is in place; a second name of it that stays behind is swept later


def rename(old: Path, new: Path) -> None:
    """Rename without a look at what stands at new; for a change of case only."""
    step("rename", new)
    os.rename(old, new)


def unlink(path: Path) -> None:
    """Remove a file."""
    step("unlink", path)
    os.unlink(path)


def mkdir(path: Path) -> None:
    """Make one folder; nothing happens when it is there."""
    step("mkdir", path)
    try:
        os.mkdir(path)
    except FileExistsError:
        pass
