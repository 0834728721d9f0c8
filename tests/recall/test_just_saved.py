"""A note that was saved while another process writes the index is found by its name: nobody is told that it is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mdmem.config import user_file
from mdmem.errors import Locked
from mdmem.index.index import Index
from mdmem.locks import FileLock
from mdmem.memory.change import find
from mdmem.recall import select
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


def test_a_note_is_changed_while_the_index_is_built_for_long(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(select, "PATIENCE", 0.1)
    store = make_store()
    store.index.refresh()
    store.folder.create("memories/new-mem-new.md", b"---\nid: mem-new\ntitle: New\nscope: shared\n---\ntext\n")
    store.folder.create("memories/own-mem-own.md", b"---\nid: mem-own\nscope: user:ann\n---\ntext\n")
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text('[agents.tester]\nscopes = ["shared"]\n')
    options = {"agent": "tester", "device": "laptop"}
    with FileLock(store.index.lock_path, 0.1):
        for name in ("memories/new-mem-new.md", "mem-new"):
            again = Store.open(store.root, need="write", cwd=store.root, options=options)
            assert find(again, name)[1].path == "memories/new-mem-new.md"
        for name in ("memories/own-mem-own.md", "mem-own", "nobody"):
            with pytest.raises(Locked, match="writing the index"):
                find(Store.open(store.root, need="write", cwd=store.root, options=options), name)
