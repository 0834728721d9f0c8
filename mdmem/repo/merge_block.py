"""A frontmatter block cut into its keys, each with its own lines, so that a merge can carry bytes over unchanged.

Positions come from the one reader of blocks (mdmem.notes.block); no line is interpreted here. Lines have no line end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from mdmem.notes import quoting
from mdmem.notes.block import Node, compose
from mdmem.notes.values import Value


class Unsplit(Exception):
    """The block is valid, but its keys do not stand on lines of their own."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key: comment and empty lines before it, the key as written, and the raw text of its value.

    `rest` is what follows the key on its line, colon included, then the continuation lines, all with the indentation
    of the key taken off. `children` is set for a map whose keys stand on lines of their own.
    """

    name: str
    key: str
    rest: tuple[str, ...]
    value: Value
    lead: tuple[str, ...] = ()
    children: tuple[Entry, ...] | None = None
    tail: tuple[str, ...] = ()  # comments after the last child
    node: Node | None = None
    indent: int = 0  # of the children

    @property
    def mark(self) -> str:
        """The value in one canonical text: equal marks mean equal values, whatever the quoting."""
        return mark(self.value)

    def raw(self) -> tuple[str, ...]:
        """Return the key's lines, without those before it."""
        return (self.key + self.rest[0], *self.rest[1:])


@dataclass(frozen=True, slots=True)
class Block:
    """The block of one file: the fence lines, the keys, and the comments after the last one."""

    opening: str = "---"
    closing: tuple[str, ...] = ("---",)
    entries: tuple[Entry, ...] = ()
    tail: tuple[str, ...] = ()
    present: bool = False

    def lines(self) -> list[str]:
        """Return all lines of the block with its fences; nothing when there is no block."""
        if not self.present:
            return []
        return [self.opening, *entry_lines(self.entries), *self.tail, *self.closing]

    def find(self, name: str) -> Entry | None:
        """Return the entry of a top-level key, or None."""
        return next((entry for entry in self.entries if entry.name == name), None)


def mark(value: Value) -> str:
    """Return a canonical text of a value; texts sort as themselves."""
    return value if isinstance(value, str) else "\0" + json.dumps(value, ensure_ascii=False)


def entry_lines(entries: Iterable[Entry]) -> list[str]:
    """Return the lines of entries, as they would stand at the start of a line."""
    return [line for entry in entries for line in (*entry.lead, *entry.raw())]


def indented(lines: Iterable[str], by: int) -> list[str]:
    """Return lines moved to the right; empty ones stay empty."""
    pad = " " * by
    return [pad + line if line.strip() else line for line in lines]


def read_block(opening: str, block: str, closing: Sequence[str]) -> Block:
    """Return the block whose text (between the fences, line ends `\\n`) is given.

    Raises BadBlock when it is not valid. A map written in braces is re-written one key a line.
    """
    node, _ = compose(block)
    lines = block.split("\n")[:-1]  # each line has an end: the closing fence begins a line
    try:
        entries, tail = split_map(lines, node, 0, len(lines), 0)
    except Unsplit:
        fields = node.read()
        assert isinstance(fields, dict)
        entries, tail = tuple(new_entry(name, value) for name, value in fields.items()), ()
    return Block(opening, tuple(closing), entries, tail, True)


def new_entry(name: str, value: Value) -> Entry:
    """Return the entry of a key as mdmem writes it; the value must be one that can be stored."""
    lines = quoting.entry(name, value)
    key = quoting.key(name)
    node, _ = compose("\n".join(lines) + "\n")
    return replace(split_map(lines, node, 0, len(lines), 0)[0][0], key=key)


def split_map(
    lines: Sequence[str], node: Node, first: int, stop: int, column: int
) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Return the entries of a block map that covers lines first..stop, and the comments after its last key.

    Raises Unsplit when a key shares its line with another or is not a plain `key:`.
    """
    if node.kind != "map" or (node.flow and node.keys):
        raise Unsplit
    starts = [key.line for key in node.keys]
    if any(key.column != column or key.line != key.end_line for key in node.keys) or len(set(starts)) != len(starts):
        raise Unsplit
    entries: list[Entry] = []
    at = first
    for number, (key, item) in enumerate(zip(node.keys, node.items, strict=True)):
        limit = starts[number + 1] if number + 1 < len(starts) else stop
        end = _last(lines, key.line, item, limit, column)
        entries.append(_entry(lines, key, item, at, end, column))
        at = end
    return tuple(entries), _dedent(lines[at:stop], column)


def _last(lines: Sequence[str], start: int, item: Node, limit: int, column: int) -> int:
    """Return the line after the last one of a value: comments and empty lines before the next key are the next key's."""
    if item.kind == "scalar" and item.style in ("|", ">"):
        floor = limit
        while floor > start + 1 and lines[floor - 1].lstrip(" ").startswith("#") and _outside(lines[floor - 1], column):
            floor -= 1
        return floor
    floor = start + 1
    if item.kind == "scalar" or item.flow:
        floor = max(floor, item.end_line + 1)
    end = limit
    while end > floor:
        line = lines[end - 1]
        if line.strip() and not (line.lstrip(" ").startswith("#") and _outside(line, column)):
            break
        end -= 1
    return end


def _outside(line: str, column: int) -> bool:
    return len(line) - len(line.lstrip(" ")) <= column


def _entry(lines: Sequence[str], key: Node, item: Node, at: int, end: int, column: int) -> Entry:
    first = lines[key.line]
    written, rest = first[column : key.end_column], first[key.end_column :]
    if first[:column].strip() or not rest.lstrip(" \t").startswith(":"):
        raise Unsplit
    lead = _dedent(lines[at : key.line], column)
    body = (rest, *_dedent(lines[key.line + 1 : end], column))
    children: tuple[Entry, ...] | None = None
    tail: tuple[str, ...] = ()
    indent = 0
    if item.kind == "map":
        indent = item.column - column
        try:
            if not item.keys or item.line == key.line:
                raise Unsplit
            children, tail = split_map(lines, item, key.line + 1, end, item.column)
        except Unsplit:
            value = item.read()
            assert isinstance(value, dict)
            made = [new_entry(name, part) for name, part in value.items()] if value else []
            children, tail, indent = tuple(made), (), 2
    return Entry(key.value, written, body, item.read(), lead, children, tail, item, indent)


def _dedent(lines: Sequence[str], column: int) -> tuple[str, ...]:
    pad = " " * column
    return tuple(line.removeprefix(pad) for line in lines)


def with_children(entry: Entry, children: Sequence[Entry], tail: Sequence[str] = ()) -> Entry:
    """Return a map's entry with other children."""
    value: Value = {child.name: child.value for child in children} or ""
    by = entry.indent or 2
    inner = indented([*entry_lines(children), *tail], by)
    head = entry.rest[0] if entry.children and not _inline(entry) else ":"
    return replace(entry, rest=(head, *inner), value=value, children=tuple(children), tail=tuple(tail), indent=by)


def _inline(entry: Entry) -> bool:
    return "{" in entry.rest[0].split("#")[0]


@dataclass(slots=True)
class Items:
    """A list's items: text → its lines (dash and comments before it included)."""

    texts: list[str] = field(default_factory=list)
    lines: dict[str, tuple[str, ...]] = field(default_factory=dict)
    flow: bool = False


def read_items(entry: Entry | None) -> Items | None:
    """Return the texts of a field that is a set: one text or a list of them; None when it holds anything else."""
    items = Items()
    if entry is None:
        return items
    value = entry.value
    if isinstance(value, str):
        words = value.split(",") if entry.name == "tags" else [value]
        items.texts = [word.strip() for word in words if word.strip() not in ("", "~", "null")]
        return items
    if isinstance(value, dict) or entry.node is None or any(not isinstance(item, str) for item in value):
        return None
    items.texts = [item for item in value if isinstance(item, str)]
    items.flow = entry.node.flow
    if not items.flow:
        _item_lines(entry, items)
    return items


def _item_lines(entry: Entry, items: Items) -> None:
    """Note the raw lines of each item of a list with one dash a line."""
    assert entry.node is not None
    dashes = ("- ", "-\t", "-\r")
    starts = [place for place, line in enumerate(entry.rest[1:], 1) if (line.lstrip(" ") + " ").startswith(dashes)]
    if len(starts) != len(entry.node.items):
        return
    at = 1
    for number, text in enumerate(items.texts):
        stop = starts[number + 1] if number + 1 < len(starts) else len(entry.rest)
        last = stop
        while number + 1 < len(starts) and last > starts[number] + 1 and _loose(entry.rest[last - 1]):
            last -= 1
        lines = entry.rest[at:last]
        margin = len(entry.rest[starts[number]]) - len(entry.rest[starts[number]].lstrip(" "))
        items.lines.setdefault(text, _dedent(lines, margin))
        at = last


def _loose(line: str) -> bool:
    return not line.strip() or line.lstrip(" ").startswith("#")


def raw_value(lines: Sequence[str], node: Node, name: str, stop: int) -> tuple[str, ...]:
    """Return the raw text of one key's value in a map that ends before line `stop`: `: …`, then the lines after it.

    The map has the key."""
    place = node.find(name)
    key = node.keys[place]
    limit = node.keys[place + 1].line if place + 1 < len(node.keys) else stop
    end = _last(lines, key.line, node.items[place], limit, key.column)
    return (lines[key.line][key.end_column :], *_dedent(lines[key.line + 1 : end], key.column))
