"""Forgetting: links both ways, several at once, and what purge takes along."""

from __future__ import annotations

from mdmem.memory import spool
from mdmem.memory.forget import forget
from mdmem.memory.remember import Memory, remember
from mdmem.store import Store


def test_purge_deletes_file_rows_and_the_spooled_words(store: Store) -> None:
    saved = remember(store, Memory("fact", "The staging box answers on port 9443 only at night."))
    common = str(store.common_state_dir)
    spool.add(common, "s1", {"k": "said", "text": "Noted: The staging box answers on port 9443 only at night. Next?"}, 1.0)
    spool.add(common, "s1", {"k": "said", "text": "The build is green."}, 2.0)
    done = forget(store, [saved.id], purge=True)
    assert done.spooled == 1 and done.committed
    assert not (store.root / saved.path).exists()
    assert [r["text"] for r in spool.records(common, "s1")] == ["The build is green."]
    assert store.index.catalog.value("SELECT count(*) FROM notes WHERE id = ?", (saved.id,)) == 0


def test_a_successor_is_linked_both_ways(store: Store) -> None:
    old = remember(store, Memory("decision", "We deploy on Thursdays."))
    new = remember(store, Memory("decision", "We deploy every day after the smoke test."))
    assert forget(store, [old.id], superseded_by=new.id).committed
    assert store.folder.read(old.path).words("superseded_by") == [new.id]
    assert store.folder.read(new.path).words("supersedes") == [old.id]


def test_a_name_that_is_not_there_stops_no_other(store: Store) -> None:
    saved = remember(store, Memory("fact", "The cache is warm after ten minutes."))
    done = forget(store, ["mem-nothere", saved.id])
    assert [row["id"] for row in done.notes] == [saved.id]
    assert [row["note"] for row in done.failed] == ["mem-nothere"]
    assert store.folder.read(saved.path).status == "forgotten"
