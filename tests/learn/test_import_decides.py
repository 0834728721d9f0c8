"""What is imported as text is compared with what is there; what has an id of ours is taken as it is."""

from __future__ import annotations

import json
from pathlib import Path

from mdmem.learn.review import doubts
from mdmem.memory.import_records import import_any
from mdmem.memory.remember import Memory, remember
from mdmem.store import Store


def test_imported_texts_are_compared_with_what_is_there(store: Store, tmp_path: Path) -> None:
    old = remember(store, Memory("fact", "The staging server listens on port 8080."))
    kept = remember(store, Memory("fact", "Mocks are allowed in integration tests."))
    store.clock.advance(days=1)  # type: ignore[attr-defined]
    file = tmp_path / "notes.jsonl"
    said = [
        "We moved the staging server from port 8080 to 9090.",
        "Mocks are not allowed in integration tests.",
        "The logo is blue.",
    ]
    file.write_text("".join(json.dumps({"text": text, "type": "fact"}) + "\n" for text in said))
    done = import_any(store, file)
    assert done.created == 3 and done.committed and len(done.decided) == 2, done
    assert store.folder.read(old.path).status == "superseded" and store.folder.read(kept.path).status == ""
    (pair,) = doubts(store)
    assert pair.other.id == kept.id
    again = import_any(store, file)
    assert (again.created, again.decided) == (0, [])


def test_a_note_with_an_id_is_taken_as_it_is(store: Store, tmp_path: Path) -> None:
    old = remember(store, Memory("fact", "The staging server listens on port 8080."))
    (tmp_path / "a.md").write_text(
        "---\nid: mem-restored0000\nkind: memory\ntype: fact\nscope: shared\n---\n\nThe staging server listens on port 9090.\n"
    )
    done = import_any(store, tmp_path / "a.md")
    assert done.created == 1 and done.decided == [] and store.folder.read(old.path).status == ""
