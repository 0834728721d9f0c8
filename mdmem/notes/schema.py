"""The fields that have a meaning, how each merges, and what is wrong with a note's values.

Knows no file system and no parser: rules and checks only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mdmem.notes.values import Problem, Value

if TYPE_CHECKING:
    from mdmem.notes.note import Note

KINDS: Final = ("memory", "entity", "session", "task", "message", "agent", "note")
MEMORY_TYPES: Final = (
    "decision", "preference", "profile", "pattern", "case", "event", "fact", "context", "procedure",
)  # fmt: skip
CLAUDE_TYPES: Final = {"user": "profile", "feedback": "preference", "project": "context", "reference": "context"}
MEMORY_STATUSES: Final = ("active", "superseded", "forgotten", "archived")
TASK_STATUSES: Final = ("open", "claimed", "active", "blocked", "waiting", "done", "failed", "cancelled")
TIERS: Final = ("core", "working", "peripheral")
STATUSES: Final = {
    "memory": MEMORY_STATUSES,
    "task": TASK_STATUSES,
    "entity": tuple(dict.fromkeys(MEMORY_STATUSES + TASK_STATUSES)),
    "session": tuple(dict.fromkeys(MEMORY_STATUSES + TASK_STATUSES)),
}

EDGE_FIELDS: Final = (
    "initiative", "part_of", "blocked_by", "blocks", "depends_on", "relates_to",
    "supersedes", "superseded_by", "contradicts",
)  # fmt: skip
SET_FIELDS: Final = frozenset(("tags", "aliases", "read_by", "review", "reviewed", *EDGE_FIELDS))
DATE_FIELDS: Final = ("created", "updated", "expires", "valid_from", "valid_until", "due")

# How a field merges; a field that is not here is a scalar.
FIELDS: Final[dict[str, str]] = {
    "id": "identity",
    **dict.fromkeys(("kind", "type", "category", "title", "summary", "overview"), "scalar"),
    "facts": "facts",
    **dict.fromkeys(("tags", "aliases", "read_by", "review", "reviewed"), "set"),
    **dict.fromkeys(("scope", "agent", "device", "source", "session"), "scalar"),
    "status": "status",
    **dict.fromkeys(("priority", "outcome"), "scalar"),
    "claim": "smallest",  # `<moment> <agent@device>`: whoever claimed first
    **dict.fromkeys(EDGE_FIELDS, "set"),
    "created": "earliest",
    "updated": "latest",
    **dict.fromkeys(("due", "expires", "valid_from", "valid_until"), "scalar"),
    **dict.fromkeys(("importance", "confidence", "tier", "pinned", "fact_key"), "scalar"),
}

_FOLDERS: Final = {
    "memories": "memory",
    "entities": "entity",
    "sessions": "session",
    "tasks": "task",
    "messages": "message",
    "agents": "agent",
    "claude": "memory",
}
_SCOPE = re.compile(r"shared|local|(?:agent|project|user):\S.*")
_ONE_TEXT: Final = ("id", "kind", "type", "category", "title", "summary", "scope", "status", *DATE_FIELDS)


def default_kind(path: str) -> str:
    """Return the kind that a note's folder gives it (path: posix, relative to the store)."""
    top, _, rest = path.partition("/")
    if not rest:
        return "note"
    if top == "claude" and rest.rpartition("/")[2] == "MEMORY.md":
        return "note"
    return _FOLDERS.get(top, "note")


def merge_rule(field: str) -> str:
    """Return how a field merges."""
    return FIELDS.get(field, "scalar")


def is_true(value: Value | None) -> bool:
    """Tell whether a yes-or-no field says yes."""
    return isinstance(value, str) and value.strip().lower() in ("true", "yes", "on", "1", "y")


def number(value: Value | None) -> float | None:
    """Return the number that a field holds, or None."""
    if not isinstance(value, str) or not re.fullmatch(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?", value.strip(), re.A):
        return None
    return float(value)


def validate(note: Note) -> list[Problem]:
    """Return everything wrong with a note's block and values, in the order of the lines."""
    found = [note.doc.problem] if note.doc.problem else []
    found += note.doc.warnings
    found += _values(note)
    return sorted(found, key=lambda problem: problem.line or 0)


def _values(note: Note) -> list[Problem]:
    from mdmem.clock import read_stamp

    found: list[Problem] = []

    def add(code: str, field: str, message: str) -> None:
        found.append(Problem(code, message, note.line_of(field)))

    for field in _ONE_TEXT:
        if not isinstance(note.get(field) or "", str):
            add("not_text", field, f"{field} must be one text, not a list or a map")
    for field in DATE_FIELDS:
        value = note.get(field)
        if isinstance(value, str) and value and read_stamp(value) is None:
            add("bad_date", field, f"{field}: {value!r} is not a date (YYYY-MM-DD or RFC 3339)")
    if note.kind == "note":
        return found  # a person's own page: `status: draft` or `confidence: low` there is none of our business
    kind = note.get("kind")
    if isinstance(kind, str) and kind and kind not in KINDS:
        add("bad_kind", "kind", f"kind {kind!r} is none of {', '.join(KINDS)}")
    status = note.get("status")
    allowed = STATUSES.get(note.kind)
    if isinstance(status, str) and status and allowed and status not in allowed:
        add("bad_status", "status", f"status {status!r} is none of {', '.join(allowed)}")
    for field in ("importance", "confidence"):
        value = note.get(field)
        if value:
            amount = number(value)
            if amount is None or not 0 <= amount <= 1:
                add("bad_number", field, f"{field} must be a number from 0 to 1")
    tier = note.get("tier")
    if isinstance(tier, str) and tier and tier not in TIERS:
        add("bad_tier", "tier", f"tier {tier!r} is none of {', '.join(TIERS)}")
    scope = note.get("scope")
    if isinstance(scope, str) and scope and not _SCOPE.fullmatch(scope):
        add("bad_scope", "scope", f"scope {scope!r} is not shared, local, agent:NAME, project:NAME or user:NAME")
    return found
