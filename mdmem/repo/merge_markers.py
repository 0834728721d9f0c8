"""Reads a file that git left with its own conflict markers, where no driver ran, back into the sides it was made from."""

from __future__ import annotations

import re

_START = re.compile(rb"(<{7,})(?: [^\n]*)?\r?\n?$")
Sides = tuple[bytes | None, bytes, bytes]


def read_markers(data: bytes) -> Sides | None:
    """Return (base, ours, theirs) of a file with git's text markers; None when it holds no complete set of them.

    Reads the styles merge, diff3 and zdiff3 with markers of any length from seven. The base is None unless each conflict
    names it (zdiff3's base can hold lines that both sides share: good enough as a base, since both sides have them).
    """
    lines = _lines(data)
    base: list[bytes] | None = []
    ours: list[bytes] = []
    theirs: list[bytes] = []
    found = False
    at = 0
    while at < len(lines):
        start = _START.match(lines[at])
        conflict = _conflict(lines, at, len(start[1])) if start else None
        if conflict is None:
            for side in (base, ours, theirs):
                if side is not None:
                    side.append(lines[at])
            at += 1
            continue
        found = True
        middle, split, end = conflict
        ours += lines[at + 1 : middle or split]
        theirs += lines[split + 1 : end]
        if middle is None:
            base = None
        elif base is not None:
            base += lines[middle + 1 : split]
        at = end + 1
    if not found:
        return None
    return (None if base is None else b"".join(base)), b"".join(ours), b"".join(theirs)


def _lines(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _conflict(lines: list[bytes], start: int, length: int) -> tuple[int | None, int, int] | None:
    """Return the lines of `|||||||` (or None), `=======` and `>>>>>>>` of the conflict that starts here, or None."""
    middle: int | None = None
    split: int | None = None
    for at in range(start + 1, len(lines)):
        line = lines[at]
        if line[:1] not in b"<|=>" or not line:
            continue
        if _is(line, b"<", length):
            return None
        if split is None and middle is None and _is(line, b"|", length):
            middle = at
        elif split is None and _is(line, b"=", length):
            split = at
        elif split is not None and _is(line, b">", length):
            return middle, split, at
    return None


def _is(line: bytes, sign: bytes, length: int) -> bool:
    return line.startswith(sign * length) and line[length : length + 1] in (b"", b" ", b"\n", b"\r")
