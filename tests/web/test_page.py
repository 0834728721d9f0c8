"""The page's files and the page as one file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from mdmem.errors import UsageError
from mdmem.memory.remember import Memory, remember
from mdmem.store import Store
from mdmem.web import page
from mdmem.web.page import SCRIPTS, data_block, export, static

from .conftest import clash, furnish

STATIC = Path(page.__file__).parent / "static"


def test_the_page_loads_nothing_from_elsewhere_and_has_nothing_inline() -> None:
    text = static("index.html")[0].decode()
    assert re.findall(r'<script src="/([^"]+)"', text) == list(SCRIPTS)
    assert not re.search(r"<script>|<style|\son\w+=|\sstyle=|https?://", text)
    assert not re.search(r"url\(|@import|https?://", static("style.css")[0].decode())
    for name in SCRIPTS:
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", static(name)[0].decode()), name


def test_text_reaches_the_page_in_one_place_and_never_as_markup() -> None:
    for name in SCRIPTS:
        text = static(name)[0].decode()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc", text
        )
        assert "</script" not in text.lower(), name
    assert sorted(p.name for p in STATIC.iterdir()) == sorted(set(page.FILES.values()))


def test_every_word_of_the_page_has_a_translation() -> None:
    known = set(re.findall(r'"((?:[^"\\]|\\.)+)":\s', static("words.js")[0].decode()))
    used = {word for name in SCRIPTS for word in re.findall(r'\bt\("([^"]+)"\)', static(name)[0].decode())}
    assert used - known == set()


def test_export_is_one_file_that_needs_nothing(store: Store, tmp_path: Path) -> None:
    furnish(store)
    path = clash(store)
    remember(store, Memory("fact", "Only on this machine.", title="Mine alone", tags=["hidden-tag"], scope="local"))
    done = export(store, tmp_path / "memory.html")
    text = (tmp_path / "memory.html").read_text("utf-8")
    assert done["notes"] >= 16 and done["left_out"] == 0
    assert not re.search(
        r"<script[^>]+src=|<link|@import|url\(|https?://(?!www\.w3\.org/2000/svg)", text.partition('id="data"')[0]
    )
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None and policy[1].startswith("default-src 'none'")
    for element, body in (
        ("script", re.findall(r"<script>(.*?)</script>", text, re.S)[0]),
        ("style", re.findall(r"<style>(.*?)</style>", text, re.S)[0]),
    ):
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy[1]
    block = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[0]
    data = json.loads(block)
    assert path in data["notes"] and data["timelines"][path]["events"]
    assert "<" not in block and "Mine alone" not in block and "hidden-tag" not in block
    assert str(tmp_path) not in block, block[block.index(str(tmp_path)) - 80 :][:200]
    assert (tmp_path / "memory.html").stat().st_mode & 0o077 == 0


def test_export_replaces_only_an_export(store: Store, tmp_path: Path) -> None:
    mine = tmp_path / "notes.md"
    mine.write_text("my own words")
    with pytest.raises(UsageError):
        export(store, mine)
    with pytest.raises(UsageError):
        export(store, tmp_path)
    assert mine.read_text() == "my own words"
    export(store, tmp_path / "a.html")
    export(store, tmp_path / "a.html")
    assert not list(tmp_path.glob(".a.html*"))


def test_a_data_block_cannot_end_its_element() -> None:
    evil = "</script><!--<script>&\u2028\ud800"
    text = data_block({"x": evil})
    assert not set("<>&") & set(text) and text.isascii() and json.loads(text) == {"x": evil}
