"""Out and in again: identical notes; what other programs export; one bad record stops no other."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mdmem.errors import MdmemError, Refused
from mdmem.memory.exporting import FORMATS, export
from mdmem.memory.import_records import import_any
from mdmem.memory.records import Given, LeftOut, Unread, moment_of, read_records
from mdmem.memory.remember import Memory, remember
from mdmem.recall.query import Filters
from mdmem.store import Store

ALL = Filters(retired=True)


def files(store: Store) -> dict[str, bytes]:
    return {found.path: store.folder.read_bytes(found.path) for found in store.folder.scan()}


def fill(store: Store) -> dict[str, bytes]:
    remember(store, Memory("decision", "We deploy on Thursdays.", tags=["deploy"]))
    remember(store, Memory("fact", "数据库用 PostgreSQL。", title="数据库"))
    folder = store.root / "entities" / "project"
    folder.mkdir(parents=True)
    (folder / "apollo.md").write_bytes(b"\xef\xbb\xbf---\r\ntype: project\r\ntitle: Apollo # mine\r\n---\r\nbody")
    (folder / "bad.md").write_bytes(b"---\ntitle: 'don't'\n---\n")
    (folder / "latin.md").write_bytes(b"---\ntitle: x\n---\ncaf\xe9\n")
    return files(store)


@pytest.mark.parametrize("form", FORMATS)
def test_round_trip_to_the_byte(make_store: Callable[..., Store], tmp_path: Path, form: str) -> None:
    store, other = make_store("one"), make_store("two")
    before = fill(store)
    ending = {"ndjson": "x.ndjson", "json": "x.json", "es-bulk": "x.ndjson", "zip": "x.zip"}.get(form, "folder")
    target = tmp_path / "out" / ending
    assert export(store, target, form, ALL).notes == len(before)
    if form in ("markdown", "obsidian"):
        copied = {p.relative_to(target).as_posix(): p.read_bytes() for p in target.rglob("*.md")}
        assert copied == before
    dry = import_any(other, target, dry_run=True)
    done = import_any(other, target)
    assert (dry.created, len(dry.failed)) == (done.created, len(done.failed)) == (len(before), 0)
    assert files(other) == before
    again = import_any(other, target)
    assert (again.created, again.unchanged) == (0, len(before))


def test_filters_and_local_notes_stay_home(store: Store, tmp_path: Path) -> None:
    fill(store)
    remember(store, Memory("fact", "Only here.", scope="local"))
    # One that a person wrote into the store by hand, and meant for this machine.
    store.folder.create("memories/by-hand.md", b"---\nid: mem-hand\nscope: local\n---\nOnly here too.\n")
    stream = io.BytesIO()
    done = export(store, None, "ndjson", Filters(types=("decision",), retired=True), stream)
    assert done.notes == 1 and json.loads(stream.getvalue())["title"] == "We deploy on Thursdays"
    everything = io.BytesIO()
    export(store, None, "ndjson", ALL, everything)
    assert b"Only here" not in everything.getvalue() and b"by-hand" not in everything.getvalue()


def test_an_export_neither_lands_in_the_store_nor_over_files(store: Store, tmp_path: Path) -> None:
    fill(store)
    for place in (store.root, store.root / "out"):
        with pytest.raises(Refused):
            export(store, place, "markdown", ALL)
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("x")
    with pytest.raises(Refused):
        export(store, full, "markdown", ALL)
    assert (full / "mine.txt").read_text() == "x"


FOREIGN: list[dict[str, Any]] = [
    # bridge, as Elasticsearch returns it
    {"_id": "m1", "_source": {"memory_id": "mem-1", "type": "decision", "title": "DB", "content": "We use PostgreSQL.",
     "tags": ["db"], "access_scope": "claude-only", "created_at": "2026-01-02T03:04:05Z"}},
    # UltraMemory / LanceDB
    {"id": "u1", "text": "Prefers tabs.", "category": "preferences", "timestamp": 1767323045000, "importance": 0.7,
     "metadata": "{\"l0_abstract\": \"Tabs\"}"},
    # agentmemory
    {"id": "a1", "type": "architecture", "title": "Queue", "content": "NATS, not Kafka.", "concepts": ["queue"],
     "createdAt": "2026-02-01"},
    # mem0
    {"id": "x", "memory": "Lives in Berlin.", "created_at": "2026-03-01T00:00:00+01:00"},
]  # fmt: skip


def test_what_other_programs_export(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "foreign.json"
    path.write_text(json.dumps({"memories": [*FOREIGN, {"id": "empty"}, 5]}))
    done = import_any(store, path)
    assert (done.created, len(done.failed)) == (4, 2)
    notes = {note.title: note for note in (store.folder.read(p) for p in done.paths)}
    assert (notes["DB"].type, notes["DB"].scope, notes["DB"].tags) == ("decision", "agent:claude", ["db"])
    assert notes["DB"].created == "2026-01-02T03:04:05Z" and notes["DB"].source == "import:mem-1"
    assert (notes["Tabs"].type, notes["Tabs"].importance) == ("preference", 0.7)
    assert notes["Queue"].type == "decision" and notes["Lives in Berlin"].created == "2026-02-28T23:00:00Z"
    assert import_any(store, path).unchanged == 4


def test_the_graph_of_the_reference_mcp_server(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    lines = [
        {"type": "entity", "name": "Apollo", "entityType": "project", "observations": ["runs on NATS", "owner is Mei"]},
        {"type": "entity", "name": "Mei", "entityType": "person", "observations": []},
        {"type": "relation", "from": "Apollo", "to": "Mei", "relationType": "owned_by"},
    ]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    done = import_any(store, path)
    assert (done.created, done.failed) == (2, [])
    apollo = next(note for note in (store.folder.read(p) for p in done.paths) if note.title == "Apollo")
    assert apollo.body == "- runs on NATS\n- owner is Mei\n" and apollo.edges()["relates_to"] == ["Mei"]
    assert apollo.words("relations") == ["owned_by: Mei"]


def test_relations_keep_their_meaning_and_none_is_lost(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    entities = [{"name": "Apollo", "entityType": "project", "observations": ["x"]}]
    relations = [
        {"from": "Apollo", "to": "Ledger", "relationType": "dependsOn"},
        {"from": "Nobody", "to": "Apollo", "relationType": "owns"},
    ]
    path.write_text(json.dumps({"entities": entities, "relations": relations}))
    done = import_any(store, path)
    assert store.folder.read(done.paths[0]).edges()["depends_on"] == ["Ledger"]
    assert [row["path"] for row in done.failed] == ["relation Nobody"]


def test_f35_a_broken_record_is_named_and_stops_no_other(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text('{"content": "one"}\nnot json\n[]\n{"content": ""}\n{"content": "two", "created_at": "someday"}\n')
    done = import_any(store, path)
    assert done.created == 2 and [row["path"] for row in done.failed] == ["line 2", "line 3", "line 4"]


OUTSIDE = ["../out.md", "/etc/x.md", "a/../../x.md", ".git/x.md", "memories/con.md", "C:\\x.md", "a\x00.md"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_record_cannot_name_a_place_outside(store: Store, tmp_path: Path, name: str) -> None:
    before = files(store)
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"format": "mdmem-note", "path": name, "text": "x"}]))
    assert len(import_any(store, path).failed) == 1 and files(store) == before
    archive = tmp_path / "x.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr(zipfile.ZipInfo(name if "\x00" not in name else "../y.md"), "x")
    done = import_any(store, archive)
    assert done.created == 0 and files(store) == before


def test_secrets_are_taken_out_on_the_way_in(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"content": "password=hunter2-and-more"}]))
    done = import_any(store, path)
    assert done.redacted and b"hunter2" not in store.folder.read_bytes(done.paths[0])


def test_what_is_no_zip(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(b"PK nothing")
    with pytest.raises(MdmemError, match="not a zip"):
        import_any(store, path)


def _entry(data: bytearray, name: bytes, local: int, central: int, value: int) -> None:
    """Set a field of two bytes of an entry in both of its headers, at these offsets from their beginning."""
    for at, offset in ((data.index(name) - 30, local), (data.rindex(name) - 46, central)):
        data[at + offset : at + offset + 2] = value.to_bytes(2, "little")


def test_an_entry_that_cannot_be_unpacked_stops_no_other(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as made:
        for name in ("first", "strange", "locked", "damaged", "last"):
            made.writestr(f"{name}.md", f"---\ntype: fact\ntitle: {name}\n---\nThe word of {name} is {name * 3}.\n")
    data = bytearray(path.read_bytes())
    _entry(data, b"strange.md", 8, 10, 99)  # a way of packing that Python does not know
    _entry(data, b"locked.md", 6, 8, 1)  # needs a password
    data[data.index(b"damageddamaged")] ^= 1
    path.write_bytes(data)
    done = import_any(store, path)
    assert done.created == 2 and sorted(item["path"] for item in done.failed) == ["damaged.md", "locked.md", "strange.md"]
    assert all(all(item.values()) for item in done.failed)
    assert len([name for name in files(store) if "first" in name or "last" in name]) == 2


KEYS = "format path text content metadata entities relations observations name type tags _source memories importance"
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda below: st.lists(below) | st.dictionaries(st.sampled_from(KEYS.split()) | st.text(), below),
    max_leaves=12,
)


@given(JSON)
@example({"entities": [], "path": {"x": 1}})
def test_any_json_is_read_without_an_exception(value: Any) -> None:
    for item in read_records(json.dumps(value)):
        assert isinstance(item, (Given, LeftOut, Unread)) or item.start is not None
    moment_of(value)
