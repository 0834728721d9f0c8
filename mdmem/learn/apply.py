"""Carrying out a write decision: the fields of the new note, and what changes in the notes beside it. Commits nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mdmem.clock import read_stamp, stamp

if TYPE_CHECKING:
    from mdmem.learn.decide import Decision
    from mdmem.memory.remember import Memory
    from mdmem.notes.note import Note
    from mdmem.store import Store


DOUBTS = frozenset(("review", "reviewed", "contradicts", "relates_to"))


def fields_of(decision: Decision) -> dict[str, Any]:
    """Return the fields of the frontmatter that a decision gives to the new note."""
    out: dict[str, Any] = {}
    if decision.action == "supersedes":
        out["supersedes"] = decision.ids
    elif decision.action == "superseded":
        out["status"] = "superseded"
        out["superseded_by"] = decision.ids
    if decision.doubt:
        doubtful = sorted({note.id for note in decision.doubtful})
        out[decision.doubt] = doubtful
        out["review"] = doubtful
    if decision.linked:
        out["relates_to"] = sorted({*out.get("relates_to", ()), *(note.id for note in decision.linked)})
    if decision.linked or decision.parted:
        out["reviewed"] = sorted({note.id for note in (*decision.linked, *decision.parted)})
    return out


def link_back(store: Store, decision: Decision, identity: str, when: datetime | None = None) -> list[str]:
    """Change the notes that a decision is about, so that both sides name each other; returns the paths changed."""
    paths = []
    for note in decision.notes:
        if decision.action == "supersedes":
            paths += retire(store, note, identity, when)
        elif decision.action == "superseded":
            paths += change(store, note, {"supersedes": with_item(note, "supersedes", identity)}, when)
    return paths


def retire(store: Store, note: Note, successor: str, when: datetime | None = None) -> list[str]:
    """Mark a note as superseded by another one; returns the paths changed. Its doubts are settled with it."""
    changes: dict[str, Any] = {"status": "superseded", "superseded_by": with_item(note, "superseded_by", successor)}
    if note.words("review"):
        changes["review"] = None
    return change(store, note, changes, when)


def with_item(note: Note, key: str, item: str) -> list[str]:
    """Return a list field with one more item, sorted."""
    return sorted({*note.words(key), item})


def change(
    store: Store, note: Note, changes: dict[str, Any], when: datetime | None = None, body: str | None = None
) -> list[str]:
    """Write changed fields of a note; returns its path, or nothing when it stays as it is.

    `when`: the moment that the change is dated to; a note never gets an older date than it has. Fields are changed in the
    note as it is by now, whoever wrote to it since; a body only in the text that was read (raises ConflictFound)."""
    from mdmem.notes.frontmatter import edit

    with store.folder.locked():
        present = store.folder.read(note.path) if body is None else note
        changes = {key: _moved(note, present, key, value) for key, value in changes.items()}
        return _change(store, present, changes, when, body, edit)


def _moved(before: Note, present: Note, key: str, value: Any) -> Any:
    """Return a list as it should be now: what the change adds and takes away, applied to what is there."""
    if not isinstance(value, list) or before.sha == present.sha:
        return value
    return sorted((set(present.words(key)) | (set(value) - set(before.words(key)))) - (set(before.words(key)) - set(value)))


def _change(
    store: Store, note: Note, changes: dict[str, Any], when: datetime | None, body: str | None, edit: Callable[..., bytes]
) -> list[str]:
    real = {key: value for key, value in changes.items() if _differs(note, key, value)}
    if not real and (body is None or body.strip() == note.body.strip()):
        return []
    moment, now = read_stamp(note.updated or ""), when or store.clock.now()
    # A doubt noted beside a text does not make the text newer.
    if (moment is None or moment < now) and (body is not None or set(real) - DOUBTS):
        real["updated"] = stamp(now)
    store.folder.write(note.path, edit(note.data, real, body=body), note.sha)
    return [note.path]


def _differs(note: Note, key: str, value: Any) -> bool:
    if isinstance(value, list):
        return sorted(note.words(key)) != sorted(value)
    return bool(note.get(key) != value)


def merge_into(store: Store, note: Note, memory: Memory, when: datetime | None = None) -> list[str]:
    """Give a note the fuller text of a new memory; returns the paths changed. What it said before stays in history."""
    from mdmem.memory.remember import first_words

    changes: dict[str, Any] = {}
    if note.title == first_words(note.body):
        changes["title"] = memory.title
    if set(memory.tags) - set(note.tags):
        changes["tags"] = sorted({*note.tags, *memory.tags})
    for key in ("summary", "overview", "importance", "confidence"):
        value = memory.extra.get(key)
        if value and note.text(key):
            changes[key] = value
    if isinstance(memory.extra.get("facts"), dict):
        changes["facts"] = {**note.facts, **memory.extra["facts"]}
    return change(store, note, changes, when, body=memory.text.rstrip("\n") + "\n")


def joined(note: Note, text: str) -> str | None:
    """Return the body of a note with another wording of what it states beside its own; None where that would make a document
    of a statement."""
    from mdmem.learn.decide import first_paragraph
    from mdmem.learn.statement import LONGEST

    body, text = note.body.strip(), " ".join(text.split())
    if note.text("speaker"):
        first = first_paragraph(body)
        rest = body[len(first) :]
        whole = first if text in first else f"{first}\n{text}"
        return f"{whole}{rest}\n" if len(whole) < LONGEST else None
    whole = body if text in body else f"{body}\n\n{text}"
    return f"{whole}\n" if len(whole) < LONGEST else None


def join_into(store: Store, note: Note, memory: Memory, when: datetime | None = None) -> list[str]:
    """Add the wording of a new memory to a note that says the same; returns the paths changed."""
    from mdmem.learn.decide import first_paragraph

    text = first_paragraph(memory.text) if memory.extra.get("speaker") else memory.text
    changes = {"tags": sorted({*note.tags, *memory.tags})} if set(memory.tags) - set(note.tags) else {}
    return change(store, note, changes, when, body=joined(note, text))
