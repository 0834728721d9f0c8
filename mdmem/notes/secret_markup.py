"""Secrets that their surroundings mark: <private> parts, key blocks, passwords in URLs. Knows no keywords."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mdmem.notes.secret_shapes import Span, compiled
from mdmem.notes.secret_words import placeholder, random_like

_TAG = (
    r"(?i)(?P<open><|&lt;|\\u003c)[ \t]*(?P<close>/?)[ \t]*priv(?:ate|at|te|ated|aet|iate)(?![\w\-:.])"
    r"(?P<rest>(?:[^<>&\n]|&(?!gt;|lt;)){0,200}?)(?P<empty>/?)(?P<end>\n?(?:>|&gt;|\\u003e)|(?=<|&lt;|\n|$))"
)
_CLOSER = r"(?i)(?:<|&lt;|\\u003c)[ \t]*/[ \t]*private"


def find_private(text: str, low: bytes) -> list[Span]:
    """Return the spans of <private> parts, tags included: nested ones as one, an unclosed one to the end of the text.
    A tag alone in backticks is a mention of the tag and hides nothing."""
    spans: list[Span] = []
    depth, start = 0, 0
    last_closer: int | None = None
    for tag in _tags(text, low):
        if depth == 0 and text[tag.start() - 1 : tag.start()] == "`" == text[tag.end() : tag.end() + 1]:
            continue
        if tag["close"]:
            if depth:
                depth -= 1
                if depth == 0:
                    spans.append((start, tag.end(), "private"))
            continue
        # `Promise<Private>` in a program is told from a tag by the missing end.
        if not _plain(tag) or text[tag.start() - 1 : tag.start()].isalnum():
            if last_closer is None:
                last_closer = max((closer.start() for closer in compiled(_CLOSER).finditer(text)), default=-1)
            if last_closer < tag.end() or (tag["end"] and not tag["empty"] and "=" not in tag["rest"] and tag["rest"].strip()):
                continue
        if depth == 0:
            start = tag.start()
        depth += 1
    if depth:
        end = len(text)
        while end > start and text[end - 1] in "\r\n":
            end -= 1
        spans.append((start, end, "private"))
    return spans


def _tags(text: str, low: bytes) -> Iterator[re.Match[str]]:
    at = low.find(b"priv")
    while at >= 0:
        end = at + 4
        before = low[max(0, at - 16) : at].rstrip(b"/ \t")
        for opening in (b"<", b"&lt;", b"\\u003c"):
            if before.endswith(opening):
                tag = compiled(_TAG).match(text, max(0, at - 16) + len(before) - len(opening))
                if tag:
                    yield tag
                    end = max(end, tag.end())
                break
        at = low.find(b"priv", end)


def _plain(tag: re.Match[str]) -> bool:
    """Return whether an opening tag is well spelled: alone, or with attributes."""
    rest = tag["rest"].strip()
    known = tag[0].lower().lstrip("<&lt;\\u03c \t").startswith("private")
    return known and bool(tag["end"]) and not tag["empty"] and (not rest or "=" in rest)


_BEGIN = r"(?i)-{2,5}[ \t]*BEGIN [A-Z0-9 _]{0,40}PRIVATE[ _]KEY(?: BLOCK)?[ \t]*-{0,5}"
_END = r"(?i)-{2,5}[ \t]*END [A-Z0-9 _]{0,40}PRIVATE[ _]KEY(?: BLOCK)?[ \t]*-{0,5}"
# What may stand in an unterminated block: base64 words, header lines, line ends in every spelling.
_REST = (
    r"(?:[ \t]*(?:\\r|\\n|\r|\n)[ \t>|*#\"',+\\]*"
    r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]{0,120}"
    r"|[A-Za-z0-9+/=_\-.]{0,400}+(?=[ \t\"'`,;)}\]]*(?:\\n|\\r|\\\"|\r|\n|\"|'|$)))"
    r"|[ \t]*[A-Za-z0-9+/=]{16,400})*+"
)
_PUTTY = r"(?i)Private-Lines:[ \t]*\d+(?:\r?\n[A-Za-z0-9+/=]+)*+"


def find_blocks(text: str, low: bytes) -> list[Span]:
    """Return the spans of private key blocks, also without an end line, also in JSON strings with \\n."""
    spans: list[Span] = []
    at = 0
    more_ends, last = True, None
    where = low.find(b"private")
    while where >= 0:
        if low.startswith(b"private-lines:", where):
            putty = compiled(_PUTTY).match(text, where)
            if putty and "\n" in putty[0]:
                spans.append((where, putty.end(), "private-key"))
        first = (
            compiled(_BEGIN).search(text, max(at, where - 60), where + 40)
            if b"begin" in low[max(at, where - 60) : where]
            else None
        )
        if first is None:
            where = low.find(b"private", where + 7)
            continue
        if more_ends and (last is None or last.start() < first.end()):
            last = compiled(_END).search(text, first.end())
            more_ends = last is not None
        if last is not None and compiled(_BEGIN).search(text, first.end(), last.start()) is None:
            stop = last.end()
        else:
            rest = compiled(_REST).match(text, first.end())
            stop = rest.end() if rest else first.end()
            while stop > first.end() and text[stop - 1] in "\r\n \t>|*#\"',":
                stop -= 1
            while stop > first.end() + 1 and text[stop - 2 : stop] in ("\\n", "\\r", '\\"'):
                stop -= 2
        if stop > first.end() + 6:
            spans.append((first.start(), stop, "private-key"))
        at = stop
        where = low.find(b"private", at)
    return spans


_URL_STOP = r"[^\s\"'`<>|\\(){}，。；、）】」』”’]{0,400}"
_HOOK = (
    r"(?i)(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/|(?:\w+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/)"
    r"([A-Za-z0-9/_\-]{8,200})"
)
# Names that documentation writes where a user and a password would stand.
_SAMPLES = ("user", "username", "name", "login", "password", "passwd", "pass", "pwd", "secret", "token")


def find_urls(text: str, low: bytes) -> list[Span]:
    """Return the spans of passwords (or of a lone long user part) in URLs; `:` and `@` may be part of a password."""
    spans: list[Span] = []
    where = low.find(b"://")
    done = 0
    while where >= 0:
        first = where + 3
        where = low.find(b"://", first)
        if first < done:
            continue
        if low.startswith((b"hooks.", b"discord", b"canary.discord", b"ptb.discord"), first):
            hook = compiled(_HOOK).match(text, first)
            if hook:
                spans.append((hook.start(1), hook.end(1), "webhook"))
        if text.find("@", first, first + 400) < 0:
            continue
        match = compiled(_URL_STOP).match(text, first)
        token = match[0] if match else ""
        if where >= 0 and first + len(token) > where:
            # Two URLs joined by a comma or so: keep to the first one.
            token = compiled(r"[,;]?[A-Za-z0-9+.\-]*$").sub("", token[: where - first])
        place = _userinfo_end(token, low[max(0, first - 8) : first].endswith((b"http://", b"https://")))
        if place <= 0:
            continue
        user, colon, password = token[:place].partition(":")
        if colon:
            sample = password.lower() in _SAMPLES and user.strip("[").lower() in _SAMPLES
            if password and not sample and not placeholder(password) and "/" not in user and "?" not in user:
                spans.append((first + len(user) + 1, first + place, "url-password"))
                done = first + place
        elif random_like(user, 16) or compiled(r"[0-9a-f]{32,}$").match(user):
            spans.append((first, first + place, "url-password"))
            done = first + place
    return spans


def _userinfo_end(token: str, web: bool) -> int:
    """Return the index of the `@` that ends the user part of `token` (a URL after `://`), -1 when there is none."""
    authority = token.partition("/")[0]
    at = authority.rfind("@")
    name, colon, rest = token.partition(":")
    if not colon or "/" in name or "@" in name or token.startswith("["):
        return at if at >= 0 and "?" not in authority[:at] else -1
    if compiled(r"\d{1,5}(?:[/?#]|$)").match(rest):
        return -1
    if at >= 0 and web:
        return at
    later = token.partition("?")[0].rfind("@")
    if later < 0:
        later = token.rfind("@")
    return max(at, later)
