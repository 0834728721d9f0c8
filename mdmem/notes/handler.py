"""A python-frontmatter handler over our own reader, for scripts that already use that library.

    import frontmatter
    from mdmem.notes.handler import MdmemHandler
    post = frontmatter.load("memories/a.md", handler=MdmemHandler())

python-frontmatter itself cannot hold a key named `content` or `handler`; `read_post` can.
Not imported by mdmem's own commands: it loads PyYAML.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import frontmatter
from frontmatter.default_handlers import BaseHandler

from mdmem.errors import BadNote
from mdmem.notes import fences
from mdmem.notes.frontmatter import Value, parse, render


class MdmemHandler(BaseHandler):  # type: ignore[misc,unused-ignore]
    """Reads as mdmem does: every scalar is the string in the file, a bad block raises BadNote with its line."""

    FM_BOUNDARY = fences.FENCE_LINE
    START_DELIMITER = END_DELIMITER = "---"

    def detect(self, text: str) -> bool:
        """Tell whether the text begins with a block, good or bad."""
        parts = fences.split(text.encode("utf-8", "replace"))
        return parts.block is not None or parts.problem is not None

    def split(self, text: str) -> tuple[str, str]:
        """Return block and content; ValueError (which the library expects) when there is no block."""
        data = text.encode("utf-8", "replace")
        parts = fences.split(data)
        if parts.problem is not None:
            raise BadNote(parts.problem.message, why=f"line {parts.problem.line}")
        if parts.block is None:
            raise ValueError("no block")
        return parts.block, data[parts.body_at :].decode()

    def load(self, fm: str, **_: object) -> dict[str, Value]:
        """Return the fields of a block; raises BadNote."""
        document = parse(f"---\n{fm}{'' if fm.endswith(chr(10)) else chr(10)}---\n".encode("utf-8", "replace"))
        if document.problem is not None:
            raise BadNote(document.problem.message, why=f"line {document.problem.line}")
        return document.fields

    def export(self, metadata: Mapping[str, Any], **_: object) -> str:
        """Return fields as the text of a block, without fences."""
        return render({str(key): _given(value) for key, value in metadata.items()}, "").decode()[4:-4].rstrip("\n")


def read_post(path: str | os.PathLike[str]) -> frontmatter.Post:
    """Return a file as a Post whatever its keys are called; raises BadNote or OSError."""
    with open(path, "rb") as stream:
        document = parse(stream.read())
    if document.problem is not None:
        raise BadNote(document.problem.message, why=f"line {document.problem.line}")
    post = frontmatter.Post(document.body.strip(), MdmemHandler())
    post.metadata = dict(document.fields)
    return post


def _given(value: Any) -> Any:
    """Return a value that a script put into a Post (a number, a date) as mdmem writes it."""
    if isinstance(value, Mapping):
        return {str(key): _given(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_given(part) for part in value]
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
