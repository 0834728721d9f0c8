"""Secrets without a keyword: values that look drawn at random, password hashes, recovery phrases."""

from __future__ import annotations

from collections.abc import Iterator

from mdmem.notes.secret_shapes import Span, compiled
from mdmem.notes.secret_words import random_like

_NOT_SECRET_NAMES = (
    r"(?i)(?:^|[_\-.]|(?<=[a-z])(?=[A-Z]))(?:u?u?id|ids|guid|hash|sha\d*|md5|digest|checksum|etag|integrity|fingerprint|commit|rev|revision|ref|oid|tree"
    r"|parent|blob|version|url|uri|href|src|path|file|filename|name|image|img|icon|logo|photo|picture|avatar|data|content|body|text|title|model|branch"
    r"|tag|cursor|nonce|class|address|addr|txid|tx|block|cid|resource|arn|host|hostname|email|user|slug|pubkey|key|cert|certificate|request|trace|span"
    r"|prompt|device|build|snapshot|container|layer|job|run|task|thread|message|msg|query|next|page|state|challenge|verifier|issuer|sub|link|anchor)$"
)


_WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.$"


def find_random(text: str, found: list[tuple[int, int]]) -> Iterator[Span]:
    """Values of 20 to 200 characters that look random and are assigned to a name of any kind."""
    for first, last in found:
        if not 20 <= last - first <= 200 or text[first - 1 : first] not in _EDGES:
            continue
        if not all(compiled(kind).search(text, first, last) for kind in ("[A-Z]", "[a-z]", r"\d")):
            continue
        name = _assigned_to(text, first)
        if not name or compiled(_NOT_SECRET_NAMES).search(name):
            continue
        value = text[first:last].rstrip(".")
        if random_like(value):
            tail = compiled(r"={0,2}").match(text, last)
            yield first, tail.end() if tail and value == text[first:last] else first + len(value), "secret"


_EDGES = frozenset("=: \t\"'`：＝")


def _assigned_to(text: str, at: int) -> str:
    """Return the name that the value at `at` is assigned to, "" when there is none (or it is part of an address)."""
    before = text[max(0, at - 90) : at].rstrip("\"'`\\bfru") if text[at - 1] in "\"'`" else text[max(0, at - 90) : at]
    sign = before.rstrip(" \t")
    bare = sign.rstrip(":=>：＝")
    if not 1 <= len(sign) - len(bare) <= 2:
        return ""
    bare = bare.rstrip(" \t").rstrip("\"'`\\)]}").rstrip(" \t")
    rest = bare.rstrip(_WORD)
    name = bare[len(rest) :]
    return "" if rest[-1:] in ("?", "&", "=") or not name[:1].isalpha() else name


_HASH = r"\$(?:2[abxy]?\$\d\d|[1567y]\$[^$\s]{1,40}|(?:scrypt|argon2\w{0,2}|pbkdf2[\w\-]{0,20})(?:\$[^$\s]{1,60}){1,3})\$$"


def find_hashes(text: str, found: list[tuple[int, int]]) -> Iterator[Span]:
    """Yield password hashes in the notation of crypt(3): $2b$12$…, $6$salt$…, $argon2id$…."""
    for first, last in found:
        if text[first - 1 : first] == "$":
            match = compiled(_HASH).search(text, max(0, first - 120), first)
            if match:
                yield match.start(), last, "password-hash"


_PHRASE = (
    r"(?i)(?:mnemonic|phrase|助记词)(?:[ \t]+(?:is|was))?[\"'`：:=\s]{1,6}((?:[a-z]{3,8}[ ,\t]{1,3}){11,23}[a-z]{3,8})(?![a-z])"
)


def find_phrases(text: str, low: bytes) -> Iterator[Span]:
    """Yield recovery phrases of twelve to twenty-four words."""
    for word in (b"mnemonic", b"phrase"):
        at = low.find(word)
        while at >= 0:
            match = compiled(_PHRASE).match(text, at)
            if match:
                yield match.start(1), match.end(1), "recovery-phrase"
            at = low.find(word, match.end() if match else at + 6)
    at = -1 if text.isascii() else text.find("助记词")
    while at >= 0:
        match = compiled(_PHRASE).match(text, at)
        if match:
            yield match.start(1), match.end(1), "recovery-phrase"
        at = text.find("助记词", at + 3)
