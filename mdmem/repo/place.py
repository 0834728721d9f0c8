"""Bringing the work tree from one commit to another, note by note, so that a kill at any moment loses nothing.

Order: a journal names both commits; every note is written beside its place and synced, then renamed over it; the index
follows; the branch moves last. A later call finds the journal and finishes. A file that somebody changed meanwhile is
merged with what came, never overwritten. Files that are no notes are left to git, whose filters may apply to them.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from mdmem.locks import FileLock
from mdmem.notes import disk
from mdmem.notes.scan import TEMP_PREFIX, TEMP_SUFFIX
from mdmem.repo.git import Git, GitFailed
from mdmem.repo.own import is_note, unsafe
from mdmem.repo.tree import Contents, Delta, changes

_CHUNK = 500


@dataclass
class Placed:
    """What was done to the work tree. `merged`: files that somebody had changed meanwhile; they wait for a commit."""

    written: int = 0
    removed: int = 0
    merged: list[str] = field(default_factory=list)


@dataclass
class _Step:
    """One note: what stood in the old commit, what stands in the new one, what is on disk, what must be."""

    path: str
    old: bytes | None
    new: bytes | None
    mode: int
    now: bytes | None = None
    want: bytes | None = None


def journal_path(git: Git) -> Path:
    """Return the file that names the two commits while the work tree is on its way."""
    return git.path("mdmem") / "placing.json"


def place(git: Git, old: str, new: str, branch: str, lock_path: Path, now: datetime) -> Placed:
    """Bring work tree, index and branch from commit `old` to its descendant `new`.

    `now` judges whether a note's time lies in the future, where it must be merged with what somebody wrote meanwhile. The
    caller holds the notes' write lock (at `lock_path`), then commit_lock, in this order. Raises GitFailed, OSError; the
    journal stays then, and the next call of `finish` goes on.
    """
    write_journal(git, old, new, branch, lock_path)
    return _place(git, old, new, branch, now)


def finish_first(git: Git, now: datetime) -> None:
    """Finish an interrupted sync before a commit; takes both locks. Raises Locked when a sync is at work just now."""
    from mdmem.repo.commit import commit_lock

    try:
        lock_path = Path(json.loads(journal_path(git).read_bytes())["lock"])
        if not lock_path.is_relative_to(git.common_dir):
            raise ValueError(lock_path)
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        lock_path = git.common_dir / "mdmem" / "write.lock"
    with FileLock(lock_path, timeout=3.0), commit_lock(git):
        finish(git, now)


def finish(git: Git, now: datetime) -> str:
    """Finish what a killed process began; returns what was done, '' when there was nothing. Locks are held as for `place`."""
    file = journal_path(git)
    try:
        entry = json.loads(file.read_bytes())
        old, new, branch = str(entry["old"]), str(entry["new"]), str(entry["branch"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        file.unlink(missing_ok=True)
        return ""
    state = git.state()
    head = git.rev("HEAD")
    if state.branch != branch or head not in (old, new) or git.rev(new) is None:
        # Somebody committed or switched meanwhile. What was written is content of `new`: it merges with itself.
        file.unlink(missing_ok=True)
        return ""
    try:
        _place(git, old, new, branch, now)
    except (GitFailed, OSError):
        # It cannot go on. The notes that were written are content of `new` too; the next sync commits and merges them.
        file.unlink(missing_ok=True)
        raise
    return "finished a sync that had been interrupted"


def write_journal(git: Git, old: str, new: str, branch: str, lock_path: Path) -> None:
    """Write the journal so that it is on the disk before the first note changes."""
    file = journal_path(git)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = file.with_name(f"placing.{secrets.token_hex(4)}")
    descriptor = disk.open_new(temporary, 0o600)
    try:
        try:
            entry = {"old": old, "new": new, "branch": branch, "lock": str(lock_path)}
            disk.write_all(descriptor, json.dumps(entry).encode(), temporary)
            disk.fsync(descriptor, temporary)
        finally:
            os.close(descriptor)
        disk.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)  # a full disk leaves nothing behind
    disk.fsync_folder(file.parent)


def _place(git: Git, old: str, new: str, branch: str, now: datetime) -> Placed:
    delta = changes(git, old, new)
    bad = next((path for path in delta if unsafe(path)), None)
    if bad is not None:
        raise GitFailed("a path in the new commit is not safe", why=f"{bad!r} {unsafe(bad)}")
    mine = _by_hand(git, delta)
    steps: list[_Step] = []
    with Contents(git) as contents:
        contents.fetch([item for path in mine for item in (delta[path].old, delta[path].new)])
        for path in mine:
            change = delta[path]
            mode = 0o777 if change.new is not None and change.new.mode == "100755" else 0o666
            before = contents.of(change.old) if change.old is not None else None
            after = contents.of(change.new) if change.new is not None else None
            steps.append(_Step(path, before, after, mode))
    placed = Placed()
    with _staging(git) as staging:
        for start in range(0, len(steps), _CHUNK):
            _write_chunk(git.top, staging, steps[start : start + _CHUNK], placed, now)
    _index(git, new, delta, steps, placed)
    if len(mine) < len(delta):
        git.run("read-tree", "-m", "-u", old, new, timeout=300)
    if git.rev("HEAD") != new:
        git.run("update-ref", "-m", "mdmem sync", f"refs/heads/{branch}", new, old)
    journal_path(git).unlink(missing_ok=True)
    return placed


def _by_hand(git: Git, delta: Mapping[str, Delta]) -> list[str]:
    """Return the paths that are written here: plain notes that no filter applies to, in a tree that is whole."""
    if "sparse" in git.state().marks or _folder_for_file(delta):
        return []
    paths = [
        path
        for path, change in delta.items()
        if is_note(path) and all(item is None or item.regular for item in (change.old, change.new))
    ]
    if not paths:
        return []
    names = b"".join(os.fsencode(path) + b"\0" for path in paths)
    done = git.run("check-attr", "-z", "--stdin", "filter", "working-tree-encoding", "ident", input=names, read=True)
    parts = done.out.split(b"\0")
    filtered = {os.fsdecode(p) for p, value in zip(parts[::3], parts[2::3]) if value not in (b"unspecified", b"unset")}
    return [path for path in paths if path not in filtered]


def _folder_for_file(delta: Mapping[str, Delta]) -> bool:
    """Return whether a file gives way to a folder, or a folder to a file."""
    folders = {path[:at] for path in delta for at in range(len(path)) if path[at] == "/"}
    return any(path in folders for path in delta)


@contextmanager
def _staging(git: Git) -> Iterator[Path | None]:
    """Yield an empty folder in the git directory for files on their way, None where a rename from there is impossible.

    What a killed process left in it goes: nobody else sees it, neither a person's editor nor `git status`.
    """
    folder = git.path("mdmem") / "placing"
    if git.path("mdmem").stat().st_dev != git.top.stat().st_dev:
        yield None
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_chunk(top: Path, staging: Path | None, steps: list[_Step], placed: Placed, now: datetime) -> None:
    temps: list[tuple[_Step, Path, Path]] = []
    folders: set[Path] = set()
    try:
        for step in steps:
            target = _target(top, step.path)
            step.now = _read(target)
            step.want = _wanted(step, placed, now)
            if step.want is None or step.want == step.now:
                continue
            _make_folders(top, target.parent)
            temps.append((step, _temp(staging, target, step), target))
        _sync_all([temp for _, temp, _ in temps])
        for step, temp, target in temps:
            # While the disk was busy an editor may have saved, and a folder on the way may have become a link.
            if _read(_target(top, step.path)) != step.now:
                step.now = _read(target)
                step.want = _wanted(step, placed, now)
                temp.unlink()
                if step.want is None or step.want == step.now:
                    continue
                temp = _temp(staging, target, step)
                _sync_all([temp])
            disk.replace(temp, target)
            folders.add(target.parent)
            placed.written += 1
        for step in steps:
            if step.want is None and step.now is not None:
                target = _target(top, step.path)
                if _read(target) == step.now:
                    disk.unlink(target)
                    folders.add(target.parent)
                    placed.removed += 1
        for folder in folders:
            disk.fsync_folder(folder)
    finally:
        for _, temp, _ in temps:
            try:
                temp.unlink(missing_ok=True)
            except OSError:
                pass
    for folder in sorted(folders, key=lambda f: len(f.parts), reverse=True):
        _drop_empty(top, folder)


def _wanted(step: _Step, placed: Placed, now: datetime) -> bytes | None:
    """Return what must stand at a path, None for nothing: the new content unless somebody changed the old one."""
    if step.now in (step.old, step.new) or step.now is None:
        return step.new
    if step.path not in placed.merged:
        placed.merged.append(step.path)
    from mdmem.repo.merge import mark_deleted_conflict, merge

    if step.new is None:
        return mark_deleted_conflict(step.now)
    return merge(step.old, step.now, step.new, step.path, now).text


def _target(top: Path, path: str) -> Path:
    """Return the full path; raises GitFailed when a link or another repository lies on the way."""
    place = top
    parts = path.split("/")
    for part in parts[:-1]:
        place = place / part
        if place.is_symlink() or os.path.lexists(place / ".git"):
            raise GitFailed(f"{path} cannot be written", why=f"{part} is a link or another repository")
        if place.is_file():
            raise GitFailed(f"{path} cannot be written", why=f"{part} is a file of your own", hint=f"rename {part}, then again")
    place = place / parts[-1]
    if place.is_symlink():
        raise GitFailed(f"{path} cannot be written", why="a symbolic link stands there")
    return place


def _read(target: Path) -> bytes | None:
    try:
        descriptor = disk.open_read(target)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise GitFailed(f"{target.name} cannot be written", why="something that is no file stands there")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return stream.read()
    finally:
        os.close(descriptor)


def _make_folders(top: Path, folder: Path) -> None:
    missing = []
    while folder != top and not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        disk.mkdir(new)
        disk.fsync_folder(new.parent)


def _temp(staging: Path | None, target: Path, step: _Step) -> Path:
    assert step.want is not None
    temp = (staging or target.parent) / f"{TEMP_PREFIX}{secrets.token_hex(8)}{TEMP_SUFFIX}"
    descriptor = disk.open_new(temp, step.mode)
    try:
        if step.now is not None and hasattr(os, "fchmod"):
            kept = stat.S_IMODE(os.lstat(target).st_mode)
            os.fchmod(descriptor, kept | 0o111 if step.mode == 0o777 else kept & ~0o111)
        disk.write_all(descriptor, step.want, temp)
    finally:
        os.close(descriptor)
    return temp


def _sync_all(temps: Sequence[Path]) -> None:
    """Wait until the files' bytes are on the disk. Side by side, so that one write of the disk's journal serves many."""

    def one(temp: Path) -> None:
        descriptor = os.open(temp, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        try:
            disk.fsync(descriptor, temp)
        finally:
            os.close(descriptor)

    if len(temps) < 4:
        for temp in temps:
            one(temp)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, temps))


def _drop_empty(top: Path, folder: Path) -> None:
    while folder != top:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _index(git: Git, head: str, delta: Mapping[str, Delta], steps: Iterable[_Step], placed: Placed) -> None:
    """Bring the index to the new commit at the paths of `steps`; with the files' times where they hold just that."""
    from mdmem.repo.commit import with_patience
    from mdmem.repo.stream import DURABLE

    lines: list[bytes] = []
    clean: list[bytes] = []
    for step in steps:
        item = delta[step.path].new
        name = os.fsencode(step.path)
        if item is None or step.path in placed.merged:
            mode, oid = (item.mode, item.oid) if item is not None else ("0", "0" * len(head))
            lines.append(f"{mode} {oid}\t".encode() + name + b"\0")
        else:
            clean.append(name + b"\0")
    if lines:
        with_patience(lambda: git.run("update-index", "-z", "--index-info", input=b"".join(lines), timeout=120), git)
    if clean:
        args = (*DURABLE, "update-index", "--add", "--remove", "-z", "--stdin")
        with_patience(lambda: git.run(*args, input=b"".join(clean), timeout=120), git)


def in_the_way(git: Git, delta: Mapping[str, Delta], dirty: Iterable[str]) -> list[str]:
    """Return the files that are no notes, that a change of the work tree would touch, and that have changes of their own."""
    changed = set(dirty)
    mine = set(_by_hand(git, delta))
    found = []
    for path, change in delta.items():
        if path in mine:
            continue
        if path in changed or (change.old is None and os.path.lexists(git.top / path)):
            found.append(path)
    return sorted(found)
