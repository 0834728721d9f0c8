"""Cutting notes into windows: nothing lost, nothing too long, borders and lines right."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmem.index.windows import Window, cut, load


def squeezed(text: str) -> str:
    return "".join(text.split())


# `{}` becomes a number, so that each place in a body can be told from the others.
pieces = st.sampled_from(
    [
        "word{} ",
        "Anna: hello there {} ",
        "中文{}句子。",
        "\n",
        "\n\n",
        "# Head {}\n",
        "## Sub head\n",
        "```\n",
        "- item {} ",
        "x" * 90 + "{} ",
        "a.b{}. ",
        "| a | b{} |\n",
        "many words in one sentence that goes on for a while {}, " * 4,
    ]
)
bodies = st.lists(pieces, max_size=150).map(lambda parts: "".join(part.replace("{}", str(n)) for n, part in enumerate(parts)))


def covered(body: str, windows: list[Window]) -> int:
    """Return how far the windows, in order and without a gap, cover the body (spaces apart).

    A text that stands more than once may be any of its occurrences: all ways to lay the windows are followed."""
    whole = squeezed(body)
    ways = {(0, 0)}
    for window in windows:
        text = squeezed(window.text)
        places = [place for place in range(len(whole) - len(text) + 1) if whole.startswith(text, place)]
        ways = {(at, max(end, at + len(text))) for at in places for start, end in ways if start <= at <= end}
        assert ways, window
    return max(end for _, end in ways)


@given(bodies)
def test_every_character_is_in_a_window_in_order(body: str) -> None:
    windows = cut("T", body, 4)
    assert covered(body, windows) == len(squeezed(body))
    assert all(load(window.text) <= 1.0001 for window in windows)
    lines = body.split("\n")
    for window in windows:
        assert 4 <= window.start_line <= window.end_line < 4 + len(lines)
        first = window.text.split("\n")[0].split()[:1]
        if first:
            assert first[0] in lines[window.start_line - 4]


@given(bodies)
def test_no_character_is_in_more_than_two_windows(body: str) -> None:
    windows = cut("T", body)
    assert sum(len(squeezed(window.text)) for window in windows) <= 2 * len(squeezed(body))


@given(st.text(max_size=400))
def test_any_text_can_be_cut(body: str) -> None:
    windows = cut("", body)
    assert squeezed(body).startswith(squeezed(windows[0].text)) and squeezed(body).endswith(squeezed(windows[-1].text))


def test_what_fits_is_one_window_and_a_longer_section_overlaps() -> None:
    turns = [f"Anna: turn {number} " + "hello " * 20 for number in range(12)]
    assert len(cut("", "\n".join(turns[:6]))) == 1
    windows = cut("", "\n".join(turns))
    assert len(windows) > 3
    for left, right in pairwise(windows):
        assert left.start_line < right.start_line <= left.end_line < right.end_line
    assert all(load(window.text) < 0.8 for window in windows)


def test_headings_give_the_path_and_start_a_window() -> None:
    body = (
        "# Title\n\n"
        + "one " * 60
        + "\n\n## Why\n\n"
        + "two " * 60
        + "\n\n### Cost\n\n"
        + "three " * 60
        + "\n\n## Next\n\n"
        + "four " * 60
    )
    found = [(window.heading, window.start_line) for window in cut("Title", body, 10)]
    assert found == [("", 10), ("Why", 14), ("Why > Cost", 18), ("Next", 22)]


def test_small_sections_share_a_window() -> None:
    assert len(cut("T", "# T\n\n## A\nx\n\n## B\ny\n\n## C\nz\n")) == 1


def test_a_hash_in_a_code_fence_is_no_heading() -> None:
    windows = cut("", "## A\n\n```sh\n# comment\n" + "echo hi\n" * 100 + "```\n\ntext\n")
    assert {window.heading for window in windows} == {"A"}


def test_turns_stay_whole() -> None:
    turns = [f"Anna: {'hello ' * 30}".strip() if i % 2 else f"Ben: {'bye ' * 30}".strip() for i in range(20)]
    for window in cut("", "\n".join(turns)):
        assert all(line in turns for line in window.text.split("\n"))


def test_f36_a_rule_and_fields_in_the_body_are_text() -> None:
    windows = cut("T", "intro\n\n---\nstatus: done\n")
    assert "status: done" in "".join(window.text for window in windows)


def test_f31_a_word_far_down_is_in_a_window() -> None:
    body = "filler text here. " * 12_000 + "xyzzyunique"
    windows = cut("T", body)
    assert "xyzzyunique" in windows[-1].text


def test_crlf_and_unicode_line_ends_do_not_shift_line_numbers() -> None:
    windows = cut("", "one\u2028still one\r\n\r\n" + "two " * 150 + "\r\n\r\n" + "three " * 150)
    assert {(window.start_line, window.end_line) for window in windows} == {(1, 3), (3, 3), (3, 5), (5, 5)}
    assert windows[0].start_line == 1


def test_an_empty_body_still_has_a_window() -> None:
    assert cut("T", "", 7) == [("", "", 7, 7)]


@pytest.mark.parametrize(
    "unit", ["a", "中", "中文。", "| a | b |\n", "x. ", "\n", "# h\n", "```\n", "- item\n", "A: b\n", "[x] ", "**a ", "A" * 41]
)
def test_f34_hostile_bodies_are_cut_in_linear_time(unit: str) -> None:
    start = time.process_time()
    windows = cut("x", unit * (200_000 // len(unit)))
    assert time.process_time() - start < 5
    assert max(load(window.text) for window in windows) <= 1.0001
