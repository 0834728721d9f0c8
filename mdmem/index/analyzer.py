"""Text to terms: the one analyzer of notes and queries. Knows no engine; `words` wraps it for Whoosh's parser.

- English words are stemmed (Porter 2), case and width are folded (NFKC, casefold), Latin and Greek accents dropped.
- Chinese, Japanese and Korean runs give each character and each pair, so that one-character and longer words match.
- Thai, Lao, Khmer and Burmese, which do not put spaces between words, give the run and its pairs of syllable clusters.
- An identifier gives its exact form and its parts: `v1.2.3` → v1.2.3, 1.2.3, 1.2; `snake_case` → snake_case, snake, case.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain, pairwise

from mdmem.index.irregular import BASE

LIMIT = 64  # characters of a term; longer ones are cut, in notes and queries alike
_CACHED = 48  # longer chunks are rare and stay out of the cache
_ENTRIES = 200_000

_SIGIL = r"(?:(?<![\w#@$.-])(?:[#@$.]|--)(?=\w))?"
_JOIN = r"[-./:@\\+#~'’=&%]{1,3}"
_TAIL = r"(?:\+\+|\#)?(?!\w)"
_ASCII = re.compile(rf"{_SIGIL}[A-Za-z0-9_]+(?:{_JOIN}[A-Za-z0-9_]+)*(?:{_TAIL})?")

_CJK = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u1100-\u11ff\uac00-\ud7a3\U00020000-\U000323af"
)
_UNSPACED = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
# Punctuation, controls, private use and halves of surrogate pairs, by blocks: what is not listed is part of a word, so that
# combining marks (the vowel signs of Devanagari) are.
_BREAKS = (
    r"\s\x00-/:-@\[-^`{-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7"
    "\u037e\u0387\u055a-\u055f\u0589\u058a\u05be\u05c0\u05c3\u05c6\u05f3\u05f4\u060c\u060d\u061b\u061d-\u061f\u066a-\u066d\u06d4"
    "\u0700-\u070d\u0964\u0965\u0970\u0e3f\u0e4f\u0e5a\u0e5b\u0f04-\u0f14\u0f3a-\u0f3d\u104a-\u104f\u1360-\u1368\u17d4-\u17da"
    "\u1800-\u180a\u2000-\u206f\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d-\u3040\u30a0\u30fb\ufd3e\ufd3f\ufe10-\ufe1f"
    "\ufe30-\ufe6f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\ufff0-\uffff\ud800-\uf8ff"
)
_SYMBOLS = "\u20a0-\u20cf\u2190-\u23ff\u2440-\u245f\u2500-\u2bff\U0001f000-\U0001faff"
# Joiners, soft hyphens, variation selectors and byte order marks say nothing about the word.
_INVISIBLE = dict.fromkeys(
    [0xAD, 0x34F, 0x180E, *range(0x200B, 0x2010), *range(0x2060, 0x2065), *range(0xFE00, 0xFE10), 0xFEFF]
)


@lru_cache(maxsize=1)
def _wide() -> re.Pattern[str]:
    """Return the pattern for text beyond ASCII."""
    word = f"[^{_BREAKS}{_SYMBOLS}{_CJK}{_UNSPACED}]"
    return re.compile(rf"{_SIGIL}{word}+(?:{_JOIN}{word}+)*(?:{_TAIL})?|[{_CJK}]+|[{_UNSPACED}]+|[{_SYMBOLS}]")


@lru_cache(maxsize=1)
def _scripts() -> re.Pattern[str]:
    """Return the pattern whose first group is a CJK character, its second one of a script without spaces."""
    return re.compile(f"([{_CJK}])|([{_UNSPACED}])")


_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
_PART = re.compile(r"[-./:@\\+#~'’=&%_]+")
_SEGMENT = re.compile(r"[/\\:@=&%~]+")
_NUMBERS = re.compile(r"(?<![0-9.])[vV]?([0-9]+(?:\.[0-9]+)+)(?![0-9])")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-[0-9]{2}$")
_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F]{7,}$")


def fold(text: str) -> str:
    """Return text with case and width folded and Latin and Greek accents dropped; NFC and NFD give the same."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).translate(_INVISIBLE).casefold()
    plain: list[str] = []
    keep = True
    for char in unicodedata.normalize("NFD", text):
        if unicodedata.combining(char) and not keep:
            continue
        code = ord(char)
        # Marks of other scripts (a Devanagari vowel, the breve of й) are part of the letter.
        keep = not (code < 0x250 or 0x370 <= code < 0x400)
        plain.append(char)
    return unicodedata.normalize("NFKC", "".join(plain)).replace("ё", "е")


class _Cache(dict[str, tuple[str, ...]]):
    """Text → terms, worked out once; cleared when full, since a repository of hashes would fill memory."""

    def __init__(self, work: Callable[[str], Iterable[str]]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        terms = tuple(self._work(chunk))
        if len(chunk) <= _CACHED:
            if len(self) >= _ENTRIES:
                self.clear()
            self[chunk] = terms
        return terms


def _between_blanks(chunk: str) -> Iterable[str]:
    pieces = (_ASCII if chunk.isascii() else _wide()).findall(chunk)
    return chain.from_iterable(map(_piece_terms, pieces))


_piece_terms = _Cache(lambda piece: map(sys.intern, _analyse(piece))).__getitem__
_chunk_terms = _Cache(_between_blanks).__getitem__


def tokens(text: str) -> list[str]:
    """Return the terms of a note or a query, in order, repeats kept; linear in the length of the text."""
    if not text.isascii():
        if not unicodedata.is_normalized("NFKC", text):
            text = unicodedata.normalize("NFKC", text)
        text = text.translate(_INVISIBLE)
    return list(chain.from_iterable(map(_chunk_terms, text.split())))


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the stem of a folded English word; other words come back unchanged."""
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word[:LIMIT]
    from mdmem.index.stem import stem as porter2

    return porter2(BASE.get(word, word[:LIMIT]))


def _analyse(chunk: str) -> list[str]:
    """Return the terms of one chunk that the pattern cut out."""
    if chunk.isalpha() and chunk.isascii() and not _CAMEL.search(chunk):
        return [stem(chunk.lower())]
    first = chunk[0]
    if not first.isascii():
        script = _scripts().match(first)
        if script:
            return grams(chunk) if script[1] else _clusters(chunk)
    if first in "#@$." or chunk.startswith("--"):
        rest = chunk[2:] if first == "-" else chunk[1:]
        return [fold(chunk)[:LIMIT], *_analyse(rest)]
    bare = chunk.rstrip("+#")
    if bare != chunk:
        return [fold(chunk)[:LIMIT], *_analyse(bare)]
    if "'" in chunk or "’" in chunk:
        chunk = chunk.replace("’", "'")
        if chunk.endswith(("'s", "'S")):
            return _analyse(chunk[:-2])
        if chunk.replace("'", "").isalpha():
            joined = stem(fold(chunk.replace("'", "")))
            parts = [stem(fold(part)) for part in chunk.split("'") if len(part) > 2]
            return [joined, *parts] if len(parts) > 1 else [joined]
    return _identifier(chunk)


def grams(run: str) -> list[str]:
    """Return each character and each pair of a CJK run: 部署 → 部, 部署, 署."""
    out = [run[0]]
    for left, right in pairwise(run):
        out.append(left + right)
        out.append(right)
    return out


def _clusters(run: str) -> list[str]:
    """Return a run of a script without spaces, and its pairs of syllable clusters."""
    parts: list[str] = []
    for char in run:
        if parts and unicodedata.category(char)[0] == "M":
            parts[-1] += char
        else:
            parts.append(char)
    pairs = [(left + right)[:LIMIT] for left, right in pairwise(parts)]
    return [run[:LIMIT], *pairs] if len(pairs) != 1 else [run[:LIMIT]]


def _identifier(chunk: str) -> list[str]:
    """Return the exact form of an identifier, path or number, and its parts."""
    parts = [part for part in _PART.split(chunk) if part]
    if not parts:
        return [chunk[:LIMIT]] if chunk else []
    if len(parts) == 1 and parts[0] == chunk:
        return _pieces(chunk)
    exact = fold(chunk)[:LIMIT]
    out = [exact]
    if date := _DATE.match(chunk):
        return [exact, f"{date[1]}-{date[2]}", date[1]]
    segments = [part for part in _SEGMENT.split(chunk) if part]
    if len(segments) > 1:
        out += [fold(part)[:LIMIT] for part in segments if _PART.search(part)]
    numbers = [match[1] for match in _NUMBERS.finditer(chunk)]
    for number in numbers:
        fields = number.split(".")[:6]
        out += [".".join(fields[:count]) for count in range(len(fields), 1, -1)]
    if numbers:
        parts = [part for part in _PART.split(_NUMBERS.sub(".", chunk)) if part]
    for part in parts:
        # A lone digit or two out of a longer identifier (the 05 of a date) only makes noise.
        if not (part.isdigit() and len(part) < 3 and len(parts) > 2):
            out += _pieces(part)
    return list(dict.fromkeys(out))


def _pieces(part: str) -> list[str]:
    """Return a word, then its camel-case and letter-digit pieces."""
    low = fold(part)
    whole = stem(low)
    if not part.isascii() or not _CAMEL.search(part) or len(part) > LIMIT:
        return [whole]
    pieces = _PIECE.findall(part)
    # A hash or a base64 run has no parts worth a term.
    if len(pieces) > 6 or (_HEX.match(part) and any(char.isdigit() for char in part)):
        return [whole]
    return [whole, *(stem(piece.lower()) for piece in pieces if len(piece) > 1 or piece.isdigit())]
