"""The frontmatter's fields as JSON Schema (draft 7), for editors and other programs. Made from `schema`, the rules in force.

Another YAML reader may see a number or a truth value where mdmem reads text, so a text may be any of these.
"""

from __future__ import annotations

from typing import Any

from mdmem.notes.schema import DATE_FIELDS, EDGE_FIELDS, FIELDS, KINDS, MEMORY_TYPES, SET_FIELDS, STATUSES, TIERS

DRAFT = "http://json-schema.org/draft-07/schema#"
DATE = r"^$|^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"
SCOPE = r"^$|^(shared|local|(agent|project|user):\S.*)$"

_MEANS = {
    "id": "Stable identity: never changes, never reused",
    "kind": "What the note is; its folder says it when this does not",
    "type": f"Of a memory: {', '.join(MEMORY_TYPES)} or your own; of an entity: project, initiative, person …",
    "category": "A second grouping of your own",
    "title": "What the note is about, in one line",
    "summary": "One line",
    "overview": "A paragraph",
    "facts": "Key and value, merged key by key",
    "tags": "Words to find it by",
    "aliases": "Other names and ids that lead here",
    "read_by": "Who has read a message: agent@device",
    "review": "Notes that this one may contradict or repeat",
    "reviewed": "Notes beside which a person let this one stand",
    "scope": "Where the note matters: shared, local, agent:NAME, project:NAME or user:NAME",
    "agent": "Who wrote it",
    "device": "Where it was written",
    "source": "Where it came from",
    "session": "The session that it came from",
    "status": "How it stands",
    "priority": "urgent, high, normal or low",
    "outcome": "How work ended",
    "claim": "Who holds a task: moment and agent@device",
    "initiative": "The initiative that it belongs to",
    "part_of": "What it is a part of",
    "blocked_by": "What it waits for",
    "blocks": "What waits for it",
    "depends_on": "What it needs",
    "relates_to": "What it has to do with",
    "supersedes": "What it replaces",
    "superseded_by": "What replaces it",
    "contradicts": "What says otherwise",
    "created": "When it was made (RFC 3339, UTC)",
    "updated": "When it was changed last",
    "due": "When the work should be done",
    "expires": "When it is no longer found",
    "valid_from": "When it begins to be true",
    "valid_until": "When it stops being true",
    "importance": "0 to 1",
    "confidence": "0 to 1",
    "tier": "core, working or peripheral",
    "pinned": "true: always among what a session starts with",
    "fact_key": "Names a fact of which only one version holds at a time",
}

_PLAIN: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}
_SHORT: dict[str, Any] = {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"enum": ["", None]}]}


def _field(name: str) -> dict[str, Any]:
    if name == "kind":
        return {"enum": [*KINDS, "", None]}
    if name == "tier":
        return {"enum": [*TIERS, "", None]}
    if name == "scope":
        return {"type": ["string", "null"], "pattern": SCOPE}
    if name in DATE_FIELDS:
        return {"type": ["string", "null"], "pattern": DATE}
    if name in ("importance", "confidence"):
        return dict(_SHORT)
    if name == "facts":
        return {"type": ["object", "null"], "additionalProperties": _PLAIN}
    if name in SET_FIELDS:
        # An unquoted [[link]] is a list in a list to another YAML reader.
        item = {"anyOf": [_PLAIN, {"type": "array"}]} if name in EDGE_FIELDS else _PLAIN
        return {"anyOf": [_PLAIN, {"type": "array", "items": item}]}
    return dict(_PLAIN)


def json_schema() -> dict[str, Any]:
    """Return the schema. A plain note (kind `note`) may hold anything; so may fields that have no meaning."""
    rules = []
    for kind, words in STATUSES.items():
        when = {"properties": {"kind": {"const": kind}}, "required": ["kind"]}
        rules.append({"if": when, "then": {"properties": {"status": {"enum": [*words, "", None]}}}})
    return {
        "$schema": DRAFT,
        "title": "mdmem note",
        "description": "The frontmatter of a note. Fields that are not listed are yours and are kept as they stand.",
        "type": "object",
        "if": {"not": {"properties": {"kind": {"const": "note"}}, "required": ["kind"]}},
        "then": {
            "properties": {name: {"description": _MEANS.get(name, ""), **_field(name)} for name in FIELDS},
            "allOf": rules,
        },
        "additionalProperties": True,
    }
