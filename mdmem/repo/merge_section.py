"""The conflict section of a body: how versions of one passage are written down and read back.

Comment lines, which markdown does not show, fence the section; the texts between them stay ordinary markdown:

    <!-- mdmem:conflict -->
    > **Conflict.** 2 versions of this passage. …

    <!-- mdmem:version 1 agent="claude" device="laptop" updated="2026-05-01T10:00:00Z" -->
    **Version 1** (claude on laptop, 2026-05-01T10:00:00Z)

    the text

    <!-- mdmem:version 2 … -->
    …
    <!-- mdmem:conflict end -->

Versions are numbered in the order of their bytes. A version marked `whole` is not a passage but the full text of a file
that could not be read as a note. Where a text itself holds such comment lines, the section's own lines carry a number
(`#2`) that the text does not use, as a longer code fence would. Lines here are bytes without their line end.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BOM = b"\xef\xbb\xbf"
_OPEN = re.compile(rb"<!-- mdmem:conflict(?: #(\d\d?))? -->[ \t\r]*$")
_VERSION = re.compile(rb'<!-- mdmem:version (?:#(\d\d?) )?\d+((?: [a-z0-9]+(?:="[^"<>]*")?)*) -->[ \t\r]*$')
_END = re.compile(rb"<!-- mdmem:conflict end(?: #(\d\d?))? -->[ \t\r]*$")
_ANY = re.compile(rb"<!-- mdmem:(?:conflict|version)(?: end)?(?: #(\d\d?))?[ -]")
_ATTRIBUTE = re.compile(rb' ([a-z0-9]+)(?:="([^"<>]*)")?')
_TITLE = re.compile(rb"\*\*Version \d+\*\*")
_FENCE = re.compile(rb"(`{3,}|~{3,})")
_HINT = (
    b"> **Conflict.** %d versions of this passage. Settle it with `mdmem resolve`, or keep the right text and delete the "
    b"rest of this section."
)
_HINT_START = b"> **Conflict.**"
_HINT_ONE = b"> **Conflict.** Settle it with `mdmem resolve`, or keep the right text and delete the rest of this section."


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Who wrote a version, where and when, as its note says; empty where it does not."""

    agent: str = ""
    device: str = ""
    updated: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """One version's bytes. A passage has lines joined by `\\n`; a whole file is exact. Sorts by content."""

    data: bytes
    whole: bool = False

    def rank(self) -> tuple[bytes, bool]:
        """Return the key that orders versions."""
        return self.data, self.whole


@dataclass(frozen=True, slots=True)
class Section:
    """A conflict section as it stands in a body: its lines, and the origin of each version, in content order.

    `stray` holds what somebody wrote between the opening line and the first version: it belongs to no version.
    """

    lines: tuple[bytes, ...]
    versions: tuple[tuple[Text, Origin], ...]
    stray: tuple[bytes, ...] = ()


def tidy(text: str) -> str:
    """Return an agent, device or date in a form that can stand in a comment line: one line, no quote, no `--`."""
    text = re.sub(r"[\x00-\x20\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]+", " ", text)
    text = re.sub(r'["<>`]', "", text)
    return re.sub(r"-{2,}", "-", text).strip(" -")[:80].strip(" -")


def find_sections(lines: Sequence[bytes]) -> list[tuple[int, int, Section]]:
    """Return (first line, line after the last, section) for each well-formed section, in order; never raises.

    A section whose lines were damaged by hand is plain text. Linear: at most 100 numbers can be open at a time.
    """
    marks = [(at, line) for at, line in enumerate(lines) if line.startswith(b"<!-- mdmem:")]
    found: list[tuple[int, int, Section]] = []
    ends = {m[1]: at for at, line in marks if (m := _END.match(line))}
    at = 0
    while at < len(marks):
        start, line = marks[at]
        at += 1
        opening = _OPEN.match(line)
        if not opening or ends.get(opening[1], -1) < start:
            continue
        heads: list[tuple[int, bytes]] = []
        for following in range(at, len(marks)):
            place, mark = marks[following]
            version, again, end = _VERSION.match(mark), _OPEN.match(mark), _END.match(mark)
            if again and again[1] == opening[1]:
                break
            if version and version[1] == opening[1]:
                heads.append((place, version[2]))
            elif end and end[1] == opening[1]:
                if heads:
                    found.append((start, place + 1, _read(lines, start, place, heads)))
                    at = following + 1
                break
    return found


def _read(lines: Sequence[bytes], start: int, end: int, heads: list[tuple[int, bytes]]) -> Section:
    versions: dict[Text, Origin] = {}
    stops = [place for place, _ in heads[1:]] + [end]
    for (place, words), stop in zip(heads, stops, strict=True):
        attributes = {m[1].decode(): (m[2] or b"").decode("utf-8", "replace") for m in _ATTRIBUTE.finditer(words)}
        text = _read_text(list(lines[place + 1 : stop]), attributes)
        origin = Origin(*(attributes.get(name, "") for name in ("agent", "device", "updated")))
        versions[text] = min(versions.get(text, origin), origin)
    ordered = tuple(sorted(versions.items(), key=lambda item: item[0].rank()))
    first = heads[0][0]
    stray = [line for line in lines[start + 1 : first] if not line.startswith(_HINT_START)]
    while stray and not stray[-1].strip():
        del stray[-1]
    while stray and not stray[0].strip():
        del stray[0]
    if not stray:
        return Section(tuple(lines[start : end + 1]), ordered)
    own = [line for line in lines[start:first] if line.startswith(_HINT_START)]
    return Section((lines[start], *own, b"", *lines[first : end + 1]), ordered, tuple(stray))


def _read_text(lines: list[bytes], attributes: dict[str, str]) -> Text:
    if lines and _TITLE.match(lines[0]):
        del lines[0]
    if lines and not lines[0].strip():
        del lines[0]
    if lines and not lines[-1].strip():
        del lines[-1]
    whole = "whole" in attributes
    if whole or "base64" in attributes:
        fence = _FENCE.match(lines[0]) if lines else None
        if fence and len(lines) > 1 and lines[-1].rstrip() == fence[1]:
            lines = lines[1:-1]
    if "base64" in attributes:
        try:
            return Text(base64.b64decode(b"".join(lines), validate=False), whole)
        except (ValueError, binascii.Error):
            return Text(b"\n".join(lines), whole)
    data = b"\n".join(lines)
    if whole:
        newline = b"\r\n" if "crlf" in attributes else b"\n"
        data = newline.join(lines) + (b"" if "open" in attributes else newline)
        data = (BOM if "bom" in attributes else b"") + data
    return Text(data, whole)


def build_section(versions: Iterable[tuple[Text, Origin]]) -> Section:
    """Return the section that holds these versions, one entry a text, numbered in content order."""
    ordered = tuple(sorted(versions, key=lambda item: item[0].rank()))
    written = [_write_text(text) for text, _ in ordered]
    used = {m[1] or b"" for body, _ in written for line in body if (m := _ANY.match(line))}
    tag = next((n for n in [b"", *(b"%d" % n for n in range(2, 100))] if n not in used), None)
    if tag is None:
        written = [_encode(text) for text, _ in ordered]
        tag = b""
    mark = b" #" + tag if tag else b""
    lines = [b"<!-- mdmem:conflict%s -->" % mark, _HINT % len(ordered) if len(ordered) > 1 else _HINT_ONE, b""]
    for number, ((text, origin), (body, words)) in enumerate(zip(ordered, written, strict=True), 1):
        for name in ("agent", "device", "updated"):
            if value := getattr(origin, name):
                words = words + b' %s="%s"' % (name.encode(), value.encode("utf-8", "replace"))
        lines.append(b"<!-- mdmem:version%s %d%s -->" % (mark, number, words))
        lines.append(b"**Version %d**%s" % (number, _caption(text, origin)))
        lines += [b"", *body, b""]
    lines.append(b"<!-- mdmem:conflict end%s -->" % mark)
    return Section(tuple(lines), ordered)


def _caption(text: Text, origin: Origin) -> bytes:
    who = " on ".join(part for part in (origin.agent, origin.device) if part)
    where = ", ".join(part for part in (who, origin.updated) if part)
    caption = f" ({where})" if where else ""
    if text.whole:
        caption += ": the whole file, which could not be read as a note"
    elif not text.data:
        caption += ": removed"
    return caption.encode("utf-8", "replace")


def _write_text(text: Text) -> tuple[list[bytes], bytes]:
    """Return the lines of a version and the words that tell how to read them back."""
    data, words = text.data, b""
    if not text.whole:
        if not _is_clean(data):
            return _encode(text)
        return (data.split(b"\n") if data else []), words
    bom = data.startswith(BOM)
    data = data[3:] if bom else data
    crlf = data.count(b"\r\n")
    if not _is_clean(data) or crlf not in (0, data.count(b"\n")):
        return _encode(text)
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    is_open = not data.endswith(b"\n")
    if not lines[-1]:
        del lines[-1]
    words = b" whole" + b" bom" * bom + b" crlf" * bool(crlf) + b" open" * is_open
    return _fenced(lines), words


def _is_clean(data: bytes) -> bool:
    try:
        return not re.search("[\x00-\x08\x0e-\x1f\x7f]", data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _encode(text: Text) -> tuple[list[bytes], bytes]:
    coded = base64.b64encode(text.data)
    lines = [coded[at : at + 100] for at in range(0, len(coded), 100)]
    return _fenced(lines), b" whole" * text.whole + b" base64"


def _fenced(lines: list[bytes]) -> list[bytes]:
    longest = max((len(m[0]) for line in lines if (m := re.match(rb"\s*`+", line))), default=0)
    fence = b"`" * max(3, longest + 1)
    return [fence, *lines, fence]
