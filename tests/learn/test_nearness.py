"""Nearness in meaning as evidence: the limit is measured with the model in use, and a cosine alone decides nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mdmem.config import data_home
from mdmem.index.embed import BUNDLED
from mdmem.learn.compare import compare
from mdmem.learn.decide import decide
from mdmem.learn.nearness import calibration, cosines, limit_of, measured, nearest, threshold
from mdmem.learn.statement import read
from mdmem.memory.remember import Memory, checked, remember
from mdmem.store import Store

needs_model = pytest.mark.skipif(not (BUNDLED / "model.json").is_file(), reason="the bundled model is not in this checkout")
HERE = Path(__file__).parent


def test_the_threshold_lies_between_the_classes() -> None:
    assert threshold([0.9, 0.95], [0.5, 0.6]) == pytest.approx(0.75)
    assert 0.6 < threshold([0.9, 0.95, 0.55], [0.5, 0.6]) < 0.9


@needs_model
def test_the_limit_is_measured_once_and_separates_real_pairs(store: Store) -> None:
    embedder = store.index.dense.embedder()
    assert embedder is not None
    limit = limit_of(embedder)
    (kept,) = (data_home() / "learn").glob("*.json")
    assert json.loads(kept.read_text())["limit"] == limit
    kept.write_text('{"limit": 0.5}')
    assert limit_of(embedder) == 0.5, "read back, not measured again"
    rows = [line.split("\t") for line in (HERE / "pairs.tsv").read_text("utf-8").splitlines() if line[:1] not in ("", "#")]
    same, other = cosines(embedder, [(k, a, b) for k, a, b in rows if k in ("same", "near", "apart")])
    assert sum(value >= limit for value in same) >= 0.9 * len(same)
    assert sum(value < limit for value in other) >= 0.9 * len(other)
    # And it says nothing of opposites: they are as near as rewordings are.
    opposite, _ = cosines(embedder, [("same", a, b) for k, a, b in rows if k in ("negated", "number", "name")])
    assert sum(value >= limit for value in opposite) > 0.5 * len(opposite)
    assert len(calibration()) == 30


@needs_model
def test_the_same_fact_in_the_other_language_waits_for_review(make_store: Callable[..., Store]) -> None:
    store = make_store()
    old = remember(store, Memory("fact", "All uploads are kept in object storage"))
    store.index.refresh(embed_budget_s=None)
    memory = Memory("fact", "所有上传的文件都保存在对象存储里")
    checked(store, memory)
    found = nearest(store, memory.title, memory.text, load=True)
    assert found is not None and found == measured(store, memory.title, memory.text)
    cosine = max(found[0].values())
    decision = decide(store, memory, load=True).decision
    expected = "relates_to" if cosine >= found[1] else ""
    assert decision.action == "created" and decision.doubt == expected
    # With a limit that it passes, it is in doubt; never taken for the same without a word in common.
    verdict = compare(read(memory.text), read("All uploads are kept in object storage"), 0.99, 0.9)
    assert verdict.kind == "perhaps"
    assert old.action == "created"


def test_without_a_model_words_have_to_do(make_store: Callable[..., Store]) -> None:
    store = make_store(**{"embedding.backend": "none"})
    remember(store, Memory("fact", "All uploads are kept in object storage"))
    assert nearest(store, "", "uploads", load=True) is None
    assert remember(store, Memory("fact", "Uploads are all kept in object storage")).action == "unchanged"


def test_a_save_asks_the_warm_process_and_never_loads_a_model(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def ask(request: dict[str, object], patience: float) -> dict[str, object]:
        asked.append(request)
        return {"near": [[1, 0.97]], "limit": 0.9}

    monkeypatch.setenv("MDMEM_SERVE", "auto")
    monkeypatch.setattr("mdmem.warm.client.ask", ask)
    assert nearest(store, "Title", "text", load=False) == ({1: 0.97}, 0.9)
    assert asked[0]["op"] == "near" and store.index.dense.loaded is None
    monkeypatch.setenv("MDMEM_SERVE", "off")
    assert nearest(store, "Title", "text", load=False) is None and len(asked) == 1
