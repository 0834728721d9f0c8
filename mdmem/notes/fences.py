"""Where a note's block begins and ends, decided on the bytes. Knows nothing of YAML.

The rules. The block opens with a line `---` that is the very first line (a byte order mark may
stand before it) and closes with the next line that is `---` or `...`; blanks may follow on both.
A blank line right after the opening line means that it is a horizontal rule: the file has no block.
A block that is never closed is bad: were it read as text, the next edit would put a second one on top.
One empty line after the closing line separates block and body and belongs to neither.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mdmem.notes.values import MAX_BLOCK, Problem

BOM = b"\xef\xbb\xbf"
_OPEN = re.compile(rb"---[ \t]*(?:\r?\n|\Z)")
_CLOSE = re.compile(rb"^(?:---|\.\.\.)[ \t]*\r?$", re.M)
_BLANK = re.compile(rb"[ \t]*\r?(?:\n|\Z)")
# git writes seven characters, more when a conflict is merged again.
# For the python-frontmatter handler, which wants one pattern.
FENCE_LINE = re.compile(r"^---[ \t]*$", re.M)
_MARKER = re.compile(rb"^(?:<{7,}|>{7,}|={7,}|\|{7,})(?: |\r?$)", re.M)
_LATE = re.compile(rb"\s+---[ \t]*\r?\n[A-Za-z_][\w-]*:")


@dataclass(slots=True)
class Split:
    """A file cut at its fences; offsets are bytes into the data.

    `block` is the decoded text between the fences, line ends as they stand; `body_at` is where the
    body begins, `close_at` where the closing line begins, `body_line` is 1-based.
    """

    bom: bool
    newline: str
    block: str | None = None
    block_at: int = 0
    close_at: int = 0
    body_at: int = 0
    body_line: int = 1
    separated: bool = False
    problem: Problem | None = None
    warning: Problem | None = None


def split(data: bytes) -> Split:
    """Return the parts of a file; never raises. With a problem there is no block and the body is everything."""
    bom = data.startswith(BOM)
    start = 3 if bom else 0
    first = data.find(b"\n")
    newline = "\r\n" if first > 0 and data[first - 1] == 13 else "\n"
    parts = Split(bom, newline, body_at=start)
    opening = _OPEN.match(data, start)
    if opening is None:
        _without_block(data, start, parts)
        return parts
    block_at = opening.end()
    if _BLANK.match(data, block_at):
        return parts
    closing = _CLOSE.search(data, block_at)
    limit = closing.start() if closing else min(len(data), block_at + MAX_BLOCK)
    marker = _MARKER.search(data, block_at, limit)
    if marker:
        parts.problem = _conflicted(data, marker.start())
    elif closing is None:
        parts.problem = Problem("bad", "the block that opens on line 1 is never closed by a line ---", 1)
    elif closing.start() - block_at > MAX_BLOCK:
        parts.problem = Problem("bad", f"the block is larger than {MAX_BLOCK // 1024} KB", 1)
    else:
        try:
            parts.block = data[block_at : closing.start()].decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, block_at + error.start) + 1
            parts.problem = Problem("not_utf8", "the block is not UTF-8 text", line)
            return parts
        parts.block_at, parts.close_at = block_at, closing.start()
        after = closing.end() + (data[closing.end() : closing.end() + 1] == b"\n")
        lines = data.count(b"\n", 0, after)
        if data.startswith((b"\n", b"\r\n"), after):
            after = data.index(b"\n", after) + 1
            lines += 1
            parts.separated = True
        parts.body_at, parts.body_line = after, lines + 1
    return parts


def _without_block(data: bytes, start: int, parts: Split) -> None:
    head = data[start : start + 4096]
    if head.startswith((b"---\r", b"--- \r")):
        parts.problem = Problem("bad", "the lines end with a lone carriage return", 1)
    elif _MARKER.match(head) and head.startswith(b"<") and _MARKER.search(data, start + 7, start + MAX_BLOCK):
        parts.problem = _conflicted(data, start)
    elif _LATE.match(head):
        line = head[: head.index(b"---")].count(b"\n") + 1
        parts.warning = Problem("late_block", "a frontmatter block is read only when it starts on line 1", line)


def _conflicted(data: bytes, at: int) -> Problem:
    line = data.count(b"\n", 0, at) + 1
    return Problem("conflicted", "git conflict markers stand in the frontmatter block", line)


def text_markers(data: bytes, start: int) -> int | None:
    """Return the 1-based line of the first full set of git conflict markers in the body, or None."""
    if data.find(b"<<<<<<< ", start) < 0:
        return None
    opened, halfway = -1, False
    for found in _MARKER.finditer(data, start):
        sign = data[found.start()]
        if sign == 60:  # <
            opened, halfway = found.start(), False
        elif sign == 61 and opened >= 0:  # =
            halfway = True
        elif sign == 62 and halfway:  # >
            return data.count(b"\n", 0, opened) + 1
    return None
