"""Which sessions a consolidation reads: by id, by note, by path, since a date; and how much of one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from mdmem.errors import NotFound
from mdmem.learn.consolidate import consolidate
from mdmem.learn.sources import one_session, sessions_since
from mdmem.memory import spool
from mdmem.store import Store
from tests.learn.test_consolidate import memories, talk

HERE = Path(__file__).parent / "transcripts"
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=timezone.utc)


@pytest.fixture
def transcripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Claude Code's folder with three transcripts, named as it names them."""
    folder = tmp_path / "claude" / "projects" / "-home-dev"
    folder.mkdir(parents=True)
    for path in sorted(HERE.glob("a0[123]*.jsonl")):
        first = json.loads(path.read_text("utf-8").splitlines()[0])
        shutil.copy(path, folder / f"{first['sessionId']}.jsonl")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return folder


def observed(store: Store, session: str, *prompts: str) -> None:
    """Leave what hooks leave of a session."""
    common, now = str(store.common_state_dir), NOW.timestamp()
    spool.add(common, session, {"k": "start", "cwd": "/x", "scope": "project:shop"}, now)
    for number, prompt in enumerate(prompts):
        spool.add(common, session, {"k": "prompt", "text": prompt}, now + number)
        spool.add(common, session, {"k": "said", "text": f"Understood, point {number}."}, now + number)


def test_by_id_by_its_start_by_note_and_by_path(store: Store, transcripts: Path) -> None:
    observed(store, "abcd-1234", "We use Redis 7 for caching.", "ok")
    assert one_session(store, "abcd-1234").prompts[0] == "We use Redis 7 for caching."
    assert one_session(store, "abcd").local
    done = consolidate(store, [one_session(store, "abcd-1234")])
    assert one_session(store, done.sessions[0]["note"]).session == "abcd-1234"
    path = sorted(transcripts.iterdir())[0]
    for name in (str(path), path.stem, path.stem[:8]):
        found = one_session(store, name)
        assert found.session == path.stem and found.scope.startswith("project:") and not found.local
    with pytest.raises(NotFound):
        one_session(store, "nobody-knows")
    with pytest.raises(NotFound):
        one_session(store, "/nowhere/at-all.jsonl")


def test_since_a_date_with_and_without_transcripts(store: Store, transcripts: Path) -> None:
    observed(store, "abcd-1234", "We use Redis 7 for caching.")
    (transcripts / "broken.jsonl").write_text("{\n")
    assert [one.session for one in sessions_since(store, None, False)] == ["abcd-1234"]
    assert len(sessions_since(store, None, True)) == 4
    assert sessions_since(store, NOW + timedelta(days=1), True) == []
    assert [one.session for one in sessions_since(store, NOW - timedelta(days=1), True)] == ["abcd-1234"]
    # A session with observations and a transcript is read once.
    path = sorted(transcripts.glob("*-*.jsonl"))[0]
    observed(store, path.stem, "hello")
    assert len(sessions_since(store, None, True)) == 4


def test_lines_of_the_transcript_outlast_those_of_the_spool(store: Store, transcripts: Path) -> None:
    path = next(path for path in transcripts.iterdir() if "PostgreSQL" in path.read_text("utf-8"))
    told = one_session(store, str(path))
    common = str(store.common_state_dir)
    spool.add(
        common, path.stem, {"k": "start", "cwd": "/x", "scope": "project:orders", "transcript": str(path)}, NOW.timestamp()
    )
    for number, prompt in enumerate(told.prompts):
        spool.add(common, path.stem, {"k": "prompt", "text": prompt}, NOW.timestamp() + number)
    record = one_session(store, path.stem)
    assert record.local and [turn.line for turn in record.turns] == [turn.line for turn in told.turns]


def test_of_a_long_session_the_latest_part_is_read(make_store: Callable[..., Store]) -> None:
    record = talk("s1", 0, "U: We use Redis 7 for caching.", "A: " + "word " * 100, "U: The staging port is 8080.")
    store = make_store(**{"extract.max_chars": "300"})
    consolidate(store, [record])
    assert list(memories(store)) == ["The staging port is 8080."]
    wide = make_store("wide", **{"extract.max_facts": "1"})
    assert len(consolidate(wide, [record]).drawn) == 1
    short = make_store("short", **{"extract.min_messages": "50"})
    assert consolidate(short, [record]).drawn == []
    assert os.listdir(short.common_state_dir / "capture") == ["s1.jsonl"]
