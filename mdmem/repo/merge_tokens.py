"""A body cut into the units that a merge compares: lines, conflict sections, generated blocks; and where paragraphs end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mdmem.repo.merge_lines import Key
from mdmem.repo.merge_section import Section, find_sections

_BEGIN = re.compile(rb"<!-- mdmem:begin\b[ ]*([^\s>]*)[^\n]*-->[ \t\r]*$")
_FINISH = re.compile(rb"<!-- mdmem:end\b[^\n]*-->[ \t\r]*$")
_ITEM = re.compile(rb"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_OWN_BLOCK = re.compile(rb"#{1,6}(?:[ \t]|$)|<!-- mdmem:")
_FENCE = re.compile(rb" {0,3}(`{3,}|~{3,})([^`]*)$")


@dataclass(frozen=True, slots=True)
class Token:
    """One unit. Equal keys mean the same unit; `lines` are its bytes without line ends."""

    key: Key
    lines: tuple[bytes, ...]
    section: Section | None = None
    managed: bool = False


def weak(key: Key) -> bool:
    """Return whether a key is that of a blank line."""
    return isinstance(key, bytes) and not key.strip()


def line_token(line: bytes) -> Token:
    """Return the token of one line; a carriage return at its end does not make it another line."""
    return Token(line.removesuffix(b"\r"), (line,))


def section_token(section: Section) -> Token:
    """Return the token of a conflict section: the same set of texts is the same section."""
    return Token(frozenset(text for text, _ in section.versions), section.lines, section=section)


def tokens(lines: Sequence[bytes]) -> list[Token]:
    """Return the units of a body's lines, in order."""
    found: list[Token] = []
    at = 0
    for start, end, section in [*find_sections(lines), (len(lines), len(lines), None)]:
        found += _plain(lines[at:start])
        if section is not None:
            found += [line_token(line) for line in (*section.stray, b"")] if section.stray else []
            found.append(section_token(section))
        at = end
    return found


def _plain(lines: Sequence[bytes]) -> Iterable[Token]:
    begun: int | None = None
    done = 0
    found: list[Token] = []
    for at, line in enumerate(lines):
        if not line.startswith(b"<!-- mdmem:"):
            continue
        if _BEGIN.match(line):
            begun = at
        elif begun is not None and _FINISH.match(line):
            found += [line_token(each) for each in lines[done:begun]]
            name = _BEGIN.match(lines[begun])
            found.append(Token(("managed", name[1] if name else b""), tuple(lines[begun : at + 1]), managed=True))
            begun, done = None, at + 1
    return found + [line_token(each) for each in lines[done:]]


def flat(units: Iterable[Token]) -> list[bytes]:
    """Return the words of the units as lines: of a section, those of each version."""
    found: list[bytes] = []
    for unit in units:
        if unit.section is None:
            found += unit.lines
        else:
            for text, _ in unit.section.versions:
                found += text.data.split(b"\n")
    return found


def paragraph_starts(units: Sequence[Token]) -> list[bool]:
    """Return for each place 0..n whether a paragraph, heading, list item, section or code block may end before it."""
    starts = [True] * (len(units) + 1)
    fence: bytes | None = None
    before: bytes | None = None
    for at, unit in enumerate(units):
        if unit.section is not None or unit.managed:
            before = fence = None
            continue
        line = unit.lines[0]
        edge = before is None or not before.strip() or not line.strip()
        edge = edge or bool(_OWN_BLOCK.match(before or b"") or _OWN_BLOCK.match(line) or _ITEM.match(line))
        mark = _FENCE.match(line.rstrip(b"\r"))
        if fence is not None:
            starts[at] = False
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence, line = None, b""
        elif mark:
            starts[at] = edge
            fence = mark[1]
        else:
            starts[at] = edge
        before = line
    return starts


def items(units: Sequence[Token]) -> list[tuple[Token, ...]] | None:
    """Return the list items that these units are, continuation lines included; None when they are anything else."""
    found: list[list[Token]] = []
    for unit in units:
        line = unit.lines[0]
        if unit.section is not None or unit.managed or not line.strip():
            return None
        if _ITEM.match(line) and not line[:1].isspace():
            found.append([unit])
        elif found and line[:1].isspace():
            found[-1].append(unit)
        else:
            return None
    return [tuple(item) for item in found]
