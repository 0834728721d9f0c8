"""What all questions and all passages have in common is taken off before meanings are compared."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mdmem.clock import FixedClock
from mdmem.index import dense
from mdmem.index.embed import BUNDLED
from mdmem.index.embed_onnx import OnnxEmbedder
from mdmem.memory import near
from mdmem.notes.frontmatter import render
from mdmem.recall import common
from mdmem.recall.query import Filters, Query
from mdmem.recall.recall import recall
from mdmem.setup import init
from mdmem.store import Store

NOW = datetime(2026, 11, 2, tzinfo=timezone.utc)
TOPICS = ["lantern", "harbour", "saffron", "violin", "gravel"]
# Axis 0: what every question and the general note have; 1: what every Latin passage has; 2: every CJK one; then the topics.
ASKED, LATIN, WIDE, FIRST, DIMS = 0, 1, 2, 3, 8


class Hubs:
    """A model in which one general note is nearer to every question than the note that answers it."""

    fingerprint, dims = "hubs", DIMS

    def __init__(self, folder: Path) -> None:
        self.model = SimpleNamespace(folder=folder)

    def _rows(self, texts: Sequence[str], base: int, much: float) -> Any:
        out = np.zeros((len(texts), DIMS), np.float32)
        for row, text in zip(out, texts, strict=True):
            row[base] = much
            row[[FIRST + number for number, topic in enumerate(TOPICS) if topic in text]] = 0.5
            if "general" in text:
                row[ASKED] += 0.5
            row /= np.linalg.norm(row)
        return out

    def passages(self, texts: Sequence[str]) -> Any:
        return self._rows(texts, LATIN, 0.7)

    def queries(self, texts: Sequence[str]) -> Any:
        return self._rows(texts, ASKED, 1.0)

    def count_tokens(self, text: str) -> int:
        return len(text)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    folder = tmp_path / "model"
    folder.mkdir()
    model = Hubs(folder)
    means = np.zeros((4, DIMS), np.float32)
    means[:2, ASKED] = 1.0
    means[2, LATIN] = means[3, WIDE] = 1.0
    np.save(folder / common.FILE, means)
    monkeypatch.setattr(common, "_KNOWN", {})
    monkeypatch.setattr(dense, "load_embedder", lambda config, state_dir, chunking="": model)
    monkeypatch.setattr("mdmem.setup._driver", lambda *_: None)
    init(tmp_path / "store")
    opened = Store.open(tmp_path / "store", need="write", clock=FixedClock(NOW))
    for name, text in [(topic, f"{topic} is kept in the drawer") for topic in TOPICS] + [("all", "general remarks")]:
        fields = {"kind": "memory", "title": name, "created": "2026-11-01T00:00:00Z", "updated": "2026-11-01T00:00:00Z"}
        opened.folder.create(f"memories/{name}.md", render(fields, text + "\n"))
    opened.index.refresh(embed_budget_s=None)
    return opened


def first(store: Store, text: str, **how: Any) -> str:
    return recall(store, Query(text, mode="semantic", **how)).results[0].title


def test_a_note_that_is_near_every_question_gives_way_to_the_answer(store: Store) -> None:
    for topic in TOPICS:
        assert first(store, f"where is the {topic}") == topic


def test_the_switch_and_a_plain_query_leave_the_cosines_as_they_are(store: Store) -> None:
    assert first(store, "where is the violin", plain=True) == "all"
    store.config.values["recall.common"] = False
    assert first(store, "where is the violin") == "all"


def test_a_result_tells_the_cosine_itself_and_explain_what_was_compared(store: Store) -> None:
    question = "where is the gravel"
    asked = store.index.dense.question(question)
    note = store.index.dense.embedder().passages(["gravel is kept in the drawer"])[0]  # type: ignore[union-attr]
    for explain in (False, True):
        found = recall(store, Query(question, mode="semantic", explain=explain)).results
        assert found[0].cosine == pytest.approx(float(asked @ note), abs=1e-5)
    general = next(hit for hit in found if hit.title == "all")
    steps = dict(general.steps)
    assert steps["cosine"] == round(general.cosine or 0, 4)
    assert steps["near"] < steps["cosine"] - 0.2


def test_a_note_that_may_not_be_found_does_not_make_the_others_foreign(store: Store) -> None:
    fields = {"kind": "memory", "title": "灯", "created": "2026-11-01T00:00:00Z", "updated": "2026-11-01T00:00:00Z"}
    store.folder.create("memories/deng.md", render(fields, "灯笼在抽屉里\n"))
    store.index.refresh(embed_budget_s=None)
    others = Filters(paths=tuple(f"memories/{topic}.md" for topic in TOPICS))

    def told(filters: Filters) -> set[str]:
        found = recall(store, Query("violin 在哪里呢", filters=filters, explain=True)).results
        return {name for hit in found for name, _ in hit.steps} & {"near", "other language"}

    assert told(Filters()) >= {"other language"}
    assert told(others) == {"near"}


@pytest.mark.parametrize("damage", ["missing", "cut", "shape", "nan"])
def test_means_that_cannot_be_used_are_left_out(store: Store, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store.index.dense.embedder().model.folder / common.FILE  # type: ignore[union-attr]
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:100])
    else:
        np.save(path, np.zeros((4, DIMS + 1)) if damage == "shape" else np.full((4, DIMS), np.nan))
    monkeypatch.setattr(common, "_KNOWN", {})
    assert common.common_of(store) is None
    assert first(store, "where is the violin") == "all"


def test_another_model_has_them_once_the_gate_embedded_its_background(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    embedder: Any = store.index.dense.embedder()
    (embedder.model.folder / common.FILE).unlink()
    assert common.common_of(store) is None
    near._background(embedder, make=True)
    found = common.common_of(store)
    assert found is not None
    assert found.questions[False].argmax() == found.questions[True].argmax() == ASKED
    assert found.passages[False].argmax() == LATIN
    assert first(store, "where is the violin") == "violin"


def test_the_shipped_means_are_those_of_the_background(tmp_path: Path) -> None:
    """After a change of the model or of background.txt: python tools/build_model_common.py mdmem/models/e5-small-q4-enzh"""
    lines = near.BACKGROUND.read_text("utf-8").splitlines()
    asked, told = ([line[2:] for line in lines if line[:2] in marks] for marks in (("+ ", "- "), ("! ",)))
    model = OnnxEmbedder(BUNDLED, tmp_path)
    made = common.means_of((asked, model.queries(asked)), (told, model.passages(told)))
    shipped = common._shipped(model)
    assert shipped is not None
    for script in (False, True):
        assert np.abs(shipped.questions[script] - made.questions[script]).max() < 2e-3
        assert np.abs(shipped.passages[script] - made.passages[script]).max() < 2e-3


def test_without_a_model_there_is_nothing_in_common(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert common.common_of(store) is not None
    monkeypatch.setattr(store.index.dense, "embedder", lambda: None)
    assert common.common_of(store) is None


def test_a_window_that_went_while_the_question_was_asked_is_no_result(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may fold in a change between the search by meaning and the look at the rows."""
    from mdmem.index.index import Index

    real = Index.vector_search

    def search(index: Index, *args: Any, **options: Any) -> list[tuple[int, float]]:
        return [(10_000, 0.99), *real(index, *args, **options)]

    monkeypatch.setattr(Index, "vector_search", search)
    assert first(store, "where is the violin") == "violin"
