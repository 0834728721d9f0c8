"""Messages between agents: one file each, receipts that merge as sets, an end date."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mdmem.clock import read_stamp, seconds, stamp
from mdmem.errors import UsageError
from mdmem.team import work

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.store import Store

ALL = "all"


def as_row(note: Note, store: Store) -> dict[str, Any]:
    """Return a message as JSON data."""
    return {
        "id": note.id or "",
        "path": note.path,
        "from": sender(note),
        "to": note.words("to"),
        "type": note.type or "note",
        "priority": note.priority or "normal",
        "subject": note.title,
        "body": note.body.strip("\n"),
        "thread": note.text("thread") or note.id or "",
        "in_reply_to": note.text("in_reply_to"),
        "read": is_read(note, store),
        "mine": sender(note) == str(store.identity),
        "read_by": note.words("read_by"),
        "created": note.created or "",
        "expires": note.expires or "",
    }


def sender(note: Note) -> str:
    """Return agent@device of who wrote a message."""
    return f"{note.agent or ''}@{note.device or ''}".strip("@")


def is_for(note: Note, store: Store) -> bool:
    """Return whether a message is addressed to this agent: by name, by agent@device, or to all; never one's own."""
    me = store.identity
    names = {word.lower() for word in note.words("to")}
    return sender(note) != str(me) and bool(names & {ALL, me.agent, str(me)})


def is_read(note: Note, store: Store) -> bool:
    """Return whether this agent on this device has acknowledged a message."""
    return str(store.identity) in note.words("read_by")


def expired(note: Note, store: Store) -> bool:
    """Return whether a message's end date has passed."""
    end = read_stamp(note.expires or "")
    return end is not None and end <= store.clock.now()


def send(
    store: Store,
    to: list[str],
    subject: str,
    body: str = "",
    *,
    type_: str = "note",
    priority: str = "normal",
    thread: str = "",
    in_reply_to: str = "",
    ttl: str = "",
) -> tuple[Note, bool, str]:
    """Write a message; returns (note, committed, reason). Raises UsageError."""
    from mdmem.notes import names

    to = sorted({word.strip().lower() for word in to} - {""})
    title = " ".join(work.gate(subject).split())
    if not to or not title:
        hint = 'mdmem message send reviewer "Please look at the plan"'
        raise UsageError("a message needs a receiver and a subject", hint=hint)
    now = store.clock.now()
    identity = names.time_id("msg", store.clock)
    fields = {
        "id": identity,
        "kind": "message",
        "type": work.gate(type_),
        "title": title,
        "to": to,
        "priority": priority,
        "thread": thread or identity,
        "in_reply_to": in_reply_to,
        "scope": "shared",
        "agent": store.identity.agent,
        "device": store.identity.device,
        "created": stamp(now),
        "updated": stamp(now),
        "expires": stamp(now + timedelta(seconds=seconds(ttl))) if ttl else "",
    }
    return work.create(store, names.message_path(identity), fields, work.gate(body), "message")


def inbox(store: Store, *, unread: bool = False, everything: bool = False) -> list[Note]:
    """Return the messages to this agent, unread first, then newest first; expired ones only with `everything`."""
    notes = work.all_of(store, "message")
    if not everything:
        notes = [note for note in notes if is_for(note, store) and not expired(note, store)]
    if unread:
        notes = [note for note in notes if not is_read(note, store)]
    notes.sort(key=lambda note: (note.created or "", note.id or ""), reverse=True)
    return sorted(notes, key=lambda note: is_read(note, store))


def ack(store: Store, reference: str) -> tuple[Note, bool, str]:
    """Mark a message as read by this agent on this device; the receipt travels with the next sync."""
    note = work.find(store, "message", reference)
    me = str(store.identity)

    def make(now: Note) -> dict[str, Any]:
        readers = now.words("read_by")
        return {} if me in readers else {"read_by": sorted({*readers, me})}

    return work.change(store, note, make, "ack", batch=True)


def reply(store: Store, reference: str, body: str) -> tuple[Note, bool, str]:
    """Answer a message in its thread, to who wrote it; marks it as read."""
    note = work.find(store, "message", reference)
    ack(store, note.id or note.path)
    title = note.title if note.title.lower().startswith("re:") else f"Re: {note.title}"
    origin = note.text("thread") or note.id
    return send(store, [sender(note)], title, body, thread=origin, in_reply_to=note.id, type_="reply")


def thread(store: Store, reference: str) -> list[Note]:
    """Return all messages of a thread, oldest first; `reference` is a message or a thread id."""
    notes = work.all_of(store, "message")
    wanted = reference
    if not any(note.text("thread") == reference for note in notes):
        found = work.find(store, "message", reference)
        wanted = found.text("thread") or found.id or ""
    fits = {note.id or note.path: note for note in notes if wanted in (note.text("thread"), note.id)}

    def depth(note: Note) -> int:
        seen: set[str] = set()
        while (above := note.text("in_reply_to")) in fits and above not in seen:
            seen.add(above)
            note = fits[above]
        return len(seen)

    # An answer within the same second still stands below what it answers.
    return sorted(fits.values(), key=lambda note: (note.created or "", depth(note), note.id or ""))
