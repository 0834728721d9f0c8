"""Snippets: the lines that matched, bounded, with their line numbers."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from mdmem.recall.snippet import LENGTH, snippet


def tokens(text: str) -> list[str]:
    return re.findall(r"[a-z]+|[\u4e00-\u9fff]", text.lower())


TEXT = "Opening line.\n\nNothing here.\nThe port is 5432 for postgres.\nAsk Ann.\n\nClosing."


def test_the_matching_line_and_its_number() -> None:
    found = snippet(TEXT, 10, {"postgres": 2.0, "port": 1.0}, tokens)
    assert found.text == "The port is 5432 for postgres." and (found.start_line, found.end_line) == (13, 13)


def test_a_run_that_holds_both_terms_beats_the_rarer_term_alone() -> None:
    found = snippet(TEXT, 1, {"postgres": 2.0, "ann": 2.0}, tokens)
    assert (found.start_line, found.end_line) == (4, 5)


def test_no_term_shows_the_opening() -> None:
    found = snippet(TEXT, 1, {}, tokens)
    assert found.text.startswith("Opening line.") and found.start_line == 1


def test_a_long_line_is_cut_around_the_match_between_words() -> None:
    line = "filler words " * 200 + "the needle sits here " + "more filler " * 200
    found = snippet(line, 3, {"needle": 1.0}, tokens)
    assert "needle" in found.text and len(found.text) <= LENGTH and found.text.startswith("…") and found.text.endswith("…")
    assert (found.start_line, found.end_line) == (3, 3)


def test_chinese_is_cut_between_characters() -> None:
    line = "前文" * 400 + "数据库选用" + "后文" * 400
    found = snippet(line, 1, {"库": 1.0}, tokens)
    assert "数据库选用" in found.text and len(found.text) <= LENGTH


@given(st.text(max_size=2000), st.dictionaries(st.sampled_from("abcde"), st.floats(0, 9), max_size=5))
def test_any_text_is_bounded_and_in_range(text: str, weights: dict[str, float]) -> None:
    found = snippet(text, 5, weights, tokens)
    assert len(found.text) <= LENGTH
    assert 5 <= found.start_line <= found.end_line <= 5 + text.count("\n")
