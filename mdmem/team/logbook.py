"""The log: one line per action of an agent, kept in a note per session (or per day, outside of any session)."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mdmem.clock import FixedClock, stamp
from mdmem.errors import ConflictFound, UsageError
from mdmem.team import work

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.store import Store

ACTION = re.compile(r"[a-z][a-z0-9_-]{0,39}$")
LINE = re.compile(r"- (\d{4}-\d{2}-\d{2} \d{2}:\d{2}) \*\*([a-z][a-z0-9_-]*)\*\*: (.*)$")


class _Fixed:
    """The random part of a log's id, made from what it is the log of: two processes make one file."""

    def __init__(self, text: str) -> None:
        self.bits = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:5], "big")

    def getrandbits(self, k: int, /) -> int:
        return self.bits


def session_of(environment: dict[str, str] | None = None) -> str:
    """Return the host's id of the session that this process runs in, '' for none."""
    found = os.environ if environment is None else environment
    session = found.get("CLAUDE_CODE_SESSION_ID") or found.get("MDMEM_SESSION") or ""
    return session if session.isprintable() and len(session) <= 100 else ""


def log(store: Store, action: str, summary: str, *, files: Iterable[str] = (), tags: Iterable[str] = ()) -> tuple[Note, str]:
    """Add one line to the log of this session (or of this day); returns (the log's note, the line).

    It is committed with the next sync or session end. Raises UsageError."""
    from mdmem.notes import names

    action = action.strip().lower()
    if not ACTION.match(action):
        raise UsageError(f"not an action: {action!r}", why="it is one word, such as fixed, reviewed, deployed, next")
    text = " ".join(work.gate(summary).split())
    if not text:
        raise UsageError("there is nothing to log", hint='mdmem log fixed "The proxy drops idle connections"')
    touched = [" ".join(work.gate(file).split()) for file in files if file.strip()]
    words = sorted({"-".join(work.gate(tag).strip().lstrip("#").split()) for tag in tags} - {""})
    now = store.clock.now()
    line = f"- {stamp(now)[:16].replace('T', ' ')} **{action}**: {text}"
    line += f" ({', '.join(f'`{file}`' for file in touched)})" if touched else ""
    line += "".join(f" #{word}" for word in words)
    session = session_of()
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    identity = names.time_id("log", FixedClock(day), _Fixed(f"{session or stamp(day)} {store.identity}"))
    path = names.session_path(identity, day)
    for _ in range(5):
        if not store.folder.exists(path):
            fields: dict[str, Any] = {
                "id": identity,
                "kind": "session",
                "type": "log",
                "title": f"Log of {store.identity}, {stamp(day)[:10]}",
                "tags": words,
                "scope": store.default_scope,
                "agent": store.identity.agent,
                "device": store.identity.device,
                "session": session,
                "created": stamp(now),
                "updated": stamp(now),
            }
            try:
                return work.create(store, path, fields, line, "log", batch=True)[0], line
            except ConflictFound:
                continue  # another process of this session was quicker
        note = store.folder.read(path)
        more = sorted({*note.tags, *words})
        changes = {"tags": more} if more != note.tags else {}
        try:
            return _append(store, note, changes, line), line
        except ConflictFound:
            continue
    raise ConflictFound(f"{path} keeps changing under this command", hint="try again")


def _append(store: Store, note: Note, changes: dict[str, Any], line: str) -> Note:
    from mdmem.errors import BadNote
    from mdmem.notes.frontmatter import edit

    if not note.ok:
        raise BadNote(f"{note.path} cannot be changed", why="it cannot be parsed", hint="mdmem check")
    changes = {**changes, "updated": stamp(store.clock.now())}
    store.folder.write(note.path, edit(note.data, changes, body=f"{note.body.rstrip()}\n{line}\n"), note.sha)
    return store.folder.read(note.path)
