"""The pages of docs/: their links lead somewhere, what they list is what there is, their examples work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mdmem.mcp.tools import PROMPTS, TOOLS
from mdmem.memory.import_records import import_any
from mdmem.notes.schema import validate
from mdmem.store import Store

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "templates").glob("README.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"(?ms)^```.*?^```|`[^`\n]*`", "", page.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_page_on_mcp_lists_the_tools_that_there_are() -> None:
    page = (ROOT / "docs/mcp.md").read_text("utf-8")
    rows = dict(re.findall(r"(?m)^\| `(memory_\w+)` \| [^|]+ \|([^|]*)\|$", page))
    assert set(rows) == {tool["name"] for tool in TOOLS}
    for tool in TOOLS:
        assert bool(rows[tool["name"]].strip()) is not tool["annotations"]["readOnlyHint"], tool["name"]
    assert all(f"`{prompt['name']}`" in page for prompt in PROMPTS)


def test_the_documented_ndjson_is_imported_as_it_says(store: Store, tmp_path: Path) -> None:
    page = (ROOT / "docs/import-export.md").read_text("utf-8")
    (example,) = re.findall(r"(?ms)^```json\n(.*?)^```$", page)
    path = tmp_path / "notes.ndjson"
    path.write_text(example)
    done = import_any(store, path)
    assert (done.created, done.failed) == (len(example.splitlines()), [])
    note = next(note for note in (store.folder.read(place) for place in done.paths) if note.title == "Deploy day")
    record = json.loads(example.splitlines()[0])
    assert (note.type, note.tags, note.scope) == (record["type"], record["tags"], record["scope"])
    assert (note.importance, note.created, note.source) == (0.8, record["created"], "import:42")
    # Each other name that the page lists is read as the field in its row.
    table = re.findall(r"(?m)^\| (`\w+`(?:, `\w+`)*) \| [^|]+ \| ([^|]*) \|$", page)
    named = {name: re.findall(r"`(\w+)`", others) for names, others in table for name in re.findall(r"`(\w+)`", names)}
    dates = {"created": ["created_at", "createdAt", "timestamp"], "updated": ["updated_at", "updatedAt"]}
    dates |= {"valid_until": ["invalidated_at"], "expires": ["forgetAfter", "expires_at"]}
    for number, (field, other) in enumerate(
        [*((field, other) for field, others in dates.items() for other in others), *(("text", o) for o in named["text"])]
    ):
        value = "2026-02-03T04:05:06Z" if field != "text" else f"Said under {other}."
        path.write_text(json.dumps({"text": f"Number {number} of {other}.", "title": f"T{number}"} | {other: value}))
        if field == "text":
            path.write_text(json.dumps({other: value}))
        (place,) = import_any(store, path).paths
        made = store.folder.read(place)
        assert validate(made) == []
        assert (made.body.strip() if field == "text" else made.text(field)) == value, (field, other)
