"""Notes as git had them at a date or revision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdmem.clock import parse_time
from mdmem.errors import MdmemError, NotFound, UsageError

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.store import Store


def revision(store: Store, when: str) -> str:
    """Return the commit that a date (first commit at or before) or a revision names. Raises NotFound."""
    from mdmem.repo.history import rev_at

    try:
        moment = parse_time(when, store.clock.now(), end=True)
    except UsageError:
        moment = None
    rev = rev_at(store.git, moment if moment is not None else when)
    if rev is None:
        raise NotFound(f"the store has no commit at or before {when}", hint="mdmem history", code="no_revision")
    return rev


def note_at(store: Store, reference: str, when: str) -> tuple[Note, str]:
    """Return (note, revision) as git had it at a date or revision; follows renames. Raises NotFound."""
    from mdmem.notes.note import load
    from mdmem.repo.history import log_of, read_at

    rev = revision(store, when)
    try:
        path = str(store.index.note_by(reference)["path"])
    except MdmemError:
        # A note that is gone today is known by its path, or by the id at the end of its name.
        path = reference
    data = read_at(store.git, rev, store.to_git(path))
    if data is None:
        for change in log_of(store.git, store.to_git(path)):
            data = read_at(store.git, rev, change.path)
            if data is not None:
                path = store.from_git(change.path) or path
                break
    if data is None:
        raise NotFound(f"{reference} was not there at {when}", hint=f"mdmem history {reference}")
    return load(path, data), rev
