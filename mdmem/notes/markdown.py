"""What a body says about itself: its first heading and its inline tags. Code is not prose."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+")
_TICKS = re.compile("`+")
MAX_TITLE = 200  # characters taken from a heading
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
        if found:
            text = line[found.end() :].strip()
            bare = text.rstrip("#")
            if bare[-1:] in ("", " ", "\t"):  # `## Title ##`, but not `# C#`
                text = bare.rstrip()
            if text:
                return text[:MAX_TITLE]
    return ""


def without_code(text: str) -> str:
    """Return text with each `code span` replaced by a blank; linear in the length of the text."""
    runs = [found.span() for found in _TICKS.finditer(text)]
    same: dict[int, list[int]] = {}  # length of a run of backticks → where such runs are, last first
    for number in reversed(range(len(runs))):
        same.setdefault(runs[number][1] - runs[number][0], []).append(number)
    out, at, number = [], 0, 0
    while number < len(runs):
        start, end = runs[number]
        equal = same[end - start]
        while equal and equal[-1] <= number:
            equal.pop()
        if equal:
            out.append(text[at:start])
            number = equal[-1]
            at = runs[number][1]
        number += 1
    return " ".join([*out, text[at:]])


def inline_tags(body: str) -> list[str]:
    """Return the `#tags` that stand in prose, in order, each once, without the sign."""
    if "#" not in body:
        return []
    text = "\n".join(line for _, line in prose_lines(body))
    return list(dict.fromkeys(tag.rstrip("/-") for tag in _TAG.findall(without_code(text))))
