"""One id stands for one text: where it belongs to another one already, or to one that was forgotten, a new id is made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mdmem.memory.remember import Memory, remember
from mdmem.notes import names
from mdmem.store import Store

HEAD = "---\nid: {id}\nkind: memory\nscope: shared\n"


@pytest.mark.parametrize(
    "standing", [HEAD + "---\nsomething else\n", HEAD + "status: forgotten\n---\nThe harbor opens at nine.\n"]
)
def test_an_id_of_another_text_is_not_used_again(standing: str, make_store: Callable[..., Store]) -> None:
    store = make_store()
    identity = names.memory_id("memory", "shared", "The harbor opens at nine.", "")
    data = standing.format(id=identity).encode()
    store.folder.create(f"memories/standing-{identity}.md", data)
    done = remember(store, Memory("fact", "The harbor opens at nine.", scope="shared"))
    assert done.action == "created" and done.id != identity
    assert store.folder.read_bytes(f"memories/standing-{identity}.md") == data
    assert "opens at nine" in store.folder.read(done.path).body
