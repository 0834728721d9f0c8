"""Where the warm process listens: one socket and one lock per user. Imports next to nothing: hooks come through here."""

from __future__ import annotations

import os
import stat
import zlib

from mdmem.data_home import data_folder

# Bytes of a socket's path that every system takes.
LONGEST = 100


class NoAddress(Exception):
    """There is no folder that is surely this user's own."""


def folder() -> str:
    """Return the 0700 folder of sockets, made if need be. Raises NoAddress or OSError."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if base and os.path.isdir(base):
        path = os.path.join(base, "mdmem")
    else:
        path = os.path.join(data_folder(), "run")
    if len(os.fsencode(path)) > LONGEST - 16:
        # A long home: a short place in the temporary folder, still ours alone.
        path = os.path.join("/tmp", f"mdmem-{os.getuid()}-{_short(path)}")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        raise NoAddress(str(error)) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise NoAddress(f"{path} belongs to somebody else")
    if found.st_mode & 0o077:
        os.chmod(path, 0o700)
    return path


def socket_path() -> str:
    """Return the path of the socket. Raises NoAddress or OSError."""
    return os.path.join(folder(), _short(data_folder()) + ".sock")


def lock_path() -> str:
    """Return the path of the lock that the one warm process holds. Raises NoAddress or OSError."""
    return os.path.join(folder(), _short(data_folder()) + ".lock")


def hold() -> int | None:
    """Return a descriptor that holds the lock, None when a warm process has it. Raises NoAddress or OSError."""
    import fcntl

    path, flags = lock_path(), os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        clear(path)
        descriptor = os.open(path, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def clear(path: str) -> None:
    """Remove what stands at a path of ours and is no file: a link, a folder. It would keep the warm process away for ever."""
    if os.path.islink(path):
        os.unlink(path)
    elif os.path.isdir(path):
        from shutil import rmtree

        rmtree(path)


def _short(text: str) -> str:
    return f"{zlib.crc32(os.fsencode(text)):08x}"
