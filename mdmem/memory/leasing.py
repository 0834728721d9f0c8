"""Leases around a write: holding one while an editor is open, and a word where somebody else holds it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mdmem.clock import stamp
from mdmem.errors import MdmemError

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.repo.lease import Lease, Taken
    from mdmem.store import Store

TTL = 60.0


def lease_name(note: Note) -> str:
    """Return the name under which a note is leased: its id, else its path."""
    return note.id or note.path


def warning(store: Store, note: Note) -> str:
    """Return a word on somebody else's live lease as of the last fetch, '' when there is none. Starts no process."""
    from mdmem.repo.lease import lease_on

    found = lease_on(store.location.git.common_dir, lease_name(note), str(store.identity), store.clock.now())
    return _word(found) if found is not None else ""


def warnings(store: Store, paths: Iterable[str]) -> list[str]:
    """Return a word for each of these notes that somebody else has leased, as of the last fetch. Starts no process.

    A note that is gone from the disk is known by its row in the catalog, so this is asked before that is refreshed.
    """
    from mdmem.repo.lease import held_by_others

    leases = held_by_others(store.location.git.common_dir, str(store.identity), store.clock.now())
    if not leases:
        return []
    names = {name: None for path in paths for name in (_id_of(store, path), path)}
    return [_word(leases[name]) for name in names if name in leases]


def _word(lease: Lease) -> str:
    return f"{lease.id} is leased by {lease.holder} until {stamp(lease.until)}; both changes will be kept"


def _id_of(store: Store, path: str) -> str:
    try:
        return store.folder.read(path).id or path
    except MdmemError:
        rows = store.index.catalog.rows("SELECT id FROM notes WHERE folder = '' AND path = ?", (path,))
        return next((str(row["id"]) for row in rows if row["id"]), path)


@contextmanager
def holding(store: Store, note: Note, ttl: float = TTL) -> Iterator[Taken]:
    """Hold the lease of a note, renewed at a third of its time, and give it back. Raises LeaseHeld.

    A renewal that fails is tried again; the work goes on, since both versions are merged in any case.
    """
    from mdmem.repo.lease import acquire, release, renew

    name, holder = lease_name(note), str(store.identity)
    taken = acquire(store.git, name, holder, ttl, store.clock)
    done = threading.Event()

    def keep() -> None:
        while not done.wait(ttl / 3):
            try:
                renew(store.git, name, holder, ttl, store.clock)
            except (MdmemError, OSError):
                continue

    keeper = threading.Thread(target=keep, daemon=True)
    keeper.start()
    try:
        yield taken
    finally:
        done.set()
        keeper.join(timeout=30)
        try:
            release(store.git, name, holder, store.clock)
        except (MdmemError, OSError):
            pass  # it ends by itself
