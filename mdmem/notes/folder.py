"""The only writer of notes: checked path, lock, temporary file, fsync, one rename, fsync of the folder."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mdmem.errors import ConflictFound, Locked, MdmemError, NotFound, Refused, WriteFailed
from mdmem.locks import FileLock
from mdmem.notes import disk
from mdmem.notes.names import fold, unsafe_name
from mdmem.notes.paths import inside, not_nested
from mdmem.notes.scan import MAX_BYTES, TEMP_PREFIX, TEMP_SUFFIX, FileStat, Finding, Numbers, Scan, twins
from mdmem.notes.taken import Taken, names_in

if TYPE_CHECKING:
    from mdmem.notes.note import Note

__all__ = ["FileStat", "Finding", "Folder", "Scan", "sha", "twins"]


def sha(data: bytes) -> str:
    """Return the SHA-256 of a file's bytes in hex, as `write` and `delete` expect it."""
    import hashlib  # loads OpenSSL: not on a path that only reads

    return hashlib.sha256(data).hexdigest()


class Folder:
    """A tree of notes. `owned` are the folders (posix, "" = all) that it reads and may write.

    `lock` is the path of the write lock, shared by every process that writes here; without one it
    lies in `<root>/.git/mdmem/`, or is a hidden file where there is no git. With `readonly` every
    write is refused.
    """

    def __init__(
        self,
        root: Path,
        owned: tuple[str, ...] = ("",),
        lock: Path | None = None,
        *,
        lock_timeout: float = 10.0,
        readonly: bool = False,
    ) -> None:
        self.root = Path(root)
        self.owned = owned
        self.readonly = readonly
        if lock is None:
            git = self.root / ".git"
            lock = git / "mdmem" / "write.lock" if git.is_dir() else self.root / ".mdmem-write.lock"
        self.lock_path = lock
        self.lock_timeout = lock_timeout
        self.last_scan = Scan(self.root, owned)
        self._mutex = threading.RLock()
        self._depth = 0
        self._taken = Taken(self.root)
        self._unsynced: set[Path] | None = None  # folders to sync when a bulk of writes ends

    # Reading

    def scan(self) -> Iterator[FileStat]:
        """Yield every note; when it is done, `problems` and `unread` tell what was left out."""
        self.last_scan = Scan(self.root, self.owned)
        return iter(self.last_scan)

    def numbers(self, before: str = "", entering: Callable[[str, str], None] | None = None) -> list[Numbers]:
        """Return what `scan` yields as plain tuples, with `before` before each path: the quick way to see what changed.

        `entering(path, prefix)` is called with each folder before it is listed."""
        self.last_scan = Scan(self.root, self.owned, entering=entering)
        return self.last_scan.numbers(before)

    def notes(self) -> Iterator[Note]:
        """Yield every note, read; one that cannot be read becomes a problem of the scan and stops no other."""
        for found in self.scan():
            try:
                yield self.read(found.path)
            except NotFound:
                continue  # gone since the folder was listed
            except Refused as error:
                self.last_scan.problems.append(Finding(found.path, error.code, str(error)))

    @property
    def problems(self) -> list[Finding]:
        """What the last scan left out or warns about."""
        return self.last_scan.problems

    @property
    def unread(self) -> list[str]:
        """Folders that the last scan could not read: nothing below them is known to be gone."""
        return self.last_scan.unread

    def stat(self, path: str) -> FileStat | None:
        """Return one file's numbers, or None when there is no such regular file."""
        try:
            info = os.lstat(self._checked(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(info.st_mode):
            return None
        return FileStat(path, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)

    def exists(self, path: str) -> bool:
        """Tell whether a regular file stands at path."""
        return self.stat(path) is not None

    def read_bytes(self, path: str, limit: int | None = None) -> bytes:
        """Return a file's bytes (the first `limit`); raises NotFound, or Refused when it cannot be read."""
        target = self._checked(path)
        try:
            fd = disk.open_read(target)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"no such file: {path}") from None
        except OSError as error:
            raise Refused(f"cannot read {path}", why=str(error.strerror), code="unreadable") from None
        try:
            # Looked at before Python's own file is made of it: that refuses a folder in words of its own.
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Refused(f"not a regular file: {path}", code="special_file")
            with os.fdopen(fd, "rb", closefd=False) as file:
                return file.read() if limit is None else file.read(limit)
        except OSError as error:
            raise Refused(f"cannot read {path}", why=str(error.strerror), code="unreadable") from None
        finally:
            os.close(fd)

    def read(self, path: str) -> Note:
        """Return a note; of a file over MAX_BYTES the first part, with the problem `cut`. Raises as read_bytes."""
        from mdmem.notes.note import load  # the parser: not for a look that finds nothing new

        data = self.read_bytes(path, MAX_BYTES + 1)
        if len(data) <= MAX_BYTES:
            return load(path, data)
        end = data.rfind(b"\n", 0, MAX_BYTES) + 1
        if not end:
            end = MAX_BYTES
            while end > MAX_BYTES - 4 and data[end] & 0xC0 == 0x80:
                end -= 1
        note = load(path, data[:end])
        if note.doc.problem is None:
            from mdmem.notes.values import Problem

            message = f"the file is too large: only its first {end} bytes were read"
            note.doc.problem = Problem("cut", message, data.count(b"\n", 0, end) + 1)
        return note

    def find(self, path: str) -> str | None:
        """Return the path as it is on disk whose name equals path (NFC, case folded), or None."""
        found = ""
        for part in path.split("/"):
            names = names_in(self.root / found)
            if part not in names:
                same = sorted(name for name in names if fold(name) == fold(part))
                if not same:
                    return None
                part = same[0]
            found = f"{found}/{part}" if found else part
        return found

    # Writing

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the write lock; may be nested, and is how a caller makes read-then-write one step. Raises Locked."""
        if not self._mutex.acquire(timeout=self.lock_timeout):
            raise Locked("another thread is writing", hint="try again")
        lock = FileLock(self.lock_path, self.lock_timeout)
        try:
            if not self._depth:
                lock.__enter__()
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if not self._depth:
                    lock.release()
        finally:
            self._mutex.release()

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """Hold the lock for many writes: each file is on the disk at once, folders are synced at the end."""
        with self.locked():
            if self._unsynced is not None:
                yield
                return
            self._unsynced = set()
            try:
                with self._taken.kept():
                    yield
            finally:
                unsynced, self._unsynced = self._unsynced, None
                with self._failing("a folder"):
                    for folder in sorted(unsynced):
                        disk.fsync_folder(folder)

    def create(self, path: str, data: bytes) -> None:
        """Write a new file. Raises ConflictFound (`exists`, `twin`), Refused for an unsafe path, Locked, WriteFailed."""
        with self.locked():
            target = self._new(path)
            with self._failing(path):
                self._make_folders(target.parent)
                temp = self._temp(target.parent, data, None)
                try:
                    disk.place(temp, target)
                except FileExistsError:
                    raise ConflictFound(f"the file exists already: {path}", code="exists") from None
                finally:
                    _discard(temp)
                self._sync(target.parent)
                self._taken.added(target)

    def plan(self, path: str) -> None:
        """Raise what `create` would raise for this name; within `bulk` the name then counts as taken. Writes nothing."""
        with self.locked():
            target = self._new(path)
            for place in (*reversed(target.relative_to(self.root).parents), target.relative_to(self.root)):
                if place.name and not (self.root / place).exists():
                    self._taken.added(self.root / place)

    def write(self, path: str, data: bytes, expect: str | None) -> None:
        """Replace a file. With `expect` (sha of the bytes that the caller read) raises ConflictFound when it
        changed or went meanwhile; with None it is written whatever is there. Also raises Locked, WriteFailed.
        """
        target = self._writable(path)
        with self.locked():
            if not self.exists(path):
                if expect is not None:
                    raise ConflictFound(f"the file is gone: {path}", hint="read it again")
                self.create(path, data)
                return
            if self._now(path, expect) == data:
                return
            with self._failing(path):
                temp = self._temp(target.parent, data, stat.S_IMODE(os.lstat(target).st_mode))
                try:
                    self._now(path, expect)  # an editor may have saved while the disk was busy
                    disk.replace(temp, target)
                finally:
                    _discard(temp)
                self._sync(target.parent)

    def delete(self, path: str, expect: str | None) -> None:
        """Remove a file; raises NotFound, ConflictFound as in `write`, Locked, WriteFailed."""
        target = self._writable(path)
        with self.locked():
            self._now(path, expect)
            with self._failing(path):
                disk.unlink(target)
                self._changed(target.parent)

    def rename(self, old: str, new: str) -> None:
        """Move a file to a new name; raises NotFound, ConflictFound (`exists`, `twin`), Refused, Locked, WriteFailed."""
        reason = unsafe_name(new)
        if reason:
            raise Refused(f"not a name for a note: {new!r}", why=reason, code="unsafe_name")
        source, target = self._writable(old), self._writable(new)
        with self.locked():
            if not self.exists(old):
                raise NotFound(f"no such file: {old}")
            if old == new:
                return
            self._taken.check(new, but=old)
            with self._failing(new):
                self._make_folders(target.parent)
                try:
                    if fold(old) == fold(new):
                        disk.rename(source, target)
                    else:
                        disk.place(source, target)
                        if os.path.lexists(source):
                            disk.unlink(source)
                except FileExistsError:
                    raise ConflictFound(f"the file exists already: {new}", code="exists") from None
                self._changed(target.parent)
                if source.parent != target.parent:
                    self._changed(source.parent)

    def sweep(self) -> list[str]:
        """Remove the temporary files that a killed writer left behind (as the last scan saw them); return them."""
        gone = []
        with self.locked():  # who holds the lock knows that no writer is at work
            for path in self.last_scan.leftovers:
                try:
                    disk.unlink(self._writable(path))
                    gone.append(path)
                except OSError:
                    continue
        return gone

    # Inside

    def _now(self, path: str, expect: str | None) -> bytes:
        data = self.read_bytes(path)
        if expect is not None and sha(data) != expect:
            raise ConflictFound(f"the file changed meanwhile: {path}", hint="read it again, then repeat the change")
        return data

    def _checked(self, path: str) -> Path:
        return inside(self.root, self.owned, path)

    def _new(self, path: str) -> Path:
        """Return where a new file goes. Raises as `create` does, but for what only the disk knows."""
        reason = unsafe_name(path)
        if reason:
            raise Refused(f"not a name for a note: {path!r}", why=reason, code="unsafe_name")
        target = self._writable(path)
        self._taken.check(path)
        return target

    def _writable(self, path: str) -> Path:
        if self.readonly:
            raise Refused("this folder is only read", why=str(self.root), code="readonly")
        target = inside(self.root, self.owned, path)
        not_nested(self.root, path)
        return target

    def _sync(self, folder: Path) -> None:
        if self._unsynced is None:
            disk.fsync_folder(folder)
        else:
            self._unsynced.add(folder)

    def _changed(self, folder: Path) -> None:
        self._sync(folder)
        self._taken.changed(folder)

    def _make_folders(self, folder: Path) -> None:
        missing = []
        while not folder.exists() and folder != self.root:
            missing.append(folder)
            folder = folder.parent
        for new in reversed(missing):
            disk.mkdir(new)
            disk.fsync_folder(new.parent)
            self._taken.added(new)

    def _temp(self, folder: Path, data: bytes, mode: int | None) -> Path:
        """Return a new temporary file in folder with data on the disk."""
        temp = folder / f"{TEMP_PREFIX}{os.urandom(8).hex()}{TEMP_SUFFIX}"
        fd = disk.open_new(temp, 0o666)
        try:
            try:
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(fd, mode)
                disk.write_all(fd, data, temp)
                disk.fsync(fd, temp)
            finally:
                os.close(fd)
        except BaseException:
            _discard(temp)
            raise
        return temp

    @contextmanager
    def _failing(self, path: str) -> Iterator[None]:
        try:
            yield
        except MdmemError:
            raise
        except OSError as error:
            hint = "free space or mend the permissions, then repeat"
            raise WriteFailed(f"{path} was not written", why=error.strerror or str(error), hint=hint) from error


def _discard(path: Path) -> None:
    """Remove a temporary file if it is still there; a failure must not hide the error that led here."""
    try:
        os.unlink(path)
    except OSError:
        pass
