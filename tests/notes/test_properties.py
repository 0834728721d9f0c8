"""What must hold for any input: no exception, no byte lost, everything reads back."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mdmem.errors import BadNote
from mdmem.notes import block, fences, names
from mdmem.notes.frontmatter import edit, parse, render
from mdmem.notes.note import load
from mdmem.notes.schema import SET_FIELDS, validate
from mdmem.notes.simple import read_simple
from mdmem.notes.values import BadBlock
from tests.examples import examples
from tests.notes.blocks import BLOCKS, FIELDS, KEYS, SCALARS, TEXT, TRICKY, VALUES, files

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.filter_too_much]
SLOW = settings(deadline=None, max_examples=examples(60), suppress_health_check=SLOW_TO_DRAW)


@SLOW
@given(st.one_of(st.binary(), st.builds(lambda a, b: b"---\n" + a + b"\n---\n" + b, st.binary(), st.binary())))
def test_parse_never_raises_on_any_bytes(data: bytes) -> None:
    document = parse(data)
    assert document.body_at + len(data[document.body_at :]) == len(data)
    note = load("a/b.md", data)
    assert note.title and isinstance(note.tags, list)
    validate(note)
    note.effective()


@SLOW
@given(BLOCKS, st.sampled_from(["", "body", "\nx\r\n"]))
def test_parse_of_almost_valid_blocks(text: str, body: str) -> None:
    data = ("---\n" + text + "---\n" + body).encode("utf-8", "replace")
    document = parse(data)
    validate(load("memories/x.md", data))
    if document.problem is not None:
        assert document.problem.code in ("bad", "conflicted") and document.fields == {}
        assert document.problem.line is None or 1 <= document.problem.line <= data.count(b"\n") + 1
        with pytest.raises(BadNote):
            edit(data, {"k": "v"})
    assert edit(data, {}) == data if document.problem is None else True


def by_yaml(text: str) -> dict[str, Any] | None:
    try:
        node, _ = block.compose(text)
    except BadBlock:
        return None
    read = node.read()
    assert isinstance(read, dict)
    return read


@settings(SLOW, max_examples=examples(200))
@given(BLOCKS)
def test_the_quick_reader_agrees_with_yaml(text: str) -> None:
    quick = read_simple(text)
    if quick is not None:
        node, warnings = block.compose(text)
        assert node.read() == quick and list(quick) == [key.value for key in node.keys] and warnings == []


@SLOW
@given(BLOCKS)
def test_pure_python_yaml_reads_the_same_or_refuses(text: str) -> None:
    fast = by_yaml(text)
    kept, block._engine = block._engine, (yaml.BaseLoader, yaml.events, (yaml.YAMLError, ValueError, OverflowError))
    try:
        slow = by_yaml(text)
    finally:
        block._engine = kept
    assert slow is None or slow == fast


def line_counts(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


@settings(SLOW, max_examples=examples(120))
@given(files(), KEYS, VALUES)
def test_one_edit_reads_back_exactly_and_touches_nothing_else(data: bytes, key: str, value: Any) -> None:
    before = parse(data)
    assume(before.problem is None)
    after_data = edit(data, {key: value})
    after = parse(after_data)
    inner = before.fields.get("metadata")
    if key not in before.fields and isinstance(inner, dict) and key in inner:
        got = after.fields["metadata"]
        assert isinstance(got, dict) and got[key] == value
    else:
        assert after.fields[key] == value
    assert after.body == before.body and (after.bom, after.newline) == (before.bom, before.newline)
    assert data[before.body_at :] == after_data[after.body_at :]
    assert_others_untouched(data, after_data, key)


def assert_others_untouched(old: bytes, new: bytes, key: str) -> None:
    """Every line outside the entry that changed is still there, byte for byte, in order."""
    a, b = fences.split(old), fences.split(new)
    assert a.block is not None and b.block is not None
    node, _ = block.compose(a.block)
    place = node.find(key)
    outer = place
    if place < 0 and (outer := node.find("metadata")) >= 0:
        inner = node.items[outer]
        if inner.kind != "map" or inner.find(key) < 0:
            outer = -1
    lines = a.block.splitlines(keepends=True)
    if outer < 0:
        assert b.block.startswith(a.block)
        return
    first = node.keys[outer].line
    following = [other.line for other in node.keys if other.line > first]
    end = min(following, default=len(lines))
    assert b.block.startswith("".join(lines[:first])), "lines above changed"
    assert b.block.endswith("".join(lines[end:])), "lines below changed"


@SLOW
@given(
    files(),
    st.sampled_from(["title", "tags", "l1", "l2", "lit", "lit2", "fold", "metadata", "id", "type", "facts", "fl", "mq", "?"]),
)
def test_removing_a_key_reads_back(data: bytes, key: str) -> None:
    before = parse(data)
    result = edit(data, {key: None})
    after = parse(result)
    assert key not in after.fields and after.body == before.body
    if key not in before.fields and not (
        isinstance(before.fields.get("metadata"), dict) and key in str(before.fields["metadata"])
    ):
        assert result == data


@SLOW
@given(files(), st.sampled_from(["tags", "l1", "l2", "edges", "fl", "none", "dash"]), st.lists(SCALARS, max_size=3), st.data())
def test_a_set_is_edited_item_by_item(data: bytes, key: str, extra: list[str], pick: st.DataObject) -> None:
    before = parse(data)
    old = before.fields.get(key)
    assume(old is not None)
    assert isinstance(old, list)
    keep = [item for item in old if pick.draw(st.booleans())]
    new = keep + extra
    result = edit(data, {key: new})
    assert parse(result).fields[key] == new
    if keep == old and not extra:
        assert result == data


BODIES = st.sampled_from(["", "\n", "a\nb\n", "\n\nx", "---\nk: v\n---\n", "a\r\nb", "a\r\r\nb", "a\rb\r"])


@SLOW
@given(files(), st.one_of(TEXT, BODIES))
def test_another_body_reads_back(data: bytes, body: str) -> None:
    result = edit(data, {}, body=body)
    before, after = parse(data), parse(result)
    assert after.body == re.sub("\r+\n", "\n", body) and after.fields == before.fields
    assert result.startswith(data[: fences.split(data).close_at])


@settings(SLOW, max_examples=examples(120))
@given(FIELDS, st.one_of(TEXT, st.sampled_from(["", "x", "\n\nx", "---\na: b\n---\n", "<<<<<<< x"])))
def test_render_then_parse(fields: dict[str, Any], body: str) -> None:
    data = render(fields, body)
    document = parse(data)
    assert document.problem is None
    expected = {
        key: sorted(set(value))
        if key in SET_FIELDS and isinstance(value, list) and all(isinstance(v, str) for v in value)
        else value
        for key, value in fields.items()
    }
    assert document.fields == expected and list(document.fields) == list(fields)
    wanted = body.replace("\r\n", "\n").replace("\r", "\n")
    assert document.body == (wanted if wanted.endswith("\n") or not wanted else wanted + "\n")
    assert edit(data, fields if not set(fields) & SET_FIELDS else {}) == data


@settings(SLOW, max_examples=examples(120))
@given(FIELDS)
def test_other_readers_see_the_same_texts(fields: dict[str, Any]) -> None:
    """What mdmem writes is not changed by a YAML 1.1 reader, but for dates and steady numbers and truth values."""
    block_text = fences.split(render(fields, "")).block
    assert block_text is not None
    seen = yaml.safe_load(block_text) or {}

    def same(ours: Any, theirs: Any) -> bool:
        if isinstance(ours, str):
            return ours == theirs or (
                not isinstance(theirs, str) and (str(theirs) == ours or str(theirs).lower() == ours or "-" in ours)
            )
        if isinstance(ours, list):
            return len(ours) == len(theirs) and all(map(same, ours, theirs))
        return list(ours) == list(theirs) and all(same(value, theirs[key]) for key, value in ours.items())

    expected = parse(render(fields, "")).fields
    assert same(expected, seen)


@SLOW
@given(st.one_of(st.text(max_size=300), TRICKY))
def test_a_slug_is_safe_everywhere(title: str) -> None:
    name = names.slug(title)
    assert name and len(name.encode()) <= 125
    assert names.slug(name) == name
    for path in (
        names.memory_path(title, "mem-0123456789ab"),
        names.entity_path("project", title),
        names.task_path(title, "task-1"),
    ):
        assert names.unsafe_name(path) is None, path
        assert all(len(part.encode()) <= 200 for part in path.split("/"))
        assert path == path.lower() or not path.isascii()


@SLOW
@given(st.text(max_size=40), st.text(max_size=40))
def test_slugs_that_fold_together_are_equal(one: str, two: str) -> None:
    assert (names.fold(names.slug(one)) == names.fold(names.slug(two))) == (names.slug(one) == names.slug(two))
