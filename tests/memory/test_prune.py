"""Use that is counted, and notes that are let go."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from mdmem.clock import FixedClock, stamp
from mdmem.memory import spool, usage
from mdmem.memory.feedback import rate, ratings
from mdmem.memory.prune import prune
from mdmem.notes.frontmatter import render
from mdmem.notes.note import load
from mdmem.recall.query import Query
from mdmem.recall.recall import recall
from mdmem.setup import init
from mdmem.store import Store

NOW = datetime(2026, 11, 2, tzinfo=timezone.utc)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "none")
    init(tmp_path / "store")
    return Store.open(tmp_path / "store", need="write", clock=FixedClock(NOW))


Keep = Callable[..., str]


@pytest.fixture
def keep(store: Store) -> Keep:
    def write(name: str, days: float, **fields: Any) -> str:
        when = stamp(NOW - timedelta(days=days))
        known = {
            "id": f"mem-{name}",
            "kind": "memory",
            "type": "event",
            "title": f"about {name}",
            "created": when,
            "updated": when,
        }
        data = render({k: v for k, v in {**known, **fields}.items() if v is not None}, f"the text of {name}\n")
        store.folder.create(f"memories/{name}.md", data)
        return f"memories/{name}.md"

    return write


def status(store: Store, path: str) -> str:
    return load(path, store.folder.read_bytes(path)).status


def test_expired_then_faded_then_contradicted_and_nothing_else(store: Store, keep: Keep) -> None:
    keep("fresh", 1)
    keep("expired", 1, expires="2026-11-01T00:00:00Z")
    keep("faded", 900, importance="0.1")
    keep("old-decision", 900, type="decision", importance="0.1")
    keep("doubted", 300, importance="0.8")
    keep("newer", 2, contradicts=["mem-doubted"])
    keep("pinned", 900, importance="0.1", pinned="true")
    keep("core", 900, importance="0.1", tier="core", expires="2026-01-01T00:00:00Z")
    dry = prune(store, dry_run=True)
    assert [(row["id"], row["reason"]) for row in dry.archived] == [
        ("mem-expired", "expired"),
        ("mem-faded", "faded"),
        ("mem-doubted", "contradicted"),
    ]
    assert status(store, "memories/expired.md") == "" and not dry.committed
    done = prune(store)
    assert [row["id"] for row in done.archived] == [row["id"] for row in dry.archived]
    assert done.committed and done.as_dict()["reasons"] == {"contradicted": 1, "expired": 1, "faded": 1}
    assert status(store, "memories/faded.md") == "archived"
    assert status(store, "memories/pinned.md") == status(store, "memories/core.md") == ""
    assert "about faded" not in [hit.title for hit in recall(store, Query("text of faded", mode="keyword", limit=20)).results]
    # The file, and every byte of its text, is still there.
    assert b"the text of faded" in store.folder.read_bytes("memories/faded.md")
    assert prune(store).archived == []


def test_a_tier_and_an_age_narrow_what_is_pruned(store: Store, keep: Keep) -> None:
    keep("low", 900, importance="0.1", tier="peripheral")
    keep("mid", 900, importance="0.1")
    keep("late", 10, expires="2026-11-01T00:00:00Z")
    assert [row["id"] for row in prune(store, tier="peripheral", dry_run=True).archived] == ["mem-low"]
    assert [row["id"] for row in prune(store, older_than="30d", dry_run=True).archived] == ["mem-low", "mem-mid"]


def test_what_was_used_is_kept_and_rises(store: Store, keep: Keep) -> None:
    path = keep("useful", 70, importance="0.5", tier="peripheral")
    keep("idle", 70, importance="0.5")
    data = {"mem-useful": {"weight": 0.7, "count": 0, "used": 9, "last": stamp(NOW)}}
    (store.common_state_dir / "feedback.json").parent.mkdir(parents=True, exist_ok=True)
    (store.common_state_dir / "feedback.json").write_text(json.dumps(data))
    before = load(path, store.folder.read_bytes(path)).get("updated")
    done = prune(store, retier=True)
    assert {row["path"]: (row["from"], row["to"]) for row in done.tiers} == {
        path: ("peripheral", "working"),
        "memories/idle.md": ("working", "peripheral"),
    }
    note = load(path, store.folder.read_bytes(path))
    assert note.text("tier") == "working" and note.get("updated") == before
    assert prune(store, retier=True).tiers == []


def test_one_bad_note_stops_no_other(store: Store, keep: Keep) -> None:
    keep("expired", 1, expires="2026-11-01T00:00:00Z")
    path = keep("locked", 1, expires="2026-11-01T00:00:00Z")
    store.index.refresh()
    # Somebody breaks the block between the look and the write.
    real = store.index.refresh
    store.index.refresh = lambda *a, **k: (real(*a, **k), (store.root / path).write_bytes(b"---\nid: [\n---\n"))[0]  # type: ignore[method-assign]
    done = prune(store)
    assert [row["id"] for row in done.archived] == ["mem-expired"]
    assert [row["note"] for row in done.failed] == [path]


def said(store: Store, session: str, text: str) -> None:
    spool.add(str(store.common_state_dir), session, {"k": "said", "text": text}, NOW.timestamp())


def test_what_a_session_was_given_and_then_cited_counts_as_useful(store: Store, keep: Keep) -> None:
    paths = [keep(name, 1) for name in ("kestrel-nesting", "heron-fishing", "owl-hunting", "wren")]
    before = {path: store.folder.read_bytes(path) for path in paths}
    store.index.refresh()
    common = str(store.common_state_dir)
    usage.given(common, "s1", ["mem-kestrel-nesting", "mem-heron-fishing", "mem-owl-hunting", "memories/wren.md", "bad\nkey"])
    said(store, "s1", "As mem-kestrel-nesting says, and as ABOUT HERON-FISHING tells, about owl")
    assert usage.settle(store, ["s1"]) == {"mem-kestrel-nesting": 1, "mem-heron-fishing": 1}
    kept = ratings(store)
    assert kept["mem-kestrel-nesting"]["weight"] == pytest.approx(0.575)
    assert kept["mem-kestrel-nesting"]["used"] == 1
    assert kept["mem-owl-hunting"] == {"weight": 0.5, "count": 0, "given": 1}
    # A session counts once, and no note was touched.
    assert usage.settle(store, ["s1"]) == {}
    assert {path: store.folder.read_bytes(path) for path in paths} == before
    assert rate(store, "mem-kestrel-nesting", "useful")["weight"] == pytest.approx(0.63875)
    assert ratings(store)["mem-kestrel-nesting"]["used"] == 1


def test_use_is_shared_in_the_own_file_at_most_daily_and_read_from_others(store: Store, keep: Keep) -> None:
    keep("kestrel", 1)
    store.index.refresh()
    assert not usage.share(store)
    usage.given(str(store.common_state_dir), "s1", ["mem-kestrel"])
    said(store, "s1", "see mem-kestrel")
    usage.settle(store, ["s1"])
    assert usage.share(store)
    mine = list((store.root / "agents").iterdir())
    assert json.loads(mine[0].read_text())["use"]["mem-kestrel"]["used"] == 1
    usage.given(str(store.common_state_dir), "s2", ["mem-kestrel"])
    said(store, "s2", "again mem-kestrel")
    usage.settle(store, ["s2"])
    assert not usage.share(store)
    store.clock = FixedClock(NOW + timedelta(days=1, minutes=1))
    assert usage.share(store)
    other = {"agent": "x", "device": "y", "use": {"mem-kestrel": {"used": 5, "last": "2026-10-01T00:00:00Z"}, "bad": 3}}
    (store.root / "agents" / "x@y.json").write_text(json.dumps(other))
    (store.root / "agents" / "z@y.json").write_text("{")
    assert usage.use_of(store)["mem-kestrel"] == {"used": 7, "last": stamp(NOW)}


def test_a_recall_inside_a_session_notes_what_it_showed_without_a_commit(store: Store, keep: Keep, monkeypatch: Any) -> None:
    from click.testing import CliRunner

    from mdmem.cli.main import group

    keep("kestrel", 1)
    store.index.refresh()
    head = subprocess.run(["git", "-C", store.root, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    monkeypatch.setenv("MDMEM_SESSION", "s9")
    monkeypatch.chdir(store.root)
    done = CliRunner().invoke(group, ["recall", "kestrel", "--keyword"])
    assert done.exit_code == 0, done.output
    assert usage._given(str(store.common_state_dir), "s9") == ["mem-kestrel"]
    after = subprocess.run(["git", "-C", store.root, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    assert after == head
    os.utime(store.common_state_dir / "given" / "s9", (1, 1))
    usage.settle(store, [])
    assert usage._given(str(store.common_state_dir), "s9") == []


def test_the_settings_shape_the_curve(store: Store, keep: Keep) -> None:
    keep("old", 200, importance="0.1", confidence="0.5")
    before = prune(store, dry_run=True).archived[0]["score"]
    store.config.values["lifecycle.half_life"] = "2y"
    assert prune(store, dry_run=True).archived == []
    store.config.values |= {"lifecycle.half_life": "30d", "lifecycle.decay": "exponential"}
    keep("peripheral", 200, importance="0.1", confidence="0.5", tier="peripheral")
    assert {row["score"] for row in prune(store, dry_run=True).archived} == {before}


def test_an_older_note_is_no_reason_to_let_a_newer_one_go(store: Store, keep: Keep) -> None:
    keep("strong", 200, type="decision", importance="0.9")
    keep("newer", 60, importance="0.3", contradicts=["mem-strong"])
    assert prune(store, dry_run=True).archived == []
