"""Names and ids: slugs, file names that every system can hold, and identities.

A file name holds nothing that can change. Equality of names is NFC plus case folding, as on APFS
and NTFS, so that no store can hold two names that another machine takes for one.
"""

from __future__ import annotations

import os
import re
import unicodedata
from datetime import datetime
from typing import Protocol

from mdmem.clock import UTC, Clock

MAX_NAME = 200  # bytes of a file name that mdmem makes
MAX_PATH = 1024  # bytes of a path that mdmem makes
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32
_RESERVED = frozenset(
    ("con", "prn", "aux", "nul", "conin$", "conout$", *(f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³"))
)
_LATIN = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ħ": "h", "ı": "i", "ŋ": "ng"}
)
# HFS+ drops these when it compares names: `.g\u200cit` would be `.git`.
_IGNORED = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufeff]")
_MARKED = re.compile(r"(?<=\w)(\+\+|\+|#)(?!\w)")


class Random(Protocol):
    """What names need of a random generator."""

    def getrandbits(self, k: int, /) -> int: ...


def slug(title: str, limit: int = 120) -> str:
    """Return a lower-case file name part of at most `limit` bytes; never empty.

    Latin letters lose their accents; letters of other scripts stay, with their marks, in NFC.
    `C++` and `C#` stay apart from `C`. A title without a letter or digit gives a short hash of itself.
    """
    text = unicodedata.normalize("NFKC", title).lower()
    text = _MARKED.sub(lambda found: {"++": "-plus-plus", "+": "-plus", "#": "-sharp"}[found[1]], text)
    out: list[str] = []
    latin = False
    for char in unicodedata.normalize("NFD", text.translate(_LATIN)):
        category = unicodedata.category(char)
        if char in "'’":
            continue
        if char.isascii():
            latin = char.isalpha()
            out.append(char if char.isalnum() else "-")
        elif category[0] == "M":
            if not latin and out and out[-1] != "-":
                out.append(char)
        elif category[0] in "LN":
            latin = False
            out.append(char)
        elif category != "Cf":
            latin = False
            out.append("-")
    name = re.sub("-+", "-", unicodedata.normalize("NFC", "".join(out))).strip("-")
    name = cut(name, limit).strip("-")
    if not name:
        name = "x" + _digest(unicodedata.normalize("NFC", title), 8)
    return name + "-note" if name in _RESERVED else name


def cut(name: str, limit: int) -> str:
    """Return name cut to `limit` bytes of UTF-8, between two characters and never before a mark."""
    raw = name.encode("utf-8", "surrogateescape")
    if len(raw) <= limit:
        return name
    head = raw[:limit].decode("utf-8", "ignore")
    while head and unicodedata.category(name[len(head)])[0] == "M":
        head = head[:-1]
    return head


def fold(name: str) -> str:
    """Return the form in which two names are compared: NFC and case-folded."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def normalise(content: str) -> str:
    """Return content as its identity sees it: NFC, white space collapsed."""
    return " ".join(unicodedata.normalize("NFC", content).split())


def memory_id(kind: str, scope: str, content: str, salt: str = "") -> str:
    """Return `mem-` and 12 characters (60 bits of SHA-256) derived from kind, scope and normalised content."""
    return "mem-" + _digest("\0".join((kind, scope, normalise(content), salt)), 12)


def entity_slug(title: str) -> str:
    """Return the slug that identifies an entity: a title too long for a name keeps a hash of its whole."""
    whole = slug(title, 4096)
    if len(whole.encode()) <= 160:
        return whole
    return cut(whole, 150).strip("-") + "-" + _digest(fold(title), 8)


def entity_id(type: str, title: str) -> str:
    """Return `<type>-<slug>`."""
    return f"{slug(type, 40)}-{entity_slug(title)}"


def time_id(prefix: str, clock: Clock, rng: Random | None = None) -> str:
    """Return `<prefix>-YYYYMMDD-HHMMSS` and 8 random characters (40 bits): sorts by time within a second."""
    bits = rng.getrandbits(40) if rng else int.from_bytes(os.urandom(5), "big")
    return f"{prefix}-{clock.now().astimezone(UTC):%Y%m%d-%H%M%S}{_encode(bits, 8)}"


def memory_path(title: str, id: str) -> str:
    """Return `memories/<slug>-<id>.md`."""
    return f"memories/{_with_id(title, id)}"


def entity_path(type: str, title: str) -> str:
    """Return `entities/<type>/<slug>.md`."""
    return f"entities/{slug(type, 40)}/{entity_slug(title)}.md"


def session_path(id: str, started: datetime) -> str:
    """Return `sessions/YYYY/MM/<id>.md` for a start in UTC."""
    return f"sessions/{started.astimezone(UTC):%Y/%m}/{_part(id)}.md"


def task_path(title: str, id: str) -> str:
    """Return `tasks/<slug>-<id>.md`."""
    return f"tasks/{_with_id(title, id)}"


def message_path(id: str) -> str:
    """Return `messages/<id>.md`."""
    return f"messages/{_part(id)}.md"


def agent_path(agent: str, device: str) -> str:
    """Return `agents/<agent>@<device>.json`, the file that only this agent on this device writes."""
    return f"agents/{_part(agent)}@{_part(device)}.json"


def _with_id(title: str, id: str) -> str:
    tail = f"-{_part(id)}.md"
    return slug(title, min(120, MAX_NAME - len(tail.encode()))) + tail


def _part(text: str) -> str:
    """Return text unchanged when it is a safe, steady name part already, else its slug."""
    safe = re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,79}", text, re.A) and unsafe_part(text) is None
    return text if safe else slug(text, 80)


def unsafe_name(path: str) -> str | None:
    """Return why a path must not be made by mdmem, or None. Posix, relative to the store."""
    if not path or path.startswith("/") or "\\" in path:
        return "it is not a relative path with forward slashes"
    if len(path.encode("utf-8", "surrogateescape")) > MAX_PATH:
        return f"it is longer than {MAX_PATH} bytes"
    for part in path.split("/"):
        reason = unsafe_part(part)
        if reason:
            return reason
    return None


def unsafe_part(part: str) -> str | None:
    """Return why one component of a path would fail or mean something else on some system, or None."""
    if part in ("", ".", ".."):
        return "it holds an empty, . or .. component"
    if is_git(part):
        return "it names git's own folder"
    try:
        raw = part.encode("utf-8")
    except UnicodeEncodeError:
        return "it is not UTF-8"
    if len(raw) > 255:
        return "a component is longer than 255 bytes"
    if any(ord(char) < 32 or ord(char) == 127 or unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in part):
        return "it holds a control character or a line end"
    if any(char in '<>:"|?*' for char in part):
        return 'it holds one of < > : " | ? *, which Windows cannot store'
    if part[-1] in ". ":
        return "a component ends with a dot or a blank, which Windows drops"
    if part.partition(".")[0].rstrip().lower() in _RESERVED:
        return "it is a device name on Windows"
    if not unicodedata.is_normalized("NFC", part):
        return "it is not in Unicode's composed form (NFC)"
    return None


def is_git(part: str) -> bool:
    """Tell whether some file system takes this component for `.git` or git's own configuration."""
    name = _IGNORED.sub("", part).rstrip(". ").lower().partition(":")[0].rstrip(". ")
    return name in (".git", ".gitmodules") or bool(re.fullmatch(r"git~\d+", name))


def _digest(text: str, length: int) -> str:
    import hashlib  # loads OpenSSL: not on a path that only reads

    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:10], "big")
    return _encode(number >> (80 - 5 * length), length)


def _encode(number: int, length: int) -> str:
    return "".join(_ALPHABET[(number >> (5 * place)) & 31] for place in reversed(range(length)))
