"""Walks a tree of notes: what is there, and what was left out and why. Opens no file.

A folder that cannot be read is a problem and its path is in `unread`: nobody may conclude that
the notes below it are gone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mdmem.notes.names import fold

MAX_BYTES = 4 * 1024 * 1024  # a note is read up to here
TEMP_PREFIX = ".mdmem-"
TEMP_SUFFIX = ".tmp"
SKIPPED = frozenset(("node_modules", "__pycache__"))


class FileStat(NamedTuple):
    """A note as the folder lists it; the path is posix and relative to the root."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Finding(NamedTuple):
    """A path that the scan left out or warns about."""

    path: str
    code: str
    message: str


# What FileStat holds, without its class: a look at many files compares these.
Numbers = tuple[str, int, int, int, int]


@dataclass
class Scan:
    """One walk. After it: `problems`, `unread` (folders, "" is the root), `leftovers` (temporary files) and `linked` (notes
    that have another name too, so that they may change by way of another folder).

    `entering`, if given, is called with the path and prefix of each folder before it is listed."""

    root: Path
    owned: tuple[str, ...] = ("",)
    problems: list[Finding] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    entering: Callable[[str, str], None] | None = None

    def __iter__(self) -> Iterator[FileStat]:
        """Yield each note; folders and files whose name starts with a dot are not looked at."""
        return map(FileStat._make, self.numbers())

    def numbers(self, before: str = "") -> list[Numbers]:
        """Return the numbers of each note; `before` is put before its path."""
        out: list[Numbers] = []
        for start in self.owned:
            place = os.path.join(self.root, start) if start else str(self.root)
            try:
                mode = os.lstat(place).st_mode
            except FileNotFoundError:
                if not start:
                    self._unread("", "the folder is missing")
                continue
            except OSError as error:
                self._unread(start, f"the folder cannot be read ({error.strerror})")
                continue
            if start and stat.S_ISLNK(mode):
                self._note(start, "symlink", "a symbolic link is not followed")
            elif start and not stat.S_ISDIR(mode):
                self._note(start, "not_a_folder", "a file stands where a folder of notes is expected")
            else:
                stack = [(place, start + "/" if start else "")]
                while stack:
                    stack += self._folder(*stack.pop(), before, out)
        return out

    def _folder(self, folder: str, prefix: str, before: str, out: list[Numbers]) -> list[tuple[str, str]]:
        """Add the notes of one folder to `out`; returns the folders in it. This loop runs once a file: it is kept lean."""
        try:
            if self.entering is not None:
                self.entering(folder, prefix)
            with opened(folder) as place, os.scandir(place) as listing:
                return self._entries(folder, listing, prefix, before, out)
        except OSError as error:
            if not isinstance(error, FileNotFoundError) or not prefix:
                self._unread(prefix[:-1], f"the folder cannot be read ({error.strerror})")
            return []

    def _entries(
        self, folder: str, listing: Iterable[os.DirEntry[str]], prefix: str, before: str, out: list[Numbers]
    ) -> list[tuple[str, str]]:
        found: list[Numbers] = []
        folders: list[tuple[str, str]] = []
        odd: list[os.DirEntry[str]] = []
        full = before + prefix
        for entry in listing:
            name = entry.name
            if name[-3:] != ".md" or name[0] == "." or not name.isascii():
                odd.append(entry)
                continue
            try:
                if not entry.is_file(follow_symlinks=False):
                    odd.append(entry)
                    continue
                info = entry.stat(follow_symlinks=False)
            except OSError as error:
                self._lost(prefix + name, error)
                continue
            size = info.st_size
            if size > MAX_BYTES:
                self._large(prefix + name, size)
            if info.st_nlink > 1:
                self.linked.append(full + name)
            found.append((full + name, size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino))
        if prefix and any(entry.name == ".git" for entry in odd):
            self._nested(folder, prefix)
            return []
        for entry in odd:
            try:
                self._odd_entry(entry, folder, prefix, before, found, folders)
            except OSError as error:
                self._lost(prefix + entry.name, error)
        out += found
        return folders

    def _odd_entry(
        self,
        entry: os.DirEntry[str],
        folder: str,
        prefix: str,
        before: str,
        found: list[Numbers],
        folders: list[tuple[str, str]],
    ) -> None:
        """Take in what is no plain note with an ASCII name."""
        name = entry.name
        path = prefix + name
        if name[0] == ".":
            if name.startswith(TEMP_PREFIX) and name.endswith(TEMP_SUFFIX):
                self.leftovers.append(path)
        elif name[-3:].lower() == ".md":
            if entry.is_file(follow_symlinks=False):
                if not _is_utf8(name):
                    self._odd(path)
                    return
                info = entry.stat(follow_symlinks=False)
                if info.st_size > MAX_BYTES:
                    self._large(path, info.st_size)
                if info.st_nlink > 1:
                    self.linked.append(before + path)
                found.append((before + path, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino))
            elif entry.is_symlink():
                self._note(path, "symlink", "a symbolic link is not followed")
            elif entry.is_dir(follow_symlinks=False):
                self._note(path, "folder_named_md", "a folder with the name of a note is skipped")
            else:
                self._note(path, "special_file", "this is neither a file nor a folder")
        elif entry.is_dir(follow_symlinks=False):
            if name in SKIPPED:
                return
            if os.name == "nt" and getattr(entry, "is_junction", bool)():
                self._note(path, "symlink", "a junction is not followed")
            elif not _is_utf8(name):
                self._odd(path)
            else:
                folders.append((os.path.join(folder, name), path + "/"))
        elif entry.is_symlink() and entry.is_dir():
            self._note(path, "symlink", "a symbolic link is not followed")

    def _lost(self, path: str, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # else: gone since the folder was listed
            self.unread.append(path)
            self._note(path, "unreadable", f"cannot be looked at ({error.strerror})")

    def _note(self, path: str, code: str, message: str) -> None:
        self.problems.append(Finding(path, code, message))

    def _unread(self, path: str, message: str) -> None:
        self.unread.append(path)
        self._note(path, "unreadable_folder", message)

    def _odd(self, path: str) -> None:
        shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        self._note(shown, "name_not_utf8", "the name is not UTF-8, rename the file")

    def _large(self, path: str, size: int) -> None:
        self._note(path, "large", f"{size} bytes: only the first {MAX_BYTES} are read")

    def _nested(self, folder: str, prefix: str) -> None:
        inner = os.path.join(folder, ".git")
        what = "a submodule or linked work tree" if os.path.isfile(inner) else "another git repository"
        self._note(prefix[:-1], "nested_repository", f"{what}: its notes are not this store's")


@contextmanager
def opened(folder: str) -> Iterator[int | str]:
    """Give what os.scandir takes for a folder: a descriptor where that works, since a file's numbers are then asked for by
    its name alone, which is quicker than by its whole path. Raises OSError."""
    if os.scandir not in os.supports_fd or os.stat not in os.supports_dir_fd:
        yield folder
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_utf8(name: str) -> bool:
    try:
        name.encode("utf-8")
        return True
    except UnicodeEncodeError:
        return False


def twins(paths: list[str]) -> list[tuple[str, ...]]:
    """Return the groups of paths that a case-insensitive or normalising file system takes for one."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(fold(path), []).append(path)
    return [tuple(sorted(group)) for group in groups.values() if len(group) > 1]
