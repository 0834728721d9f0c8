"""The lines of a window that show best why it was found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

LENGTH = 320  # characters of a snippet


@dataclass(frozen=True)
class Snippet:
    """Text of at most LENGTH characters and the lines of the file that it comes from."""

    text: str
    start_line: int
    end_line: int


def snippet(
    text: str, first_line: int, weights: Mapping[str, float], tokens: Callable[[str], list[str]], length: int = LENGTH
) -> Snippet:
    """Return the run of lines with the most weight of query terms; the opening lines when no term is in it.

    `weights` gives each query term its worth (rare terms more), `tokens` is the analyzer of the index."""
    lines = text.split("\n")
    found = [frozenset(tokens(line)) & weights.keys() if weights else frozenset() for line in lines]
    best: tuple[float, int, int] = (-1.0, 0, 0)
    for start, line in enumerate(lines):
        if not line.strip():
            continue
        seen: set[str] = set()
        size = 0
        for end in range(start, len(lines)):
            size += len(lines[end].strip()) + 1
            if end > start and size > length:
                break
            seen |= found[end]
            # Fewer lines win at equal weight; the earlier run wins at equal length.
            worth = sum(weights[term] for term in seen) - 1e-6 * (end - start)
            if worth > best[0] + 1e-9:
                best = (worth, start, end)
    _, start, end = best
    if not any(found):
        end = _filled(lines, start, length)
    shown = "\n".join(line.strip() for line in lines[start : end + 1] if line.strip())
    if len(shown) > length:
        shown = _part(shown, weights, tokens, length)
    return Snippet(shown, first_line + start, first_line + end)


def _filled(lines: list[str], start: int, length: int) -> int:
    """Return the last line up to which the opening lines fit."""
    size = len(lines[start])
    end = start
    while end + 1 < len(lines) and size + len(lines[end + 1]) < length:
        end += 1
        size += len(lines[end]) + 1
    return end


@lru_cache(maxsize=1)
def _piece() -> re.Pattern[str]:
    return re.compile(r"[^\s\u3000-\u9fff]+\s*|[\u3000-\u9fff]|\s+")


def _part(line: str, weights: Mapping[str, float], tokens: Callable[[str], list[str]], length: int) -> str:
    """Return a stretch of a long line around its matched terms, cut between words (or CJK characters)."""
    pieces = [match[0] for match in _piece().finditer(line[: length * 60])]
    centre = 0
    heaviest = 0.0
    for place in range(len(pieces)):
        around = "".join(pieces[place : place + 12])
        worth = sum(weights[term] for term in frozenset(tokens(around)) & weights.keys())
        if worth > heaviest:
            heaviest, centre = worth, place
    start = centre
    room = length - 2
    while start > 0 and sum(len(piece) for piece in pieces[start - 1 : centre]) <= room // 4:
        start -= 1
    shown = ""
    end = start
    while end < len(pieces) and len(shown) + len(pieces[end]) <= room:
        shown += pieces[end]
        end += 1
    shown = shown or pieces[start][:room]
    return ("…" if start else "") + shown.strip() + ("…" if end < len(pieces) or start == end else "")
