"""Edits JSON as text: only the bytes of what changes change. Order, indentation, comments and number forms stay.

Knows nothing of what the file means. Comments and trailing commas are read only when asked for (VS Code's dialect).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from mdmem.errors import MdmemError

Path = tuple[str, ...]

_DEEPEST = 200
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_SPACE = re.compile(r"[ \t\r\n]*")
_SPACE_AND_COMMENTS = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")


class BadJson(MdmemError):
    """The text is not JSON; it was left as it is."""

    code, exit_code = "bad_json", 1


@dataclass
class Node:
    """A value in the text: its kind (object, array or scalar) and place; members in order."""

    kind: str
    start: int
    end: int = 0
    members: list[Member] = field(default_factory=list)


@dataclass
class Member:
    """One member of an object, or one item of an array (key ""): from `start` to the end of its value."""

    key: str
    start: int
    value: Node


class _Reader:
    def __init__(self, text: str, comments: bool) -> None:
        self.text, self.comments = text, comments
        self.space = _SPACE_AND_COMMENTS if comments else _SPACE
        self.at = 0

    def fail(self, what: str) -> BadJson:
        return BadJson(f"not valid JSON: {what} in line {self.text.count(chr(10), 0, self.at) + 1}")

    def skip(self) -> str:
        match = self.space.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def document(self) -> Node:
        node = self.value(0)
        if self.skip():
            raise self.fail("text after the end")
        return node

    def value(self, depth: int) -> Node:
        first = self.skip()
        if depth > _DEEPEST:
            raise self.fail("too many levels")
        if first == "{" or first == "[":
            return self.container(first, depth)
        match = (_STRING if first == '"' else _SCALAR).match(self.text, self.at)
        if match is None:
            raise self.fail(f"unexpected {first!r}" if first else "unexpected end")
        self.at = match.end()
        return Node("scalar", match.start(), match.end())

    def container(self, first: str, depth: int) -> Node:
        node = Node("object" if first == "{" else "array", self.at)
        closing = "}" if first == "{" else "]"
        self.at += 1
        comma = True
        while True:
            found = self.skip()
            if found == closing:
                if node.members and comma and not self.comments:
                    raise self.fail("a comma before the end")
                self.at += 1
                node.end = self.at
                return node
            if not comma:
                raise self.fail(f"expected a comma, found {found!r}" if found else "unexpected end")
            node.members.append(self.member(node.kind, depth))
            comma = self.skip() == ","
            if comma:
                self.at += 1

    def member(self, kind: str, depth: int) -> Member:
        start = self.at
        key = ""
        if kind == "object":
            match = _STRING.match(self.text, self.at)
            if match is None:
                raise self.fail("expected a key")
            try:
                key = json.loads(match[0])
            except ValueError as error:
                raise self.fail("a broken key") from error
            self.at = match.end()
            if self.skip() != ":":
                raise self.fail("expected a colon")
            self.at += 1
        return Member(key, start, self.value(depth + 1))


def parse(text: str, comments: bool = False) -> Node:
    """Return the tree of the text; raises BadJson with the line of the first fault."""
    return _Reader(text, comments).document()


def load(text: str, node: Node) -> Any:
    """Return the Python value of a node; of a key that stands twice, the last one."""
    if node.kind == "object":
        return {member.key: load(text, member.value) for member in node.members}
    if node.kind == "array":
        return [load(text, member.value) for member in node.members]
    return json.loads(text[node.start : node.end], strict=False)


class JsonText:
    """A text under edit. Raises BadJson when it does not parse."""

    def __init__(self, text: str, comments: bool = False) -> None:
        self.text, self.comments = text, comments
        self._parse()

    def _parse(self) -> None:
        self.root = parse(self.text, self.comments)

    def find(self, path: Path) -> Node | None:
        """Return the node at `path` (keys from the root), None when absent. Raises BadJson when a key on the way stands
        twice, or when what holds it is no object."""
        node = self.root
        for key in path:
            if node.kind != "object":
                raise BadJson(f"{'.'.join(path)} cannot be read: what holds {key} is not an object")
            found = [member for member in node.members if member.key == key]
            if len(found) > 1:
                raise BadJson(f"the key {key} stands twice", hint="remove one of them")
            if not found:
                return None
            node = found[0].value
        return node

    def get(self, path: Path) -> Any:
        """Return the value at `path`, None when absent."""
        node = self.find(path)
        return None if node is None else load(self.text, node)

    def put(self, path: Path, value: Any) -> None:
        """Set the value at `path`; objects on the way are made. Nothing changes when it is equal already."""
        node = self.find(path)
        if node is None:
            parent = self._object(path[:-1])
            self._insert(parent, json.dumps(path[-1], ensure_ascii=False) + self._colon(), value)
        elif load(self.text, node) != value:
            self._splice(node.start, node.end, self._written(value, self._indent_of(node.start)))

    def append(self, path: Path, value: Any) -> None:
        """Add `value` at the end of the array at `path`; the array is made when absent. Raises BadJson for no array."""
        node = self.find(path)
        if node is None:
            self.put(path, [value])
            return
        if node.kind != "array":
            raise BadJson(f"{'.'.join(path)} is not a list")
        self._insert(node, "", value)

    def remove(self, path: Path, index: int | None = None) -> None:
        """Take out the member at `path`, or the item `index` of the array there."""
        holder = self.find(path if index is not None else path[:-1])
        if holder is None:
            return
        for place, member in enumerate(holder.members):
            if place == index or (index is None and member.key == path[-1]):
                self.cut(holder, place)
                return

    def _object(self, path: Path) -> Node:
        node = self.find(path)
        if node is None:
            self.put(path, {})
            node = self.find(path)
        if node is None or node.kind != "object":
            raise BadJson(f"{'.'.join(path)} is not an object")
        return node

    def _splice(self, start: int, end: int, new: str) -> None:
        self.text = self.text[:start] + new + self.text[end:]
        self._parse()

    def _insert(self, holder: Node, key: str, value: Any) -> None:
        if holder.members:
            last = holder.members[-1]
            indent = self._indent_of(last.start)
            if not self._begins_line(last.start):
                self._splice(last.value.end, last.value.end, ", " + key + self._written(value, indent))
                return
            after = self._skip_to_comma(last.value.end)
            line = self._newline() + indent + key + self._written(value, indent)
            if after:
                self._splice(after, after, line + ",")
            else:
                self._splice(last.value.end, last.value.end, "," + line)
            return
        inner = self.text[holder.start + 1 : holder.end - 1]
        if "\n" not in self.text.strip() and len(self.text.strip()) > 2:
            new = key + self._written(value, None)
        else:
            indent = self._indent_of(holder.start)
            deeper = indent + self._unit()
            new = self._newline() + deeper + key + self._written(value, deeper) + self._newline() + indent
        self._splice(holder.start + 1, holder.end - 1, inner + new)

    def cut(self, holder: Node, place: int) -> None:
        """Take member `place` out of `holder`, a node of this text as it is now."""
        member = holder.members[place]
        own_comma = self._skip_to_comma(member.value.end)
        if own_comma:
            start = self._skip_to_comma(holder.members[place - 1].value.end) if place else holder.start + 1
            self._splice(start, own_comma, "")
        elif place:
            self._splice(holder.members[place - 1].value.end, member.value.end, "")
        else:
            before = self.text[holder.start + 1 : member.start]
            after = self.text[member.value.end : holder.end - 1]
            kept = re.sub(r"\r?\n[ \t]*$", "", before) + ("" if not after.strip() else after)
            self._splice(holder.start + 1, holder.end - 1, kept)

    def _skip_to_comma(self, at: int) -> int:
        """Return the place after the comma that follows `at`, 0 when none does."""
        match = (_SPACE_AND_COMMENTS if self.comments else _SPACE).match(self.text, at)
        end = match.end() if match else at
        return end + 1 if self.text[end : end + 1] == "," else 0

    def _line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def _begins_line(self, at: int) -> bool:
        start = self._line_start(at)
        return start > 0 and not self.text[start:at].strip()

    def _indent_of(self, at: int) -> str:
        start = self._line_start(at)
        match = re.compile(r"[ \t]*").match(self.text, start, at)
        return match[0] if match else ""

    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def _colon(self) -> str:
        return ":" if re.search(r'"[ \t]*:[^ \t\r\n]', self.text) and not re.search(r'":[ \t]', self.text) else ": "

    def _unit(self) -> str:
        match = re.search(r"[{\[,]\r?\n([ \t]+)\S", self.text)
        return match[1] if match else "  "

    def _written(self, value: Any, indent: str | None) -> str:
        if indent is None or ("\n" not in self.text.strip() and len(self.text.strip()) > 2):
            return json.dumps(value, ensure_ascii=False, separators=(",", self._colon()))
        text = json.dumps(value, ensure_ascii=False, indent=self._unit())
        return text.replace("\n", self._newline() + indent)
