"""Which files changed since the last look, by the kernel's word (inotify): a process that lives on need not ask for the
numbers of each file before each read.

It only saves work. Whatever it cannot vouch for makes it say "anything may have changed", and all files are looked at:
lost events, a new, moved or removed folder, a file system that others write to. A whole look every minute stands behind it,
in a large store less often.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mdmem.index import changes as looking
from mdmem.index.changes import Changes, Seen, Source
from mdmem.notes.scan import MAX_BYTES, SKIPPED, FileStat, Numbers

if TYPE_CHECKING:
    from mdmem.index.catalog import Catalog

# Seconds after which everything is looked at again, whatever was told. A look that takes long comes less often: it may take
# one part in SHARE of a process's time, but is not put off beyond LONGEST seconds.
WHOLE, SHARE, LONGEST = 60.0, 200, 600.0
LONE = 2  # looks after which a process is one that lives on
FOLDERS = 4_000  # of a store with more it is not worth the user's share of watches
LINKED = 100  # notes with a second name, which are asked for one by one
# File systems whose every change passes this kernel. Not on the list: network, FUSE, shared folders of virtual machines.
LOCAL = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "tmpfs", "ramfs", "overlay"))

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _UNMOUNT, _OVERFLOW, _IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000
_ISDIR, _ONLYDIR = 0x40000000, 0x01000000
_WANTED = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLYDIR
_LOST = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _OVERFLOW | _IGNORED
_HEAD = struct.Struct("iIII")


class Watch:
    """The kernel's notes on some folders. `failed`: it does not see all of them."""

    def __init__(self) -> None:
        """Raises OSError where there is no such thing, or none left for this user."""
        import ctypes

        if not sys.platform.startswith("linux"):
            raise OSError("only Linux has inotify")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._error = ctypes.get_errno
        self.descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(self._error(), "no inotify")
        self.process = os.getpid()
        self.failed = False
        # number of the watch → (folder, prefix of the paths in it; None: its files are not notes)
        self.places: dict[int, tuple[str, str | None]] = {}
        self._device: int | None = None

    def close(self) -> None:
        """Give it back."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        if getattr(self, "descriptor", -1) >= 0:
            self.close()

    def start(self, root: str) -> None:
        """Take a tree: its folders are on the root's file system or are not watched."""
        try:
            self._device = os.stat(root).st_dev
        except OSError:
            self._device = None
        self.failed |= not local(root)

    def enter(self, folder: str, prefix: str | None) -> None:
        """Watch one folder."""
        if self.failed or len(self.places) >= FOLDERS:
            self.failed = True
            return
        number = self._libc.inotify_add_watch(self.descriptor, os.fsencode(folder), _WANTED)
        # The same number again: one folder under two names.
        self.failed = number < 0 or number in self.places or os.stat(folder).st_dev != self._device
        self.places[number] = (folder, prefix)

    def changed(self) -> set[str] | None:
        """Return the paths of the notes that were written, removed, renamed or touched since the last call; None: there may
        be more than these."""
        found: set[str] = set()
        if self.process != os.getpid():
            return None  # the other process reads from the same queue
        while True:
            try:
                data = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                return found
            except OSError:
                return None
            at = 0
            while at < len(data):
                number, mask, _, length = _HEAD.unpack_from(data, at)
                name = data[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
                at += _HEAD.size + length
                path = self._path(number, mask, name)
                if path is None:
                    return None
                if path:
                    found.add(path)

    def _path(self, number: int, mask: int, raw: bytes) -> str | None:
        """Return the path of the note that an event tells of, "" for what is none, None when all must be looked at."""
        place = self.places.get(number)
        if mask & _LOST or place is None:
            return None
        folder, prefix = place
        if raw == b".git":
            return None
        if raw.startswith(b".") or not raw:
            # Hidden; or the folder itself was touched, which may have made it unreadable.
            return "" if raw else None
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            return None
        if mask & _ISDIR:
            return "" if name in SKIPPED else None
        if prefix is None:
            return ""
        if name[-3:].lower() == ".md":
            return prefix + name
        # A link to a folder is told to the user.
        return None if mask & (_CREATE | _MOVED_TO) and os.path.islink(os.path.join(folder, name)) else ""


def local(folder: str) -> bool:
    """Tell whether every change below a folder passes this kernel."""
    real = os.path.realpath(folder)
    best, kind = "", ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:
            for line in stream:
                words = line.split(" ")
                point = words[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
                inside = real == point or real.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, words[words.index("-") + 1]
    except (OSError, ValueError, IndexError):
        return False
    return kind in LOCAL


class Lookout:
    """Looks at the sources for one index: at every file the first time, then, where the kernel tells, at what changed.

    The first looks of a process make no watch: a command looks once or twice. While it watches it holds nothing of the files
    that did not change: they are as the catalog has them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.behind = False  # whoever holds the index looks at everything between the answers, and none waits for it
        self.looks = 0
        self.whole = 0  # whole looks so far
        self._off = False
        self._watch: Watch | None = None
        self._seen: Seen | None = None
        self._at = 0.0
        self._rest = WHOLE
        # Paths that differed at the whole look or were told of since, as they stand now (None: gone).
        self._files: dict[str, Numbers | None] = {}
        self._open: set[str] = set()  # those whose change the catalog may not have yet
        self._version: tuple[int, int] | None = None  # of the catalog, when all of `_files` were compared with it
        self._linked: set[str] = set()
        self._told: set[str] = set()  # paths with a remark

    @property
    def watching(self) -> bool:
        """Whether changes since the last whole look are told by the kernel."""
        return self._watch is not None and self._seen is not None

    def close(self) -> None:
        """Forget all; the next look is a whole one."""
        if self._watch is not None:
            if self._watch.process == os.getpid():
                self._watch.close()
            self._watch = None
        self._seen, self._files, self._version = None, {}, None

    def look(self, sources: Sequence[Source], between: bool = False) -> tuple[Seen, bool]:
        """Return what stands on disk, and whether all of it was looked at (else `some` has the changes). `between`: nobody
        waits for an answer."""
        due = self.clock() - self._at >= self._rest and (between or not self.behind)
        if self._watch is not None and self._seen is not None and not due:
            told = self._watch.changed()
            if told is not None and self._take(sources, told | self._linked):
                return self._seen, False
        self.close()
        self.looks += 1
        self.whole += 1
        if self.looks <= LONE or self._off:
            return looking.look(sources), True
        return self._watched(sources), True

    def _watched(self, sources: Sequence[Source]) -> Seen:
        """Return a whole look, watched from before it began."""
        try:
            watch = Watch()
        except OSError:
            self._off = True
            return looking.look(sources)

        def entering(source: Source) -> Callable[[str, str], None]:
            root = str(source.folder.root)
            watch.start(root)
            if source.folder.owned != ("",):
                watch.enter(root, None)  # where the folders of ours may yet appear
            return lambda folder, prefix: watch.enter(folder, source.prefix + prefix)

        began = self.clock()
        seen = looking.look(sources, entering)
        self._rest = max(WHOLE, min(LONGEST, (self.clock() - began) * SHARE))
        linked = {path for source in sources for path in source.folder.last_scan.linked}
        if watch.failed or seen.unread or len(linked) > LINKED:
            watch.close()
            # A folder that cannot be read now may be later on; the other reasons stay.
            self._off = not seen.unread
            return seen
        self._watch, self._seen, self._at = watch, replace(seen, stats=[]), self.clock()
        self._files, self._open, self._linked = {}, set(), linked
        self._told = {remark.path for remark in seen.remarks}
        return seen

    def compared(self, changes: Changes) -> None:
        """Remember the changes of a whole comparison until the catalog has them."""
        if not self.watching:
            return
        self._files = {**dict.fromkeys(changes.gone), **{stat.path: stat for stat in changes.read}}
        self._open |= self._files.keys()

    def _take(self, sources: Sequence[Source], paths: set[str]) -> bool:
        """Take in what was told of some paths; returns False for what only a whole look can tell."""
        for path in paths:
            source = looking.source_for(sources, path)
            if source is None or path in self._told:
                return False
            try:
                found = os.lstat(source.folder.root / path[len(source.prefix) :])
            except FileNotFoundError:
                self._files[path] = None
            except OSError:
                return False
            else:
                if found.st_mode & 0o170000 != 0o100000 or found.st_size > MAX_BYTES:
                    return False
                self._files[path] = (path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
                if found.st_nlink > 1:
                    self._linked.add(path)
        self._open |= paths
        return True

    def some(self, catalog: Catalog) -> Changes:
        """Return the changes among the paths that were told of, as `changes.compare` does for all of them."""
        assert self._seen is not None
        version = catalog.version()
        # Another process may have written, and what it had seen of a file may be older than what is known here.
        paths = self._open if version == self._version else self._files.keys()
        known = looking.known_of(catalog, paths)
        read, gone = [], []
        for path in sorted(paths):
            stands, row = self._files[path], known.get(path)
            if stands is None:
                if row is not None and self._seen.known_gone(path):
                    gone.append(path)
            elif row is None or row.young or row.numbers != stands:
                read.append(FileStat._make(stands))
        # Until the catalog has it, a change is told again: whoever folds it in may be held up.
        self._open = {*(stat.path for stat in read), *gone}
        self._version = version
        return Changes(read, gone)
