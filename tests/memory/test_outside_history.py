"""A local note has no history in this store's git, and that is said plainly."""

from __future__ import annotations

import pytest

from mdmem.errors import NotFound, UsageError
from mdmem.memory.past import note_at
from mdmem.memory.remember import Memory, remember
from mdmem.memory.timeline import history
from mdmem.recall.adjust import window_days
from mdmem.store import Store


def test_a_local_note_has_no_history_and_no_past(store: Store) -> None:
    kept = remember(store, Memory("fact", "Only here.", scope="local"))
    for ask in (lambda: history(store, kept.id), lambda: note_at(store, kept.id, "HEAD")):
        with pytest.raises(NotFound, match="no history here"):
            ask()


def test_a_broken_decay_window_is_named_as_the_setting() -> None:
    with pytest.raises(UsageError, match=r"recall\.decay_window"):
        window_days("abc")
