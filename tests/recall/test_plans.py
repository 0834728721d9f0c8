"""What a process that lives on asks of the catalog when one note was written: nothing that goes through all notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mdmem.index.catalog import Catalog
from mdmem.recall.query import Filters, Query
from mdmem.recall.recall import recall
from mdmem.recall.select import allowed
from mdmem.store import Store

# By an index that holds what is asked for, a hundred thousand notes are counted in some milliseconds.
COUNTED = "SCAN notes USING COVERING INDEX notes_kind"


def test_one_note_that_came_is_found_without_going_through_all_notes(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store()
    for number in range(30):
        store.folder.create(f"memories/n{number}.md", f"---\nid: mem-n{number}\ntitle: N\n---\nThe walrus {number}.\n".encode())
    for _ in range(4):
        recall(store, Query("walrus", mode="keyword"))
    store.folder.create("memories/new.md", b"---\nid: mem-new\ntitle: New\n---\nThe zebrafish.\n")
    catalog = store.index.catalog
    told: list[tuple[str, Sequence[Any]]] = []
    rows, row = Catalog.rows, Catalog.row

    def listening(real: Callable[..., Any]) -> Callable[..., Any]:
        def asked(self: Catalog, sql: str, values: Sequence[Any] = ()) -> Any:
            told.append((sql, values))
            return real(self, sql, values)

        return asked

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "rows", listening(rows))
        patch.setattr(Catalog, "row", listening(row))
        catalog.read(lambda connection: connection.set_trace_callback(lambda text: told.append((text, ()))))
        found = recall(store, Query("zebrafish", mode="keyword"))
        catalog.read(lambda connection: connection.set_trace_callback(None))
    assert [hit.id for hit in found.results] == ["mem-new"]
    asked = [one for one in told if re.match(r"\s*(SELECT|WITH|UPDATE|DELETE)\b", one[0])]
    assert len(asked) > 10
    for text, values in asked:
        # With its parameters unknown, as SQLite plans it: an index over some values alone needs them in the text.
        plan = [str(one[3]) for one in catalog.rows(f"EXPLAIN QUERY PLAN {text}", values)]
        scans = [line for line in plan if re.match(r"SCAN (notes|windows|n|w)\b", line)]
        slow = [line for line in scans if f"CO-ROUTINE {line[5:]}" not in plan]
        assert slow in ([], [COUNTED]), (text, plan)


def test_the_usual_filters_choose_the_same_notes_counted_by_kind_as_one_by_one(make_store: Callable[..., Store]) -> None:
    store = make_store()
    said_by = ("", "status: superseded\n", "expires: 2001-01-01\n", "expires: 2999-01-01\n", "type: task\n")
    for number, said in enumerate(said_by):
        for copy in range(3):
            text = f"---\nid: mem-{number}-{copy}\ntitle: N\n{said}---\nThe walrus {number} {copy}.\n"
            store.folder.create(f"memories/n{number}-{copy}.md", text.encode())
    store.index.refresh()
    every = Filters(kinds=("memory", "task"))
    chosen = allowed(store, every)
    assert chosen is not None and len(chosen) == 9
    assert chosen == allowed(store, Filters(kinds=("memory", "task"), paths=("",)))
    assert allowed(store, Filters(retired=True)) is None
