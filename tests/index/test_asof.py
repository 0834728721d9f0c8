"""Recall from the store as git had it at a commit: what did not change is reused, what did is parsed in memory."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from notes_at_hand import FakeEmbedder, write

from mdmem.errors import NotFound
from mdmem.index import asof
from mdmem.index.asof import View
from mdmem.index.index import Index
from mdmem.store import Store


def commit(root: Path) -> str:
    subprocess.run(["git", "-C", str(root), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(root), "commit", "-qm", "x", "--allow-empty"], check=True)
    done = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def paths(index: Index | View, query: str) -> list[str]:
    rows = {row["rowid"]: row["path"] for row in index.catalog.rows("SELECT rowid, path FROM notes")}
    return [rows[note] for note in dict.fromkeys(hit.note for hit in index.text_hits(query).hits)]


@pytest.fixture
def history(root: Path) -> tuple[str, str]:
    for number in range(20):
        write(root, f"memories/n{number}.md", f"stable walrus number{number}", title=f"N{number}", id=f"mem-n{number:04}")
    write(root, "memories/db.md", "we use oracle", title="Database", id="mem-db01", status="active", relates_to="mem-old1")
    write(root, "memories/old.md", "forgotten lore", title="Old", id="mem-old1")
    first = commit(root)
    write(root, "memories/db.md", "we use duckdb", title="Database", id="mem-db01", status="superseded")
    (root / "memories/old.md").unlink()
    write(root, "memories/new.md", "brand new walrus", title="New")
    (root / "memories/n3.md").rename(root / "memories/moved.md")
    return first, commit(root)


def test_words_fields_and_edges_are_those_of_the_commit(
    root: Path, opened: Callable[[], Store], history: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = opened().index
    index.refresh(embed_budget_s=None)
    parsed: list[str] = []
    real = asof.load
    monkeypatch.setattr(asof, "load", lambda path, data: parsed.append(path) or real(path, data))
    view = index.as_of(history[0])
    assert sorted(parsed) == ["memories/db.md", "memories/n3.md", "memories/old.md"]
    assert paths(view, "oracle") == ["memories/db.md"] and paths(view, "duckdb") == []
    assert paths(index, "oracle") == [] and paths(index, "duckdb") == ["memories/db.md"]
    assert paths(view, "forgotten lore") == ["memories/old.md"]
    assert "memories/new.md" not in paths(view, "walrus") and len(paths(view, "walrus")) == 20
    assert view.note_by("Database")["status"] == "active"
    assert view.note_by("mem-n0003")["path"] == "memories/n3.md"
    with pytest.raises(NotFound):
        view.note_by("New")
    assert [found.note for found in view.neighbours(view.note_by("mem-db01")["rowid"])] == [view.note_by("Old")["rowid"]]
    assert view.read_bytes(view.note_by("Old")).endswith(b"forgotten lore\n")
    assert view.syntax_hits("oracle OR lore").hits
    # The same scores as if that commit were the store.
    subprocess.run(["git", "-C", str(root), "checkout", "-q", history[0]], check=True)
    then = opened().index
    then.refresh(embed_budget_s=0.0)
    for query in ("walrus number7", "oracle", "we use lore"):
        assert [round(hit.score, 12) for hit in then.text_hits(query).hits] == [
            round(hit.score, 12) for hit in view.text_hits(query).hits
        ]


def test_vectors_are_reused_and_nothing_is_embedded(
    root: Path, opened: Callable[[], Store], history: tuple[str, str], embedder: FakeEmbedder
) -> None:
    index = opened().index
    index.refresh(embed_budget_s=None)
    done = len(embedder.embedded)
    view = index.as_of(history[0])
    found = view.vector_search("stable walrus number3", None, 30)
    assert len(embedder.embedded) == done
    names = {
        row["rowid"]: row["path"]
        for row in view.catalog.rows("SELECT w.rowid, path FROM windows w JOIN notes n ON n.rowid = note")
    }
    # Moved since, same text: the vector is found by its text.
    assert names[found[0][0]] == "memories/n3.md"
    assert view.cosines("stable walrus number3", [found[0][0]])[found[0][0]] == pytest.approx(found[0][1])


def test_a_view_is_kept_until_something_changes(root: Path, opened: Callable[[], Store], history: tuple[str, str]) -> None:
    index = opened().index
    view = index.as_of(history[0])
    assert index.as_of(history[0]) is view
    write(root, "memories/another.md", "x")
    index.refresh(embed_budget_s=0.0)
    assert index.as_of(history[0]) is not view
    assert paths(index.as_of(history[1]), "duckdb") == ["memories/db.md"]
