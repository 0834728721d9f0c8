"""Input made to be slow is read, or refused, in time that grows with its length."""

from __future__ import annotations

import time

import pytest

from mdmem.notes.frontmatter import parse
from mdmem.notes.markdown import first_heading, inline_tags
from mdmem.notes.note import load

K = 60_000
HOSTILE = {
    "blanks then a tab": b"---\na: b" + b" " * K + b"\t\n---\n",
    "item of blanks": b"---\na:\n  - " + b" " * K + b"\x07\n---\n",
    "quoted then blanks": b'---\na: "b"' + b" " * K + b"\x07\n---\n",
    "brackets": b"---\na: " + b"[" * K + b"\n---\n",
    "braces": b"---\na: " + b"{a: " * (K // 4) + b"\n---\n",
    "dashes": b"---\n" + b"- " * (K // 2) + b"\n---\n",
    "links": b"---\n" + b"- [[a]]\n" * (K // 8) + b"---\n",
    "links in a list": b"---\na:\n" + b"- [[a]]\n" * (K // 8) + b"---\n",
    "link openers": b"---\na: " + b"[[" * (K // 2) + b"\n---\n",
    "keys": b"---\n" + b"".join(b"k%d: v\n" % n for n in range(5000)) + b"---\n",
    "question marks": b"---\n" + b"? " * (K // 2) + b"\n---\n",
    "quotes": b"---\na: '" + b"''" * (K // 2) + b"\n---\n",
    "never closed": b"---\n" + b"a: b\n" * 400_000,
    "markers": b"<<<<<<< x\n" * 300_000,
    "half markers": b"x\n" + b"<<<<<<< x\n=======\n" * 200_000,
    "carriage returns": b"---\n" + b"\r" * K + b"\n---\n",
    "blank lines": b"\n" * 4_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_f38_hostile_files_take_no_time(name: str) -> None:
    started = time.process_time()
    load("memories/x.md", HOSTILE[name])
    parse(HOSTILE[name])
    assert time.process_time() - started < 2.0


@pytest.mark.parametrize(
    "body",
    ["`" * K, "# " + " " * K + "x", "#" * K, " ".join("`" * n for n in range(500)), "#a" * K, "# x " + "#" * K],
    ids=["ticks", "blanks", "signs", "runs", "tags", "closing"],
)
def test_f32_bodies_take_no_time(body: str) -> None:
    started = time.process_time()
    first_heading(body)
    inline_tags(body)
    assert time.process_time() - started < 1.0
