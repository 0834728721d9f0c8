"""The relevance gate on the labelled prompts: 95% of unrelated ones bring nothing, 80% of answered ones bring the answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mdmem.memory import gate

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import gate as bench


def measured(tmp_path: Path, prompts: list[dict[str, Any]], dense: bool) -> dict[str, Any]:
    facts = bench.read("facts.jsonl")
    store = bench.make_store(tmp_path / "store", facts, [])
    return dict(bench.rates(bench.cases(store, facts, prompts, dense), prompts, dense))


def test_the_set_is_what_it_says() -> None:
    prompts = bench.read("prompts.jsonl")
    assert len(prompts) >= 300
    assert {p["kind"] for p in prompts} == {"answer", "chore", "chat", "unanswered"}
    chinese = [p for p in prompts if any("\u4e00" <= c <= "\u9fff" for c in p["prompt"])]
    assert len(chinese) >= 100
    keys = {fact["key"] for fact in bench.read("facts.jsonl")}
    assert all(bool(p.get("answer")) == (p["kind"] == "answer") and set(p.get("answer", ())) <= keys for p in prompts)


def test_words_alone(tmp_path: Path) -> None:
    found = measured(tmp_path, bench.read("prompts.jsonl"), dense=False)
    assert found["unrelated_quiet"] >= 95, found["wrong"]
    assert found["answered_given"] >= 80, found["wrong"]


@pytest.mark.nightly
@pytest.mark.timeout(1500)
def test_with_the_model(tmp_path: Path) -> None:
    found = measured(tmp_path, bench.read("prompts.jsonl"), dense=True)
    assert found["unrelated_quiet"] >= 95, found["wrong"]
    assert found["answered_given"] >= 80, found["wrong"]


def test_evidence_grows_with_what_is_found() -> None:
    assert gate.chance(0.9, 1.5, None) > gate.limit(False, False) > gate.chance(0.2, 0.3, None)
    assert gate.chance(0.9, 1.5, 1.0) > gate.chance(0.9, 1.5, -2.0)
    assert gate.limit(True, True) < gate.limit(True, False)


def test_an_empty_store_and_an_empty_prompt() -> None:
    assert gate.telling_words("what is the") == []
    assert gate.Weighing([], 0).evidence([]) == (0.0, 0.0)
    assert gate.Spread([], 0).near(0.8) < 0
