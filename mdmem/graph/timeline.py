"""What happened to one note and around it, by date: its commits with the fields that changed, and what was linked to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError
from mdmem.graph.nodes import brief, name_of, ready, rows_of
from mdmem.recall.select import agent_scopes, may_read, note_by, showable_revs

if TYPE_CHECKING:
    import sqlite3

    from mdmem.notes.note import Note
    from mdmem.repo.history import Change
    from mdmem.store import Store

# Fields that change with every write, and say nothing of themselves.
_QUIET = frozenset(("updated", "digest", "turns"))
_LONG = 120


def timeline(store: Store, reference: str, limit: int = 0) -> dict[str, Any]:
    """Return {note, events}, newest first: {date, event, who, subject, rev, changes} of its own commits, and
    {date, event: linked, rel, from} for each note that points at it. Raises NotFound, Ambiguous."""
    among = ready(store)
    row = note_by(store, reference)
    events = _commits(store, row) if not row["folder"] else []
    for one in store.index.neighbours(row["rowid"], 1, None, "in", among=among):
        other = rows_of(store, [one.note]).get(one.note)
        if other is not None:
            events.append(
                {
                    "date": other["created"] or "",
                    "event": "linked",
                    "rel": one.steps[0].rel,
                    "from": name_of(other),
                    "title": other["title"],
                    "kind": other["kind"],
                }
            )
    events.sort(key=lambda event: event["date"], reverse=True)
    return {"note": brief(row), "events": events[:limit] if limit else events}


def _commits(store: Store, row: sqlite3.Row) -> list[dict[str, Any]]:
    from mdmem.notes.note import load
    from mdmem.repo.git import BlobReader
    from mdmem.repo.history import log_of

    patterns = agent_scopes(store)
    try:
        log: list[Change] = log_of(store.git, store.to_git(row["path"]))
        with BlobReader(store.git) as blobs:
            read = list(blobs.many(f"{change.rev}:{change.path}" for change in log))
    except MdmemError:
        return []
    shown = showable_revs(store, [change.rev for change in log])
    notes = [load(change.path, data) if data is not None else None for change, data in zip(log, read)]
    out = []
    for place, (change, note) in enumerate(zip(log, notes)):
        if note is not None and not may_read(note.scope, patterns):
            continue
        before = notes[place + 1] if place + 1 < len(notes) else None
        if before is not None and not may_read(before.scope, patterns):
            before = None
        agent, device = change.trailers.get("Mdmem-Agent", ""), change.trailers.get("Mdmem-Device", "")
        event = {
            "date": change.date,
            "event": {"A": "created", "D": "deleted", "R": "renamed"}.get(change.status, "changed"),
            "who": f"{agent}@{device}" if agent else change.author,
            "session": change.trailers.get("Mdmem-Session", ""),
            "subject": change.subject if change.rev in shown else "",
            "rev": change.rev,
            "changes": differences(before, note),
        }
        out.append(event)
    return out


def differences(before: Note | None, after: Note | None) -> list[dict[str, str]]:
    """Return {field, was, now} of the fields that differ between two versions, and of the body when it does."""
    if after is None:
        return []
    old = before.effective() if before is not None else {}
    new = after.effective()
    out = []
    for name in dict.fromkeys([*new, *old]):
        if name not in _QUIET and old.get(name) != new.get(name) and (before is not None or name in ("status", "blocked_by")):
            out.append({"field": name, "was": _text(old.get(name)), "now": _text(new.get(name))})
    if before is not None and before.body.strip() != after.body.strip():
        added = len(after.body.split()) - len(before.body.split())
        out.append({"field": "body", "was": "", "now": f"{added:+d} words"})
    return out


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        value = ", ".join(_text(item) for item in value)
    elif isinstance(value, dict):
        value = ", ".join(f"{key}: {_text(item)}" for key, item in value.items())
    text = " ".join(str(value).split())
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"
