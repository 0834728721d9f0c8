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
from mdmem.memory import shown, usage
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


def shown_to(store: Store, session: str, *lines: tuple[str, str, str]) -> None:
    shown.add(str(store.common_state_dir), session, [shown.line(*line) for line in lines])


def said(store: Store, session: str, text: str) -> list[str]:
    """What the Stop hook does with an agent's message."""
    return shown.cite(str(store.common_state_dir), session, text)


def test_what_a_session_was_given_and_then_cited_counts_as_useful(store: Store, keep: Keep) -> None:
    names = ("kestrel-nesting", "heron-fishing", "owl-hunting", "wren")
    paths = {name: keep(name, 1) for name in names}
    before = {path: store.folder.read_bytes(path) for path in paths.values()}
    store.index.refresh()
    rows = [(f"mem-{name}", paths[name], f"About {name}") for name in names]
    shown_to(store, "s1", *rows, ("bad\nkey", "", ""))
    # Each turn counts, each note once; a name inside a longer one is no citation.
    assert said(store, "s1", "As mem-kestrel-nesting says, see mem-owl-hunting-2 and mem-wrens") == ["mem-kestrel-nesting"]
    assert said(store, "s1", "As mem-kestrel-nesting says, and as ABOUT HERON-FISHING tells") == ["mem-heron-fishing"]
    assert usage.settle(store, ["s1"]) == {"mem-kestrel-nesting": 1, "mem-heron-fishing": 1}
    kept = ratings(store)
    assert kept["mem-kestrel-nesting"]["weight"] == pytest.approx(0.575)
    assert kept["mem-kestrel-nesting"]["used"] == 1
    assert kept["mem-owl-hunting"] == {"weight": 0.5, "count": 0, "given": 1}
    # A session counts once, and no note was touched.
    assert usage.settle(store, ["s1"]) == {}
    assert {path: store.folder.read_bytes(path) for path in paths.values()} == before
    assert rate(store, "mem-kestrel-nesting", "useful")["weight"] == pytest.approx(0.63875)
    assert ratings(store)["mem-kestrel-nesting"]["used"] == 1


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("see memories/wren.md:3", True),
        ("见 mem-wren。", True),
        ("按照发布流程的约定来做", True),
        ("mem-wrens", False),
        ("the release", False),
        ("", False),
    ],
)
def test_a_citation_is_an_id_a_path_or_a_long_title_as_a_whole(store: Store, text: str, cited: bool) -> None:
    shown_to(store, "s1", ("mem-wren", "memories/wren.md", "发布流程的约定"), ("mem-x", "memories/x.md", "release"))
    assert said(store, "s1", text) == (["mem-wren"] if cited else [])


def test_a_session_that_went_silent_counts_after_a_while(store: Store, keep: Keep) -> None:
    keep("kestrel", 1)
    store.index.refresh()
    shown_to(store, "s1", ("mem-kestrel", "", ""))
    said(store, "s1", "see mem-kestrel")
    path = store.common_state_dir / "cited" / "s1"
    os.utime(path, (NOW.timestamp() - 3600, NOW.timestamp() - 3600))
    assert usage.settle(store, []) == {} and path.exists()
    os.utime(path, (NOW.timestamp() - 7 * 3600, NOW.timestamp() - 7 * 3600))
    assert usage.settle(store, []) == {"mem-kestrel": 1} and not path.exists()


def test_what_the_mcp_server_showed_counts_for_the_session_that_cites_it(store: Store, keep: Keep) -> None:
    from mdmem.mcp import actions

    keep("kestrel", 1)
    store.index.refresh()
    for look in (lambda: actions.search(store, {"query": "kestrel"}), lambda: actions.get(store, {"note": "mem-kestrel"})):
        assert "kestrel" in look()
        assert said(store, "s7", "as mem-kestrel says") == ["mem-kestrel"]
        assert usage.settle(store, ["s7"]) == {"mem-kestrel": 1}
        (store.common_state_dir / "given" / shown.OUTSIDE).unlink()


def test_what_is_purged_leaves_no_trace_in_what_was_shown(store: Store, keep: Keep) -> None:
    from mdmem.memory.forget import forget

    keep("kestrel", 1)
    store.index.refresh()
    shown_to(store, "s1", ("mem-kestrel", "memories/k.md", "About kestrel and more"), ("mem-x", "", ""))
    said(store, "s1", "mem-kestrel and mem-x")
    forget(store, ["mem-kestrel"], purge=True)
    left = [path.read_text() for folder in ("given", "cited") for path in (store.common_state_dir / folder).iterdir()]
    assert left == ["mem-x\n", "mem-x\n"]


def test_use_is_shared_in_the_own_file_at_most_daily_and_read_from_others(store: Store, keep: Keep) -> None:
    keep("kestrel", 1)
    store.index.refresh()
    assert not usage.share(store)
    shown_to(store, "s1", ("mem-kestrel", "", ""))
    said(store, "s1", "see mem-kestrel")
    usage.settle(store, ["s1"])
    assert usage.share(store)
    mine = list((store.root / "agents").iterdir())
    assert json.loads(mine[0].read_text())["use"]["mem-kestrel"]["used"] == 1
    shown_to(store, "s2", ("mem-kestrel", "", ""))
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
    assert shown.keys(str(store.common_state_dir), "s9") == ["mem-kestrel"]
    after = subprocess.run(["git", "-C", store.root, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    assert after == head
    os.utime(store.common_state_dir / "given" / "s9", (1, 1))
    usage.settle(store, [])
    assert shown.keys(str(store.common_state_dir), "s9") == []


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


def test_a_pinned_memory_is_never_let_go_and_nothing_is_deleted(store: Store, keep: Keep) -> None:
    over = stamp(NOW - timedelta(days=1))
    pinned, core = keep("pinned", 900, pinned="true", expires=over), keep("core", 900, tier="core", expires=over)
    plain = keep("plain", 900, expires=over)
    done = prune(store)
    assert [row["path"] for row in done.archived] == [plain]
    assert [status(store, path) for path in (pinned, core, plain)] == ["", "", "archived"]
    assert "the text of plain" in store.folder.read_bytes(plain).decode()
