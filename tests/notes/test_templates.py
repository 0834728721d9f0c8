"""The templates that are shipped: valid once filled in, harmless until then."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from mdmem.notes.note import load
from mdmem.notes.schema import KINDS, default_kind, validate

FOLDER = Path(__file__).resolve().parents[2] / "templates"
FILES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
KIND = {"decision": "memory", "project": "entity", "initiative": "entity"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_filled_in_template_is_a_note_without_findings(path: Path) -> None:
    raw = path.read_text("utf-8")
    filled = raw.replace("{{title}}", "A: title").replace("{{date:YYYY-MM-DD}}", "2026-11-30")
    assert "{{" not in filled
    note = load("x.md", filled.encode())
    assert note.ok and validate(note) == [] and note.title == "A: title" and note.created == "2026-11-30"
    assert note.kind == KIND.get(path.stem, path.stem) and not note.id
    assert load("tasks/x.md", raw.encode()).kind == "note", "an unfilled template is no task"


def test_every_kind_has_a_template_and_a_snippet() -> None:
    assert {KIND.get(path.stem, path.stem) for path in FILES} | {"entity"} == set(KINDS)
    snippets = json.loads((FOLDER / "mdmem.code-snippets").read_text("utf-8"))
    assert {entry["prefix"] for entry in snippets.values()} == {f"mdmem-{path.stem}" for path in FILES}
    for entry in snippets.values():
        text = "\n".join(entry["body"]).replace("${1:${TM_FILENAME_BASE}}", "T")
        text = text.replace("${CURRENT_YEAR}-${CURRENT_MONTH}-${CURRENT_DATE}", "2026-11-30")
        text = re.sub(r"\$\{\d+\|([^,|]*)[^}]*\}", r"\1", text)
        text = re.sub(r"\$\{\d+:([^}]*)\}|\$\{\d+\}|\$0", r"\1", text)
        note = load("x.md", text.encode())
        assert "$" not in text and note.ok and validate(note) == [] and note.title == "T"
        assert note.kind == KIND.get(entry["prefix"][6:], entry["prefix"][6:])


def test_the_two_files_of_a_store() -> None:
    assert (FOLDER / ".gitattributes").read_text() == "*.md -text merge=mdmem\n"
    assert tomllib.loads((FOLDER / ".mdmem.toml").read_text("utf-8")) == {"format": 1}
    assert default_kind("README.md") == "note"
