"""One id stands for one text: where it belongs to another one already, or to one that was forgotten, a new id is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mdmem.cli.main import run
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


def test_what_check_says_of_a_copied_note_sets_the_copy_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A person copied a note and wrote another into the copy: two notes of one id, and no command said what to do."""
    top = tmp_path / "store"
    assert run(["init", str(top)]) == 0 and run(["-C", str(top), "remember", "fact", "the office is in Basel"]) == 0
    original = next((top / "memories").glob("*.md"))
    copy = original.with_name("copy.md")
    copy.write_text(original.read_text().replace("Basel", "Bern"))
    capsys.readouterr()
    assert run(["-C", str(top), "check"]) == 1
    told = capsys.readouterr().out
    assert "has the same id as" in told and "the line of its id, then: mdmem fmt --ids" in told
    copy.write_text("".join(line for line in copy.read_text().splitlines(keepends=True) if not line.startswith("id:")))
    assert run(["-C", str(top), "fmt", "--ids"]) == 1 and run(["-C", str(top), "check"]) == 0
    assert run(["-C", str(top), "show", "the office is in Bern"]) == 0 and run(["-C", str(top), "sync"]) == 0
