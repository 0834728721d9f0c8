"""Leases around a write: holding one while an editor is open, and a word where somebody else holds it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mdmem.clock import stamp
from mdmem.errors import MdmemError

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.repo.lease import Taken
    from mdmem.store import Store

TTL = 60.0


def lease_name(note: Note) -> str:
    """Return the name under which a note is leased: its id, else its path."""
    return note.id or note.path


def warning(store: Store, note: Note) -> str:
    """Return a word on somebody else's live lease as of the last fetch, '' when there is none. Starts no process."""
    from mdmem.repo.lease import lease_on

    found = lease_on(store.location.git.common_dir, lease_name(note), str(store.identity), store.clock.now())
    return f"{found.id} is leased by {found.holder} until {stamp(found.until)}" if found is not None else ""


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
