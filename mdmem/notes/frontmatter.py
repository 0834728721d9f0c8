"""The one reader and writer of frontmatter: bytes in, strings out, nothing touched that did not change.

Every part of mdmem that looks at a note goes through `parse`, `edit` or `render`. YAML is loaded
only when a block needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mdmem.notes import fences
from mdmem.notes.simple import read_simple
from mdmem.notes.values import BadBlock, Given, Problem, Value, clean

__all__ = ["Document", "Given", "Problem", "Value", "clean", "edit", "parse", "reform", "render"]


@dataclass(slots=True)
class Document:
    """A parsed file.

    `fields` holds the block as it stands (strings, lists, maps). `body` is the text after the
    closing line and one separating empty line, with line ends as `\\n`; `body_line` is its first
    line in the file (1-based), `body_at` its first byte. With a `problem` the file is never
    written to: bad (block not readable), conflicted, not_utf8, binary. A bad or conflicted block
    gives no fields, and the body is then the whole text.
    """

    fields: dict[str, Value]
    body: str
    body_line: int = 1
    problem: Problem | None = None
    warnings: list[Problem] = field(default_factory=list)
    newline: str = "\n"
    bom: bool = False
    has_block: bool = False
    body_at: int = 0
    separated: bool = False


def parse(data: bytes) -> Document:
    """Return the document in data; never raises."""
    parts = fences.split(data)
    document = Document({}, "", parts.body_line, parts.problem, [], parts.newline, parts.bom)
    if parts.warning:
        document.warnings.append(parts.warning)
    document.body_at = parts.body_at
    if parts.block is not None:
        try:
            fields = read_simple(parts.block)
            if fields is None:
                from mdmem.notes import block

                node, warnings = block.compose(parts.block)
                fields = {key.value: item.read() for key, item in zip(node.keys, node.items)}
                document.warnings += [Problem(w.code, w.message, (w.line or 1) + 1) for w in warnings]
            document.fields = fields
            document.has_block = True
            document.separated = parts.separated
        except BadBlock as bad:
            document.problem = Problem("bad", bad.message, bad.line + 1 if bad.line else None)
            document.body_at = 3 if parts.bom else 0
            document.body_line = 1
    _read_body(data, document)
    return document


def _read_body(data: bytes, document: Document) -> None:
    raw = data[document.body_at :] if document.body_at else data
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if raw.startswith((b"\xff\xfe", b"\xfe\xff")) and not document.body_at:
            text = raw.decode("utf-16", "replace")
        else:
            text = raw.decode("utf-8", "replace")
        if document.problem is None:
            line = document.body_line + raw.count(b"\n", 0, error.start)
            document.problem = Problem("not_utf8", "the text is not UTF-8", line)
    if "\0" in text:
        if document.problem is None:
            line = document.body_line + text.count("\n", 0, text.index("\0"))
            document.problem = Problem("binary", "the text holds a NUL character", line)
        text = text.replace("\0", "\ufffd")
    document.body = text.replace("\r\n", "\n") if "\r\n" in text else text
    marked = fences.text_markers(data, document.body_at)
    if marked and document.problem is None:
        document.warnings.append(Problem("conflict_markers", "git conflict markers stand in the text", marked))


def edit(data: bytes, changes: Mapping[str, Given | None], *, body: str | None = None) -> bytes:
    """Return data with some keys set (None removes one) and, if given, another body.

    Only the lines of the keys that change are touched; a list is edited item by item. A key that
    exists under `metadata:` alone is edited there. A file without a block gets one. Raises
    BadNote, and changes nothing, when the block is bad, when a value cannot be stored, or when the
    result would not read back as asked.
    """
    from mdmem.notes import splice

    return splice.edit(data, changes, body)


def reform(data: bytes) -> bytes:
    """Return data with one list item a line in set fields and quotes around texts that hold ` #word`.

    Raises BadNote when the block is bad.
    """
    from mdmem.notes import reform as form

    return form.reform(data)


def render(fields: Mapping[str, Given], body: str) -> bytes:
    """Return a new file as mdmem writes it: one key a line, one list item a line, sets sorted.

    The body follows after one empty line and ends with a line end. Raises BadNote when a value
    holds a control character.
    """
    from mdmem.notes import quoting
    from mdmem.notes.schema import SET_FIELDS

    lines = ["---"]
    for key, value in fields.items():
        if key in SET_FIELDS and not isinstance(value, (str, Mapping)) and all(isinstance(item, str) for item in value):
            value = sorted({str(item) for item in value})
        lines += quoting.entry(key, value)
    text = "\n".join([*lines, "---", ""])
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    if body:
        text += "\n" + body + ("" if body.endswith("\n") else "\n")
    return encode(text)


def encode(text: str) -> bytes:
    """Return text as UTF-8; what no text file can hold (NUL, half a surrogate pair) becomes U+FFFD."""
    text = text.replace("\0", "\ufffd")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
