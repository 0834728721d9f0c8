"""Which sessions there are to draw from on this device: the spool of observations, and Claude Code's transcripts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mdmem.errors import NotFound
from mdmem.memory import spool
from mdmem.memory.sessions import record_of

if TYPE_CHECKING:
    from datetime import datetime

    from mdmem.memory.session_record import SessionRecord
    from mdmem.store import Store


def one_session(store: Store, reference: str) -> SessionRecord:
    """Return the session that a reference names: its id (or the start of it), its note, or a transcript's path.

    Raises NotFound where this device knows nothing of it."""
    path = Path(reference).expanduser()
    if reference.endswith(".jsonl") and path.is_file():
        return _transcript(path)
    if reference.startswith("ses-") or "/" in reference:
        reference = _session_of_note(store, reference)
    common = str(store.common_state_dir)
    if re.fullmatch(r"[\w.-]{4,100}", reference):
        names = [name for name, _ in spool.sessions(common) if name.startswith(reference)]
        record = record_of(store, names[0]) if len(names) == 1 else None
        if record is not None:
            return record
        found = [path for path in _transcripts() if path.stem.startswith(reference)]
        if len(found) == 1:
            return _transcript(found[0])
    raise NotFound(
        f"no session {reference!r} on this device",
        why="facts are drawn from observations and transcripts, which do not leave the device",
        hint="mdmem sessions, or give the path of a transcript",
    )


def sessions_since(store: Store, since: datetime | None, transcripts: bool) -> list[SessionRecord]:
    """Return the sessions with observations here that ended at or after `since`; with `transcripts` also those of which only
    Claude Code's own record is left."""
    common = str(store.common_state_dir)
    found: dict[str, SessionRecord] = {}
    for name, _ in spool.sessions(common):
        record = record_of(store, name)
        if record is not None and not record.empty and (since is None or record.ended >= since):
            found[record.session] = record
    for path in _transcripts() if transcripts else []:
        if path.stem in found or (since is not None and path.stat().st_mtime < since.timestamp()):
            continue
        try:
            record = _transcript(path)
        except (OSError, NotFound):
            continue
        if not record.empty and (since is None or record.ended >= since):
            found.setdefault(record.session, record)
    return list(found.values())


def _transcripts() -> list[Path]:
    from mdmem.memory.transcripts import transcript_files, transcripts_folder

    try:
        return transcript_files(transcripts_folder())
    except NotFound:
        return []


def _transcript(path: Path) -> SessionRecord:
    from mdmem.memory.transcripts import read_transcript, scope_of

    record = read_transcript(path)
    if record is None:
        raise NotFound(f"{path} holds no conversation")
    record.scope = scope_of(record.cwd)
    return record


def _session_of_note(store: Store, reference: str) -> str:
    from mdmem.memory.change import read_any

    return read_any(store, reference).session
