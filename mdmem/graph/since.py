"""Since when notes are blocked: from the versions that git has of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mdmem.clock import stamp
from mdmem.errors import MdmemError
from mdmem.graph.nodes import WAITING
from mdmem.index.rows import when

if TYPE_CHECKING:
    import sqlite3

    from mdmem.repo.git import BlobReader
    from mdmem.repo.history import Change
    from mdmem.store import Store

# Notes whose history is read; above that the date of the last change has to do.
_AT_MOST = 200


def since(store: Store, rows: Sequence[sqlite3.Row]) -> dict[int, str]:
    """Return {rowid: when it became blocked or waiting}; notes that git does not know are left out."""
    own = {store.to_git(row["path"]): row["rowid"] for row in rows[:_AT_MOST] if not row["folder"]}
    if not own:
        return {}
    try:
        return _from_git(store, own)
    except MdmemError:
        return {}


def _from_git(store: Store, own: dict[str, int]) -> dict[int, str]:
    from mdmem.repo.git import BlobReader
    from mdmem.repo.history import commits, log_of

    changes: dict[str, list[tuple[str, str, str]]] = {path: [] for path in own}
    listed = commits(store.git, "--no-renames", "--end-of-options", "HEAD", "--", *own) if store.git.rev("HEAD") else []
    for commit in listed:
        for entry in commit.entries:
            if entry.path in changes:
                changes[entry.path].append((commit.rev, entry.path, commit.date))
    now = stamp(store.clock.now())
    renamed: set[str] | None = None
    out: dict[int, str] = {}
    with BlobReader(store.git) as blobs:
        for path, versions in changes.items():
            began, whole = _run(blobs, versions)
            if whole and versions:
                # Blocked since its first commit under this name: it may have been renamed.
                if renamed is None:
                    moves = commits(store.git, "--diff-filter=R", "--end-of-options", "HEAD")
                    renamed = {entry.path for commit in moves for entry in commit.entries}
                if path in renamed:
                    older: list[Change] = log_of(store.git, path)
                    began, _ = _run(blobs, [(change.rev, change.path, change.date) for change in older])
            if began:
                out[own[path]] = min(began, now)
    return out


def _run(blobs: BlobReader, versions: Sequence[tuple[str, str, str]]) -> tuple[str, bool]:
    """Return (date of the first version of the newest run that is blocked, whether the run reaches back to the first).

    `versions`: (commit, path, date), newest first."""
    from mdmem.notes.note import load

    began = ""
    read = list(blobs.many(f"{rev}:{path}" for rev, path, _ in versions))
    for place, ((_, path, date), data) in enumerate(zip(versions, read)):
        note = load(path, data) if data is not None else None
        if note is None or note.status not in WAITING:
            return began, False
        # The note's own date is the better one while it lies between this commit and the one before: the commit may have
        # waited for a sync, but a person who edits by hand leaves the date as it was.
        said = when(note.updated) or ""
        before = versions[place + 1][2] if place + 1 < len(versions) else ""
        began = said if before < said < date else date
    return began, bool(began)
