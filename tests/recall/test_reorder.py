"""The pure parts of what changes an order: standing, length, one session of many, sameness, a second judgement."""

from __future__ import annotations

import numpy as np
import pytest

from mdmem.recall.reorder import blended, diverse, length_factor, likeness, mmr, standing


def test_standing_is_neutral_for_a_working_note_that_nobody_rated() -> None:
    assert standing("", None) == standing("working", None) == standing("working", 0.5) == 1.0
    assert standing("core", None) > 1.0 > standing("peripheral", None)
    assert standing("", 1.0) == pytest.approx(1.2)
    assert standing("", 0.0) == pytest.approx(0.8)


def test_long_notes_count_less_but_never_less_than_a_floor() -> None:
    assert length_factor(0) == length_factor(500) == 1.0
    assert length_factor(1000) == pytest.approx(1 / 1.5)
    assert length_factor(10**9) == 0.3


def test_at_most_three_of_one_session_then_filled_up_and_nothing_lost() -> None:
    items = ["a1", "a2", "a3", "a4", "a5", "b1", "x", "a6", "y"]
    out = diverse(items, lambda item: item[0] if item[0] in "ab" else None, most=3, depth=6)
    assert out == ["a1", "a2", "a3", "b1", "x", "y", "a4", "a5", "a6"]
    assert diverse(["a1", "a2", "a3", "a4"], lambda item: "a") == ["a1", "a2", "a3", "a4"]
    assert diverse(["c1", "c2"] * 3, lambda item: None) == ["c1", "c2"] * 3


def test_mmr_puts_what_says_the_same_behind_what_says_something_else() -> None:
    alike = [[0.0, 1.0, 0.1], [1.0, 0.0, 0.1], [0.1, 0.1, 0.0]]
    assert mmr([1.0, 0.9, 0.7], alike, 0.7) == [0, 2, 1]
    assert mmr([1.0, 0.9, 0.7], alike, 1.0) == [0, 1, 2]
    assert mmr([], [], 0.7) == []
    # Of the places that are chosen so, the second is the last.
    assert mmr([1.0, 0.9, 0.7, 0.0], [[*row, 0.0] for row in alike] + [[0.0] * 4], 0.7, 2) == [0, 2, 1, 3]
    assert mmr([1.0, 0.9, 0.7], alike, 0.7, 1) == [0, 1, 2]


def test_likeness_is_scaled_and_a_missing_vector_is_like_nothing() -> None:
    one = np.array([1.0, 0.0])
    near = np.array([0.99, 0.1411])
    far = np.array([0.0, 1.0])
    found = likeness([one, near, None, far])
    assert found[0][1] == 1.0
    assert found[0][3] == 0.0
    assert found[2] == [0.0] * 4
    assert likeness([one, None]) == [[0.0, 0.0], [0.0, 0.0]]


def test_a_judgement_is_blended_with_the_order_so_far() -> None:
    out = blended({"a": 0.9, "b": 0.5, "c": 0.1}, {"a": -4.0, "b": 8.0, "c": 2.0}, 0.6)
    assert sorted(out, key=lambda key: -out[key]) == ["b", "a", "c"]
    assert max(out.values()) <= 1.0 and min(out.values()) >= 0.0


def test_vectors_that_are_all_equally_alike_say_nothing() -> None:
    rows = [[1.0, 0.0], [1.0, 0.0], None]
    assert likeness(rows) == [[0.0] * 3 for _ in rows]
