"""The bundled model's tokenizer for short texts, in Python over a mapped table.

Loading tokenizer.json takes longer than everything else that a single question needs; this table
needs no loading. It gives the same numbers as the tokenizers package, which cuts the long texts:
NFKC, white space to one blank, a blank before the text, and for each word the pieces with the best
sum of scores (a Unigram model, Kudo 2018; ties and unknown characters as in tokenizers' unigram).

File, little endian: 8 bytes of magic, then uint32 count, slots, longest piece in characters, unknown
id, float64 least score; float64 scores [count]; uint32 starts [count + 1]; uint32 table [slots] (0, or id + 1, found at
crc32 of the piece and onward); the pieces' bytes. Ids are positions in the vocabulary.
"""

from __future__ import annotations

import mmap
import re
import struct
import unicodedata
import zlib
from array import array
from collections.abc import Sequence
from pathlib import Path

MAGIC = b"mdmemP01"
HEAD = struct.Struct("<8s4Id")
BLANK = "\u2581"
UNKNOWN_PENALTY = 10.0
START, END = 0, 2  # <s> and </s>
_WHITE = re.compile(r"[\n\r\t]")
_BLANKS = re.compile(" {2,}")
_MARKS = re.compile(r"<s>|<pad>|</s>|<unk>")


def write_pieces(path: Path, pieces: Sequence[str], scores: Sequence[float], unknown: int) -> None:
    """Write the table for a vocabulary in order of ids; of equal pieces the last counts."""
    keys = [piece.encode() for piece in pieces]
    slots = 1 << (2 * len(keys)).bit_length()
    table = array("I", bytes(4 * slots))
    for number, key in enumerate(keys):
        slot = zlib.crc32(key) & (slots - 1)
        while table[slot] and keys[table[slot] - 1] != key:
            slot = (slot + 1) & (slots - 1)
        table[slot] = number + 1
    starts = array("I", [0])
    for key in keys:
        starts.append(starts[-1] + len(key))
    head = HEAD.pack(MAGIC, len(keys), slots, max(map(len, pieces)), unknown, min(scores))
    path.write_bytes(b"".join([head, array("d", scores).tobytes(), starts.tobytes(), table.tobytes(), *keys]))


class Pieces:
    """An open table. Raises OSError or ValueError when the file is missing or not one."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as stream:
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        magic, count, slots, longest, unknown, least = HEAD.unpack_from(data)
        first = HEAD.size + 8 * count + 4 * (count + 1 + slots)
        if magic != MAGIC or slots & (slots - 1) or first > len(data):
            raise ValueError(f"{path.name} is not a table of pieces")
        view = memoryview(data)
        middle = HEAD.size + 8 * count
        self._scores = view[HEAD.size : middle].cast("d")
        self._starts = view[middle : middle + 4 * (count + 1)].cast("I")
        self._table = view[middle + 4 * (count + 1) : first].cast("I")
        self._bytes = view[first:]
        self._last = slots - 1
        self._longest = longest
        self._unknown = unknown
        self._least = least - UNKNOWN_PENALTY
        self._words: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int] | None:
        """Return the ids with the marks at both ends; None for a text that only the tokenizers package cuts as it
        does: one that spells out a mark, or has characters whose normal form depends on the version of Unicode."""
        whole = unicodedata.normalize("NFKC", text)
        if _MARKS.search(text) or not (text.isascii() or _settled(text + whole)):
            return None
        text = _BLANKS.sub(" ", _WHITE.sub(" ", whole)).replace(" ", BLANK)
        ids = [START]
        if text:
            if not text.startswith(BLANK):
                text = BLANK + text
            for word in text.split(BLANK)[1:]:
                ids.extend(self._word(BLANK + word))
        ids.append(END)
        return ids

    def _word(self, word: str) -> list[int]:
        known = self._words.get(word)
        if known is None:
            known = self._cut(word)
            if len(self._words) < 4096:
                self._words[word] = known
        return known

    def _find(self, key: bytes) -> int:
        table, starts = self._table, self._starts
        slot = zlib.crc32(key) & self._last
        while number := table[slot]:
            if self._bytes[starts[number - 1] : starts[number]] == key:
                return int(number) - 1
            slot = (slot + 1) & self._last
        return -1

    def _cut(self, word: str) -> list[int]:
        """Return the ids of the best path; neighbours that are unknown count as one."""
        characters = [character.encode() for character in word]
        size = len(characters)
        best: list[tuple[float, int, int]] = [(0.0, -1, -1)] * (size + 1)  # score, where its last piece starts, its id
        for start in range(size):
            so_far = best[start][0]
            key = b""
            single = False
            for end in range(start + 1, min(size, start + self._longest) + 1):
                key += characters[end - 1]
                number = self._find(key)
                if number >= 0:
                    single = single or end == start + 1
                    score = self._scores[number] + so_far
                    if best[end][1] < 0 or score > best[end][0]:
                        best[end] = (score, start, number)
            if not single:
                score = self._least + so_far
                if best[start + 1][1] < 0 or score > best[start + 1][0]:
                    best[start + 1] = (score, start, self._unknown)
        ids: list[int] = []
        end = size
        while end > 0:
            _, start, number = best[end]
            if not (ids and number == ids[-1] == self._unknown):
                ids.append(number)
            end = start
        ids.reverse()
        return ids


def _settled(text: str) -> bool:
    """Return whether every version of Unicode since 3.2 gives `text` the same normal form."""
    old = unicodedata.ucd_3_2_0.category
    late = (character for character in set(text) if character >= "\u0250" and old(character) == "Cn")
    return not any(unicodedata.decomposition(character) or unicodedata.combining(character) for character in late)
