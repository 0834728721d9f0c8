"""One of the three texts of a merge, taken apart: byte order mark, line ends, block, body lines, origin; and put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mdmem.notes import fences
from mdmem.notes.note import Note, load
from mdmem.notes.values import Problem
from mdmem.repo.merge_block import Block, read_block
from mdmem.repo.merge_section import BOM, Origin, Section, find_sections, tidy


@dataclass(frozen=True, slots=True)
class Form:
    """How a file's text is stored: byte order mark, `\\n` or `\\r\\n` (empty: both occur), no line end at the end."""

    bom: bool
    newline: bytes
    is_open: bool


@dataclass(frozen=True, slots=True)
class Side:
    """A readable file: its form, its block, and its body as lines without line ends."""

    data: bytes
    form: Form
    block: Block
    body: list[bytes]
    origin: Origin


def form_of(data: bytes) -> Form:
    """Return the form of a file's text."""
    lines, returns = data.count(b"\n"), data.count(b"\r\n")
    newline = b"\n" if not returns else b"\r\n" if returns == lines else b""
    return Form(data.startswith(BOM), newline, bool(data.removeprefix(BOM)) and not data.endswith(b"\n"))


def plain(data: bytes, form: Form) -> bytes:
    """Return the text without byte order mark and with `\\n` line ends, where they are uniform."""
    data = data[3:] if form.bom else data
    return data.replace(b"\r\n", b"\n") if form.newline == b"\r\n" else data


def lines_of(text: bytes) -> list[bytes]:
    """Return the lines of a text without their `\\n`."""
    lines = text.split(b"\n")
    if not lines[-1]:
        del lines[-1]
    return lines


@lru_cache(maxsize=8)
def note_of(data: bytes) -> Note:
    """Return a file as a note. One merge asks for the same few texts again and again: they are parsed once."""
    return load("", data)


def origin_of(data: bytes) -> Origin:
    """Return who wrote a note, as its frontmatter says."""
    note = note_of(data)
    return Origin(*(tidy(note.text(name) or "") for name in ("agent", "device", "updated")))


def problem_of(data: bytes) -> Problem | None:
    """Return why a file cannot be read as a note, or None."""
    return note_of(data).doc.problem


def read_side(data: bytes, form: Form) -> Side:
    """Return the parts of a readable file, in the given form. Raises BadBlock."""
    text = plain(data, form)
    parts = fences.split(text)
    block = Block()
    if parts.block is not None:
        opening = text[: parts.block_at].decode("utf-8").removesuffix("\n")
        closing = text[parts.close_at : parts.body_at].decode("utf-8").removesuffix("\n").split("\n")
        block = read_block(opening, parts.block, closing)
    return Side(data, form, block, lines_of(text[parts.body_at :]), origin_of(data))


def join(block: Block, body: Sequence[bytes], form: Form) -> bytes:
    """Return the file of these parts in the given form; raises UnicodeEncodeError for half a surrogate pair."""
    lines = [line.encode("utf-8") for line in block.lines()] + list(body)
    text = b"\n".join(lines) + (b"" if form.is_open or not lines else b"\n")
    if form.newline == b"\r\n":
        text = text.replace(b"\n", b"\r\n")
    return (BOM if form.bom else b"") + text


def file_section(data: bytes) -> Section | None:
    """Return the section that is all there is in a file, when its versions are whole files; else None."""
    lines = lines_of(plain(data, form_of(data)))
    while lines and not lines[-1].strip():
        del lines[-1]
    found = find_sections(lines)
    if len(found) == 1 and found[0][:2] == (0, len(lines)) and all(text.whole for text, _ in found[0][2].versions):
        return found[0][2]
    return None
