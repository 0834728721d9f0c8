"""A note as the catalog keeps it: its columns, names, tags, edges and windows. Pure: no disk, no SQL."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mdmem.clock import read_stamp, stamp
from mdmem.index import windows
from mdmem.index.catalog import ALIAS, ID, PATH, STEM, TITLE, clean
from mdmem.index.links import Edge, edges_of
from mdmem.notes.markdown import inline_tags
from mdmem.notes.names import fold
from mdmem.notes.note import Note

# Titles and headings stand in every window of a note: a line of a megabyte must not be copied a thousand times.
_LABEL = 400
# Characters that are indexed of a file whose block is bad.
_BAD_TEXT = 256 << 10
_DATES = ("due", "expires", "valid_from", "valid_until")
_TEXTS = ("category", "summary", "agent", "device", "session", "status", "priority", "tier", "fact_key")


@dataclass(frozen=True)
class WindowRow:
    """One window to store; `hash` names the text that is embedded for it."""

    heading: str
    text: str
    start_line: int
    end_line: int
    hash: str


@dataclass(frozen=True)
class NoteRow:
    """Everything that the catalog keeps of a note. `created` and `updated` are what the note says, or None."""

    columns: dict[str, Any]
    tags: list[str]
    names: list[tuple[str, int]]
    edges: list[Edge]
    windows: list[WindowRow]
    problems: list[tuple[str, str, int | None]]


def embed_text(title: str, heading: str, text: str) -> str:
    """Return what is embedded for a window: it says itself what it is about.

    A title that repeats the opening words is left out, since said twice it drowns the rest, and so is one without
    letters: a bare date or number moves every window it stands over to the same place."""
    opening = title.removesuffix("…").rstrip()
    if text.lstrip("#*->_ ").startswith(opening) or not any(char.isalpha() for char in title):
        title = ""
    return "\n".join(part for part in (title, heading, text) if part)


def text_hash(text: str) -> str:
    """Return the name of a text among the vectors (128 bits, hex)."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def row_of(note: Note, path: str, kind: str | None = None, types: Mapping[str, str] | None = None) -> NoteRow:
    """Return the row of a note. `path` is how it is shown; `kind` and `types` (path prefix → type) are those of a folder
    outside the store, used where the note itself says nothing."""
    note = _bounded(note)
    given_kind = note.text("kind")
    columns: dict[str, Any] = {name: note.text(name) for name in _TEXTS}
    columns.update(
        id=note.id,
        path=path,
        kind=note.kind if kind is None or given_kind else kind,
        type=note.type or _mapped(note.path, types or {}) or None,
        title=note.title[:_LABEL],
        scope=note.scope,
        pinned=int(note.pinned),
        importance=note.importance,
        initiative=next(iter(note.words("initiative")), None),
        created=when(note.created),
        updated=when(note.updated),
        sha=note.sha,
        blob=blob_id(note.data) if note.doc.problem is None or note.doc.problem.code != "cut" else None,
        state=_state(note),
        cut=len(note.data) if note.doc.problem is not None and note.doc.problem.code == "cut" else None,
        fields=json.dumps(note.effective(), ensure_ascii=False),
        body_line=note.doc.body_line,
    )
    columns.update({name: when(note.text(name)) or note.text(name) for name in _DATES})
    problems = [] if note.doc.problem is None else [note.doc.problem]
    return NoteRow(
        columns=_writable(columns),
        tags=sorted({clean(tag) for tag in [*note.tags, *inline_tags(note.body)] if tag}),
        names=_names(note, path),
        edges=edges_of(note, path),
        windows=windows_of(note),
        problems=[(p.code, p.message, p.line) for p in [*problems, *note.doc.warnings]],
    )


def _bounded(note: Note) -> Note:
    """Return a note whose block is bad with the beginning of its text alone: it is no text that anybody wrote to be found."""
    problem, body = note.doc.problem, note.doc.body
    if problem is None or problem.code != "bad" or len(body) <= _BAD_TEXT:
        return note
    return Note(note.path, note.data, replace(note.doc, body=body[:_BAD_TEXT]))


def blob_id(data: bytes) -> str:
    """Return the name that git (with SHA-1) gives to a file's bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _writable(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns with text that can be stored; what is empty is NULL (but a title is always text)."""
    stored = {name: clean(value) or None if isinstance(value, str) else value for name, value in columns.items()}
    stored["title"] = stored["title"] or ""
    return stored


def when(text: str | None) -> str | None:
    """Return a date field as RFC 3339 UTC, None when it names no moment."""
    moment = read_stamp(text) if text else None
    return stamp(moment) if moment else None


def _state(note: Note) -> str:
    problem = note.doc.problem
    if problem is None:
        return "ok"
    return problem.code if problem.code in ("conflicted", "cut") else "bad"


def _mapped(path: str, types: Mapping[str, str]) -> str | None:
    """Return the type whose path prefix fits best."""
    fitting = [prefix for prefix in types if not prefix or path == prefix or path.startswith(prefix.rstrip("/") + "/")]
    return str(types[max(fitting, key=len)]) if fitting else None


def _names(note: Note, path: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    if note.id:
        found.append((fold(note.id), ID))
    whole = fold(path)
    found.append((whole, PATH))
    stem = whole.removesuffix(".md")
    found.append((stem, PATH))
    found.append((stem.rpartition("/")[2], STEM))
    found.append((fold(note.title[:_LABEL]), TITLE))
    found += [(fold(alias), ALIAS) for alias in note.aliases]
    return list(dict.fromkeys((clean(name), how) for name, how in found if name))


def windows_of(note: Note) -> list[WindowRow]:
    """Return the windows of a note: what its fields say in words (summary, overview, facts), then its body."""
    said = [text for text in (note.summary, note.overview) if text]
    said += [f"{key}: {value}" for key, value in note.facts.items() if value]
    cuts = windows.cut(note.title, note.body, note.doc.body_line)
    if said:
        last = max(1, note.doc.body_line - 1)
        top = [w._replace(start_line=1, end_line=last) for w in windows.cut(note.title, "\n\n".join(said))]
        cuts = top if len(cuts) == 1 and not cuts[0].text.strip() else [*top, *cuts]
    title = clean(note.title[:_LABEL])
    rows = []
    for window in cuts:
        heading, text = clean(window.heading[:_LABEL]), clean(window.text)
        digest = text_hash(embed_text(title, heading, text))
        rows.append(WindowRow(heading, text, window.start_line, window.end_line, digest))
    return rows
