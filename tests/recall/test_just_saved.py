"""A note that was saved while another process writes the index is found by its name: nobody is told that it is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mdmem.index.index import Index
from mdmem.locks import FileLock
from mdmem.memory.change import find
from mdmem.store import Store


def test_a_note_saved_while_the_index_is_written_is_waited_for(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store()
    store.index.refresh()
    store.folder.create("memories/new.md", b"---\nid: mem-new\ntitle: New\n---\ntext\n")
    other = FileLock(store.index.lock_path, 0.1)
    other.__enter__()
    looks: list[Any] = []
    real = Index.refresh

    def refresh(index: Index, *args: Any, **options: Any) -> Any:
        if looks:
            other.__exit__(None, None, None)  # the other process is done when it is asked for the second time
        looks.append(options)
        return real(index, *args, **options)

    monkeypatch.setattr(Index, "refresh", refresh)
    again = Store.open(store.root, need="write", cwd=store.root)
    assert find(again, "memories/new.md")[1].id == "mem-new"
    assert len(looks) == 2
