"""Transcripts: what is conversation, what is not, and one note for one session."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from mdmem.memory.session_record import body, from_spool, keep, note_id
from mdmem.memory.sessions import close_sessions
from mdmem.memory.transcripts import import_transcripts, read_transcript
from mdmem.store import Store
from tests.hooks.host import git, make_store

SESSION = "c0185ced-8f29-463c-b949-ae3179fc6587"


class Talk:
    """Writes a transcript as Claude Code does."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.last: str | None = None
        self.count = 0

    def raw(self, **record: Any) -> None:
        self.lines.append(json.dumps(record, ensure_ascii=False))

    def add(self, kind: str, message: dict[str, Any], parent: str | None = "", **more: Any) -> str:
        self.count += 1
        identity = f"u{self.count}"
        at = datetime(2026, 3, 1, 9, self.count % 60, tzinfo=timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        self.raw(
            type=kind,
            uuid=identity,
            parentUuid=self.last if parent == "" else parent,
            isSidechain=False,
            timestamp=at,
            sessionId=SESSION,
            cwd="/home/dev/shop",
            message=message,
            **more,
        )
        self.last = identity
        return identity

    def user(self, text: Any, **more: Any) -> str:
        return self.add("user", {"role": "user", "content": text}, **more)

    def says(self, text: str, identity: str = "", **more: Any) -> str:
        message = {"id": identity or f"msg_{self.count}", "role": "assistant", "content": [{"type": "text", "text": text}]}
        return self.add("assistant", message, **more)

    def uses(self, tool: str, given: dict[str, Any], answer: str = "ok", failed: bool = False) -> None:
        call = f"toolu_{self.count}"
        block = {"type": "tool_use", "id": call, "name": tool, "input": given}
        self.add("assistant", {"id": f"msg_{self.count}", "role": "assistant", "content": [block]})
        result = {"type": "tool_result", "tool_use_id": call, "content": answer, "is_error": failed}
        self.user([result], toolUseResult={})

    def write(self, folder: Path, partial: str = "") -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{SESSION}.jsonl"
        path.write_text("\n".join(self.lines) + "\n" + partial)
        return path


@pytest.fixture
def talk() -> Talk:
    made = Talk()
    made.raw(type="mode", mode="default")
    made.user("Move billing to PostgreSQL")
    made.uses("Edit", {"file_path": "/home/dev/shop/billing.py", "old_string": "a", "new_string": "b"})
    shell = {"command": "PGPASSWORD=hunter2xyz psql", "description": "Run the migration"}
    made.uses("Bash", shell, "Exit code 3\nPGPASSWORD", True)
    made.says("We decided to use PostgreSQL 16 for billing.")
    return made


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(make_store(tmp_path / "store"))


def test_a_conversation_becomes_a_record(talk: Talk, tmp_path: Path) -> None:
    record = read_transcript(talk.write(tmp_path))
    assert record is not None
    assert record.session == SESSION
    assert record.prompts == ["Move billing to PostgreSQL"]
    assert record.said == ["We decided to use PostgreSQL 16 for billing."]
    assert record.edited == ["billing.py"]
    assert record.problems == ["Bash: Run the migration: exit code 3"]
    assert "hunter2" not in body(record)
    assert "- We decided to use PostgreSQL 16 for billing." in body(record)


def test_h29_requests_and_our_own_context_are_not_conversation(talk: Talk, tmp_path: Path) -> None:
    talk.raw(type="api-request", uuid="x1", parentUuid=talk.last, request={"system": "SYSTEM PROMPT", "messages": []})
    inside = {"type": "hook_additional_context", "content": "INJ"}
    talk.raw(type="attachment", uuid="x2", parentUuid=talk.last, attachment=inside)
    talk.last = "x2"
    talk.user('<mdmem-context note="q">OLD MEMORY</mdmem-context>And the tests?')
    talk.user("meta text", isMeta=True)
    talk.user("<command-name>/clear</command-name>")
    talk.says("API Error", isApiErrorMessage=True)
    record = read_transcript(talk.write(tmp_path))
    assert record is not None
    assert record.prompts == ["Move billing to PostgreSQL", "And the tests?"]
    text = body(record)
    assert not any(word in text for word in ("SYSTEM PROMPT", "INJ", "OLD MEMORY", "meta text", "API Error"))


def test_h30_partial_last_line_unknown_records_and_noise(talk: Talk, tmp_path: Path) -> None:
    talk.raw(type="a-kind-of-tomorrow", uuid="z", parentUuid=talk.last, payload=[1, 2])
    talk.lines.insert(1, "not json at all")
    talk.lines.insert(2, "[1, 2, 3]")
    record = read_transcript(talk.write(tmp_path, partial='{"type":"user","uuid":"p","parentUuid":"u6","mess'))
    assert record is not None and record.prompts == ["Move billing to PostgreSQL"]
    with pytest.raises(OSError):
        read_transcript(tmp_path / "missing.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    assert read_transcript(tmp_path / "empty.jsonl") is None


def test_a_rewound_branch_is_left_out(talk: Talk, tmp_path: Path) -> None:
    fork = talk.last
    talk.user("use MongoDB instead")
    talk.says("Using MongoDB.")
    talk.last = fork
    talk.user("keep PostgreSQL and add an index")
    talk.says("Index added.")
    record = read_transcript(talk.write(tmp_path))
    assert record is not None
    assert record.prompts == ["Move billing to PostgreSQL", "keep PostgreSQL and add an index"]
    assert record.said[-1] == "Index added."


def test_blocks_of_one_message_are_one_message(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("explain this please")
    talk.says("First part.", "msg_a")
    talk.says("Second part.", "msg_a")
    record = read_transcript(talk.write(tmp_path))
    assert record is not None and record.said == ["First part.\nSecond part."]


def test_history_before_a_compaction_counts(talk: Talk, tmp_path: Path) -> None:
    talk.raw(type="system", subtype="compact_boundary", uuid="c1", parentUuid=None, logicalParentUuid=talk.last)
    talk.last = "c1"
    talk.user("Summary: billing moved.", isCompactSummary=True)
    talk.user("now write the changelog")
    record = read_transcript(talk.write(tmp_path))
    assert record is not None
    assert record.prompts == ["Move billing to PostgreSQL", "now write the changelog"]
    assert record.summary == "Summary: billing moved."


def test_a_loop_of_parents_ends(tmp_path: Path) -> None:
    talk = Talk()
    talk.add("user", {"role": "user", "content": "round and round"}, parent="u2")
    talk.says("yes")
    assert read_transcript(talk.write(tmp_path)) is not None


def test_secrets_do_not_pass(tmp_path: Path, store: Store) -> None:
    talk = Talk()
    talk.user("the token is ghp_" + "a1B2" * 9 + " use it")
    talk.raw(type="custom-title", customTitle="password=hunter2xyz")
    import_transcripts(store, talk.write(tmp_path / "t"))
    (note,) = (store.root / "sessions").rglob("*.md")
    assert b"a1B2a1B2" not in note.read_bytes() and b"hunter2" not in note.read_bytes()


def test_importing_twice_is_once_and_growth_renews(talk: Talk, tmp_path: Path, store: Store) -> None:
    source = tmp_path / "projects"
    path = talk.write(source / "-home-dev-shop")
    (source / "-home-dev-shop" / SESSION / "subagents").mkdir(parents=True)
    (source / "-home-dev-shop" / SESSION / "subagents" / "agent-1.jsonl").write_text(path.read_text())
    (source / "broken.jsonl").mkdir()
    dry = import_transcripts(store, source, dry_run=True)
    assert (dry.created, list((store.root / "sessions").rglob("*.md"))) == (1, [])
    first = import_transcripts(store, source)
    assert (first.created, first.committed, len(first.failed)) == (1, True, 1)
    (note,) = (store.root / "sessions").rglob("*.md")
    assert note.parent.name == "03" and note.parent.parent.name == "2026"
    text = note.read_text()
    assert "scope: project:shop" in text or 'scope: "project:shop"' in text
    again = import_transcripts(store, source)
    assert (again.created, again.updated, again.unchanged) == (0, 0, 1)
    assert note.read_text() == text
    talk.user("and add a rollback")
    talk.write(source / "-home-dev-shop")
    grown = import_transcripts(store, source)
    assert grown.updated == 1
    assert list((store.root / "sessions").rglob("*.md")) == [note]
    assert "add a rollback" in note.read_text()
    assert git(store.root, "status", "--porcelain") == ""


def test_a_note_that_somebody_rewrote_is_left_alone(talk: Talk, tmp_path: Path, store: Store) -> None:
    path = talk.write(tmp_path / "t")
    import_transcripts(store, path)
    (note,) = (store.root / "sessions").rglob("*.md")
    note.write_text(note.read_text() + "\nMy own remark.\n")
    talk.user("one more thing to do")
    talk.write(tmp_path / "t")
    assert import_transcripts(store, path).unchanged == 1
    assert "My own remark." in note.read_text() and "one more thing" not in note.read_text()


def test_spool_and_transcript_meet_in_one_note(talk: Talk, tmp_path: Path, store: Store) -> None:
    records = [
        {"t": 1772355500.0, "k": "start", "scope": "project:shop", "cwd": "/home/dev/shop"},
        {"t": 1772355501.0, "k": "prompt", "text": "Move billing to PostgreSQL"},
        {"t": 1772355600.0, "k": "said", "text": "Half done."},
    ]
    record = from_spool(SESSION, records, "shared")
    assert record is not None
    assert keep(store, record)[1] == "created"
    assert keep(store, record)[1] == "unchanged"
    done = import_transcripts(store, talk.write(tmp_path / "t"))
    assert (done.created, done.updated) == (0, 1)
    assert len(list((store.root / "sessions").rglob("*.md"))) == 1
    assert note_id(record).startswith("ses-202603")


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", "folder", "gone", "a\0b", "lone\ud800"])
def test_what_is_no_transcript_is_refused_and_never_waited_for(name: str, tmp_path: Path) -> None:
    """The worker read a device for ever, and kept its lock; a name that is none ended the closing of every session."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError):
        read_transcript(tmp_path / name)


def test_a_session_whose_transcript_is_none_is_kept_and_so_are_the_others(tmp_path: Path) -> None:
    store = Store.open(make_store(tmp_path / "store"), need="write")
    os.mkfifo(tmp_path / "pipe")
    for number, name in enumerate((str(tmp_path / "pipe"), "/dev/zero", "a\0b", "lone\ud800", "")):
        records = [
            {"t": 1.0, "k": "start", "source": "startup", "cwd": str(tmp_path), "scope": "shared", "transcript": name},
            {"t": 2.0, "k": "prompt", "text": f"we decided on harbor number {number}"},
            {"t": 3.0, "k": "end", "reason": "exit"},
        ]
        spool = store.common_state_dir / "spool" / f"s{number}.jsonl"
        spool.parent.mkdir(parents=True, exist_ok=True)
        spool.write_text("".join(json.dumps(record) + "\n" for record in records))
    written = close_sessions(store, [f"s{number}" for number in range(5)])
    assert len(written) == 5
