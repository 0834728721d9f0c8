"""Cutting a note into windows: what one row of the text index and one vector stand for. Pure text, no files.

A window holds at most 160 words or 260 CJK characters (mixed text: the two shares add up to one) and by a cautious
estimate at most 380 model tokens. Borders are, in this order: headings, paragraphs, turns (`Speaker: text`), list
items and lines, sentence ends, and only then the middle of a line.

A section that fits is one window. A longer one is cut into strides of about 40 words, and each two neighbours make a
window: short windows are found better by meaning, and what would stand at a border stands in the middle of another
one. So every line of the body that is not blank is in one window or in two that follow each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

WORDS = 160
CJK = 260
TOKENS = 380


class Window(NamedTuple):
    """A part of a note: the path of headings it stands under, its text, and its first and last line in the file."""

    heading: str
    text: str
    start_line: int
    end_line: int


class _Block(NamedTuple):
    """Lines that belong together; `load` is 1.0 for a full window."""

    first: int
    lines: list[str]
    load: float
    heading: str
    opens: bool  # a heading stands at its top


_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
# A turn: up to four capitalised or CJK words, a colon, text. `Note:` alone on its line opens a paragraph as well.
_TURN = re.compile(r"(?:\[[^\]\n]{1,40}\]\s*)?(?:\*\*)?[^\W\d_][\w .'\-]{0,40}?(?:\*\*)?\s?(?:[::]\s|:\*\*\s)")
_SPECIAL = re.compile("[\u3000-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U000323af]")
_PIECES = re.compile(r"[a-z]+|[A-Z]+|[0-9]+|[^\sA-Za-z0-9]")
_SENTENCE = re.compile(r"(?<=[.!?。!?;;…])(?=\s)\s*|(?<=[。!?;])")
_FULL = 20_000  # characters of a block that is too long whatever it holds: not worth an exact estimate
STRIDE = 0.25  # share of a full window: half of a window where a section takes several
WHOLE = 0.5  # a paragraph or turn up to this share is never cut
SMALL = 0.3  # a section shorter than this share of a window is joined with the next one


def model_tokens(text: str) -> int:
    """Return a cautious estimate of the model's tokens (measured on prose, code, hashes, Chinese, Cyrillic: 1 to 2 times
    the true count)."""
    count = 0
    for piece in _PIECES.findall(text):
        first = piece[0]
        if first >= "a":
            count += 1 + (len(piece) - 1) // 4
        elif first.isalnum():
            count += 1 + (len(piece) - 1) // 2
        else:
            count += 1
    return count


def load(text: str) -> float:
    """Return which share of a full window the text takes (1.0: full)."""
    if text.isascii():
        words = len(text.split())
        wide = 0
    else:
        wide = len(_SPECIAL.findall(text))
        words = len(_SPECIAL.sub(" ", text).split()) if wide else len(text.split())
    share = words / WORDS + wide / CJK
    # The estimate costs more than the count, and prose of few characters cannot pass it.
    if len(text) < TOKENS and share > len(text) / TOKENS:
        return share
    return max(share, model_tokens(text) / TOKENS)


def cut(title: str, body: str, body_line: int = 1) -> list[Window]:
    """Return the windows of a body whose first line is line `body_line` of its file; at least one, perhaps empty.

    A top heading that repeats the title is left out of the heading path (not out of the text)."""
    windows: list[Window] = []
    for run in _sections(_blocks(title, body)):
        strides = list(_pack(run))
        pairs = [[*left, *right] for left, right in pairwise(strides)] or strides
        windows += [_window(blocks, body_line) for blocks in pairs]
    return windows or [Window("", "", body_line, body_line)]


def _blocks(title: str, body: str) -> Iterator[_Block]:
    """Yield the blocks of a body: headings with nothing below, paragraphs, turns, fenced code."""
    path: list[tuple[int, str]] = []
    pending: list[str] = []
    first = size = 0
    fence = ""
    opens = turns = False

    def flush() -> Iterator[_Block]:
        nonlocal pending, opens, size
        if pending:
            names = [name for level, name in path if name and not (level == 1 and name == title)]
            weight = load("\n".join(pending)) if size < _FULL else size / _FULL + 1
            yield _Block(first, pending, weight, " > ".join(names), opens)
        pending, opens, size = [], False, 0

    for number, line in enumerate(body.replace("\r\n", "\n").split("\n")):
        mark = _FENCE.match(line) if "```" in line or "~~~" in line else None
        size += len(line) + 1
        if fence:
            pending.append(line)
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        head = _HEADING.match(line) if line.lstrip().startswith("#") else None
        if head or not line.strip():
            yield from flush()
            if head:
                level = len(head[1])
                path = [entry for entry in path if entry[0] < level] + [(level, (head[2] or "").strip())]
                first, pending, opens, size = number, [line], True, len(line) + 1
                yield from flush()
            continue
        if pending and turns and _TURN.match(line):
            yield from flush()
            size = len(line) + 1
        if not pending:
            first, turns = number, _TURN.match(line) is not None
        pending.append(line)
        if mark:
            fence = mark[1]
    yield from flush()


def _sections(blocks: Iterable[_Block]) -> Iterator[list[_Block]]:
    """Yield runs of blocks that start at a heading, small sections joined with what follows."""
    run: list[_Block] = []
    held = 0.0
    for block in blocks:
        if block.opens and held >= SMALL:
            yield run
            run, held = [], 0.0
        run.append(block)
        held += block.load
    if run:
        yield run


def _pack(run: list[_Block]) -> Iterator[list[_Block]]:
    """Yield the blocks of a section: all together when they fit into a window, else strides of about equal size."""
    total = sum(block.load for block in run)
    if total <= 1:
        yield run
        return
    target = total / -(-total // STRIDE)
    held: list[_Block] = []
    size = 0.0
    for block in run:
        # A heading is never parted from what stands under it.
        if held and (size + block.load > WHOLE or size + block.load / 2 > target) and not all(b.opens for b in held):
            yield held
            held, size = [], 0.0
        if size + block.load <= WHOLE:
            held.append(block)
            size += block.load
            continue
        *pieces, last = _split(block, STRIDE, max(STRIDE / 4, STRIDE - size))
        for piece in pieces:
            yield [*held, piece]
            held = []
        held.append(last)
        size = sum(b.load for b in held)
    if held:
        yield held


def _gapped(blocks: list[_Block]) -> list[str]:
    """Return the lines of blocks, with an empty line where the body has blank ones between them."""
    lines: list[str] = []
    end = blocks[0].first
    for block in blocks:
        if block.first < end:
            # Two parts of one long line.
            lines[-1] = _joined([lines[-1], block.lines[0]])
            lines += block.lines[1:]
        else:
            lines += ["", *block.lines] if block.first > end and lines else block.lines
        end = block.first + len(block.lines)
    return lines


def _window(blocks: list[_Block], body_line: int) -> Window:
    last = blocks[-1]
    # Headings alone at the top say less than the one that the text stands under.
    named = next((block.heading for block in blocks if not block.opens), blocks[0].heading)
    end = last.first + len(last.lines) - 1
    return Window(named, "\n".join(_gapped(blocks)), blocks[0].first + body_line, end + body_line)


def _split(block: _Block, full: float, room: float) -> Iterator[_Block]:
    """Yield parts of an overlong block of at most `full`: at lines where possible, the first part within `room`."""
    held: list[str] = []
    first, size = block.first, 0.0
    for offset, line in enumerate(block.lines):
        weight = load(line)
        if held and size + weight > room:
            yield _Block(first, held, size, block.heading, False)
            held, size, room = [], 0.0, full
        if not held:
            first = block.first + offset
        if weight > room:
            parts = list(_split_line(line, full, room))
            for part in parts[:-1]:
                yield _Block(block.first + offset, [part], load(part), block.heading, False)
            room, line = full, parts[-1]
            weight = load(line)
        held.append(line)
        size += weight
    if held:
        yield _Block(first, held, size, block.heading, False)


def _split_line(line: str, full: float, room: float) -> Iterator[str]:
    """Yield parts of one long line: whole sentences where they fit, else words, else characters."""
    held: list[str] = []
    size = 0.0
    for piece, weight in _small((part for part in _SENTENCE.split(line) if part and not part.isspace()), full):
        if held and size + weight > room:
            yield _joined(held)
            held, size, room = [], 0.0, full
        held.append(piece)
        size += weight
    yield _joined(held)


def _joined(pieces: list[str]) -> str:
    text = pieces[0]
    for piece in pieces[1:]:
        text += piece if _SPECIAL.match(piece[:1]) or piece[:1].isspace() or text[-1:].isspace() else " " + piece
    return text


def _small(sentences: Iterable[str], full: float) -> Iterator[tuple[str, float]]:
    """Yield (piece, load), none above `full`: sentences, or groups of words of a long one, or stretches of characters."""
    for sentence in sentences:
        whole = load(sentence)
        if whole <= full:
            yield sentence, whole
            continue
        held: list[str] = []
        size = 0.0
        for word in re.findall(r"\S{1,60}", sentence):
            weight = load(word)
            if held and size + weight > full:
                yield " ".join(held), size
                held, size = [], 0.0
            held.append(word)
            size += weight
        if held:
            yield " ".join(held), size
