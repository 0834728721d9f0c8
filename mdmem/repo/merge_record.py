"""What a merge writes down in the frontmatter: `conflicts:` (to be settled) and `merged:` (set aside by a rule).

    conflicts:
      - field: priority
        1:
          value: high
          agent: claude
          device: laptop
          updated: 2026-05-01T10:00:00Z
        2:
          value: low
      - kind: deleted
        agent: claude
    merged:
      - field: status
        value: blocked
        agent: claude

A value stands there as it stood behind its own key, quotes, comments and further lines included. Items that are not of
this form are kept and otherwise left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mdmem.notes import quoting
from mdmem.notes.block import Node, compose
from mdmem.notes.values import BadBlock, Value
from mdmem.repo.merge_block import Block, Entry, indented, mark, raw_value, split_map, with_children
from mdmem.repo.merge_section import Origin, tidy

NAMES = ("conflicts", "merged")
Mark = str | None
NOWHERE = Origin()
_CHOICE_KEYS = {"field", "value", "removed", "agent", "device", "updated"}


@dataclass(frozen=True, slots=True)
class Choice:
    """One value that a field could have: its raw text (None: the field is removed) and where it came from."""

    rest: tuple[str, ...] | None
    value: Value
    origin: Origin = NOWHERE

    @property
    def mark(self) -> Mark:
        """The canonical text of the value, None for removed."""
        return None if self.rest is None else mark(self.value)

    def rank(self) -> tuple[bool, str]:
        """Return the key that orders the versions of a field: by content, removed last."""
        return self.rest is None, self.mark or ""


@dataclass(slots=True)
class Record:
    """The contents of both lists of one note. `readable` is false when a key of that name holds something else."""

    conflicts: dict[str, dict[Mark, Choice]] = field(default_factory=dict)
    deleted: Origin | None = None
    other: dict[str, tuple[str, ...]] = field(default_factory=dict)
    aside: dict[tuple[str, Mark], Choice] = field(default_factory=dict)
    readable: bool = True


def find_entry(entries: Sequence[Entry], name: str) -> Entry | None:
    """Return the entry of a field: at the top level, else under `metadata:`, else None."""
    for entry in entries:
        if entry.name == name:
            return entry
    for entry in entries:
        if entry.name == "metadata":
            return next((child for child in entry.children or () if child.name == name), None)
    return None


def find_path(entries: Sequence[Entry], name: str) -> list[str] | None:
    """Return the keys that lead to a field by its name in a conflict (`priority`, `facts.port`), None when it is nowhere."""
    parts = name.split(".", 1)
    for path in ([name], ["metadata", name], parts, ["metadata", *parts]):
        if at_path(entries, path) is not None:
            return path
    return None


def at_path(entries: Sequence[Entry], path: Sequence[str] | None) -> Entry | None:
    """Return the entry at the end of a path of keys, None when there is none."""
    found: Entry | None = None
    for name in path or ():
        found = next((entry for entry in entries if entry.name == name), None)
        if found is None:
            return None
        entries = found.children or ()
    return found


def read_record(block: Block) -> Record:
    """Return what earlier merges wrote down in a block; never raises."""
    record = Record()
    for name in NAMES:
        entry = find_entry(block.entries, name)
        if entry is None or entry.value in ("", []):
            continue
        if isinstance(entry.value, (str, dict)):
            record.readable = False
            continue
        lines = entry.raw()
        try:
            items = compose("\n".join(lines) + "\n")[0].items[0].items
        except (BadBlock, IndexError):
            record.readable = False
            continue
        for number, node in enumerate(items):
            stop = items[number + 1].line if number + 1 < len(items) else len(lines)
            if not (_read_conflict if name == "conflicts" else _read_aside)(record, lines, node, stop):
                record.other[name + "\0" + mark(node.read())] = tuple(lines[node.line : stop])
    return record


def _read_conflict(record: Record, lines: Sequence[str], node: Node, stop: int) -> bool:
    fields = node.read()
    if not isinstance(fields, dict) or node.flow:
        return False
    if fields.get("kind") == "deleted":
        record.deleted = min(record.deleted or _origin(fields), _origin(fields))
        return True
    name = fields.get("field")
    if not isinstance(name, str):
        return False
    choices: dict[Mark, Choice] = {}
    for place, (key, item) in enumerate(zip(node.keys, node.items, strict=True)):
        if key.value == "field":
            continue
        end = node.keys[place + 1].line if place + 1 < len(node.keys) else stop
        choice = _choice(lines, item, end) if key.value.isdigit() else None
        if choice is None:
            return False
        old = choices.get(choice.mark)
        choices[choice.mark] = choice if old is None else replace(old, origin=min(old.origin, choice.origin))
    if not choices or name in record.conflicts:
        return False
    record.conflicts[name] = choices
    return True


def _read_aside(record: Record, lines: Sequence[str], node: Node, stop: int) -> bool:
    fields = node.read()
    if not isinstance(fields, dict) or node.flow or not isinstance(name := fields.get("field"), str):
        return False
    choice = _choice(lines, node, stop)
    if choice is None or choice.rest is None:
        return False
    record.aside[name, choice.mark] = choice
    return True


def _choice(lines: Sequence[str], node: Node, stop: int) -> Choice | None:
    fields = node.read()
    if not isinstance(fields, dict) or node.flow or not fields.keys() <= _CHOICE_KEYS:
        return None
    if "value" not in fields:
        return Choice(None, "", _origin(fields)) if "removed" in fields else None
    return Choice(raw_value(lines, node, "value", stop), fields["value"], _origin(fields))


def _origin(fields: dict[str, Value]) -> Origin:
    def text(name: str) -> str:
        value = fields.get(name, "")
        return tidy(value) if isinstance(value, str) else ""

    return Origin(text("agent"), text("device"), text("updated"))


def record_entry(record: Record, name: str) -> Entry | None:
    """Return the entry of `conflicts` or `merged` for a record, None when it would be empty. Raises BadBlock."""
    lines: list[str] = []
    if name == "conflicts":
        for field_name in sorted(record.conflicts):
            lines.append(f"  - field: {quoting.scalar(field_name)}")
            ordered = sorted(record.conflicts[field_name].values(), key=Choice.rank)
            for number, choice in enumerate(ordered, 1):
                lines += [f"    {number}:", *indented(_choice_lines(choice), 6)]
        if record.deleted is not None:
            lines += ["  - kind: deleted", *indented(_origin_lines(record.deleted), 4)]
    else:
        for (field_name, _), choice in sorted(record.aside.items(), key=lambda item: (item[0][0], item[1].rank())):
            lines += [f"  - field: {quoting.scalar(field_name)}", *indented(_choice_lines(choice), 4)]
    for key in sorted(record.other):
        if key.startswith(name + "\0"):
            margin = len(record.other[key][0]) - len(record.other[key][0].lstrip(" "))
            lines += indented([line[margin:] if not line[:margin].strip() else line for line in record.other[key]], 2)
    return entry_from([name + ":", *lines]) if lines else None


def entry_from(lines: Sequence[str]) -> Entry:
    """Return the entry that these lines of a block are; raises BadBlock."""
    node, _ = compose("\n".join(lines) + "\n")
    return split_map(lines, node, 0, len(lines), 0)[0][0]


def _choice_lines(choice: Choice) -> list[str]:
    value = ["removed: true"] if choice.rest is None else ["value" + choice.rest[0], *choice.rest[1:]]
    return value + _origin_lines(choice.origin)


def _origin_lines(origin: Origin) -> list[str]:
    names = ("agent", "device", "updated")
    return [f"{name}: {quoting.scalar(text)}" for name in names if (text := getattr(origin, name))]


def put_entry(entries: Sequence[Entry], name: str, entry: Entry | None) -> tuple[Entry, ...]:
    """Return entries with the one of that name replaced where it stands (or removed), or added at the end."""
    for at, old in enumerate(entries):
        if old.name == name:
            new = () if entry is None else (replace(entry, lead=old.lead),)
            return (*entries[:at], *new, *entries[at + 1 :])
    for at, old in enumerate(entries):
        if old.name == "metadata" and any(child.name == name for child in old.children or ()):
            inner = put_entry(old.children or (), name, entry)
            return (*entries[:at], with_children(old, inner, old.tail), *entries[at + 1 :])
    return tuple(entries) if entry is None else (*entries, entry)
