"""Fusion: both legs beat one, weights 0 and 1 are the pure legs, nothing is cut."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmem.memory.remember import Memory, remember
from mdmem.recall import fuse
from mdmem.recall.fuse import minmax, ranks, rrf, scaled
from mdmem.recall.query import Query
from mdmem.recall.recall import recall
from mdmem.store import Store

scores = st.dictionaries(st.integers(0, 30), st.floats(0.0, 50.0), max_size=20)


def order(fused: dict[str, float]) -> list[str]:
    return sorted(fused, key=lambda key: -fused[key])


@pytest.mark.parametrize("fuse", [minmax, rrf])
def test_i34_found_by_both_legs_is_not_below_found_by_one(fuse) -> None:
    words = {"both": 9.0, "words": 9.0, "low": 1.0}
    meaning = {"both": 0.9, "meaning": 0.9, "low": 0.1}
    fused = fuse(words, meaning)
    assert fused["both"] >= fused["words"] and fused["both"] >= fused["meaning"]
    assert order(fused)[0] == "both" and set(fused) == {"both", "words", "meaning", "low"}


def test_i34_weights_zero_and_one_give_the_pure_order_of_a_leg() -> None:
    words = {"a": 3.0, "b": 2.0, "c": 1.0}
    meaning = {"a": 0.1, "b": 0.2, "c": 0.3}
    assert order(minmax(words, meaning, 1.0)) == ["a", "b", "c"]
    assert order(minmax(words, meaning, 0.0)) == ["c", "b", "a"]


def test_i34_the_top_hit_of_a_leg_stays_in_whatever_its_raw_score() -> None:
    fused = minmax({"a": 0.0001}, {"b": -0.2})
    assert fused == {"a": 0.5, "b": 0.5}


def test_i32_a_single_candidate_has_a_finite_full_score() -> None:
    assert minmax({"only": 2.5}, {"only": 0.8}) == {"only": 1.0}
    assert rrf({"only": 2.5}, {"only": 0.8}) == {"only": 1.0}
    assert scaled({}) == {} and minmax({}, {}) == {}


def test_equal_scores_share_a_rank() -> None:
    assert ranks({"a": 2.0, "b": 2.0, "c": 1.0}) == {"a": 1, "b": 1, "c": 3}


@given(scores, scores, st.floats(0.0, 1.0))
def test_fused_scores_are_finite_and_between_zero_and_one(words, meaning, weight) -> None:
    for fused in (minmax(words, meaning, weight), rrf(words, meaning)):
        assert fused.keys() == words.keys() | meaning.keys()
        assert all(math.isfinite(value) and -1e-9 <= value <= 1 + 1e-9 for value in fused.values())


def test_of_a_few_cosines_the_lowest_is_not_the_worst_there_is() -> None:
    two = fuse.near_scaled({"a": 0.82, "b": 0.80})
    assert two["a"] == 1.0 and 0.7 < two["b"] < 0.9
    assert fuse.near_scaled({"a": 0.8}) == {"a": 1.0} and fuse.near_scaled({}) == {}
    many = {str(number): 0.8 + number / 1000 for number in range(30)}
    assert fuse.near_scaled(many) == fuse.scaled(many)


def test_a_first_memory_is_found_beside_the_one_of_quickstart(store: Store) -> None:
    """What somebody sees first: two notes, and a question that one of them answers in words and in meaning."""
    text = "mdmem keeps its memories as markdown files in a git repository, so any editor can open them."
    remember(store, Memory("fact", text, tags=["mdmem"]))
    remember(store, Memory("decision", "We stay with PostgreSQL 16 until the next LTS", tags=["database"]))
    for question in ("which database do we use", "我们用哪个数据库"):
        assert "PostgreSQL" in recall(store, Query(question)).results[0].title, question
