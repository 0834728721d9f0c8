"""Edits a block in place: cuts out the old value, puts in the new one, proves that nothing else moved."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping

from mdmem.errors import BadNote
from mdmem.notes import block as yaml_block
from mdmem.notes import fences, quoting
from mdmem.notes.block import Node
from mdmem.notes.body import replace_body
from mdmem.notes.frontmatter import Document, encode, parse
from mdmem.notes.values import BadBlock, Given, Value

_LEADING_BLANK = re.compile(r"\A(?:[ \t]*\r?\n)+")


def edit(data: bytes, changes: Mapping[str, Given | None], body: str | None = None) -> bytes:
    """See frontmatter.edit."""
    before = parse(data)
    if before.problem is not None:
        raise BadNote(
            f"the note is left as it is: {before.problem.message}",
            why=f"line {before.problem.line}" if before.problem.line else "",
            hint="mend it in an editor, then try again",
            code="bad_note" if before.problem.code != "conflicted" else "conflicted",
        )
    if any(warning.code == "late_block" for warning in before.warnings) and changes:
        raise BadNote(
            "the note is left as it is: its block does not start on line 1",
            hint="delete the empty lines above the first ---",
        )
    wanted = {name: None if value is None else quoting.as_value(value) for name, value in changes.items()}
    top, nested = _targets(before, wanted)
    result = data
    if before.has_block:
        result = _edit_block(data, before, top, nested)
    elif any(value is not None for value in top.values()):
        result = _new_block(data, before, {name: value for name, value in top.items() if value is not None})
    if body is not None:
        body = re.sub("\r+\n", "\n", body)
        result = replace_body(result, body)
    if result != data:
        _prove(result, before, top, nested, body)
    return result


def _targets(
    before: Document, wanted: dict[str, Value | None]
) -> tuple[dict[str, Value | None], dict[str, Value | None]]:
    """Return what changes at the top and what under `metadata:`; what is already so is left out."""
    inner = before.fields.get("metadata")
    held: dict[str, Value] = inner if isinstance(inner, dict) and "metadata" not in wanted else {}
    top: dict[str, Value | None] = {}
    nested: dict[str, Value | None] = {}
    for name, value in wanted.items():
        if name in before.fields:
            if before.fields[name] != value:
                top[name] = value
            if value is None and name in held:
                nested[name] = None
        elif name in held:
            if held[name] != value:
                nested[name] = value
        elif value is not None:
            top[name] = value
    return top, nested


def _new_block(data: bytes, before: Document, fields: dict[str, Value]) -> bytes:
    lines = ["---", *(line for name, value in fields.items() for line in quoting.entry(name, value)), "---"]
    start = 3 if before.bom else 0
    rest = data[start:]
    text = before.newline.join(lines) + before.newline
    if rest:
        text += before.newline
    return data[:start] + encode(text) + rest


def _edit_block(
    data: bytes, before: Document, top: dict[str, Value | None], nested: dict[str, Value | None]
) -> bytes:
    if not top and not nested:
        return data
    parts = fences.split(data)
    assert parts.block is not None
    try:
        node, _ = yaml_block.compose(parts.block)
        work = Splice(parts.block, before.newline)
        if nested:
            work.map(node.items[node.find("metadata")], nested, _after_key(work, node, node.find("metadata")))
        work.map(node, top, None)
        # A blank line below the opening one would turn the block into a horizontal rule.
        text = _LEADING_BLANK.sub("", work.result())
    except BadBlock as bad:
        raise BadNote(f"the note is left as it is: {bad.message}") from None
    return data[: parts.block_at] + text.encode("utf-8") + data[parts.close_at :]


def _after_key(work: Splice, node: Node, place: int) -> int:
    return work.colon(node.keys[place])


class Splice:
    """Collects replacements of spans of a text; positions are characters of the block."""

    def __init__(self, text: str, newline: str) -> None:
        self.text = text
        self.newline = newline
        self.starts = [0]
        for found in re.finditer("\n", text):
            self.starts.append(found.end())
        self.ops: list[tuple[int, int, str]] = []

    def result(self) -> str:
        text = self.text
        for start, end, new in sorted(self.ops, key=lambda op: (op[0], op[1]), reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def at(self, line: int, column: int) -> int:
        return self.starts[line] + column if line < len(self.starts) else len(self.text)

    def line_at(self, line: int) -> int:
        return self.at(line, 0)

    def start(self, node: Node) -> int:
        return self.at(node.line, node.column)

    def end(self, node: Node) -> int:
        return self.at(node.end_line, node.end_column)

    def raw(self, node: Node) -> str:
        return self.text[self.start(node) : self.end(node)]

    def line_text(self, line: int) -> str:
        return self.text[self.line_at(line) : self.line_at(line + 1)]

    def eol(self, line: int) -> int:
        """Return where a line ends, before its line end."""
        start, end = self.line_at(line), self.line_at(line + 1)
        return start + len(self.text[start:end].rstrip("\r\n"))

    def colon(self, key: Node) -> int:
        """Return the position after the colon of a key."""
        return self.text.index(":", self.end(key)) + 1

    def last_line(self, node: Node, parent_column: int) -> int:
        """Return the last line that belongs to a node: no blank lines or comments behind it."""
        if node.kind == "scalar":
            if node.style not in ("|", ">"):
                return node.end_line
            line = last = node.line
            while line + 1 < len(self.starts):
                line += 1
                text = self.line_text(line)
                if text.strip():
                    if len(text) - len(text.lstrip(" ")) <= parent_column:
                        break
                    last = line
            return last
        if node.flow:
            return node.end_line
        if node.kind == "list":
            return max(self.last_line(item, node.column) for item in node.items)
        return max(max(key.end_line, self.last_line(item, key.column)) for key, item in zip(node.keys, node.items))

    def lines(self, lines: list[str]) -> str:
        return "".join(line + self.newline for line in lines)

    def map(self, node: Node, changes: Mapping[str, Value | None], after: int | None) -> None:
        """Change keys of a map; `after` is the position behind its own key's colon, None at the top."""
        if not changes:
            return
        if node.flow:
            self.flow_map(node, changes)
            return
        added: list[str] = []
        gone = 0
        column = node.column if node.keys else 0
        for name, value in changes.items():
            place = node.find(name)
            if place < 0:
                assert value is not None  # a key that is not there is not taken away
                added += quoting.entry(name, value, column)
                continue
            key, old = node.keys[place], node.items[place]
            if value is None:
                gone += 1
                first, last = key.line, self.last_line(old, key.column)
                self.ops.append((self.line_at(first), self.line_at(last + 1), ""))
            else:
                self.value(key, old, value)
        if after is not None and gone == len(node.keys) and not added:
            self.ops.append((after, after, " {}"))
        if added:
            end = len(self.text) if after is None else self.line_at(self.last_line(node, -1) + 1)
            missing = self.newline if end and self.text[end - 1] != "\n" else ""
            self.ops.append((end, end, missing + self.lines(added)))

    def value(self, key: Node, old: Node, new: Value) -> None:
        """Change the value of a key of a block map."""
        after = self.colon(key)
        if isinstance(new, list) and old.kind == "list" and old.items and new:
            if old.flow:
                self.flow_list(old, new)
            elif not self.block_list(old, new):
                self.whole(key, old, new, after)
        elif isinstance(new, dict) and old.kind == "map" and old.keys and new:
            now = old.read()
            assert isinstance(now, dict)
            changes: dict[str, Value | None] = {name: None for name in now if name not in new}
            changes.update({name: value for name, value in new.items() if now.get(name) != value})
            self.map(old, changes, after)
        elif isinstance(new, str) and old.kind == "scalar" and old.style not in ("|", ">"):
            block = quoting.literal(new)
            if block:
                # The comment behind the old value may stand behind the header of a block.
                self.put(old, after, block[0])
                end = self.line_at(old.end_line + 1)
                pad = " " * (key.column + 2)
                self.ops.append((end, end, self.lines([pad + line if line else "" for line in block[1]])))
            else:
                self.put(old, after, quoting.scalar(new, old.style))
        else:
            self.whole(key, old, new, after)

    def put(self, old: Node, after: int, text: str) -> None:
        """Put text where an old one-line value stands, with a blank before it."""
        start = self.start(old)
        if self.text[start - 1 : start] in (":", "-", "?"):
            text = " " + text
        self.ops.append((start, self.end(old), text))

    def whole(self, key: Node, old: Node, new: Value, after: int) -> None:
        """Write a key's value anew: its head line keeps a comment, its other lines are replaced."""
        first, last = key.line, self.last_line(old, key.column)
        name = quoting.entry("k", new, key.column)
        head, rest = name[0][key.column + 2 :], name[1:]
        eol = self.eol(first)
        tail = ""
        if old.line > first or (old.kind == "scalar" and old.style in ("|", ">")):
            found = re.compile(r"[ \t]*(?:[|>][-+0-9]*)?([ \t]+#.*)?\Z").match(self.text[after:eol])
            tail = (found and found[1]) or ""
        else:
            comment = self.text[self.end(old) : self.eol(old.end_line)]
            tail = comment if comment.strip().startswith("#") else ""
        text = head + tail + (self.newline if rest else "") + self.newline.join(rest)
        self.ops.append((after, self.eol(last), text))

    def block_list(self, node: Node, new: list[Value]) -> bool:
        """Edit a block list item by item: lines of items that stay are kept. False when it cannot."""
        chunks: list[tuple[Value, int, int, int]] = []  # value, first line of its comments, dash line, last line
        line = node.line
        dash = re.compile(" " * node.column + r"-(?:[ \t\r\n]|\Z)")
        for item in node.items:
            lead = line
            while line <= item.line and not dash.match(self.line_text(line)):
                line += 1
            if line > item.line:
                return False
            last = self.last_line(item, node.column)
            chunks.append((item.read(), lead, line, last))
            line = last + 1
        unused = list(range(len(chunks)))
        flushed: set[int] = set()
        out: list[str] = []

        def comments(limit: int) -> None:
            for number, (_, lead, first, _) in enumerate(chunks):
                if number <= limit and number not in flushed:
                    flushed.add(number)
                    out.append(self.text[self.line_at(lead) : self.line_at(first)])

        for value in new:
            same = next((number for number in unused if chunks[number][0] == value), None)
            if same is None:
                out.append(self.lines(quoting.item(value, node.column)))
                continue
            unused.remove(same)
            comments(same)
            text = self.text[self.line_at(chunks[same][2]) : self.line_at(chunks[same][3] + 1)]
            out.append(text if text.endswith("\n") else text + self.newline)
        comments(len(chunks))
        self.ops.append((self.line_at(chunks[0][1]), self.line_at(chunks[-1][3] + 1), "".join(out)))
        return True

    def flow_list(self, node: Node, new: list[Value]) -> None:
        """Edit a list in brackets; the text of items that stay and what separates them is kept."""
        old = [(item.read(), self.raw(item)) for item in node.items]
        unused = list(range(len(old)))
        pieces: list[tuple[int, str]] = []
        for value in new:
            same = next((number for number in unused if old[number][0] == value), None)
            if same is not None:
                unused.remove(same)
            pieces.append((-2, quoting.inline(value)) if same is None else (same, old[same][1]))
        self.flow(node, node.items, node.items, pieces)

    def flow_map(self, node: Node, changes: Mapping[str, Value | None]) -> None:
        pieces: list[tuple[int, str]] = []
        for number, (key, item) in enumerate(zip(node.keys, node.items)):
            raw = self.text[self.start(key) : max(self.end(key), self.end(item))]
            if key.value in changes:
                value = changes[key.value]
                if value is not None:
                    pieces.append((number, f"{self.raw(key)}: {quoting.inline(value)}"))
            else:
                pieces.append((number, raw))
        pieces += [
            (-2, f"{quoting.key(name, True)}: {quoting.inline(value)}")
            for name, value in changes.items()
            if value is not None and node.find(name) < 0
        ]
        self.flow(node, node.keys, node.items, pieces)

    def flow(self, node: Node, firsts: list[Node], lasts: list[Node], pieces: list[tuple[int, str]]) -> None:
        start, end = self.start(node), self.end(node)
        if not firsts or not pieces:
            brackets = "[]" if node.kind == "list" else "{}"
            inner = ", ".join(text for _, text in pieces)
            gap = " " if inner.startswith("[") else ""
            self.ops.append((start, end, brackets[0] + gap + inner + gap + brackets[1]))
            return
        ends = [max(self.end(first), self.end(last)) for first, last in zip(firsts, lasts)]
        text = self.text[start : self.start(firsts[0])]
        previous = -1
        for number, (which, piece) in enumerate(pieces):
            if number:
                kept = which == previous + 1 and which > 0
                text += self.text[ends[previous] : self.start(firsts[which])] if kept else ", "
            text += piece
            previous = which if which >= 0 else -9
        if text.startswith("[["):
            text = "[ " + text[1:]  # [[a]] would be read as a wikilink
        self.ops.append((start, end, text + self.text[ends[-1] : end]))


def _prove(
    result: bytes,
    before: Document,
    top: dict[str, Value | None],
    nested: dict[str, Value | None],
    body: str | None,
) -> None:
    """Raise BadNote unless result reads as before, with just these keys changed."""
    expected = copy.deepcopy(before.fields)
    for name, value in top.items():
        if value is None:
            expected.pop(name, None)
        else:
            expected[name] = value
    inner = expected.get("metadata")
    if nested and isinstance(inner, dict):
        for name, value in nested.items():
            if value is None:
                inner.pop(name, None)
            else:
                inner[name] = value
    after = parse(result)
    kept = before.body if body is None else body
    same = (
        after.problem is None
        and after.fields == expected
        and [name for name in after.fields if name not in top] == [name for name in before.fields if name not in top]
        and after.body == kept
        and (after.bom, after.newline) == (before.bom, before.newline)
    )
    if not same:
        raise BadNote(
            "the note is left as it is: this change cannot be made without touching other lines",
            hint="make the change in an editor",
        )
