"""Sessions as the team sees them: which there were, what each did and left, and the commits that were made in it."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError, NotFound
from mdmem.recall.query import Filters
from mdmem.recall.select import nameable, note_by, rows, showable

if TYPE_CHECKING:
    import sqlite3

    from mdmem.notes.note import Note
    from mdmem.store import Store

HANDOFF = "handoff"
_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*$")
_NEXT = re.compile(r"(?:next(?: steps?)?|to ?do|open|remaining|left to do|下一步|待办)\b", re.IGNORECASE)
_NEXT_LINE = re.compile(r"[-*\s]*(?:\*\*)?(?:next(?: steps?)?|下一步)(?:\*\*)?\s*[:：]\s*(?:\*\*)?\s*(.+)", re.IGNORECASE)
_LOGGED = re.compile(r"- \d{4}-\d{2}-\d{2} \d{2}:\d{2} \*\*(next|decided|decision|决定)\*\*: (.+)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")
_SHORT = 240


def sessions(store: Store, *, agent: str = "", since: datetime | None = None, limit: int = 0) -> list[sqlite3.Row]:
    """Return the rows of sessions and logs that this agent may read, newest first; handoffs are none."""
    store.index.refresh(embed_budget_s=0.0)
    name, _, device = agent.partition("@")
    filters = Filters(kinds=("session",), agents=(name,) if name else None, since=since)
    found = rows(store, filters, "ORDER BY n.updated DESC, n.path")
    found = [row for row in found if row["type"] != HANDOFF and (not device or row["device"] == device)]
    return found[:limit] if limit else found


def as_row(row: sqlite3.Row) -> dict[str, Any]:
    """Return a session's row as JSON data."""
    shown = ("id", "path", "type", "title", "scope", "agent", "device", "session", "created", "updated")
    return {name: row[name] or "" for name in shown}


def find(store: Store, reference: str) -> sqlite3.Row:
    """Return the row of a session by its note or by the host's id of it. Raises NotFound, Ambiguous."""
    store.index.refresh(embed_budget_s=0.0)
    found = rows(store, Filters(kinds=("session",), retired=True), "ORDER BY n.updated DESC")
    for row in found:
        if row["session"] == reference and row["type"] != "log":
            return row
    for row in found:
        if row["session"] == reference:
            return row
    try:
        row = note_by(store, reference)
    except NotFound:
        raise NotFound(f"no session is named {reference!r}", hint="mdmem sessions") from None
    if row["kind"] != "session":
        raise NotFound(f"{reference} is no session", hint="mdmem sessions")
    return row


def show(store: Store, reference: str) -> dict[str, Any]:
    """Return a session: its note, its log, what it left, and the commits that its trailer links to it."""
    row = find(store, reference)
    note = store.folder.read(row["path"])
    out = {**as_row(row), **told(note), "body": note.body}
    others = [r for r in sessions(store) if r["session"] and r["session"] == row["session"] and r["path"] != row["path"]]
    out["also"] = [as_row(other) for other in others]
    out["commits"] = commits_of(store, row["session"] or "")
    return out


def commits_of(store: Store, session: str) -> list[dict[str, Any]]:
    """Return the commits of a session, newest first: {rev, date, subject, paths}; [] without git or a session's id."""
    from mdmem.repo.history import commits

    if not session:
        return []
    try:
        if store.git.rev("HEAD") is None:
            return []
        named = f"--grep=Mdmem-Session: {session}"
        found = commits(store.git, "--fixed-strings", named, "--end-of-options", "HEAD")
    except MdmemError:
        return []
    may_name, shows = nameable(store), showable(store)
    out = []
    for commit in found:
        if commit.trailers.get("Mdmem-Session") != session:
            continue
        paths = [path for entry in commit.entries if (path := store.from_git(entry.path)) and may_name(path)]
        if paths or not commit.entries:
            # A subject names the note that was written.
            subject = commit.subject if shows(commit) else ""
            out.append({"rev": commit.rev, "date": commit.date, "subject": subject, "paths": paths})
    return out


def told(note: Note) -> dict[str, Any]:
    """Return {next, decisions, files, outcome} as a session's note tells them, each as far as it does."""
    parts = _parts(note.body)
    logged = [(match[1], match[2].strip()) for line in note.body.splitlines() if (match := _LOGGED.match(line))]
    steps = note.words("next") + [text for action, text in logged if action == "next"]
    for heading, lines in parts:
        if _NEXT.match(heading):
            steps += _items(lines)
        steps += [match[1].strip() for line in lines if (match := _NEXT_LINE.match(line))]
    by_name = {heading.lower(): lines for heading, lines in parts}
    outcome = " ".join(" ".join(by_name.get("outcome", [])).split())
    return {
        "next": [_short(step) for step in dict.fromkeys(steps)],
        "decisions": [
            _short(item)
            for item in (*_items(by_name.get("decisions", [])), *(text for action, text in logged if action != "next"))
        ],
        "files": _items(by_name.get("files", [])),
        "outcome": _short(outcome),
    }


def _parts(body: str) -> list[tuple[str, list[str]]]:
    out: list[tuple[str, list[str]]] = [("", [])]
    for line in body.splitlines():
        match = _HEADING.match(line)
        if match:
            out.append((match[1], []))
        else:
            out[-1][1].append(line)
    return out


def _items(lines: list[str]) -> list[str]:
    return [" ".join(_ITEM.sub("", line).split()) for line in lines if line.strip()]


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else text[: _SHORT - 1].rstrip() + "…"
