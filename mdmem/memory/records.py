"""Records of other programs read as memories: one reader for each form, told apart by what a record looks like.

A record becomes a `Given`: either the bytes of a note of ours, or a text with what is known about it. Nothing here writes.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, TypeAlias

from mdmem.clock import read_stamp, stamp
from mdmem.memory.exporting import RECORD
from mdmem.notes.schema import TIERS

_TYPES = {
    "preferences": "preference",
    "entities": "fact",
    "events": "event",
    "cases": "case",
    "patterns": "pattern",
    "architecture": "decision",
    "bug": "case",
    "workflow": "procedure",
    "observation": "fact",
    "other": "fact",
}


@dataclass
class Given:
    """One thing to import: `data` and `path` of a note of ours, or text and fields of somebody else's."""

    source: str
    path: str = ""
    data: bytes = b""
    text: str = ""
    title: str = ""
    type: str = "fact"
    scope: str = ""
    tags: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Unread:
    """A record that could not be taken, and why."""

    where: str
    reason: str


@dataclass(frozen=True)
class LeftOut:
    """Records of a kind that is not brought in, and why."""

    where: str
    reason: str


@dataclass(frozen=True)
class Relation:
    """A relation between two things by name, `rel` as a word; it becomes an edge of the first."""

    start: str
    to: str
    rel: str = ""


Item: TypeAlias = Given | Unread | LeftOut | Relation


def read_records(text: str) -> Iterator[Item]:
    """Yield what a file of records holds: JSON, NDJSON, Elasticsearch bulk, exports of known programs."""
    stripped = text.lstrip("\ufeff \t\r\n")
    whole: Any = None
    if stripped.startswith(("{", "[")):
        try:
            whole = json.loads(stripped)
        except (ValueError, RecursionError):
            whole = None
    if whole is not None:
        yield from _document(whole)
        return
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Unread(f"line {number}", f"not JSON ({type(error).__name__})")
            continue
        if isinstance(item, dict) and set(item) <= {"index", "create", "update", "delete"}:
            continue  # the action line of an Elasticsearch bulk file
        yield _one(item, f"line {number}")


# Where the programs put their lists.
_LISTS = (
    "notes", "memories", "records", "items", "data", "documents", "hits", "docs", "entities", "relations",
    *("summaries", "lessons", "insights", "semanticMemories", "proceduralMemories", "actions", "results"),
)  # fmt: skip
_GRAPH = {"entities": "entity", "relations": "relation"}  # the reference MCP memory server's graph in one document
_STATE = "not brought in: working data of the program that wrote it"


def _document(whole: Any) -> Iterator[Item]:
    if isinstance(whole, list):
        for number, item in enumerate(whole, 1):
            yield _one(item, f"record {number}")
    elif not isinstance(whole, dict):
        yield Unread("record 1", "neither an object nor a list")
    else:
        lists = {name: _list_in(value) for name, value in whole.items()}
        if not any(name in _LISTS and found is not None for name, found in lists.items()):
            yield _one(whole, "record 1")
            return
        for name, found in lists.items():
            if found is not None and name in _LISTS:
                for number, item in enumerate(found, 1):
                    kind = {"type": _GRAPH[name]} if name in _GRAPH else {}
                    yield _one({**kind, **item} if isinstance(item, dict) else item, f"{name} {number}", name)
            elif found or (found is None and isinstance(whole[name], dict) and whole[name]):
                count = len(found) if found is not None else _count(whole[name])
                yield LeftOut(f"{name} ({count})", _STATE)


def _list_in(value: Any) -> list[Any] | None:
    if isinstance(value, dict) and isinstance(value.get("hits"), list):
        value = value["hits"]
    return value if isinstance(value, list) else None


def _count(value: dict[str, Any]) -> int:
    return sum(len(below) if isinstance(below, list) else 1 for below in value.values())


def _one(item: Any, where: str, listed: str = "") -> Item:
    if not isinstance(item, dict):
        return Unread(where, "not an object")
    if isinstance(item.get("_source"), dict):
        item = {"_id": item.get("_id"), **item["_source"]}
    if item.get("format") == RECORD:
        return _ours(item, where)
    if item.get("type") == "relation" and "from" in item and "to" in item:
        rel = _word(re.sub(r"(?<=[a-z])(?=[A-Z])|\s+|-", "_", str(item.get("relationType") or "")))
        return Relation(str(item["from"]).strip(), str(item["to"]).strip(), rel)
    if item.get("type") == "entity" and "name" in item and "observations" in item:
        return _mcp_entity(item, where)
    from mdmem.memory.foreign import whole_note

    return whole_note(item, where, listed) or _foreign(item, where)


def _ours(item: Mapping[str, Any], where: str) -> Given | Unread:
    path = item.get("path")
    if not isinstance(path, str) or not path:
        return Unread(where, "no path")
    if isinstance(item.get("text"), str):
        return Given("mdmem", path, item["text"].encode("utf-8", "surrogatepass"))
    try:
        return Given("mdmem", path, base64.b64decode(str(item.get("base64", "")), validate=True))
    except (binascii.Error, ValueError):
        return Unread(where, "its text cannot be read")


def _mcp_entity(item: Mapping[str, Any], where: str) -> Given | Unread:
    said = item["observations"] if isinstance(item["observations"], list) else []
    lines = [f"- {line}" for line in said if isinstance(line, str)]
    name = str(item["name"]).strip()
    if not name:
        return Unread(where, "no name")
    kind = _word(item.get("entityType")) or "entity"
    return Given("mcp-memory", text="\n".join(lines) or name, title=name, type="fact", tags=[kind], extra={"entity_type": kind})


_TEXT_NAMES = ("content", "text", "l2_content", "body", "memory", "narrative", "value", "fact")
_DATES = (
    ("created", ("created_at", "createdAt", "timestamp", "created")),
    ("updated", ("updated_at", "updatedAt", "updated")),
    ("valid_from", ("valid_from",)),
    ("valid_until", ("valid_until", "invalidated_at")),
    ("expires", ("forgetAfter", "expires_at", "expires")),
)
_TITLE_NAMES = ("title", "l0_abstract", "name", "subject")


def _foreign(item: Mapping[str, Any], where: str) -> Given | Unread:
    """Read a memory of bridge, UltraMemory, agentmemory, mem0 and the like: text under one of the usual names."""
    more = item.get("metadata")
    if isinstance(more, str):
        try:
            more = json.loads(more)
        except (ValueError, RecursionError):
            more = {}
    fields = {**more, **item} if isinstance(more, dict) else dict(item)
    text = next((fields[name] for name in _TEXT_NAMES if isinstance(fields.get(name), str) and fields[name].strip()), "")
    if not text:
        return Unread(where, "no text under a known name (content, text, body, memory)")
    title = next((fields[name] for name in _TITLE_NAMES if isinstance(fields.get(name), str)), "")
    kind = _word(fields.get("type")) or _word(fields.get("category")) or _word(fields.get("memory_category")) or "fact"
    extra: dict[str, Any] = {}
    for name, sources in _DATES:
        moment = next((m for s in sources if (m := moment_of(fields.get(s)))), "")
        if moment:
            extra[name] = moment
    for name in ("importance", "confidence"):
        if isinstance(fields.get(name), (int, float)) and not isinstance(fields[name], bool) and 0 <= fields[name] <= 1:
            extra[name] = f"{fields[name]:g}"
    if fields.get("tier") in TIERS:
        extra["tier"] = fields["tier"]
    if isinstance(fields.get("fact_key"), str):
        extra["fact_key"] = fields["fact_key"][:200]
    if fields.get("isLatest") is False or fields.get("invalidated_at") or fields.get("superseded_by"):
        extra["status"] = "superseded"
    foreign = next((str(fields[n]) for n in ("memory_id", "id", "_id") if fields.get(n)), "")
    if foreign:
        extra["source"] = f"import:{foreign[:200]}"
    tags = fields.get("tags") or fields.get("concepts") or []
    tags = tags.split(",") if isinstance(tags, str) else tags
    words = [str(tag).strip() for tag in tags if isinstance(tag, (str, int))] if isinstance(tags, list) else []
    return Given("records", text=text, title=title, type=_TYPES.get(kind, kind), scope=_scope(fields), tags=words, extra=extra)


def _word(value: Any) -> str:
    found = re.fullmatch(r"[a-z][a-z0-9_-]{0,39}", str(value or "").strip().lower().replace(" ", "-"))
    return found[0] if found else ""


def _scope(fields: Mapping[str, Any]) -> str:
    value = str(fields.get("access_scope") or fields.get("scope") or "").strip()
    if value.endswith("-only"):
        return f"agent:{value.removesuffix('-only')}"
    if re.fullmatch(r"(shared|(agent|project|user):[\w.@/-]{1,80})", value):
        return value
    return ""


def moment_of(value: Any) -> str:
    """Return a date of any usual form (RFC 3339, seconds or milliseconds since 1970) as ours, '' when it is none."""
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, (int, float)):
        seconds = value / 1000 if value > 1e11 else value
        try:
            return stamp(datetime.fromtimestamp(seconds, timezone.utc)) if seconds > 0 else ""
        except (ValueError, OverflowError, OSError):
            return ""
    moment = read_stamp(str(value))
    return stamp(moment) if moment else ""
