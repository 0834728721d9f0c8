"""Keeping a memory: redact, name, compare with what is there, write, commit."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.errors import ConflictFound, MdmemError, UsageError
from mdmem.memory.write import commit, subject, sweep

if TYPE_CHECKING:
    from mdmem.index.score import TextHits
    from mdmem.learn.decide import Considered, Decision
    from mdmem.notes.folder import Folder
    from mdmem.notes.note import Note
    from mdmem.store import Store

TYPE = re.compile(r"[a-z][a-z0-9_-]{0,39}$")
SCOPE = re.compile(r"(shared|local|(agent|project|user):[\w.@/-]{1,80})$")
MAX_TEXT = 1_000_000
LOCAL = "a local note is never committed"


@dataclass
class Memory:
    """What somebody wants kept. `extra` holds further fields of the frontmatter as strings or lists. `apart`: a note of its
    own, whatever is there already. `ask`: somebody waits for the outcome, and the language model may be asked about a doubt."""

    type: str
    text: str
    title: str = ""
    tags: list[str] = field(default_factory=list)
    scope: str = ""
    category: str = ""
    supersedes: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    by_name: bool = False
    apart: bool = False
    ask: bool = False


# What was decided → the word for it that a caller of `remember --json` can count on.
ACTIONS = {"merged": "updated", "joined": "updated", "contradicts": "conflicting"}


@dataclass
class Remembered:
    """The outcome: `action` is created, unchanged, updated, merged, joined, superseded (it replaces older ones) or contradicts.

    `related`: notes that share its rarest words; `decided`: the ones that the decision is about; `by`: who decided, where there
    was something to decide; `failed`: why the language model that was to be asked said nothing."""

    id: str
    path: str
    action: str
    committed: bool
    related: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""
    redacted: list[str] = field(default_factory=list)
    why: str = ""
    decided: list[str] = field(default_factory=list)
    review: list[str] = field(default_factory=list)
    by: str = ""
    failed: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form: {id, path, action, committed, related} and what else there is to say. `action` is one of
        created, unchanged, updated, superseded, conflicting and skipped; `decision` says it more closely."""
        out: dict[str, Any] = {
            "id": self.id,
            "path": self.path,
            "action": ACTIONS.get(self.action, self.action),
            "committed": self.committed,
            "related": self.related,
        }
        if self.action in ACTIONS:
            out["decision"] = self.action
        names = {name: name for name in ("reason", "redacted", "why", "decided", "review")}
        for name, shown in (names | {"by": "decided_by", "failed": "not_asked"}).items():
            if getattr(self, name):
                out[shown] = getattr(self, name)
        return out

    def take(self, decision: Decision) -> Remembered:
        """Return it with what a decision says of itself."""
        if decision.why:
            self.why, self.decided, self.by = decision.why, decision.ids, decision.by
        self.failed = decision.failed
        return self


def remember(store: Store, memory: Memory) -> Remembered:
    """Keep one memory. Raises UsageError for bad words, Locked or WriteFailed when nothing was written."""
    from mdmem.notes import names

    found = checked(store, memory)
    if memory.scope != "local":
        store.keep_private(memory.scope)
    local = memory.scope == "local"
    folder = store.local_folder if local else store.folder
    considered = None
    # One look at all files serves the id, the decision and the search below.
    looked = not local and _looked(store)
    sweep(store, folder)
    for attempt in range(20):
        identity = names.memory_id("memory", memory.scope, memory.text, "" if attempt == 0 else str(attempt))
        existing = find_id(store, folder, identity, catalogued=looked)
        if existing is not None:
            if not same_content(existing, memory) or existing.status not in ("", "active"):
                continue  # that id belongs to another text, or to one that was forgotten: salt it
            return _again(store, folder, existing, memory, found)
        path = names.memory_path(memory.title, identity)
        if considered is None and not local:
            considered = _considered(store, memory, looked)
            said = _said_already(store, memory, considered, found)
            if said is not None:
                return said
        try:
            folder.create(path, render(store, memory, identity))
        except ConflictFound:
            if find_id(store, folder, identity) is None:
                continue
            raise
        if considered is None:
            return Remembered(identity, path, "created", False, reason=LOCAL, redacted=found)
        return _created(store, memory, considered, identity, path, found)
    raise ConflictFound("could not find a free id for this memory", hint="try again")


def _looked(store: Store) -> bool:
    """Bring the index up to the files; returns whether it holds them all."""
    try:
        done = store.index.refresh(embed_budget_s=0.0)
    except MdmemError:
        return False
    return not done.busy and not done.pending_notes


def _considered(store: Store, memory: Memory, looked: bool) -> Considered:
    """Return the write decision, its fields put into the memory. What a person said outright is not decided again."""
    from mdmem.learn.apply import fields_of
    from mdmem.learn.decide import Decision, decide

    if memory.supersedes:
        from mdmem.memory.change import find

        old = find(store, memory.supersedes)[1]
        memory.extra["supersedes"] = [old.id] if old.id else []
    considered = decide(store, memory, looked=looked)
    if memory.supersedes or memory.apart:
        considered.decision = Decision()
    elif memory.ask and considered.decision.doubt:
        from mdmem.learn.opinion import advised_now

        considered.decision = advised_now(store, memory.text, considered.decision)
    memory.extra |= fields_of(considered.decision)
    return considered


def _said_already(store: Store, memory: Memory, considered: Considered, found: list[str]) -> Remembered | None:
    """Return the outcome where no new note is needed, None otherwise."""
    decision = considered.decision
    if decision.action not in ("unchanged", "merged", "joined"):
        return None
    note = decision.notes[0]
    if decision.action == "unchanged":
        return _again(store, store.folder, note, memory, found).take(decision)
    from mdmem.learn.apply import join_into, merge_into

    into = merge_into if decision.action == "merged" else join_into
    done = commit(store, into(store, note, memory), subject("remember", memory.title), by_name=memory.by_name)
    out = Remembered(note.id, note.path, decision.action, done.done, reason=done.reason, redacted=found)
    return out.take(decision)


def _created(
    store: Store, memory: Memory, considered: Considered, identity: str, path: str, found: list[str]
) -> Remembered:
    """Link what the new note replaces, commit, and say what became of it."""
    from mdmem.learn.apply import link_back

    decision = considered.decision
    others, action = _supersede(store, memory, identity)
    if not memory.supersedes:
        others, action = link_back(store, decision, identity), decision.action
    done = commit(store, [path, *others], subject("remember", memory.title), by_name=memory.by_name)
    near = related(store, considered.hits, path)
    out = Remembered(identity, path, "superseded" if action == "supersedes" else action, done.done, near, done.reason, found)
    if decision.words:
        from mdmem.learn import advice

        advice.keep(store, store.folder.read(path), decision.said())
    out.review = sorted({note.id for note in decision.doubtful})
    return out.take(decision)


def checked(store: Store, memory: Memory) -> list[str]:
    """Fill in defaults, redact every text, and return the kinds of secrets that were taken out."""
    from mdmem.notes.redact import redact
    from mdmem.notes.values import clean

    memory.type = memory.type.strip().lower()
    if not TYPE.match(memory.type):
        raise UsageError(
            f"not a memory type: {memory.type!r}",
            why="a type is a word such as decision, preference, fact or pattern",
            hint='mdmem remember decision "…"',
        )
    found: list[str] = []

    def gate(text: str) -> str:
        result = redact(text)
        found.extend(finding.kind for finding in result.findings)
        return clean(result.text)

    if len(memory.text) > 2 * MAX_TEXT:
        raise too_long()  # before it is looked through for secrets, which takes seconds
    memory.text = gate(memory.text.replace("\r\n", "\n")).strip("\n").rstrip()
    if not memory.text.strip():
        raise UsageError("there is nothing to remember", hint=f'mdmem remember {memory.type} "…", or - to read it from stdin')
    if len(memory.text) > MAX_TEXT:
        raise too_long()
    memory.title = gate(" ".join(memory.title.split())) or first_words(memory.text)
    memory.tags = sorted({gate(tag.strip().lstrip("#")) for tag in memory.tags} - {""})
    memory.category = gate(memory.category.strip())
    memory.scope = memory.scope.strip() or store.default_scope
    if not SCOPE.match(memory.scope):
        raise UsageError(
            f"not a scope: {memory.scope!r}", why="a scope is shared, local, agent:NAME, project:NAME or user:NAME"
        )
    memory.extra = {key: gate(value) if isinstance(value, str) else value for key, value in memory.extra.items()}
    return sorted(set(found))


_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？；])")


def first_words(text: str, limit: int = 80) -> str:
    """Return a title for a text: its first heading or sentence, at most `limit` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = re.sub(r"^(#{1,6}|[-*>])\s+", "", line)
    sentence = _SENTENCE_END.split(line, maxsplit=1)[0].strip().rstrip("。.；;")
    if len(sentence) <= limit:
        return sentence or "note"
    cut = sentence[:limit]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip(" ,，、;；:：") + "…"


def render(store: Store, memory: Memory, identity: str) -> bytes:
    """Return the bytes of a new memory's file."""
    from mdmem.notes.frontmatter import render as render_note

    now = stamp(store.clock.now())
    fields: dict[str, Any] = {"id": identity, "kind": "memory", "type": memory.type}
    if memory.category:
        fields["category"] = memory.category
    fields["title"] = memory.title
    if memory.tags:
        fields["tags"] = memory.tags
    fields |= {"scope": memory.scope, "agent": store.identity.agent, "device": store.identity.device}
    session = os.environ.get("CLAUDE_CODE_SESSION_ID", "")
    if session and TYPE_SAFE.match(session):
        fields["session"] = session
    fields |= {"created": now, "updated": now}
    fields |= {key: value for key, value in memory.extra.items() if value not in ("", [], None)}
    return render_note(fields, memory.text + "\n")


TYPE_SAFE = re.compile(r"[\w.:-]{1,100}$")


def too_long() -> UsageError:
    """Return the error for a text that is no single memory."""
    return UsageError(f"the text is longer than {MAX_TEXT:,} characters", hint="keep it as a file and import that")


def same_content(note: Note, memory: Memory) -> bool:
    """Return whether a note says just this text."""
    from mdmem.notes.names import normalise

    return normalise(note.body) == normalise(memory.text)


RELATED = 3


def related(store: Store, found: TextHits | None, path: str) -> list[dict[str, Any]]:
    """Return the notes that share the rarest words with a memory, best first: {id, path, title}. Never fails a save.

    `found`: the search by words that the write decision made."""
    from mdmem.recall.query import Filters
    from mdmem.recall.select import allowed

    if found is None:
        return []
    # A word that half of the notes hold says nothing about being related.
    telling = {place for place, term in enumerate(found.terms) if term.df <= max(2, found.windows // 4)}
    ids = list(dict.fromkeys(hit.note for hit in found.hits if len(telling.intersection(hit.matched)) > 1))
    if not ids:
        return []
    try:
        wanted = allowed(store, Filters(kinds=("memory", "entity", "note")))
        sql = f"SELECT rowid, id, path, title FROM notes WHERE rowid IN ({', '.join('?' * len(ids))})"
        rows = {row["rowid"]: row for row in store.index.catalog.rows(sql, ids)}
    except MdmemError:
        return []
    shown = [rows[note] for note in ids if note in rows and rows[note]["path"] != path and (wanted is None or note in wanted)]
    return [{"id": row["id"] or "", "path": row["path"], "title": row["title"] or ""} for row in shown[:RELATED]]


def find_id(store: Store, folder: Folder, identity: str, *, catalogued: bool = False) -> Note | None:
    """Return the note with an id: by its file name first, then by the catalog; None when there is none. `catalogued`: the
    catalog holds all files of the store, so that names need not be read."""
    suffix = f"-{identity}.md"
    try:
        names = os.listdir(folder.root / "memories") if not catalogued else []
    except OSError:
        names = []
    for name in (name for name in names if identity in name):
        if name.endswith(suffix) or name == f"{identity}.md":
            note = folder.read(f"memories/{name}")
            if note.ok and note.id == identity:
                return note
    path = store.index.path_of_id(identity) if folder is store.folder else None
    return folder.read(path) if path else None


def _again(store: Store, folder: Folder, note: Note, memory: Memory, found: list[str]) -> Remembered:
    """The same text is there already: add what is new about it (tags, category), or say unchanged."""
    from mdmem.notes.frontmatter import edit

    changes: dict[str, Any] = {}
    if set(memory.tags) - set(note.tags):
        changes["tags"] = sorted({*note.tags, *memory.tags})
    if memory.category and memory.category != note.category:
        changes["category"] = memory.category
    identity = note.id or ""
    others, superseded = _supersede(store, memory, identity)
    if not changes and not others:
        if folder is not store.folder:
            return Remembered(identity, note.path, "unchanged", False, reason=LOCAL, redacted=found)
        if store.mode != "embedded" or memory.by_name:
            # The one who wrote it may have been killed before it was committed.
            done = commit(store, [note.path], subject("remember", note.title), by_name=memory.by_name)
            return Remembered(identity, note.path, "unchanged", done.done, reason=done.reason, redacted=found)
        return Remembered(identity, note.path, "unchanged", False, redacted=found)
    if changes:
        changes["updated"] = stamp(store.clock.now())
        folder.write(note.path, edit(note.data, changes), note.sha)
    if folder is not store.folder:
        return Remembered(identity, note.path, "updated", False, reason=LOCAL, redacted=found)
    done = commit(store, [note.path, *others], subject("remember", note.title), by_name=memory.by_name)
    action = superseded if others else "updated"
    return Remembered(identity, note.path, action, done.done, reason=done.reason, redacted=found)


def _supersede(store: Store, memory: Memory, identity: str) -> tuple[list[str], str]:
    """Mark the note that this one replaces; returns (paths changed, action)."""
    if not memory.supersedes:
        return [], "created"
    from mdmem.memory.change import supersede

    return supersede(store, memory.supersedes, identity), "superseded"
