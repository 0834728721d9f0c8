"""The generated pages are what the program says; each setting is explained."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mdmem.config import DEFAULTS, SHARED
from mdmem.config_help import MEANING

ROOT = Path(__file__).resolve().parent.parent


def test_generated_pages_are_current() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools/make_docs.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_setting_is_explained() -> None:
    assert list(MEANING) == list(DEFAULTS)
    assert set(DEFAULTS) >= SHARED


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text("utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name == "README.md" or f"({name})" in index, f"docs/README.md does not name {name}"


def test_each_field_of_the_frontmatter_is_explained() -> None:
    from mdmem.notes.json_schema import json_schema

    silent = [name for name, field in json_schema()["then"]["properties"].items() if not field["description"]]
    assert silent == [], "say in mdmem/notes/json_schema.py what it means, then python tools/make_docs.py"
