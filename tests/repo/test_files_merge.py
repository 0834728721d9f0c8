"""Merging files that are no notes: counters by key, texts by git, and the same bytes whichever side is ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmem.repo.files_merge import _counters, merge_file, sibling, siblings
from mdmem.repo.git import Git

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from("abc"), JSON), st.dictionaries(st.sampled_from("abc"), JSON))
def test_counters_of_two_sides_join_to_the_same_bytes_either_way(one: object, two: object) -> None:
    sides = json.dumps(one).encode(), json.dumps(two).encode()
    joined = _counters(*sides)
    assert joined == _counters(*reversed(sides)) and joined is not None
    assert _counters(joined, sides[0]) == joined == _counters(sides[1], joined)  # nothing is counted twice


def test_numbers_that_are_equal_but_written_apart_end_up_the_same() -> None:
    for one, two in ((b'{"n": 1}', b'{"n": 1.0}'), (b'{"n": NaN}', b'{"n": 3}'), (b'{"n": true}', b'{"n": 1}')):
        assert _counters(one, two) == _counters(two, one)


@pytest.mark.parametrize("damaged", [b"{", b"[1]", b"[" * 100_000, b"\xff"])
def test_counters_that_cannot_be_read_are_merged_as_text_or_clash(tmp_path: Path, repo: Path, damaged: bytes) -> None:
    good = b'{"a": 1}\n'
    assert _counters(good, damaged) is None
    assert merge_file(Git(repo), good, good, damaged, "agents/a@b.json") == damaged
    assert merge_file(Git(repo), b'{"a": 0}\n', good, damaged, "agents/a@b.json") is None
    assert merge_file(Git(repo), b'{"a": 0}\n', good, b'{"a": 2}\n', "agents/a@b.json") == b'{\n "a": 2\n}\n'


def test_the_other_version_lies_beside_and_is_found_by_its_name(repo: Path) -> None:
    oid = "0123456789abcdef"
    for path in ("a/b.txt", ".gitignore", "Makefile", "x.tar.gz", "a.b/c"):
        beside = sibling(path, oid)
        target = repo / beside
        target.parent.mkdir(exist_ok=True, parents=True)
        target.write_text("x")
        assert (beside, path) in siblings(Git(repo))
