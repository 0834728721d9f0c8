"""Walks a tree of notes: what is there, and what was left out and why. Opens no file.

A folder that cannot be read is a problem and its path is in `unread`: nobody may conclude that
the notes below it are gone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
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


@dataclass
class Scan:
    """One walk. After iterating: `problems`, `unread` (folders, "" is the root) and `leftovers` (temporary files)."""

    root: Path
    owned: tuple[str, ...] = ("",)
    problems: list[Finding] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[FileStat]:
        """Yield each note; folders and files whose name starts with a dot are not looked at."""
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
                yield from self._walk(place, start + "/" if start else "", start == "")

    def _walk(self, top: str, above: str, is_root: bool) -> Iterator[FileStat]:
        stack = [(top, above, is_root)]
        new = tuple.__new__  # what FileStat(...) does, at half the time: this loop runs once a file
        while stack:
            folder, prefix, is_root = stack.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = list(listing)
            except OSError as error:
                if not isinstance(error, FileNotFoundError) or is_root:
                    self._unread(prefix[:-1], f"the folder cannot be read ({error.strerror})")
                continue
            if not is_root and any(entry.name == ".git" for entry in entries):
                self._nested(folder, prefix)
                continue
            for entry in entries:
                name = entry.name
                if name[0] == ".":
                    if name.startswith(TEMP_PREFIX) and name.endswith(TEMP_SUFFIX):
                        self.leftovers.append(prefix + name)
                    continue
                is_note = name[-3:] == ".md" or name[-3:].lower() == ".md"
                try:
                    if is_note:
                        if entry.is_file(follow_symlinks=False):
                            if not name.isascii() and not _is_utf8(name):
                                self._odd(prefix + name)
                                continue
                            info = entry.stat(follow_symlinks=False)
                            if info.st_size > MAX_BYTES:
                                self._large(prefix + name, info.st_size)
                            numbers = (prefix + name, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
                            yield new(FileStat, numbers)
                            continue
                        if entry.is_symlink():
                            self._note(prefix + name, "symlink", "a symbolic link is not followed")
                        elif entry.is_dir(follow_symlinks=False):
                            self._note(prefix + name, "folder_named_md", "a folder with the name of a note is skipped")
                        else:
                            self._note(prefix + name, "special_file", "this is neither a file nor a folder")
                    elif entry.is_dir(follow_symlinks=False):
                        if name in SKIPPED:
                            continue
                        if os.name == "nt" and getattr(entry, "is_junction", bool)():
                            self._note(prefix + name, "symlink", "a junction is not followed")
                            continue
                        if not name.isascii() and not _is_utf8(name):
                            self._odd(prefix + name)
                            continue
                        stack.append((entry.path, prefix + name + "/", False))
                    elif entry.is_symlink() and entry.is_dir():
                        self._note(prefix + name, "symlink", "a symbolic link is not followed")
                except FileNotFoundError:
                    continue  # gone since the folder was listed
                except OSError as error:
                    self.unread.append(prefix + name)
                    self._note(prefix + name, "unreadable", f"cannot be looked at ({error.strerror})")

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
