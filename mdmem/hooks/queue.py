"""What hooks leave for later: a queue beside the index, and the one detached worker that empties it.

The worker's lock is taken here, before there is a process, and handed to it open: however many hooks end at once, one
worker starts. Items, each with `do`:

    note     path (relative to the store), session     a note was edited: index it, commit it
    session  session                                   write the session's note
    orphans                                            the same for sessions that ended without a word
    index                                              bring the index up to the files
    pull     | push                                    sync with the remote
"""

from __future__ import annotations

import os

from mdmem.memory import journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mdmem.hooks.place import Place


def put(place: Place, *items: dict[str, Any]) -> None:
    """Queue items and see to it that a worker is at work. Raises OSError when the state folder cannot be written."""
    for item in items:
        journal.append(os.path.join(place.state, "queue.jsonl"), item)
    wake(place)


def wake(place: Place) -> bool:
    """Start the worker of a store unless it runs; returns whether one was started."""
    lock = hold_lock(place.state)
    if lock is None:
        return False
    try:
        from mdmem import detach

        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
        who = {"MDMEM_AGENT": place.agent, "MDMEM_DEVICE": place.device}
        handed = str(lock) if os.name != "nt" else "-1"
        detach.start(script, [place.root, place.state, handed], keep=lock, env=who)
    finally:
        os.close(lock)
    return True


def hold_lock(state: str) -> int | None:
    """Return a descriptor that holds the worker's lock of a store, None when a worker has it. Raises OSError."""
    os.makedirs(state, mode=0o700, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(os.path.join(state, "worker.lock"), flags, 0o600)
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        # No lock that can be handed on (Windows): two workers may meet; those who write take locks of their own.
        return descriptor
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
