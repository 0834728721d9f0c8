"""Errors as a person meets them."""

from __future__ import annotations

import shlex

import pytest

from mdmem.cli.main import run
from mdmem.errors import typed
from mdmem.store import Store


def test_a_command_to_type_can_be_pasted(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """A title or a place with spaces, quotes or Chinese in it comes back as one word."""
    assert typed("mdmem", "show", "plain-id") == "mdmem show plain-id"
    for title in ("It's a plan; rm -rf $HOME", '上线 "计划"', "a\nb"):
        assert shlex.split(typed("mdmem", "show", title)) == ["mdmem", "show", title]
    note = store.root / "memories/it's a plan.md"
    note.parent.mkdir(exist_ok=True)
    note.write_text("---\ntitle: It's a plan\n---\nText.\n")
    for args in (["set", "It's a plan"], ["show", "memories/it's a plan.md", "--at", "HEAD"]):
        assert run(["-C", str(store.root), *args]) != 0
        tried = capsys.readouterr().err.partition("try: ")[2].strip()
        words = shlex.split(tried)
        assert words[0] == "mdmem" and args[1] in words, tried
