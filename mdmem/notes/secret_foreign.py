"""Secrets that the word for password in other European languages names (mot de passe : …, Kennwort ist …), and the lines of
password files of programs (`.pgpass`, `.netrc`'s neighbours): host:port:database:user:password.

The value is read and judged as in English text."""

from __future__ import annotations

from collections.abc import Iterator

from mdmem.notes.secret_shapes import Span, compiled
from mdmem.notes.secret_values import STRONG, is_secret, read_value
from mdmem.notes.secret_words import placeholder

# A stretch of each keyword in lower case that is quick to look for, and the keyword itself from where the stretch begins.
_KEYWORDS: tuple[tuple[str, str], ...] = (
    ("de passe", r"(?:(?<=\bmot )|(?<=\bmots ))de passe"),
    ("mot_de_passe", r"mot_de_passe"),
    ("motdepasse", r"motdepasse"),
    ("mdp", r"mdp"),
    ("phrase secr", r"phrase secr[eè]te"),
    ("code d'acc", r"code d'acc[eè]s"),
    ("kennwort", r"kennw(?:ort|örter)"),
    ("losungswort", r"losungswort"),
    ("zugangscode", r"zugangscode"),
    ("contrase", r"contrase(?:ñ|n)as?"),
    ("palabra clave", r"palabra clave"),
    ("senha", r"senhas?"),
    ("palavra", r"palavra[- ]passe"),
    ("parola d'ordine", r"parola d'ordine"),
    ("wachtwoord", r"wachtwoord(?:en)?"),
    ("lösenord", r"lösenord(?:et)?"),
    ("hasło", r"hasło"),
    ("пароль", r"пароль"),
)
_AFTER = (
    r"[*_~`”’»\"']{0,3}(?:[ \t\u00a0\u202f]{0,3}\([^()\n]{0,40}\))?[*_~`]{0,3}[ \t\u00a0\u202f]{0,8}"
    # A few words may come between it and what it is: the name of a machine, of an account.
    r"(?:(?:(?:de|du|des|d'|pour|für|fuer|von|vom|zum|para|del|da|do|di|per|voor|van|för|dla|do|для|от)[ ']"
    r"(?:[\w.\-@/]{1,30}[ ]?){1,4}?)[ \t\u00a0\u202f]{0,4})?"
    r"(?:(?P<sign>[:=])|(?P<say>(?:est|sont|c'est|ist|lautet|es|é|è|is|är|to|—|–)(?=[ \t\u00a0:])[ \t]{0,4}:?))"
    r"[*_~]{0,3}[ \t\u00a0\u202f]{0,8}(?P<open>«[ \u00a0\u202f]?|„)?"
)
# host:port:database:user:password, each but the last without white space; `*` stands for any. A port is a number.
_LINE = (
    r"(?m)^[ \t>]{0,8}(?P<host>\*|[\w.\-/\[\]]{1,80}):(?P<port>\*|\d{1,5}):(?P<base>\*|[^\s:\\]{1,63}):"
    r"(?P<user>\*|[^\s:\\]{1,63}):(?P<password>(?:[^\s:\\]|\\[:\\]){1,200})[ \t]{0,8}$"
)
# What such a line has in its middle, quick to look for.
_MIDDLE = r":(?:\*|\d{1,5}):[^\s:\\]{1,63}:"
# A host, and not the name of a source file in the message of a compiler.
_HOST = (
    r"(?:\*|localhost|\[?[0-9a-fA-F:.]{2,}\]?|[\w\-]+(?:\.[\w\-]+)*\.[A-Za-z]{2,}|[\w\-]*(?:db|sql|pg|host|server)[\w\-]*"
    r"|/[\w./\-]+)$"
)
_SOURCE = (
    r"(?i).*\.(?:c|h|cc|cpp|hpp|cs|go|rs|py|js|jsx|ts|tsx|java|kt|rb|php|pl|lua|sh|sql|md|rst|txt|json|ya?ml|toml|xml|html|css"
    r"|vue|swift|scala|zig|log)$"
)


def find_foreign(text: str, low: bytes) -> Iterator[Span]:
    """Yield the spans of values after a keyword of another language, and of the passwords of such files."""
    yield from _lines(text)
    plain = text.lower() if not text.isascii() else low.decode("latin-1")
    if len(plain) != len(text):
        plain = low.decode("latin-1")  # a letter whose small form has two: positions count for more than that keyword
    ascii_only = plain.isascii()
    for stem, expression in _KEYWORDS:
        if ascii_only and not stem.isascii():
            continue
        at = plain.find(stem)
        keyword = compiled(expression) if at >= 0 else None
        while keyword is not None and at >= 0:
            match = keyword.match(plain, at)
            end = match.end() if match else at + len(stem)
            free = not (plain[at - 1 : at].isalnum() or plain[end : end + 1].isalnum())
            span = _after(text, end) if match and free else None
            if span:
                yield span
                end = span[1]
            at = plain.find(stem, end)


def _after(text: str, at: int) -> Span | None:
    match = compiled("(?i)" + _AFTER).match(text, at, min(len(text), at + 200))
    if match is None:
        return None
    start = match.end()
    if match["open"]:
        closing = text.find("»" if match["open"][0] == "«" else "“", start, start + 200)
        found = (start, start + len(text[start:closing].rstrip()), True) if closing > start else read_value(text, start)
    else:
        found = read_value(text, start)
    if found is None:
        return None
    first, last, quoted = found
    how = "say" if not match["sign"] else "eq" if match["sign"] == "=" else "colon"
    value = text[first:last]
    if not quoted and how != "eq" and compiled(r"[^\W\d_]+$").match(value):
        return None  # a word of the sentence: `mot de passe : oublié`
    return (first, last, "password") if is_secret(text, first, last, quoted, STRONG, how) else None


def _lines(text: str) -> Iterator[Span]:
    """Yield the passwords of lines of a `.pgpass`: five fields, the second a port."""
    if compiled(_MIDDLE).search(text) is None:
        return
    for found in compiled(_LINE).finditer(text):
        value = found["password"]
        fields = (found["host"], found["base"], found["user"])
        if placeholder(value) or value == "*" or all(field.isdigit() for field in fields):
            continue
        if value.isdigit() and found["port"] != "*" and len(value) < 5:
            continue  # a time, a place in a file: main.c:10:5:note:12
        if compiled(_SOURCE).match(found["host"]) is None and (found["port"] == "*" or compiled(_HOST).match(found["host"])):
            yield (*found.span("password"), "password")
