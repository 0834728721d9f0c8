"""Records of other programs that are no memories: tasks, messages, sessions, entities. Each becomes a note of its own kind.

The id is made from the record's own, so the same record is the same note on every machine and at every import.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mdmem.clock import FixedClock, read_stamp
from mdmem.notes import names
from mdmem.notes.schema import EDGE_FIELDS, STATUSES
from mdmem.notes.values import clean

if TYPE_CHECKING:
    from mdmem.memory.records import Given, LeftOut, Unread

_STATUS = {
    "created": "open", "pending": "open", "todo": "open", "in_progress": "active", "in-progress": "active",
    "completed": "done", "complete": "done", "suspended": "waiting", "canceled": "cancelled",
}  # fmt: skip
_ANY_TIME = datetime(2000, 1, 1, tzinfo=timezone.utc)


def whole_note(item: Mapping[str, Any], where: str, listed: str) -> Given | Unread | LeftOut | None:
    """Return the note that a record is, None when it is a memory. `listed` is the name of the list that it stood in."""
    from mdmem.memory.records import LeftOut, Unread

    read: Callable[[Mapping[str, Any]], Given | None]
    if "message_id" in item and "from_agent" in item:
        read = _message
    elif "task_id" in item and "title" in item and "memory_id" not in item:
        read = _task
    elif "session_id" in item and "action" in item:
        read = _session
    elif "entity_id" in item and "entity_type" in item:
        read = _entity
    elif listed == "summaries" and "sessionId" in item:
        read = _summary
    elif listed == "actions" and "title" in item:
        read = _task
    elif listed == "proceduralMemories" and "name" in item:
        read = _procedure
    elif "event_id" in item and "snapshot_at" in item:
        return LeftOut(where, "a snapshot of an entity; git keeps the history here")
    else:
        return None
    return read(item) or Unread(where, "no title or text")


def _text(item: Mapping[str, Any], *fields: str) -> str:
    found = (clean(item[name]).strip() for name in fields if isinstance(item.get(name), str))
    return next((text for text in found if text), "")


def _words(value: Any) -> list[str]:
    found = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return sorted({" ".join(clean(str(word)).split()) for word in found if isinstance(word, (str, int))} - {""})


def _when(item: Mapping[str, Any], *fields: str) -> str:
    from mdmem.memory.records import moment_of

    return next((moment for name in fields if (moment := moment_of(item.get(name)))), "")


def _id(prefix: str, own: Any, created: str) -> str:
    clock = FixedClock(read_stamp(created) or _ANY_TIME)
    return names.time_id(prefix, clock, random.Random(f"import:{own}"))


def _note(path: str, fields: dict[str, Any], body: str) -> Given:
    from mdmem.memory.records import Given
    from mdmem.notes.frontmatter import render

    kept = {name: value for name, value in fields.items() if value not in ("", [], None)}
    return Given(str(fields["kind"]), path, render(kept, body.strip("\n") + "\n"), title=str(fields["title"]))


def _line(text: str) -> str:
    from mdmem.memory.remember import first_words

    return first_words(" ".join(text.split()))


def _status(item: Mapping[str, Any], kind: str) -> str:
    word = _text(item, "status").lower()
    word = _STATUS.get(word, word)
    return word if word in STATUSES[kind] else ""


def _origin(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"agent": _text(item, "agent", "from_agent", "assignedTo"), "device": _text(item, "machine")}


def _message(item: Mapping[str, Any]) -> Given | None:
    body = _text(item, "body", "content")
    title = _text(item, "subject") or _line(body)
    if not title:
        return None
    created = _when(item, "created_at", "timestamp")
    to = _words(item.get("to_agent"))
    fields = {
        "id": (identity := _id("msg", item["message_id"], created)),
        "kind": "message",
        "type": _text(item, "type"),
        "title": _line(title),
        "to": to,
        "priority": _text(item, "priority"),
        "thread": _text(item, "thread_id"),
        "in_reply_to": _text(item, "in_reply_to"),
        "read_by": to if item.get("read_at") or item.get("status") == "read" else [],
        "tags": _words(item.get("tags")),
        "aliases": _words([item["message_id"]]),
        **_origin(item),
        "created": created,
        "updated": created,
    }
    return _note(names.message_path(identity), fields, body)


def _task(item: Mapping[str, Any]) -> Given | None:
    title = _line(_text(item, "title"))
    own = item.get("task_id") or item.get("id") or title
    if not title:
        return None
    created = _when(item, "created_at", "createdAt")
    fields = {
        "id": (identity := _id("task", own, created)),
        "kind": "task",
        "title": title,
        "status": _status(item, "task") or "open",
        "priority": _text(item, "priority"),
        "part_of": _words(item.get("parent_task") or item.get("parentId")),
        "outcome": _line(_text(item, "outcome", "result")),
        "tags": _words(item.get("tags")),
        "aliases": _words([own]),
        **_origin(item),
        "created": created,
        "updated": _when(item, "updated_at", "updatedAt") or created,
    }
    return _note(names.task_path(title, identity), fields, _text(item, "description"))


def _session_note(own: Any, created: str, title: str, body: str, more: dict[str, Any]) -> Given:
    identity = _id("ses", own, created)
    fields = {
        "id": identity,
        "kind": "session",
        "title": title,
        **more,
        "session": " ".join(_words([own])),
        "created": created,
        "updated": created,
    }
    return _note(names.session_path(identity, read_stamp(created) or _ANY_TIME), fields, body)


def _session(item: Mapping[str, Any]) -> Given | None:
    summary, action = _text(item, "summary"), _text(item, "action")
    if not summary and not action:
        return None
    created = _when(item, "timestamp", "created_at")
    files = [f"- `{path}`" for path in _words(item.get("files_touched"))]
    body = "\n".join([summary, *(["", "## Files", "", *files] if files else [])])
    title = _line(": ".join(part for part in (action, summary) if part))
    # One session of it has many rows, each with an action and a time of its own.
    own = f"{item['session_id']}:{action}:{created}"
    return _session_note(own, created, title, body, {"tags": _words(item.get("tags")), **_origin(item)})


def _summary(item: Mapping[str, Any]) -> Given | None:
    narrative = _text(item, "narrative")
    title = _line(_text(item, "title") or narrative)
    if not title:
        return None
    parts = [narrative]
    for name, heading in (("keyDecisions", "Decisions"), ("filesModified", "Files")):
        found = item.get(name)
        if isinstance(found, list) and found:
            parts += ["", f"## {heading}", "", *(f"- {clean(line)}" for line in found if isinstance(line, str))]
    project = _text(item, "project")
    more = {"tags": _words(item.get("concepts")), "scope": f"project:{names.slug(project)}" if project else ""}
    return _session_note(item["sessionId"], _when(item, "createdAt"), title, "\n".join(parts), more)


def _entity(item: Mapping[str, Any]) -> Given | None:
    title = _line(_text(item, "title"))
    if not title:
        return None
    kind = names.slug(_text(item, "entity_type")) or "entity"
    edges: dict[str, list[str]] = {"initiative": _words(item.get("initiative"))}
    for relation in item.get("relationships") or []:
        if isinstance(relation, dict) and relation.get("to_id"):
            rel = str(relation.get("rel_type") or "")
            edges.setdefault(rel if rel in EDGE_FIELDS else "relates_to", []).append(" ".join(_words([relation["to_id"]])))
    created = _when(item, "created_at")
    fields = {
        "id": names.entity_id(kind, title),
        "kind": "entity",
        "type": kind,
        "title": title,
        "summary": _line(_text(item, "summary")),
        "aliases": _words([item["entity_id"]]),
        "tags": _words(item.get("tags")),
        "status": _status(item, "entity"),
        "priority": _text(item, "priority"),
        **{name: sorted(set(to)) for name, to in edges.items()},
        **_origin(item),
        "created": created,
        "updated": _when(item, "updated_at") or created,
    }
    return _note(names.entity_path(kind, title), fields, _text(item, "content", "summary"))


def _procedure(item: Mapping[str, Any]) -> Given | None:
    from mdmem.memory.records import Given

    steps = [f"{number}. {step}" for number, step in enumerate(_words_in_order(item.get("steps")), 1)]
    when = _text(item, "triggerCondition")
    text = "\n".join([*([f"When: {when}", ""] if when else []), *steps])
    title = _text(item, "name")
    return Given("records", text=text, title=title, type="procedure", tags=_words(item.get("tags"))) if text else None


def _words_in_order(value: Any) -> list[str]:
    return [clean(step) for step in value if isinstance(step, str)] if isinstance(value, list) else []
