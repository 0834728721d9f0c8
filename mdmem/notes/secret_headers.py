"""Secrets in HTTP headers and in the command lines of known programs. Each trigger reads a bounded stretch."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

from mdmem.notes.secret_shapes import Span, compiled
from mdmem.notes.secret_words import WORDS, code, hexadecimal, mixed, placeholder, random_like, worded

_AUTHORIZATION = (
    r"(?i)authorization\\{0,3}[\"'`\])]{0,3}[ \t]{0,4}[:=,][ \t]{0,4}[bfru]{0,2}\\{0,3}[\"'`]?[ \t]{0,4}"
    r"(?P<scheme>(?:bearer|basic|token|apikey|api-key|negotiate|key|ssws|ntlm|jwt|hawk|bot|client-id)"
    r"(?:[ \t:=]{1,4}|%20|\+)[\"']?)?"
    r"(?P<value>[^\s\"'`,\\<]{1,4000}|<[^>\s]{1,80}>?)"
)
_BEARER = r"(?i)bearer(?:[ \t:=]{1,4}|%20)[\"'`]?(?P<value>[^\s\"'`,\\<>)]{1,4000})"
_BASIC = r"(?i)basic(?:[ \t]{1,4}|%20)(?P<value>[A-Za-z0-9+/_\-]{6,4000}={0,2})"


_COOKIE = r"[\w.\-]{1,60}=([^;\s\"'`]{6,})"


def find_headers(text: str, low: bytes) -> Iterator[Span]:
    """Yield the credentials of Authorization and Cookie headers, of `Bearer …` and `Basic …`."""
    for trigger, rest, expression in (
        (b"auth", b"orization", _AUTHORIZATION),
        (b"bearer", b"", _BEARER),
        (b"basic ", b"", _BASIC),
    ):
        at = low.find(trigger)
        while at >= 0:
            end = at + len(trigger)
            match = compiled(expression).match(text, at) if low.startswith(rest, end) else None
            if match:
                value = match["value"].rstrip(".;:)}]")
                if trigger == b"auth" and value.lower() == "digest":
                    yield from _digest(text, match.end())
                last = match.start("value") + len(value)
                if _credential(text, trigger, match, value, last):
                    yield match.start("value"), last, "auth-header"
                    end = last
            at = low.find(trigger, end)


def _digest(text: str, at: int) -> Iterator[Span]:
    for part in compiled(r"(?i)(?:response|nonce|cnonce|opaque)=[\"']?([^\"',\s]{8,})").finditer(text, at, at + 1000):
        yield part.start(1), part.end(1), "auth-header"


def cookie_values(text: str, at: int) -> Generator[Span, None, int]:
    """Yield the values with a digit in the rest of the line of a Cookie header; returns where that ends."""
    stop = text.find("\n", at, at + 4000)
    stop = stop if stop >= 0 else min(len(text), at + 4000)
    for pair in compiled(_COOKIE).finditer(text, at, stop):
        if compiled(r"\d").search(pair[1]) and not placeholder(pair[1]) and not worded(pair[1]):
            yield pair.start(1), pair.end(1), "cookie"
    return max(stop, at)


def _credential(text: str, trigger: bytes, match: re.Match[str], value: str, last: int) -> bool:
    if placeholder(value) or value.lower().strip(".,!?") in WORDS or code(value, text[last : last + 80]):
        return False
    if trigger == b"basic ":
        return _basic(value)
    if trigger == b"auth" and match["scheme"]:
        rest = text[last : last + 40].lstrip(" \t")
        return mixed(value) or not rest or not rest[0].isalpha() or random_like(value, 16)
    short = mixed(value) and len(value) >= 6 and compiled(r"\d").search(value) is not None
    return short or random_like(value, 16) or hexadecimal(value)


def _basic(value: str) -> bool:
    import binascii

    try:
        decoded = binascii.a2b_base64(value + "=" * (-len(value) % 4))
    except (ValueError, binascii.Error):
        return False
    return b":" in decoded and all(32 <= c < 127 for c in decoded)


# Options of programs: trigger, program that must stand before it on the line, expression at the trigger.
_USER = r"(?:-u|--user|--proxy-user|-U)(?:[ \t=]{0,3})([\"']?)[^\s:\"'%]{0,80}[:%](?P<value>[^\s\"']{1,200})"
_OPTIONS: tuple[tuple[tuple[bytes, ...], str], ...] = (
    ((b"curl", b"wget", b"http", b"smbclient", b"rpcclient", b"ldap", b"svn"), _USER),
    ((b"mysql", b"mariadb"), r"-p(?P<value>[^\s\"']{1,200}|\"[^\"\n]{1,200}|'[^'\n]{1,200})"),
    (
        (b"sshpass", b"docker login", b"podman login", b"unzip", b"zip ", b"7z ", b"mongo"),
        r"-[pP][ \t]?[\"']?(?P<value>[^\s\"']{1,200})",
    ),
    ((b"redis-cli",), r"-a[ \t]+[\"']?(?P<value>[^\s\"']{1,200})"),
    ((b"ldap",), r"-w[ \t]+[\"']?(?P<value>[^\s\"']{1,200})"),
)
# Where an option begins that may have a password: -u -p -a -w, --user, --proxy-user.
_LETTERS = r" -(?:[upawUPAW]|-us|-pr|-US|-PR)"
_IDENTIFIED = r"(?i)identified[ \t]+by[ \t]+(?:password[ \t]+)?[\"'](?P<value>[^\"'\n]{1,200})"


def find_options(text: str, low: bytes) -> Iterator[Span]:
    """Yield the passwords in command lines of known programs and in SQL."""
    programs: tuple[str, ...] = ()
    known = 0
    letter = compiled(_LETTERS)
    option = letter.search(text)
    while option is not None:
        at, end = option.start(), option.end()
        if at >= known:
            programs, known = _programs(low, at)
        for expression in programs:
            match = compiled(expression).match(text, at + 1)
            if match and not _stands_for(match["value"]):
                quote = 1 if match["value"][0] in "\"'" else 0
                yield match.start("value") + quote, match.end("value"), "password"
                end = match.end("value")
                break
        option = letter.search(text, end)
    at = low.find(b"identified by")
    while at >= 0:
        match = compiled(_IDENTIFIED).match(text, at)
        if match and not _stands_for(match["value"]):
            yield match.start("value"), match.end("value"), "password"
        at = low.find(b"identified by", match.end() if match else at + 13)


def _programs(low: bytes, at: int) -> tuple[tuple[str, ...], int]:
    """Return the expressions for the options of the programs named on the line around `at`, and up to where they hold."""
    first = max(low.rfind(b"\n", max(0, at - 200), at) + 1, at - 200, 0)
    last = low.find(b"\n", at, at + 200)
    last = last if last >= 0 else at + 200
    line = low[first:last]
    return tuple(e for programs, e in _OPTIONS if any(program in line for program in programs)), last


def _stands_for(value: str) -> bool:
    bare = value.strip("\"'")
    return placeholder(bare) or bare.isdigit()
