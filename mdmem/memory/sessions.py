"""Closing sessions: from the spool of a session that ended to its note, commit included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdmem.memory import spool
from mdmem.memory.session_record import SessionRecord, from_spool, keep
from mdmem.memory.write import commit

if TYPE_CHECKING:
    from mdmem.store import Store

# Hours of silence after which a session without an end is taken as over (its terminal was closed, its machine went down).
SILENT = 6


def close_sessions(store: Store, ended: list[str]) -> list[str]:
    """Write the notes of these sessions and of those that ended without a word; returns the paths written.

    A spool that has its note stays until it expires: a session may be resumed.
    """
    common = str(store.common_state_dir)
    now = store.clock.now().timestamp()
    names = [spool.safe(session) for session in ended]
    for name, last in spool.sessions(common):
        if now - last > SILENT * 3600 and name not in names:
            names.append(name)
    written = []
    for name in dict.fromkeys(names):
        path, action = _close(store, name)
        if action in ("created", "updated"):
            written.append(path)
    spool.expire(common, now)
    if written:
        commit(store, written, "session: " + (f"{len(written)} notes" if len(written) > 1 else "a note"))
    return written


def record_of(store: Store, name: str) -> SessionRecord | None:
    """Return what is known of a session from its spool (and its transcript, when that knows more), None for nothing."""
    records = spool.records(str(store.common_state_dir), name)
    record = from_spool(name, records, store.default_scope)
    return None if record is None else _fuller(record, records)


def _close(store: Store, name: str) -> tuple[str, str]:
    record = record_of(store, name)
    return ("", "empty") if record is None else keep(store, record)


def _fuller(record: SessionRecord, records: list[dict[str, object]]) -> SessionRecord:
    """Return the transcript's facts instead when it knows more turns: hooks may have been installed under way. When it knows
    as many, its lines are what facts are traced back to: they outlast the spool."""
    from pathlib import Path

    from mdmem.memory.transcripts import read_transcript

    named = [r["transcript"] for r in records if isinstance(r.get("transcript"), str)]
    if not named:
        return record
    try:
        told = read_transcript(Path(str(named[-1])))
    except OSError:
        return record
    if told is None or len(told.prompts) < len(record.prompts):
        return record
    if len(told.prompts) == len(record.prompts):
        record.turns = told.turns
        return record
    told.session, told.scope, told.local = record.session, record.scope, True
    return told
