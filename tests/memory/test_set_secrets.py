"""What `set` and `edit` write of a text given to them has passed the gate: fields, items of lists, bodies."""

from __future__ import annotations

from collections.abc import Callable

from mdmem.memory.change import set_body, set_fields
from mdmem.memory.remember import Memory, remember
from mdmem.store import Store

SECRET = "".join(("ghp_", "a1B2" * 9))


def test_p8_a_value_that_is_set_passes_the_gate(make_store: Callable[..., Store]) -> None:
    store = make_store()
    path = remember(store, Memory("fact", "The harbor opens at nine.", scope="shared")).path
    set_fields(store, path, {"title": f"key {SECRET}", "tags": f"a,{SECRET}", "own": f"password={SECRET}"})
    set_fields(store, path, add={"tags": [SECRET, "b"], "aliases": [SECRET]})
    assert SECRET not in store.folder.read_bytes(path).decode()
    set_body(store, path, f"The harbor opens at ten. {SECRET}\n")
    text = store.folder.read_bytes(path).decode()
    assert SECRET not in text and "opens at ten" in text and "redacted" in text
