"""The two changes of form that `mdmem fmt` makes: one list item a line in sets, quotes where a text is cut off."""

from __future__ import annotations

import re

from mdmem.errors import BadNote
from mdmem.notes import block as yaml_block
from mdmem.notes import fences, quoting
from mdmem.notes.block import Node
from mdmem.notes.frontmatter import parse
from mdmem.notes.schema import SET_FIELDS
from mdmem.notes.splice import Splice
from mdmem.notes.values import BadBlock, Value

# `Fix #12 crash`: a word begins with the sign. `open  # or done` is a comment and stays one.
_CUT = re.compile(r"([^\n\r]*?[ \t]#(?![ \t\r\n#!])[^\r\n]*?)[ \t]*(?=\r?(?:\n|\Z))")


def reform(data: bytes) -> bytes:
    """Return data in the form that merges best as text; raises BadNote when the block is bad."""
    document = parse(data)
    if document.problem is not None:
        raise BadNote(f"the note is left as it is: {document.problem.message}")
    if not document.has_block:
        return data
    parts = fences.split(data)
    assert parts.block is not None
    try:
        node, _ = yaml_block.compose(parts.block)
    except BadBlock as bad:
        raise BadNote(f"the note is left as it is: {bad.message}") from None
    work = Splice(parts.block, document.newline)
    expected = document.fields
    _map(work, node, expected, 0)
    if not work.ops:
        return data
    result = data[: parts.block_at] + work.result().encode("utf-8") + data[parts.close_at :]
    after = parse(result)
    if after.problem is not None or after.fields != expected or after.body != document.body:
        raise BadNote("the note is left as it is: its form cannot be changed safely")
    return result


def _map(work: Splice, node: Node, values: dict[str, Value], depth: int) -> None:
    """Reform one block map in work; values is changed to what will be read."""
    if node.flow:
        return
    for key, item in zip(node.keys, node.items):
        name = key.value
        if name in SET_FIELDS and item.kind == "list" and item.flow and item.items:
            work.whole(key, item, item.read(), work.colon(key))
        elif item.kind == "scalar" and not item.style and item.end_line == key.line:
            text = _cut_off(work, item)
            if text is not None:
                start = work.start(item)
                lead = " " if work.text[start - 1] == ":" else ""
                work.ops.append((start, work.eol(item.line), lead + quoting.scalar(text, '"')))
                values[name] = text
        elif name == "metadata" and item.kind == "map" and depth == 0:
            inner = values[name]
            assert isinstance(inner, dict)
            _map(work, item, inner, 1)


def _cut_off(work: Splice, item: Node) -> str | None:
    """Return the whole text of a plain value that ends at ` #word`, or None."""
    start = work.start(item)
    found = _CUT.match(work.text, start)
    rest = work.text[work.end(item) : work.eol(item.line)]
    if found is None or not re.match(r"[ \t]+#(?![ \t\r\n#!]|\Z)", rest):
        return None
    return found[1].strip(" \t")
