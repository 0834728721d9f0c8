"""What a body says about itself: its first heading and its inline tags. Code is not prose."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*\Z")
_CODE = re.compile(r"(`+)(?:(?!\1).)+?\1", re.S)
# A letter must come first: #12 is an issue, `C#` and `a#b` are words. Letters of any script, with their marks.
_TAG = re.compile(r"(?<![^\s(\[{,;])#([^\W\d_][\w/\-\u0300-\u036f\u0900-\u0dff\u200c\u200d]*)")


def prose_lines(body: str) -> list[tuple[int, str]]:
    """Return (0-based line, text) of the lines outside fenced code."""
    lines: list[tuple[int, str]] = []
    fence = ""
    for number, line in enumerate(body.split("\n")):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not line.strip(" \t`~"):
                fence = ""
        elif found:
            fence = found[1]
        else:
            lines.append((number, line))
    return lines


def first_heading(body: str) -> str:
    """Return the text of the first heading outside code, or an empty string."""
    if "#" not in body:
        return ""
    for _, line in prose_lines(body):
        found = _HEADING.match(line)
        if found and found[1].strip():
            return found[1].strip()
    return ""


def inline_tags(body: str) -> list[str]:
    """Return the `#tags` that stand in prose, in order, each once, without the sign."""
    if "#" not in body:
        return []
    text = "\n".join(line for _, line in prose_lines(body))
    return list(dict.fromkeys(tag.rstrip("/-") for tag in _TAG.findall(_CODE.sub(" ", text))))
