"""A store with notes in two languages, and a model that prefers the question's own language, as real ones do."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdmem.clock import FixedClock
from mdmem.index import dense
from mdmem.index.language import wide
from mdmem.notes.frontmatter import render
from mdmem.recall.query import Query
from mdmem.recall.recall import recall
from mdmem.setup import init
from mdmem.store import Store

NOW = datetime(2026, 11, 2, tzinfo=timezone.utc)
TOPICS = ["猫", "火车", "面包", "钢琴", "雨伞", "月亮", "河流", "围巾", "灯塔", "蜂蜜"]
ENGLISH = ["cat", "train", "bread", "piano", "umbrella", "moon", "river", "scarf", "lighthouse", "honey"]


class Partial:
    """A vector of topic and language, the language far louder; the rest is noise that depends on the text."""

    fingerprint, dims = "partial", 64

    def _rows(self, texts: Sequence[str]) -> Any:
        out = np.zeros((len(texts), self.dims), np.float32)
        for row, text in zip(out, texts, strict=True):
            noise = np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big"))
            row[:] = noise.normal(0, 0.02, self.dims)
            row[0 if wide(text) else 1] += 2.0
            for number, (chinese, english) in enumerate(zip(TOPICS, ENGLISH, strict=True)):
                if chinese in text or english in text.lower().split():
                    row[2 + number] += 1.0
            row /= np.linalg.norm(row)
        return out

    passages = queries = _rows

    def count_tokens(self, text: str) -> int:
        return len(text)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(dense, "load_embedder", lambda config, state_dir, chunking="": Partial())
    monkeypatch.setattr("mdmem.setup._driver", lambda *_: None)
    init(tmp_path / "store")
    opened = Store.open(tmp_path / "store", need="write", clock=FixedClock(NOW))
    # Each topic in one language only: the first five in Chinese, the others in English.
    for number, (chinese, english) in enumerate(zip(TOPICS, ENGLISH, strict=True)):
        text = f"这里说的是{chinese}的事情" if number < 5 else f"this one tells about {english} alone"
        fields = {"kind": "memory", "title": f"n{number}", "created": "2026-11-01T00:00:00Z", "updated": "2026-11-01T00:00:00Z"}
        opened.folder.create(f"memories/n{number}.md", render(fields, text + "\n"))
    opened.index.refresh(embed_budget_s=None)
    return opened


def first(store: Store, text: str, mode: str = "hybrid") -> str:
    return recall(store, Query(text, mode=mode)).results[0].title


def test_a_few_shared_words_do_not_outweigh_the_answer_in_the_other_language(store: Store) -> None:
    for number in range(5, 10):
        assert first(store, f"这里说的{TOPICS[number]}事情") == f"n{number}"


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_a_note_in_the_other_language_is_found_where_it_answers(store: Store, mode: str) -> None:
    for number, (chinese, english) in enumerate(zip(TOPICS, ENGLISH, strict=True)):
        assert first(store, f"关于{chinese}", mode) == f"n{number}"
        assert first(store, f"regarding {english}", mode) == f"n{number}"


def test_the_switch_shows_what_the_step_is_worth(store: Store) -> None:
    store.config.values["recall.languages"] = False
    assert first(store, "关于蜂蜜") != "n9"
    assert first(store, "regarding cat") != "n0"


def test_explain_tells_the_raw_and_the_evened_cosine(store: Store) -> None:
    hit = recall(store, Query("关于蜂蜜", explain=True)).results[0]
    steps = dict(hit.steps)
    assert steps["other language"] > steps["cosine"] == round(hit.cosine or 0, 4)


def test_filters_hold_for_both_languages(store: Store) -> None:
    from mdmem.recall.query import Filters

    found = recall(store, Query("关于蜂蜜", filters=Filters(paths=("memories/n0.md", "memories/n7.md"))))
    assert {hit.path for hit in found.results} == {"memories/n0.md", "memories/n7.md"}
