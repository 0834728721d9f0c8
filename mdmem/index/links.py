"""The edges that a note writes down: its edge fields, wikilinks and markdown links. Pure text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import unquote

from mdmem.notes.markdown import prose_lines
from mdmem.notes.note import Note

LINK = "links_to"


class Edge(NamedTuple):
    """An edge as written: `target` in the person's words, `origin` field or link, `line` in the file when known."""

    rel: str
    target: str
    origin: str
    line: int | None


_WIKI = re.compile(r"(!?)\[\[([^\[\]|#\n]{1,300})(?:#[^\[\]|\n]{0,300})?(?:\|[^\[\]\n]{0,300})?\]\]")
_MARKDOWN = re.compile(
    r"(?<!!)\[[^\[\]\n]{0,300}\]\(<?([^()<>\s]{1,500}(?:\([^()\s]{0,100}\)[^()<>\s]{0,100})?)>?(?:\s+[\"'(][^\n)]{0,200})?\)"
)
_INLINE_CODE = re.compile(r"(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def edges_of(note: Note, path: str) -> list[Edge]:
    """Return the edges of a note (shown as `path`) in order, each once; code is not prose, and an image is no edge."""
    found: dict[tuple[str, str], Edge] = {}
    for rel, targets in note.edges().items():
        for target in targets:
            inner = target_of(target)
            if inner:
                found.setdefault((rel, inner), Edge(rel, inner, "field", None))
    body = note.body
    if "[[" in body or "](" in body:
        for number, line in prose_lines(body):
            if "[[" not in line and "](" not in line:
                continue
            line = _INLINE_CODE.sub(" ", line)
            for target in _links(line, path):
                found.setdefault((LINK, target), Edge(LINK, target, "link", note.doc.body_line + number))
    return list(found.values())


def _links(line: str, path: str) -> Iterable[str]:
    for embed, target in _WIKI.findall(line):
        target = target.strip()
        if target and not (embed and "." in target and not target.lower().endswith(".md")):
            yield target
    for target in _MARKDOWN.findall(line):
        if _SCHEME.match(target) or target.startswith(("#", "/")):
            continue
        target = unquote(target.partition("#")[0])
        if target.lower().endswith(".md"):
            folder = path.rpartition("/")[0]
            yield normpath(f"{folder}/{target}" if folder else target)


def target_of(text: str) -> str:
    """Return what a field's value points at: `[[Title#part|label]]` → Title."""
    text = text.strip()
    match = _WIKI.fullmatch(text)
    return match[2].strip() if match else text
