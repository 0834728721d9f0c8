"""The laws of the merge, as properties over notes and over arbitrary bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from mdmem.notes.frontmatter import parse
from mdmem.repo import merge as merge_module
from mdmem.repo.merge import find_conflicts, merge, read_markers, settle
from tests.examples import examples
from tests.repo.notes_strategy import lines, notes, versions

MANY = int(os.environ.get("MDMEM_TEST_MERGES", "50"))
TRIES = settings(max_examples=examples(MANY), deadline=None, suppress_health_check=list(HealthCheck))
Triple = tuple[bytes | None, bytes, bytes]
SIGNS = (
    *(b"---\n", b"<<<<<<< a\n", b"=======\n", b"|||||||\n", b">>>>>>> b\n", b"\xef\xbb\xbf", b"\r\n", b"\0", b"\xff\xfe"),
    *(b"<!-- mdmem:conflict -->\n", b"<!-- mdmem:version 1 -->\n", b"<!-- mdmem:conflict end -->\n", b"conflicts:\n"),
    *(b"  - field: a\n", b"<!-- mdmem:begin x -->\n", b"<!-- mdmem:end -->\n", b"```\n", b"text\n", b"- item\n"),
    *(b"tags: [a, b]\n", b"\n", b"\t", b"'", b"id: x\n"),
)
WILD = st.one_of(st.binary(max_size=60), st.lists(st.sampled_from(SIGNS), max_size=14).map(b"".join))


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a failure inside the merge be seen: that nothing is ever raised has its own test."""
    real = merge_module._merge

    def loud(*args: object) -> object:
        try:
            return real(*args)  # type: ignore[arg-type]
        except Exception as error:
            raise BaseException(f"inside the merge: {error!r}") from error

    monkeypatch.setattr(merge_module, "_merge", loud)
    yield


def words(data: bytes) -> list[str]:
    return [line.strip() for line in parse(data).body.split("\n") if line.strip()]


def readable(*files: bytes | None) -> bool:
    return all(parse(data).problem is None for data in files if data is not None)


def fresh(base: bytes | None, *sides: bytes) -> bool:
    """Tell whether each line stands once and none was moved: else which copy an edit meant is not known."""
    old = words(base or b"")
    for side in (*sides, base or b""):
        new = words(side)
        if len(set(new)) < len(new):
            return False
        if [line for line in new if line in old] != [line for line in old if line in new]:
            return False
    return [x for x in words(sides[0]) if x in words(sides[1])] == [x for x in words(sides[1]) if x in words(sides[0])]


@TRIES
@given(versions())
@example((b"---\nid: a\n---\nx\n", b"---\nid: b\n---\nx\n", b"---\nid: c\n---\nx\n"))
def test_swapping_the_sides_gives_the_same_bytes(strict: None, texts: Triple) -> None:
    base, ours, theirs = texts
    assert merge(base, ours, theirs) == merge(base, theirs, ours)


@TRIES
@given(versions())
def test_the_result_reads_as_a_note_when_both_sides_do(strict: None, texts: Triple) -> None:
    base, ours, theirs = texts
    assume(readable(ours, theirs))
    assert readable(merge(base, ours, theirs).text)


@TRIES
@given(notes(), notes())
def test_a_text_that_one_side_changed_is_that_sides(one: bytes, two: bytes) -> None:
    assert merge(one, one, two).text == two == merge(one, two, one).text
    assert merge(one, two, two).text == two == merge(None, two, two).text


@TRIES
@given(versions())
def test_merging_a_result_with_itself_or_again_with_one_side_adds_nothing(strict: None, texts: Triple) -> None:
    base, ours, theirs = texts
    assume(readable(ours, theirs) and fresh(base, ours, theirs))
    merged = merge(base, ours, theirs).text
    assert merge(base, merged, merged).text == merged
    for side in (ours, theirs):
        assert merge(side, merged, side).text == merged
        if base is None or words(merged) != words(base):
            again = merge(base, merged, side)
            assert words(again.text) == words(merged)
            assert parse(again.text).fields == parse(merged).fields
            assert not again.conflicts


@pytest.mark.xfail(reason="one more version is recorded, no word is lost; a sync has theirs for its base then", strict=True)
def test_merging_a_result_again_over_the_old_base_adds_no_version_where_both_took_the_block_out() -> None:
    """Found by a thousand examples: both sides took the frontmatter out and moved one line past another."""
    base, ours, theirs = b"---\ntitle: a\n---\n\n\nbeta\nw0x v0y\n", b"alpha\nbeta\n", b"w0x v0y\nalpha\n"
    merged = merge(base, ours, theirs).text
    for side in (ours, theirs):
        assert merge(base, merged, side).text == merged


@TRIES
@given(versions())
def test_no_line_of_a_body_is_lost_unless_the_other_side_deleted_it(strict: None, texts: Triple) -> None:
    base, ours, theirs = texts
    assume(readable(ours, theirs))
    kept = set(words(merge(base, ours, theirs).text))
    old = set(words(base or b""))
    for one, two in ((ours, theirs), (theirs, ours)):
        for line in words(one):
            assert line in kept or (line in old and line not in words(two))


@TRIES
@given(versions())
def test_no_value_of_a_field_without_a_rule_is_lost_unless_the_other_side_replaced_it(strict: None, texts: Triple) -> None:
    base, ours, theirs = texts
    assume(readable(base, ours, theirs))
    merged = merge(base, ours, theirs).text
    old, result = parse(base or b"").fields, parse(merged).fields
    waiting = {c.field: {v.text for v in c.versions} for c in find_conflicts(merged)}
    for one, two in ((ours, theirs), (theirs, ours)):
        other = parse(two).fields
        for key, value in parse(one).fields.items():
            if key in ("title", "priority", "x-custom", "note", "scope") and isinstance(value, str):
                there = result.get(key) == value or value in waiting.get(key, ())
                assert there or (base and old.get(key) == value and other.get(key) != value)


@TRIES
@given(WILD, WILD, WILD)
@example(b"", b"---\na: 1\n---\n", b"---\na: 2\n---\n")
def test_it_never_raises_on_any_bytes(base: bytes, ours: bytes, theirs: bytes) -> None:
    merged = merge(base, ours, theirs)
    assert merge(base, theirs, ours) == merged
    assert merge(base, merged.text, merged.text).text == merged.text
    if readable(ours, theirs):
        assert readable(merged.text)
    for data in (base, ours, merged.text):
        read_markers(data)
        find_conflicts(data)


@TRIES
@given(versions())
def test_settling_everything_leaves_no_conflict_and_a_note(strict: None, texts: Triple) -> None:
    base, ours, theirs = texts
    assume(readable(ours, theirs))
    merged = merge(base, ours, theirs).text
    assume(find_conflicts(merged))
    for keep in ("1", "2"):
        settled = settle(merged, None, keep)
        assert readable(settled) and find_conflicts(settled) == []
        # Where both have settled it the same way, or one has and the other did nothing, there is nothing left to ask.
        assert merge(merged, settled, merged).text == settled


@TRIES
@given(st.lists(lines, max_size=8), st.lists(lines, max_size=8), st.lists(lines, max_size=8))
def test_three_clones_end_with_the_same_words(strict: None, one: list[str], two: list[str], three: list[str]) -> None:
    """Merging a third version in either order loses none of the three and asks for no more than the versions."""
    base = b"---\nid: mem-a\n---\n\nfirst\n\nlast\n"
    sides = [base.replace(b"first\n", "\n".join(["first", *part]).encode() + b"\n") for part in (one, two, three)]
    left = merge(base, merge(base, sides[0], sides[1]).text, sides[2]).text
    right = merge(base, sides[0], merge(base, sides[1], sides[2]).text).text
    for side in sides:
        assert set(words(side)) <= set(words(left)) and set(words(side)) <= set(words(right))
