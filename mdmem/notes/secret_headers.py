"""Secrets in HTTP headers and in the command lines of known programs. Each trigger reads a bounded stretch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mdmem.notes.secret_shapes import Span, compiled
from mdmem.notes.secret_words import WORDS, code, hexadecimal, mixed, placeholder, random_like, worded

_AUTHORIZATION = (
    r"(?i)authorization\\{0,3}[\"'`\])]{0,3}[ \t]{0,4}[:=,][ \t]{0,4}[bfru]{0,2}\\{0,3}[\"'`]?[ \t]{0,4}"
    r"(?P<scheme>(?:bearer|basic|token|digest|apikey|api-key|negotiate|key|oauth|ntlm|jwt|hawk|bot|client-id)"
    r"(?:[ \t:=]{1,4}|%20|\+)[\"']?)?"
    r"(?P<value>[^\s\"'`,\\<]{1,4000}|<[^>\s]{1,80}>?)"
)
_BEARER = r"(?i)bearer(?:[ \t:=]{1,4}|%20)[\"'`]?(?P<value>[^\s\"'`,\\<>)]{1,4000})"
_BASIC = r"(?i)basic(?:[ \t]{1,4}|%20)(?P<value>[A-Za-z0-9+/_\-]{6,4000}={0,2})"


def find_headers(text: str, low: bytes) -> Iterator[Span]:
    """Yield the credentials of Authorization and Cookie headers, of `Bearer …` and `Basic …`."""
    for trigger, expression in ((b"authorization", _AUTHORIZATION), (b"bearer", _BEARER), (b"basic ", _BASIC)):
        at = low.find(trigger)
        while at >= 0:
            end = at + len(trigger)
            match = compiled(expression).match(text, at)
            if match:
                value = match["value"].rstrip(".;:)}]")
                last = match.start("value") + len(value)
                if _credential(text, trigger, match, value, last):
                    yield match.start("value"), last, "auth-header"
                    end = last
            at = low.find(trigger, end)
    at = low.find(b"cookie:")
    while at >= 0:
        stop = text.find("\n", at, at + 4000)
        stop = stop if stop >= 0 else min(len(text), at + 4000)
        for pair in compiled(r"[\w.\-]{1,60}=([^;\s\"'`]{6,})").finditer(text, at, stop):
            if compiled(r"\d").search(pair[1]) and not placeholder(pair[1]) and not worded(pair[1]):
                yield pair.start(1), pair.end(1), "cookie"
        at = low.find(b"cookie:", stop)


def _credential(text: str, trigger: bytes, match: re.Match[str], value: str, last: int) -> bool:
    if placeholder(value) or value.lower().strip(".,!?") in WORDS or code(value, text[last : last + 80]):
        return False
    if trigger == b"basic ":
        return _basic(value)
    if trigger == b"authorization" and match["scheme"]:
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


_USER = r"[ \t](?:-u|--user|--proxy-user|-U)(?:[ \t=]{0,3})([\"']?)[^\s:\"'%]{0,80}[:%](?P<value>[^\s\"']{1,200})"
_PROGRAMS: tuple[tuple[bytes, str, str], ...] = (
    (b" -u", r"(?i)curl|wget|https?\b|smbclient|rpcclient|ldap|svn", _USER),
    (b"--user", r"(?i)curl|wget|https?\b", _USER),
    (b"--proxy-user", r"(?i)curl|wget", _USER),
    (b" -p", r"(?i)mysql|mariadb", r"[ \t]-p(?P<value>[^\s\"']{1,200}|\"[^\"\n]{1,200}|'[^'\n]{1,200})"),
    (
        b" -p",
        r"(?i)sshpass|(?:docker|podman)[ \t]+login|unzip|\bzip|\b7z|mongo",
        r"(?i)[ \t]-p[ \t]?[\"']?(?P<value>[^\s\"']{1,200})",
    ),
    (b" -a ", r"(?i)redis-cli", r"[ \t]-a[ \t]+[\"']?(?P<value>[^\s\"']{1,200})"),
    (b" -w ", r"(?i)ldap", r"[ \t]-w[ \t]+[\"']?(?P<value>[^\s\"']{1,200})"),
    (b"identified by", r"", r"(?i)identified[ \t]+by[ \t]+(?:password[ \t]+)?[\"'](?P<value>[^\"'\n]{1,200})"),
    (b"requirepass", r"", r"(?i)requirepass[ \t]+[\"']?(?P<value>[^\s\"']{1,200})"),
    (b"accountkey=", r"", r"(?i)accountkey=(?P<value>[A-Za-z0-9+/=]{8,200})"),
    (b"hooks.slack.com/", r"", r"(?i)hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[A-Za-z0-9/_\-]{8,200})"),
    (b"/api/webhooks/", r"", r"(?i)/api/webhooks/(?P<value>\d{10,}/[A-Za-z0-9_\-]{20,200})"),
)


def find_options(text: str, low: bytes) -> Iterator[Span]:
    """Yield the passwords in command lines of known programs, and in a few addresses that are passwords themselves."""
    for trigger, program, expression in _PROGRAMS:
        at = low.find(trigger)
        while at >= 0:
            end = at + len(trigger)
            back = 1 if trigger.startswith(b"-") else 0
            match = compiled(expression).match(text, at - back) if at >= back else None
            if match and not placeholder(match["value"].strip("\"'")) and _run_by(text, at, program):
                value = match["value"]
                first = match.start("value") + (1 if value[0] in "\"'" else 0)
                if not value.isdigit() and first < match.end("value"):
                    yield first, match.end("value"), "password"
                    end = match.end("value")
            at = low.find(trigger, end)


def _run_by(text: str, at: int, program: str) -> bool:
    if not program:
        return True
    first = max(text.rfind("\n", max(0, at - 200), at) + 1, at - 200, 0)
    return compiled(program).search(text, first, at) is not None
