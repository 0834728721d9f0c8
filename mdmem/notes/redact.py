"""The one gate for secrets: `redact` replaces them in text given to mdmem, `scan` names them in text that stays.

Pure and quick to import: every expression is compiled when its trigger is first seen. A finding says kind and place,
never the value.
"""

from __future__ import annotations

from bisect import bisect_left

from mdmem.notes.secret_assign import find_keywords
from mdmem.notes.secret_chinese import find_chinese
from mdmem.notes.secret_foreign import find_foreign
from mdmem.notes.secret_headers import find_headers, find_options
from mdmem.notes.secret_markup import find_blocks, find_private, find_urls
from mdmem.notes.secret_random import find_hashes, find_phrases, find_random
from mdmem.notes.secret_shapes import Span, find_keys, runs

ALLOW = "mdmem:allow-secret"
_ROUNDS = 8


class Finding:
    """One secret: its kind, 1-based line, and character offsets in the text that was given. Never its value."""

    __slots__ = ("end", "kind", "line", "start")

    def __init__(self, kind: str, line: int, start: int, end: int) -> None:
        self.kind, self.line, self.start, self.end = kind, line, start, end

    def __repr__(self) -> str:
        return f"Finding(kind={self.kind!r}, line={self.line}, start={self.start}, end={self.end})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Finding) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.kind, self.line, self.start, self.end))


class Redacted:
    """A text without its secrets, and what was found."""

    __slots__ = ("findings", "text")

    def __init__(self, text: str, findings: list[Finding]) -> None:
        self.text, self.findings = text, findings

    def __repr__(self) -> str:
        return f"Redacted({len(self.text)} characters, {self.findings!r})"


def redact(text: str) -> Redacted:
    """Return `text` with each secret replaced by `[redacted:KIND]`, and the findings in the order of the text.

    Never raises on any string. The result has no finding of its own, so redacting it again changes nothing.
    """
    found = spans(text)
    if not found:
        return Redacted(text, [])
    findings = _findings(text, found)
    out = _replaced(text, found)
    # A replacement changes the context of its neighbours, so look again until nothing is found.
    for _ in range(_ROUNDS):
        found = spans(out)
        if not found:
            return Redacted(out, findings)
        out = _replaced(out, found)
    return Redacted("[redacted:text]", [Finding("text", 1, 0, len(text))])


def scan(text: str) -> list[Finding]:
    """Return the findings in `text` but those that a person allowed: on a line that holds `mdmem:allow-secret`, or
    right below a line that holds nothing else."""
    found = _findings(text, spans(text))
    if not found or ALLOW not in text:
        return found
    lines = text.split("\n")
    return [finding for finding in found if not _allowed(text, lines, finding)]


def _allowed(text: str, lines: list[str], finding: Finding) -> bool:
    last = finding.line + text.count("\n", finding.start, finding.end)
    if any(ALLOW in line for line in lines[finding.line - 1 : last]):
        return True
    above = lines[finding.line - 2] if finding.line > 1 else ""
    return ALLOW in above and not any(c.isalnum() for c in above.replace(ALLOW, ""))


def spans(text: str) -> list[Span]:
    """Return (start, end, kind) of each secret, in order and without overlap. Linear in the length of the text."""
    if not text:
        return []
    # Latin-1 with replacement has one byte a character: positions in it are positions in the text.
    raw = text.encode("latin-1", "replace")
    low = raw.lower()
    keylike = list(runs(raw))
    found = [
        *find_private(text, low),
        *find_blocks(text, low),
        *find_keys(text, keylike),
        *find_urls(text, low),
        *find_headers(text, low),
        *find_options(text, low),
        *find_keywords(text, low, keylike),
        *find_chinese(text),
        *find_foreign(text, low),
        *find_hashes(text, keylike),
        *find_phrases(text, low),
    ]
    found = _joined(found)
    # What only looks random gives way to what is known.
    return _joined([*found, *(span for span in find_random(text, keylike) if not _touches(found, span))])


def _joined(found: list[Span]) -> list[Span]:
    found.sort(key=lambda span: (span[0], -span[1]))
    out: list[Span] = []
    for start, end, kind in found:
        if out and start < out[-1][1]:
            if end > out[-1][1]:
                out[-1] = (out[-1][0], end, out[-1][2])
        else:
            out.append((start, end, kind))
    return out


def _touches(found: list[Span], span: Span) -> bool:
    """Return whether `span` overlaps one of `found`, which is in order and without overlap."""
    place = bisect_left(found, (span[0],))
    near = found[max(0, place - 1) : place + 1]
    return any(start < span[1] and end > span[0] for start, end, _ in near)


def _replaced(text: str, found: list[Span]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, kind in found:
        pieces += (text[at:start], f"[redacted:{kind}]")
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


def _findings(text: str, found: list[Span]) -> list[Finding]:
    out: list[Finding] = []
    line, at = 1, 0
    for start, end, kind in found:
        line += text.count("\n", at, start)
        at = start
        out.append(Finding(kind, line, start, end))
    return out
