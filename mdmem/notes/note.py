"""A note: a path, its bytes, and the fields as mdmem understands them.

A field is read at the top level first, then under `metadata:`, where Claude Code moves keys that it
does not know, then under the names that Claude Code itself uses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from mdmem.clock import read_stamp
from mdmem.notes import fences, schema
from mdmem.notes.frontmatter import Document, parse
from mdmem.notes.markdown import first_heading
from mdmem.notes.values import MAX_BLOCK, BadBlock, Value

# Our name of a field → the name that Claude Code's own memory uses.
_CLAUDE_NAMES = {"title": "name", "summary": "description", "updated": "modified", "session": "originSessionId"}
_NOTHING = ("", "~", "null")
# The scope of a note whose own cannot be told; it fits no pattern but `*`.
UNREADABLE = "unreadable"
_SCOPES = re.compile(r"""(?:^[ \t"'{]*|[{,][ \t]*["']?)scope["']?\s*:[ \t]*["']?([^\s"',}#]+)""", re.I | re.M)
_CLOSING = re.compile(r"^---[ \t]*$", re.MULTILINE)


@dataclass
class Note:
    """One file of the store; `path` is posix and relative to the store."""

    path: str
    data: bytes
    doc: Document

    def get(self, key: str) -> Value | None:
        """Return a field's effective value as written, or None when it is nowhere."""
        fields = self.doc.fields
        inner = fields.get("metadata")
        for name in (key, _CLAUDE_NAMES.get(key)):
            if name is None:
                continue
            if name in fields:
                return fields[name]
            if isinstance(inner, dict) and name in inner:
                return inner[name]
        return None

    def text(self, key: str) -> str:
        """Return a field that holds one text, stripped; "" when it is missing, nothing (null, ~) or no text."""
        value = self.get(key)
        if not isinstance(value, str):
            return ""
        value = value.strip()
        return "" if value in _NOTHING else value

    def words(self, key: str) -> list[str]:
        """Return a field that holds one text or a list of them, as a list without repeats."""
        return as_list(self.get(key))

    @cached_property
    def sha(self) -> str:
        """SHA-256 of the bytes, in hex."""
        import hashlib  # loads OpenSSL: not on a path that only reads

        return hashlib.sha256(self.data).hexdigest()

    @property
    def ok(self) -> bool:
        """True when the file could be read in full and may be written to."""
        return self.doc.problem is None

    @property
    def body(self) -> str:
        return self.doc.body

    @property
    def id(self) -> str:
        return self.text("id")

    @cached_property
    def kind(self) -> str:
        kind = self.text("kind")
        if "{{title" in self.text("title"):
            return "note"  # a template that an editor has not filled in yet
        if kind in schema.KINDS:
            return kind
        inner = self.doc.fields.get("metadata")
        if isinstance(inner, dict) and inner.get("node_type") == "memory":
            return "memory"  # written by Claude Code, whatever the folder is called
        return schema.default_kind(self.path)

    @cached_property
    def type(self) -> str:
        kind = self.text("type")
        if self.kind == "memory" and kind in schema.CLAUDE_TYPES:
            return schema.CLAUDE_TYPES[kind]
        if not kind and self.kind == "entity":
            parts = self.path.split("/")
            return parts[1] if parts[0] == "entities" and len(parts) > 2 else ""
        return kind

    @cached_property
    def title(self) -> str:
        stem = self.path.rpartition("/")[2].removesuffix(".md")
        title = self.get("title")
        written = title.strip() if isinstance(title, str) else ""
        return " ".join(written.split()) or first_heading(self.doc.body) or stem

    @property
    def summary(self) -> str:
        return self.text("summary")

    @property
    def overview(self) -> str:
        return self.text("overview")

    @cached_property
    def facts(self) -> dict[str, str]:
        facts = self.get("facts")
        return {key: value for key, value in facts.items() if isinstance(value, str)} if isinstance(facts, dict) else {}

    @cached_property
    def tags(self) -> list[str]:
        """The tags of the block, without `#`; a single text is split at commas."""
        value = self.get("tags")
        if isinstance(value, str):
            value = list(value.split(","))
        tags = (tag.strip().removeprefix("#") for tag in as_list(value))
        return list(dict.fromkeys(tag for tag in tags if tag))

    @property
    def aliases(self) -> list[str]:
        return self.words("aliases")

    @property
    def category(self) -> str:
        return self.text("category")

    @cached_property
    def scope(self) -> str:
        """Whom it is for. Where the block cannot be read (an editor has saved half of it, say): what it seems to say, and
        UNREADABLE where that is no one scope or may have been cut off, so that nobody reads what was meant for another."""
        value = self.get("scope")
        if isinstance(value, str):
            return self.text("scope")
        if value is not None:
            return UNREADABLE
        late = any(warning.code == "late_block" for warning in self.doc.warnings)
        if self.doc.has_block or (self.doc.problem is None and not late):
            return ""
        said = {found[1] for found in _SCOPES.finditer(self.doc.body[:MAX_BLOCK])}
        if len(said) == 1 and min(said)[0] not in "[{&*!|>":
            return str(said.pop())
        never_closed = self.doc.body.startswith("---") and _CLOSING.search(self.doc.body, 4) is None
        return UNREADABLE if said or never_closed else ""

    @property
    def agent(self) -> str:
        return self.text("agent")

    @property
    def device(self) -> str:
        return self.text("device")

    @property
    def source(self) -> str:
        return self.text("source")

    @property
    def session(self) -> str:
        return self.text("session")

    @property
    def status(self) -> str:
        return self.text("status")

    @property
    def priority(self) -> str:
        return self.text("priority")

    @property
    def outcome(self) -> str:
        return self.text("outcome")

    @property
    def due(self) -> str:
        return self.text("due")

    @property
    def created(self) -> str | None:
        """As written, or None."""
        return self.text("created") or None

    @property
    def updated(self) -> str | None:
        """As written, or None; the later one where Claude Code has stamped `modified` after we stamped `updated`."""
        return later(self.text("updated"), self._modified()) or None

    def _modified(self) -> str:
        inner = self.doc.fields.get("metadata")
        value = inner.get("modified") if isinstance(inner, dict) else None
        return value.strip() if isinstance(value, str) else ""

    @property
    def expires(self) -> str:
        return self.text("expires")

    @property
    def valid_from(self) -> str:
        return self.text("valid_from")

    @property
    def importance(self) -> float | None:
        return schema.number(self.get("importance"))

    @property
    def confidence(self) -> float | None:
        return schema.number(self.get("confidence"))

    @property
    def tier(self) -> str:
        return self.text("tier")

    @property
    def pinned(self) -> bool:
        return schema.is_true(self.get("pinned"))

    @property
    def fact_key(self) -> str:
        return self.text("fact_key")

    def edges(self) -> dict[str, list[str]]:
        """Return the edge fields that are set: name → what each points at, as written."""
        return {name: targets for name in schema.EDGE_FIELDS if (targets := self.words(name))}

    def effective(self) -> dict[str, Value]:
        """Return all fields as mdmem sees them: keys under `metadata:` beside those of the top level."""
        view = {key: value for key, value in self.doc.fields.items() if key != "metadata"}
        inner = self.doc.fields.get("metadata")
        if isinstance(inner, dict):
            for key, value in inner.items():
                view.setdefault(key, value)
        elif inner is not None:
            view["metadata"] = inner
        for ours, theirs in _CLAUDE_NAMES.items():
            if ours not in view and theirs in view:
                view[ours] = view[theirs]
        if self.type and "type" in view:
            view["type"] = self.type
        if self.updated:
            view["updated"] = self.updated
        return view

    def line_of(self, key: str) -> int | None:
        """Return the 1-based line of the file where a field's key stands, or None."""
        block = fences.split(self.data).block
        if block is None:
            return None
        from mdmem.notes.block import compose

        try:
            node, _ = compose(block)
        except BadBlock:
            return None
        for name in (key, _CLAUDE_NAMES.get(key, key)):
            place = node.find(name)
            if place >= 0:
                return node.keys[place].line + 2
            outer = node.find("metadata")
            inner = node.items[outer] if outer >= 0 else None
            if inner is not None and inner.kind == "map" and (place := inner.find(name)) >= 0:
                return inner.keys[place].line + 2
        return None


def later(one: str, two: str) -> str:
    """Return the later of two stamps as written; one when they cannot be compared."""
    if not one or not two:
        return one or two
    first, second = read_stamp(one), read_stamp(two)
    return two if first and second and second > first else one


def as_list(value: Value | None) -> list[str]:
    """Return the texts in a value: itself, its items, and `[[x]]` where YAML read it as nested lists."""
    if value is None or isinstance(value, dict):
        return []
    if isinstance(value, str):
        return [] if value.strip() in _NOTHING else [value.strip()]
    found: list[str] = []
    only = value[0] if len(value) == 1 else None
    if isinstance(only, list) and only and all(isinstance(part, str) for part in only):
        value = [value]  # a link on the line below its key, with no other beside it
    for item in value:
        if isinstance(item, str):
            found += as_list(item)
        elif isinstance(item, list) and len(item) == 1 and isinstance(item[0], list):
            found.append("[[" + ", ".join(part for part in item[0] if isinstance(part, str)) + "]]")
    return list(dict.fromkeys(found))


def load(path: str, data: bytes) -> Note:
    """Return the note in data; never raises."""
    return Note(path, data, parse(data))
