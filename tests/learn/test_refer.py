"""Pronouns at the head of a sentence: resolved where one answer is plain, left alone elsewhere, never resolved wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdmem.learn.categories import load_rules
from mdmem.learn.extract import extract
from mdmem.learn.refer import referred
from tests.learn.test_extract import turns


def rows(name: str) -> list[list[str]]:
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


ROWS = rows("pronouns.tsv")


@pytest.mark.parametrize(("before", "sentence", "meaning"), ROWS)
def test_labelled_pairs(before: str, sentence: str, meaning: str) -> None:
    assert referred(sentence, before) == (meaning or sentence)


def test_pairs_written_after_the_rules_are_right_or_left_alone() -> None:
    found = [(referred(sentence, before), sentence, meaning) for before, sentence, meaning in rows("pronouns_held_out.tsv")]
    assert not [one for one in found if one[0] not in one[1:]]
    assert sum(told == meaning for told, _, meaning in found) >= len(found) // 2


def test_the_set_has_both_kinds_in_both_languages() -> None:
    kinds = {(bool(meaning), before.isascii()) for before, _, meaning in ROWS}
    assert len(kinds) == 4 and len(ROWS) >= 30


def test_a_fact_is_kept_with_what_it_is_about_and_the_words_that_were_said() -> None:
    text = "U: The staging gateway listens on port 8080. It is restarted every night at 03:00."
    said = turns(text, "A: ok", "U: hm", "A: yes")
    found, judged = extract(said, load_rules(), 20)
    assert "The staging gateway is restarted every night at 03:00." in [one.text for one in found]
    assert all("It is restarted" in one.said for one in found if "restarted" in one.text)
    assert any(one.text.startswith("It is restarted") for one in judged if one.outcome == "kept")


def test_nothing_is_carried_over_from_another_turn() -> None:
    said = turns("U: The staging gateway listens on port 8080.", "A: ok", "U: It is restarted every night at 03:00.", "A: yes")
    assert not [one for one in extract(said, load_rules(), 20)[0] if "gateway is restarted" in one.text]
