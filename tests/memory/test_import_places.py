"""Where imported notes go: the dry run counts what the real one does, other stores are left alone, kinds find their place."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mdmem.errors import Refused
from mdmem.memory.import_records import import_any
from mdmem.memory.placing import Imported
from mdmem.notes.schema import validate
from mdmem.store import Store
from tests.examples import examples

TEXTS = [
    "Plain text.\n",
    "Plain text. \n",
    "---\nid: mem-one\ntype: fact\ntitle: One\n---\nOne.\n",
    "---\nid: mem-one\ntype: fact\ntitle: Another one\n---\nTwo.\n",
    "---\nid: mem-one\ntitle: A page\n---\nThree.\n",
    "---\nkind: entity\ntype: project\ntitle: Apollo\n---\n",
    "---\nkind: entity\ntype: project\ntitle: APOLLO\n---\nOther.\n",
    "---\ntitle: A page\nlayout: wide\n---\nText.\n",
    "---\ntype: fact\nscope: local\ntitle: Mine\n---\nOnly here.\n",
    "---\nkind: task\ntitle: 'don't'\n---\n",
    "---\nkind: memory\ntitle: Empty\n---\n",
    "password=hunter2-and-more\n",
]
NAMES = ["a.md", "A.md", "b.md", "x/a.md", "x/b.md", "X/c.md", "con.md", "ü.md", "ü.md", "a.md/c.md"]
FORMS = ["folder", "ndjson", "zip"]
COUNTS = itertools.count()


def counted(done: Imported) -> Any:
    return done.created, done.unchanged, done.redacted, done.failed, done.left_out


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(TEXTS)), max_size=6), st.sampled_from(FORMS))
@example([("a.md", TEXTS[2]), ("b.md", TEXTS[3])], "folder")
@example([("a.md", TEXTS[5]), ("b.md", TEXTS[6])], "folder")
@example([("a.md", TEXTS[7]), ("A.md", TEXTS[7])], "ndjson")
@example([("a.md", TEXTS[7]), ("a.md/c.md", TEXTS[7])], "ndjson")
@example([("a.md/c.md", TEXTS[7]), ("a.md", TEXTS[7])], "ndjson")
@example([("x/a.md", TEXTS[7]), ("X/c.md", TEXTS[7])], "ndjson")
def test_a_dry_run_counts_exactly_what_a_real_run_does(
    make_store: Callable[..., Store], tmp_path: Path, given_files: list[tuple[str, str]], form: str
) -> None:
    number = next(COUNTS)
    store = make_store(f"store-{number}")
    if form == "ndjson":
        source = tmp_path / f"{number}.ndjson"
        records = [{"format": "mdmem-note", "path": name, "text": text} for name, text in given_files]
        source.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif form == "zip":
        import zipfile

        source = tmp_path / f"{number}.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for name, text in dict(given_files).items():
                archive.writestr(name, text)
    else:
        source = tmp_path / f"source-{number}"
        source.mkdir()
        for name, text in given_files:
            place = source / name
            if not any(place.is_relative_to(path) or path.is_relative_to(place) for path in source.rglob("*.md")):
                place.parent.mkdir(exist_ok=True)
                place.write_text(text)
    before = {path: path.read_bytes() for path in store.root.rglob("*.md")}
    dry = import_any(store, source, dry_run=True)
    assert {path: path.read_bytes() for path in store.root.rglob("*.md")} == before
    real = import_any(store, source)
    assert counted(dry) == counted(real)
    again = import_any(store, source)
    assert again.created == 0 and again.unchanged + len(again.failed) == real.created + real.unchanged + len(real.failed)
    assert not any(b"scope: local" in path.read_bytes() for path in store.root.rglob("*.md") if form == "folder")


def test_other_stores_and_repositories_in_a_folder_are_left_alone_and_named(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "notes"
    for name in ("a", "inner", "code/docs", "node_modules/x"):
        (source / name).mkdir(parents=True)
        (source / name / "n.md").write_text(f"Text of {name}.\n")
    (source / "inner" / ".mdmem.toml").write_text("format = 1\n")
    subprocess.run(["git", "init", "-q", str(source / "code")], check=True)
    (source / "link.md").symlink_to(source / "a" / "n.md")
    (source / "loop").symlink_to(source)
    done = import_any(store, source)
    assert done.created == 1 and done.failed == []
    told = {row["path"]: row["reason"] for row in done.left_out}
    assert set(told) == {"inner", "code", "node_modules", "link.md", "loop"}
    assert "mdmem store" in told["inner"] and "git repository" in told["code"] and "link" in told["loop"]
    # By itself each can be brought in.
    assert import_any(store, source / "code").created == 1


def test_a_folder_of_the_store_is_no_source(store: Store, tmp_path: Path) -> None:
    (store.root / "memories").mkdir(exist_ok=True)
    (tmp_path / "alias").symlink_to(store.root / "memories")
    for source in (store.root, store.root / "memories", tmp_path / "alias"):
        with pytest.raises(Refused, match="lies in the store"):
            import_any(store, source)


def test_an_id_with_another_content_is_a_failure_by_name(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(TEXTS[2])
    assert import_any(store, path).created == 1
    path.write_text(TEXTS[3])
    done = import_any(store, path)
    assert done.created == done.unchanged == 0 and "mem-one is there already" in done.failed[0]["reason"]


def test_local_notes_never_enter_the_repository(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"content": "Only on this machine."}]))
    assert import_any(store, path, scope="local").created == 1
    assert list(store.root.rglob("*.md")) == [] and len(list(store.local_folder.root.rglob("*.md"))) == 1
    assert import_any(store, path, scope="local").unchanged == 1


BRIDGE: list[dict[str, Any]] = [
    {"message_id": "msg-1", "from_agent": "claude", "to_agent": "codex", "type": "request", "subject": "Look at the plan",
     "body": "Please.", "machine": "laptop", "created_at": "2026-01-02T03:04:05Z", "thread_id": "msg-1", "status": "unread"},
    {"task_id": "task-1", "agent": "claude", "machine": "laptop", "title": "Upgrade", "description": "To 16.",
     "status": "in_progress", "priority": "high", "tags": ["db"], "created_at": "2026-01-02T03:04:05Z"},
    {"task_id": "task-2", "title": "Test it", "parent_task": "task-1", "status": "completed", "outcome": "green"},
    {"session_id": "s1", "agent": "claude", "machine": "laptop", "action": "deploy", "summary": "Released 1.2.",
     "files_touched": ["a.py"], "timestamp": "2026-01-02T03:04:05Z"},
    {"entity_id": "claude-initiative-ledger", "entity_type": "initiative", "title": "Ledger", "content": "The new ledger.",
     "status": "active", "priority": "high", "relationships": [{"to_id": "x-project-apollo", "rel_type": "blocked_by"}]},
    {"event_id": "e1", "entity_id": "x", "snapshot_at": "2026-01-01", "title": "Ledger", "status": "active"},
    {"memory_id": "mem-1", "type": "decision", "title": "DB", "content": "We use PostgreSQL.", "access_scope": "shared"},
]  # fmt: skip


def test_every_kind_of_bridge(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "bulk.ndjson"
    path.write_text("".join(f'{{"index": {{}}}}\n{json.dumps(record)}\n' for record in BRIDGE))
    dry = import_any(store, path, dry_run=True)
    done = import_any(store, path)
    assert counted(dry) == counted(done) and (done.created, done.failed, len(done.left_out)) == (6, [], 1)
    notes = {note.title: note for note in (store.folder.read(place) for place in done.paths)}
    assert all(validate(note) == [] for note in notes.values())
    assert {title: note.kind for title, note in notes.items()} == {
        "Look at the plan": "message",
        "Upgrade": "task",
        "Test it": "task",
        "deploy: Released 1.2": "session",
        "Ledger": "entity",
        "DB": "memory",
    }
    assert (notes["Upgrade"].status, notes["Test it"].status, notes["Test it"].outcome) == ("active", "done", "green")
    store.index.refresh(embed_budget_s=0.0)
    rows = store.index.catalog.rows("SELECT rel, dst FROM edges WHERE rel = 'part_of'")
    assert [row["dst"] is not None for row in rows] == [True]  # the old id of the task leads to its note
    assert notes["Ledger"].edges()["blocked_by"] == ["x-project-apollo"]
    from mdmem.team import messages

    assert messages.as_row(notes["Look at the plan"], store)["from"] == "claude@laptop"
    assert import_any(store, path).unchanged == 6


def test_the_export_of_agentmemory(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "agentmemory.json"
    export = {
        "version": "0.9.29",
        "exportedAt": "2026-05-01T00:00:00Z",
        "sessions": [{"id": "s1", "project": "/home/u/shop"}],
        "observations": {"s1": [{"id": "o1"}, {"id": "o2"}]},
        "memories": [
            {"id": "m1", "type": "architecture", "title": "Queue", "content": "NATS.", "concepts": ["queue"], "isLatest": True},
            {"id": "m2", "type": "fact", "title": "Old queue", "content": "Kafka.", "isLatest": False},
        ],
        "summaries": [
            {"sessionId": "s1", "project": "shop", "createdAt": "2026-04-01T10:00:00Z", "title": "Moved to NATS",
             "narrative": "We moved.", "keyDecisions": ["NATS it is"], "filesModified": ["q.py"], "concepts": ["queue"]}
        ],
        "lessons": [{"id": "l1", "content": "Drain before the switch.", "confidence": 0.6}],
        "proceduralMemories": [{"name": "Release", "steps": ["tag", "push"], "triggerCondition": "on Thursdays"}],
        "graphNodes": [{"id": "g"}],
    }  # fmt: skip
    path.write_text(json.dumps(export))
    done = import_any(store, path)
    assert (done.created, done.failed) == (5, [])
    assert {row["path"] for row in done.left_out} == {"sessions (1)", "observations (2)", "graphNodes (1)"}
    notes = {note.title: note for note in (store.folder.read(place) for place in done.paths)}
    assert notes["Old queue"].status == "superseded" and notes["Queue"].type == "decision"
    assert notes["Moved to NATS"].kind == "session" and "- NATS it is" in notes["Moved to NATS"].body
    assert notes["Release"].type == "procedure" and "1. tag" in notes["Release"].body
    assert import_any(store, path).unchanged == 5


def test_the_export_of_ultramemory(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "memory-backup.json"
    meta = {"l0_abstract": "Tabs", "memory_category": "preferences", "tier": "core", "confidence": 0.9, "fact_key": "tabs",
            "invalidated_at": 1767323045000}  # fmt: skip
    record = {"id": "u1", "text": "Prefers tabs.", "category": "preference", "scope": "agent:main", "importance": 0.7,
              "timestamp": 1767323045000, "metadata": json.dumps(meta)}  # fmt: skip
    path.write_text(json.dumps({"version": "1.0", "exportedAt": "x", "count": 1, "filters": {}, "memories": [record]}))
    done = import_any(store, path)
    note = store.folder.read(done.paths[0])
    assert (note.title, note.type, note.tier, note.confidence, note.status) == ("Tabs", "preference", "core", 0.9, "superseded")
    assert note.scope == "agent:main" and note.fact_key == "tabs" and validate(note) == []


VALUES = st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2), max_leaves=3)
FIELDS = "message_id from_agent to_agent subject body task_id title status session_id action summary entity_id entity_type"


@settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
@given(st.lists(st.dictionaries(st.sampled_from(FIELDS.split()), VALUES, min_size=2), min_size=1, max_size=4))
def test_f35_any_record_is_taken_or_named(make_store: Callable[..., Store], tmp_path: Path, records: list[Any]) -> None:
    number = next(COUNTS)
    path = tmp_path / f"{number}.json"
    path.write_text(json.dumps(records))
    store = make_store(f"any-{number}")
    dry = import_any(store, path, dry_run=True)
    done = import_any(store, path)
    assert counted(dry) == counted(done)
    assert done.created + done.unchanged + len(done.failed) + len(done.left_out) == len(records)
    assert all(store.folder.read(place).ok for place in done.paths)
