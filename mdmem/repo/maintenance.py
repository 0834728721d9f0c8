"""Keeping the object store quick and small: packing off the hot path, in a detached process, when there is something to pack.

A commit leaves about three loose objects, one of them the list of its folder: with 50,000 notes in it that is a megabyte,
which a pack stores as the few bytes that changed. Nothing unreachable is deleted here, so another git at work is never
disturbed.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Run as a file: the package is found by its place on disk, and this folder must not hide other modules.
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

from datetime import datetime, timedelta
from pathlib import Path

from mdmem.clock import UTC, Clock, SystemClock
from mdmem.errors import MdmemError
from mdmem.locks import try_lock
from mdmem.repo.git import Git

# One of 256 folders of loose objects is counted, as git itself does: 8 in it are about 2,000, or 700 commits.
_SAMPLE, _MANY = "17", 8
_PAUSE = timedelta(hours=1)
# Where few objects are many bytes, their size in some of the folders decides, and sooner: these stand for 256 MB.
_WEIGHED, _HEAVY = ("17", "57", "97", "d7"), 4 << 20
_SHORT = timedelta(minutes=10)
# Twice: the first run packs loose objects, the second deletes those that are in a pack.
TASKS = ("loose-objects", "loose-objects", "incremental-repack", "commit-graph", "pack-refs")


def due(git: Git, clock: Clock) -> bool:
    """Return whether packing is worth a process now. Looks at a few folders, starts nothing."""
    since = clock.now() - _last(git)
    if since < _SHORT:
        return False
    sizes = {name: _sizes(git.common_dir / "objects" / name) for name in _WEIGHED}
    return (len(sizes[_SAMPLE]) >= _MANY and since >= _PAUSE) or sum(map(sum, sizes.values())) >= _HEAVY


def _sizes(folder: Path) -> list[int]:
    """Return the bytes of each file in a folder; none where there is no folder."""
    try:
        with os.scandir(folder) as entries:
            return [entry.stat().st_size for entry in entries]
    except OSError:
        return []


def _mark(git: Git) -> Path:
    return git.common_dir / "mdmem" / "maintained"


def _last(git: Git) -> datetime:
    try:
        return datetime.fromtimestamp(_mark(git).stat().st_mtime, UTC)
    except OSError:
        return datetime.fromtimestamp(0, UTC)


def start_if_due(git: Git, clock: Clock | None = None) -> bool:
    """Start packing in a detached process when it is due; returns whether it was started. Never raises."""
    clock = clock or SystemClock()
    if not due(git, clock):
        return False
    from mdmem import detach

    try:
        mark = _mark(git)
        mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mark.touch()
        os.utime(mark, (clock.now().timestamp(), clock.now().timestamp()))
        detach.start(os.path.abspath(__file__), [str(git.top)])
    except OSError:
        return False
    return True


def maintain(git: Git, timeout: float = 1800.0) -> bool:
    """Pack loose objects and refs and write the commit graph; returns False when another one is at it. Raises GitTimeout.

    A task that fails (incremental-repack does where there is no pack yet) does not stop the next.
    """
    with try_lock(git.common_dir / "mdmem" / "maintenance.lock") as free:
        if not free:
            return False
        for task in TASKS:
            git.run("maintenance", "run", "--quiet", f"--task={task}", timeout=timeout, check=False)
        return True


def main(argv: list[str]) -> int:
    """Maintain the repository at argv[0]; returns the exit code. Nobody is there to read a message."""
    try:
        maintain(Git(Path(argv[0])))
    except MdmemError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
