"""python-frontmatter over our reader."""

from __future__ import annotations

import datetime
from pathlib import Path

import frontmatter
import pytest

from mdmem.errors import BadNote
from mdmem.notes.frontmatter import parse
from mdmem.notes.handler import MdmemHandler, read_post


def test_values_are_strings_and_text_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"---\nversion: 1.10\nday: 2026-02-30\ninitiative: [[Foo]]\n---\n\nbody\n---\nmore\n")
    post = frontmatter.load(str(path), handler=MdmemHandler())
    assert post.metadata == {"version": "1.10", "day": "2026-02-30", "initiative": "[[Foo]]"}
    assert post.content == "body\n---\nmore"
    again = frontmatter.loads(frontmatter.dumps(post), handler=MdmemHandler())
    assert again.metadata == post.metadata and again.content == post.content


def test_a_bad_block_raises_and_no_block_does_not(tmp_path: Path) -> None:
    with pytest.raises(BadNote, match="line 2"):
        frontmatter.loads("---\ntitle: 'don't'\n---\n", handler=MdmemHandler())
    assert frontmatter.loads("text", handler=MdmemHandler()).content == "text"
    assert frontmatter.loads("", handler=MdmemHandler()).metadata == {}


def test_keys_that_the_library_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("---\ncontent: c\nhandler: h\n---\nbody\n")
    assert read_post(path).metadata == {"content": "c", "handler": "h"}


def test_what_a_script_puts_in_is_written(tmp_path: Path) -> None:
    post = frontmatter.Post("body", MdmemHandler(), n=1, ok=True, day=datetime.date(2026, 1, 2), tags=("b", "a"), none=None)
    text = frontmatter.dumps(post)
    assert parse(text.encode()).fields == {"n": "1", "ok": "true", "day": "2026-01-02", "tags": ["a", "b"], "none": ""}


def test_a_file_that_no_block_can_be_read_from_says_why(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"---\ntitle: 'don't'\n---\n")
    with pytest.raises(BadNote, match="quotes") as caught:
        read_post(path)
    assert caught.value.why == "line 2"
    with pytest.raises(BadNote, match="never closed"):
        frontmatter.loads("---\ntitle: x\n", handler=MdmemHandler())
    detect = MdmemHandler().detect
    assert detect("---\ntitle: x\n---\n") and detect("---\ntitle: x\n") and not detect("title: x\n")


def test_a_map_that_a_script_puts_in_is_written_key_by_key() -> None:
    post = frontmatter.Post("body", MdmemHandler(), facts={"port": 5432, "on": False})
    assert parse(frontmatter.dumps(post).encode()).fields == {"facts": {"port": "5432", "on": "false"}}
