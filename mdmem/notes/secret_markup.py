"""Secrets that their surroundings mark: <private> parts, key blocks, passwords in URLs. Knows no keywords."""

from __future__ import annotations

from mdmem.notes.secret_shapes import Span, compiled
from mdmem.notes.secret_words import placeholder, random_like

_TAG = r"(?i)(<|&lt;|\\u003c)[ \t]*(/?)[ \t]*private\b((?:[^<>&\n]|&(?!gt;|lt;)){0,200}?)(/?)(?:>|&gt;|\\u003e|(?=<|&lt;|\n|$))"


def find_private(text: str, low: bytes) -> list[Span]:
    """Return the spans of <private> parts, tags included: nested ones as one, an unclosed one to the end of the text.
    A tag alone in backticks is a mention of the tag and hides nothing."""
    if low.find(b"private") < 0 or (low.find(b"<") < 0 and low.find(b"&lt;") < 0 and low.find(b"\\u003c") < 0):
        return []
    spans: list[Span] = []
    depth, start = 0, 0
    for tag in compiled(_TAG).finditer(text):
        closing, rest = tag[2] == "/", tag[3].strip()
        if rest and rest[0] not in "/\"'" and "=" not in rest and not closing and tag[0][-1] != ">":
            continue
        if depth == 0 and text[tag.start() - 1 : tag.start()] == "`" == text[tag.end() : tag.end() + 1]:
            continue
        if not closing:
            if tag[4] == "/" and not compiled(r"(?i)</[ \t]*private").search(text, tag.end()):
                continue
            if depth == 0:
                start = tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                spans.append((start, tag.end(), "private"))
    if depth:
        end = len(text)
        while end > start and text[end - 1] in "\r\n":
            end -= 1
        spans.append((start, end, "private"))
    return spans


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
    if low.find(b"private") < 0:
        return spans
    at = 0
    more_ends = True
    begin, end = compiled(_BEGIN), compiled(_END)
    where = low.find(b"begin ")
    while where >= 0:
        first = begin.search(text, max(at, where - 10), where + 80)
        if first is None:
            at = max(at, where)
            where = low.find(b"begin ", where + 6)
            continue
        last = end.search(text, first.end()) if more_ends else None
        more_ends = last is not None
        if last is not None and begin.search(text, first.end(), last.start()) is None:
            stop = last.end()
        else:
            rest = compiled(_REST).match(text, first.end())
            stop = rest.end() if rest else first.end()
            while stop > first.end() and text[stop - 1] in "\r\n \t>|*#\"',":
                stop -= 1
            while stop > first.end() + 1 and text[stop - 2 : stop] in ("\\n", "\\r", '\\"'):
                stop -= 2
        if stop > first.end() + 6 or last is not None:
            spans.append((first.start(), stop, "private-key"))
        at = stop
        where = low.find(b"begin ", at)
    if low.find(b"private-lines:") >= 0:
        spans.extend((m.start(), m.end(), "private-key") for m in compiled(_PUTTY).finditer(text) if "\n" in m[0])
    return spans


_URL_STOP = r"[^\s\"'`<>|\\(){}，。；、）】」』”’]{0,400}"


def find_urls(text: str, low: bytes) -> list[Span]:
    """Return the spans of passwords (or of a lone long user part) in URLs; `:` and `@` may be part of a password."""
    spans: list[Span] = []
    where = low.find(b"://")
    done = 0
    while where >= 0:
        first = where + 3
        where = low.find(b"://", first)
        if first < done or text.find("@", first, first + 400) < 0:
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
            if password and not placeholder(password) and "/" not in user and "?" not in user:
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
