"""Tasks: open → claimed → active → blocked → done, failed or cancelled. Every step works offline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mdmem.clock import read_stamp, stamp
from mdmem.errors import ConflictFound, UsageError, typed
from mdmem.team import claims, work

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.store import Store

PRIORITIES = ("urgent", "high", "normal", "low")
OPEN = ("open", "claimed", "active", "blocked", "waiting")
ENDED = ("done", "failed", "cancelled")
# From which status a step may start. Ended tasks are reopened by `update --status open`, never by accident.
STEPS = {
    "start": ("open", "claimed", "active", "blocked", "waiting"),
    "claim": ("open", "claimed", "blocked", "waiting"),
    "block": OPEN,
    "done": OPEN,
    "fail": OPEN,
    "cancel": OPEN,
    "release": ("claimed", "active", "blocked", "waiting"),
}


def status_of(note: Note) -> str:
    """Return a task's status; a task without one is open."""
    return note.status or "open"


def as_row(note: Note) -> dict[str, Any]:
    """Return a task as JSON data."""
    return {
        "id": note.id or "",
        "path": note.path,
        "title": note.title,
        "status": status_of(note),
        "priority": note.priority or "normal",
        "claimed_by": claims.holder(note),
        "blocked_by": note.words("blocked_by"),
        "part_of": note.words("part_of"),
        "outcome": note.outcome or "",
        "due": note.due or "",
        "tags": note.tags,
        "scope": note.scope or "",
        "created": note.created or "",
        "updated": note.updated or "",
    }


def add(
    store: Store,
    title: str,
    text: str = "",
    *,
    priority: str = "normal",
    parent: str = "",
    blocked_by: Iterable[str] = (),
    tags: Iterable[str] = (),
    due: str = "",
    scope: str = "",
) -> tuple[Note, bool, str]:
    """Make a task; returns (note, committed, reason). Raises UsageError."""
    from mdmem.notes import names

    title = " ".join(work.gate(title).split())
    if not title:
        raise UsageError("a task needs a title", hint='mdmem task add "Upgrade the database"')
    _priority(priority)
    now = stamp(store.clock.now())
    store.keep_private(scope)
    identity = names.time_id("task", store.clock)
    blockers = [_reference(store, item) for item in blocked_by]
    fields = {
        "id": identity,
        "kind": "task",
        "title": title,
        "status": "open",
        "priority": priority,
        "part_of": [_reference(store, parent)] if parent else [],
        "blocked_by": sorted(blockers),
        "tags": sorted({work.gate(tag) for tag in tags} - {""}),
        "due": due,
        "scope": scope or store.default_scope,
        "agent": store.identity.agent,
        "device": store.identity.device,
        "created": now,
        "updated": now,
    }
    return work.create(store, names.task_path(title, identity), fields, work.gate(text), "task")


def _priority(name: str) -> None:
    if name not in PRIORITIES:
        raise UsageError(f"no priority is named {name!r}", why=f"it is one of {', '.join(PRIORITIES)}")


def _reference(store: Store, text: str) -> str:
    """Return the id of the task that a reference names; any other text (an entity, a link) stays as it is written."""
    from mdmem.errors import NotFound

    try:
        return work.find(store, "task", text).id or text
    except NotFound:
        return work.gate(text)


def unknown(store: Store, task: Note, given: Iterable[str]) -> list[str]:
    """Return those of the references given for a task that stand in it as they were given and name no note."""
    from mdmem.errors import Ambiguous, NotFound
    from mdmem.recall.select import note_by

    out = []
    for name in given:
        if name in (*task.words("blocked_by"), *task.words("part_of")):
            try:
                note_by(store, name.strip("[]").partition("|")[0].strip())
            except NotFound:
                out.append(name)
            except Ambiguous:
                continue
    return out


def step(
    store: Store, reference: str, name: str, *, by: Iterable[str] = (), outcome: str = "", force: bool = False
) -> tuple[Note, bool, str]:
    """Take a task one step further: start, claim, block, done, fail, cancel, release.

    Raises UsageError for a step that does not fit its status, ConflictFound when another agent holds it.
    """
    task = work.find(store, "task", reference)
    blockers = [_reference(store, item) for item in by]
    words = work.gate(outcome)

    def make(note: Note) -> dict[str, Any]:
        now = status_of(note)
        if now not in STEPS[name]:
            hint = typed("mdmem", "task", "update", note.id or note.path, "--status", "open")
            raise UsageError(f"{note.title!r} is {now}", why=f"{name} does not start there", hint=hint)
        held = claims.holder(note)
        if name in ("claim", "start", "release") and held and held != str(store.identity) and not force:
            raise ConflictFound(f"{note.title!r} is claimed by {held}", hint="mdmem task next, or --force to take it over")
        return _changes(store, note, name, blockers, words)

    # A claim says who is at work now; it travels with the next sync instead of in a commit of its own.
    written, committed, reason = work.change(store, task, make, f"task {name}", batch=name == "claim")
    identity = written.id or ""
    if name in ("claim", "start"):
        claims.record(store, identity, written.text("claim"))
    elif name in ("release", "done", "fail", "cancel"):
        claims.record(store, identity, None)
    return written, committed, reason


def _changes(store: Store, note: Note, name: str, blockers: list[str], outcome: str) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if name in ("claim", "start"):
        changes["status"] = "active" if name == "start" else "claimed"
        if claims.holder(note) != str(store.identity):
            changes["claim"] = claims.claim_text(store)
    elif name == "block":
        changes["status"] = "blocked"
        if blockers:
            changes["blocked_by"] = sorted({*note.words("blocked_by"), *blockers})
    elif name == "release":
        changes |= {"status": "open", "claim": None}
    else:
        changes["status"] = {"done": "done", "fail": "failed", "cancel": "cancelled"}[name]
    if outcome:
        changes["outcome"] = outcome
    return {key: value for key, value in changes.items() if note.get(key) != value}


def update(store: Store, reference: str, values: dict[str, Any], note_text: str = "") -> tuple[Note, bool, str]:
    """Change priority, status, due or title, or add a dated line to the body. Raises UsageError."""
    from mdmem.notes.schema import TASK_STATUSES

    if "priority" in values:
        _priority(values["priority"])
    if values.get("status", "open") not in TASK_STATUSES:
        raise UsageError(f"no status is named {values['status']!r}", why=f"it is one of {', '.join(TASK_STATUSES)}")
    task = work.find(store, "task", reference)
    body = None
    if note_text:
        line = f"- {stamp(store.clock.now())[:16].replace('T', ' ')} {store.identity}: {work.gate(note_text)}"
        body = f"{task.body.rstrip()}\n\n{line}\n" if task.body.strip() else f"{line}\n"
    clean = {key: work.gate(str(value)) for key, value in values.items()}
    return work.change(store, task, lambda note: clean, "task update", body=body)


def blocked(note: Note, by_name: dict[str, Note]) -> list[str]:
    """Return what a task still waits for: every blocker that is not an ended task of this store."""
    out = []
    for target in note.words("blocked_by"):
        other = by_name.get(target.strip("[]").partition("|")[0].strip())
        if other is None or status_of(other) not in ENDED:
            out.append(target)
    return out


def index_of(notes: list[Note]) -> dict[str, Note]:
    """Return {id, path, stem or title: task}."""
    out: dict[str, Note] = {}
    for note in notes:
        stem = note.path.rpartition("/")[2].removesuffix(".md")
        for name in (note.title, stem, note.path, note.id or ""):
            if name:
                out.setdefault(name, note)
    return out


def listed(store: Store, *, statuses: Iterable[str] = (), everything: bool = False, mine: bool = False) -> list[Note]:
    """Return tasks, the most urgent first: open ones unless asked for others."""
    wanted = set(statuses) or (None if everything else set(OPEN))
    notes = work.all_of(store, "task")
    kept = [note for note in notes if wanted is None or status_of(note) in wanted]
    if mine:
        kept = [note for note in kept if claims.holder(note) == str(store.identity)]
    return sorted(kept, key=lambda note: _order(note, store))


def _order(note: Note, store: Store) -> tuple[Any, ...]:
    priority = note.priority or "normal"
    rank = PRIORITIES.index(priority) if priority in PRIORITIES else 2
    due = read_stamp(note.due or "")
    late = due is not None and due <= store.clock.now()
    return (not late, rank, note.due or "9999", note.created or "", note.path)


def next_task(store: Store) -> Note | None:
    """Return the best task to work on: mine first, then the most urgent open one that nothing blocks and nobody holds."""
    notes = listed(store)
    names = index_of(work.all_of(store, "task"))
    me = str(store.identity)
    for note in notes:
        if claims.holder(note) == me and status_of(note) in ("claimed", "active") and not blocked(note, names):
            return note
    for note in notes:
        if status_of(note) == "open" and not claims.holder(note) and not blocked(note, names):
            return note
    return None


def current(store: Store) -> list[Note]:
    """Return the tasks that this agent on this device holds."""
    return [note for note in listed(store, mine=True) if status_of(note) in ("claimed", "active", "blocked", "waiting")]
