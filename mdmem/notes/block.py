"""The YAML of a block as a tree of nodes with positions. Every scalar is the string that was written.

Works on the parser's events, never on constructed objects: no YAML type is ever applied, an alias
is refused before anything could be expanded, and depth is counted while reading. PyYAML is imported
on first use only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mdmem.notes.values import FORBIDDEN, MAX_DEPTH, BadBlock, Problem, Value

_LONE_RETURN = re.compile("\r(?!\n)")
_COMMENT = re.compile(r"[ \t]+#")
# A value, or a list item, that is one unquoted [[wikilink]] and nothing else but a comment.
_WIKILINK = re.compile(
    r"""^(?P<lead>[ ]*(?:-[ ]+)*(?:(?:[^\s#:\[\]{},"'&*!|>%@`?-][^:\r\n]*|"[^"\r\n]*"):[ ]+)?)"""
    r"""(?P<link>\[\[[^\[\]\r\n]+\]\])(?=[ ]*(?:[ ]\#[^\n]*)?\r?$)""",
    re.M,
)
HASH_MESSAGE = "text after # is a comment, quote it"


@dataclass(slots=True, eq=False)
class Node:
    """A scalar, list or map; lines and columns are 0-based within the block, the end is exclusive."""

    kind: str
    line: int
    column: int
    end_line: int
    end_column: int
    value: str = ""
    style: str = ""
    flow: bool = False
    keys: list[Node] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)

    def read(self) -> Value:
        """Return the value: str, list or dict."""
        if self.kind == "scalar":
            return self.value
        if self.kind == "list":
            return [item.read() for item in self.items]
        return {key.value: item.read() for key, item in zip(self.keys, self.items)}

    def find(self, key: str) -> int:
        """Return the position of a key of a map, or -1."""
        for place, node in enumerate(self.keys):
            if node.value == key:
                return place
        return -1


_engine: tuple[Any, ...] | None = None


def _load() -> tuple[Any, ...]:
    global _engine
    if _engine is None:
        import yaml

        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
        # ValueError and OverflowError: escapes such as "\UFFFFFFFF" in the pure Python scanner.
        _engine = (loader, yaml.events, (yaml.YAMLError, ValueError, OverflowError, RecursionError))
    return _engine


def compose(text: str) -> tuple[Node, list[Problem]]:
    """Return the block's top map and its warnings (lines 1-based within the block); raises BadBlock."""
    found = FORBIDDEN.search(text) or _LONE_RETURN.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        raise BadBlock(f"the character U+{ord(found[0]):04X} is not allowed in a block", line)
    masks: dict[tuple[int, int], str] = {}
    masked = text
    if "[[" in text:
        masked = _mask(text, masks)
    node, warnings, missed = _compose(masked, text, masks)
    if missed:
        # These looked like a link but stand inside a longer text: they are read as YAML reads them.
        kept = {place: link for place, link in masks.items() if place not in missed}
        lines = text.split("\n")
        for (at, column), link in kept.items():
            row = lines[at]
            lines[at] = row[:column] + "x" * len(link) + row[column + len(link) :]
        line = min(missed)[0] + 1
        node, warnings, missed = _compose("\n".join(lines), text, kept)
        if missed:
            raise BadBlock("an unquoted [[wikilink]] cannot be told from a list here, quote it", line)
    return node, warnings


def _mask(text: str, masks: dict[tuple[int, int], str]) -> str:
    """Return text with each unquoted wikilink value as a plain word of the same length, noted in masks."""

    line = seen = 0

    def swap(found: re.Match[str]) -> str:
        nonlocal line, seen
        lead = found["lead"]
        if not lead.strip():
            return found[0]
        line += text.count("\n", seen, found.start())
        seen = found.start()
        masks[(line, len(lead))] = found["link"]
        return lead + "x" * len(found["link"])

    return _WIKILINK.sub(swap, text)


def _compose(
    masked: str, text: str, masks: dict[tuple[int, int], str]
) -> tuple[Node, list[Problem], set[tuple[int, int]]]:
    loader_type, events, errors = _load()
    try:
        loader = loader_type(masked)
        try:
            reader = _Reader(loader.get_event, events, text, masks)
            return reader.document(), reader.warnings, set(masks) - reader.met
        finally:
            loader.dispose()
    except errors as error:
        missed = set(masks) if masks else set()
        if missed:
            return Node("map", 0, 0, 0, 0), [], missed
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise BadBlock(_explain(str(what)), mark.line + 1 if mark else None) from None


def _explain(what: str) -> str:
    if "mapping values are not allowed" in what:
        return "a value with ': ' in it must be quoted"
    if "tab" in what or "\\t" in what:
        return "a tab cannot be used here, use spaces"
    if "cannot start any token" in what:
        return "a value cannot start with this character unless it is quoted"
    if "expected key" in what or "<block end>" in what:
        return "the value does not end where its quotes or brackets end, or a line is indented wrongly"
    if "escape" in what:
        return f"{what.strip()} (in double quotes a backslash starts an escape; use single quotes)"
    return what.strip().splitlines()[0] if what.strip() else "not YAML"


class _Reader:
    """Turns events into nodes, and refuses what mdmem does not read."""

    def __init__(self, get: Callable[[], Any], events: Any, text: str, masks: dict[tuple[int, int], str]) -> None:
        self.get = get
        self.events = events
        self.text = text
        self.masks = masks
        self.met: set[tuple[int, int]] = set()
        self.warnings: list[Problem] = []
        self.lines = text.split("\n") if "#" in text else None

    def document(self) -> Node:
        events = self.events
        self.get()
        event = self.get()
        if isinstance(event, events.StreamEndEvent):
            return Node("map", 0, 0, 0, 0)
        if event.explicit:
            raise BadBlock("a second document starts here", event.start_mark.line + 1)
        node = self.node(self.get(), 0, False)
        self.get()
        event = self.get()
        if not isinstance(event, events.StreamEndEvent):
            raise BadBlock("a second document starts here", event.start_mark.line + 1)
        if node.kind != "map":
            raise BadBlock("the block is not a list of key: value lines", node.line + 1)
        return node

    def node(self, event: Any, depth: int, flow: bool) -> Node:
        events = self.events
        start, end = event.start_mark, event.end_mark
        line = start.line
        if isinstance(event, events.ScalarEvent):
            if event.anchor or event.tag:
                raise self.refused(event)
            node = Node("scalar", line, start.column, end.line, end.column, event.value, event.style or "")
            self.scalar(node, flow)
            return node
        if isinstance(event, events.AliasEvent) or event.anchor or event.tag:
            raise self.refused(event)
        if depth >= MAX_DEPTH:
            raise BadBlock(f"nested deeper than {MAX_DEPTH} levels", line + 1)
        inner = flow or bool(event.flow_style)
        if isinstance(event, events.SequenceStartEvent):
            node = Node("list", line, start.column, line, start.column, flow=inner)
            last: Any = events.SequenceEndEvent
            while not isinstance(event := self.get(), last):
                node.items.append(self.node(event, depth + 1, inner))
        else:
            node = Node("map", line, start.column, line, start.column, flow=inner)
            last = events.MappingEndEvent
            seen: set[str] = set()
            while not isinstance(event := self.get(), last):
                key = self.node(event, depth + 1, inner)
                if key.kind != "scalar":
                    raise BadBlock("a key must be a word, not a list or a map", key.line + 1)
                if key.value in seen:
                    raise BadBlock(f"the key {key.value!r} stands twice", key.line + 1)
                seen.add(key.value)
                node.keys.append(key)
                node.items.append(self.node(self.get(), depth + 1, inner))
        node.end_line, node.end_column = event.end_mark.line, event.end_mark.column
        if node.flow and not flow:
            self.after(node)
        return node

    def refused(self, event: Any) -> BadBlock:
        if isinstance(event, self.events.AliasEvent):
            what = "an alias (*name)"
        else:
            what = "an anchor (&name)" if event.anchor else "a tag (!name)"
        return BadBlock(f"{what} is not read, quote the value", event.start_mark.line + 1)

    def scalar(self, node: Node, flow: bool) -> None:
        """Put the text of a wikilink back, warn about a cut-off value, refuse hidden characters."""
        if node.style == '"':
            found = FORBIDDEN.search(node.value)
            if found:
                raise BadBlock(f"the character U+{ord(found[0]):04X} is not allowed in a value", node.line + 1)
        elif not node.style:
            if self.masks:
                place = (node.line, node.column)
                link = self.masks.get(place)
                if link is not None and len(link) == len(node.value) and not node.value.strip("x"):
                    self.met.add(place)
                    node.value = link
            if self.lines and _COMMENT.match(self.lines[node.end_line], node.end_column):
                self.warnings.append(Problem("comment_in_value", HASH_MESSAGE, node.end_line + 1))
            return
        if not flow and node.style in ("'", '"'):
            self.after(node)

    def after(self, node: Node) -> None:
        """Refuse `"a"#b`: YAML wants a blank before a comment, and the text would be lost."""
        if self.lines and self.lines[node.end_line][node.end_column : node.end_column + 1] == "#":
            raise BadBlock("a blank is missing before #", node.end_line + 1)
