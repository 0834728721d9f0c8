"""Reads the value after a keyword, and decides by keyword, separator and value together whether it is a secret."""

from __future__ import annotations

from mdmem.notes.secret_shapes import compiled
from mdmem.notes.secret_words import PROSE, WORDS, code, hexadecimal, mixed, placeholder, random_like, worded

# How sure a keyword is: a password, something that may be a token, any kind of key.
STRONG, MEDIUM, WEAK = "strong", "medium", "weak"
CAP = 400
_OPEN = r"(?:!!(?:str|binary)[ \t]+)?(?:[\[({][ \t]{0,4})?(?:[bfru]{0,2}|@|\$)(\\{0,7})(\"\"\"|'''|[\"'`“‘「『])"
_CLOSE = {"“": "”", "‘": "’", "「": "」", "『": "』"}
# A bare value ends at white space, at Chinese text, and where punctuation belongs to what surrounds it.
_BARE = (
    r"(?:[^\s\"'`<>&;,|\\\u2018-\u201f\u3000-\u303f\u4e00-\u9fff\uff00-\uff20\uff3b-\uff65]"
    r"|[\"'`](?=[\w$!@#%^&*])|<(?![/!]?[A-Za-z][^<>\s]{0,40}>|[/!])|>(?![\s<]|$)"
    r"|&(?!amp;|[\w.\-]{1,40}=)|[;,](?![\s\"'`\])}]|$|[\w.\- ]{1,40}[=:]|\\[nr])"
    r"|\|(?![\s|]|$)|\\(?![nrt\"'`]|u00)|\\[nrt](?![\w.\- ]{0,40}[=:]|[\"'`\\\s]|$|[A-Za-z]{1,30}(?:\s|$)))"
)


def read_value(text: str, at: int) -> tuple[int, int, bool] | None:
    """Return (start, end, quoted) of the value at `at`, without its quotes; None when there is none."""
    opening = compiled(_OPEN).match(text, at)
    if opening:
        first = opening.end()
        close = opening[1] + _CLOSE.get(opening[2], opening[2])
        limit = min(len(text), first + 2000)
        line_end = text.find("\n", first, limit)
        if len(opening[2]) < 3 and line_end >= 0:
            limit = line_end
        last = text.find(close, first, limit)
        while last > first and not opening[1] and _goes_on(text, last, close):
            last = text.find(close, last + (2 if text[last - 1] != "\\" else 1), limit)
        if last < 0:
            last = limit
            while last > first and text[last - 1] in "\r\n \t":
                last -= 1
        return (first, last, True) if last > first else None
    typed = compiled(r"!!(?:str|binary)[ \t]{1,4}").match(text, at)
    bare = compiled(_BARE + f"{{1,{CAP}}}").match(text, typed.end() if typed else at)
    if bare is None:
        return None
    first, last = bare.span()
    value = bare[0]
    for opener, closer in ("()", "[]", "{}"):
        while value.endswith(closer) and value.count(closer) > value.count(opener):
            value = value[:-1].rstrip(".,;:")
    value = value.rstrip(".,;:")
    return (first, first + len(value), False) if value else None


_PATH = r"(?i)(?:https?|file|git|ssh)://|(?:~|\.{1,2})?/(?:[\w.\-]+/)+[\w.\-]*$|(?:~|\.{1,2})/[\w.\-]+$|/[a-z]+$|[a-z]:\\\w"
_DIRECT = frozenset(("eq", "colon", "typed", "comma", "pair", "deeper", "below", "tag", "option"))


def _goes_on(text: str, at: int, close: str) -> bool:
    """Return whether the quote at `at` is part of the value: escaped, or doubled."""
    if text[at - 1] == "\\":
        return text[at - 2] != "\\"
    return len(close) == 1 and text[at + 1 : at + 2] == close and text[at + 2 : at + 3].isalnum()


def is_secret(text: str, first: int, last: int, quoted: bool, strength: str, how: str) -> bool:
    """Return whether text[first:last] is a secret, after a keyword of `strength` and a separator of the kind `how`."""
    value = text[first:last]
    line_end = text.find("\n", last, last + 200)
    after = text[last : line_end if line_end >= 0 else last + 200]
    plain = value.strip().strip("*_.,;:!?()[]{}\"'`").lower()
    if placeholder(value) or plain in WORDS or (len(value) < 4 and not any(c.isalnum() for c in value)):
        return False
    if not quoted and (how == "arrow" or code(value, after)):
        return False
    if compiled(_PATH).match(value):
        return False
    rest = after.strip()
    alone = not rest or rest[0] in ",;.}])|#\"'`<&\\" or rest.startswith(("//", "--", "||"))
    if strength == "pin":
        return how in ("eq", "colon", "deeper", "say") and alone and compiled(r"\d{4,8}$").match(value) is not None
    if strength == WEAK:
        return how in _DIRECT and random_like(value, 16)
    if strength == "signature":
        digest = compiled(r"[0-9a-f]{32,}$").match(value) is not None
        return how == "eq" and text[first - 1] == "=" and (digest or random_like(value, 16))
    if strength == MEDIUM:
        return _medium(value, quoted, how)
    if " " in value:
        words = value.split()
        prose = len(words) > 8 or any(word.strip(".,!?:;").lower() in PROSE for word in words)
        return quoted and strength == STRONG and not prose and how not in ("call", "space", "comma", "bar")
    if compiled(r"\d{1,3}[a-z]{0,2}$").match(value):
        return False
    if strength == "secret":
        if hexadecimal(value):
            return True
        several = len(compiled(r"[-_./:]").split(value)) > 1
        if how == "eq" and not quoted and value.isalpha() and value.islower() and text[first - 1] == " ":
            return False  # `key = name` in a program
        direct = how in ("eq", "typed", "option", "pair") or (how == "colon" and (quoted or len(value) > 5))
        if worded(value) and (several or not alone or not direct):
            return False
        if how == "space" and not random_like(value, 16):
            return False
    return _strong(value, quoted, how, alone if how != "deeper" else rest[:1] in ("", ",", "#"))


def _strong(value: str, quoted: bool, how: str, alone: bool) -> bool:
    if how in ("eq", "typed", "pair"):
        return True
    if how == "deeper":
        return quoted or mixed(value) or (alone and compiled(r"@[A-Za-z_.]+$").match(value) is None)
    if how == "arrow":
        return quoted
    if how in ("colon", "tag", "below"):
        number = len(value) >= 4 and value.isdigit()
        return quoted or number or mixed(value) or hexadecimal(value) or (alone and how != "below")
    if how == "option":
        return quoted or mixed(value) or alone or not value.isalpha()
    if how in ("comma", "call", "bar"):
        return mixed(value)
    if how == "say":
        number = value.isdigit() and 4 <= len(value) <= 12 and alone
        return number or mixed(value) or (quoted and (alone or not worded(value)))
    if how == "space":
        return mixed(value) and (quoted or compiled(r"\d").search(value) is not None)
    return False


def _medium(value: str, quoted: bool, how: str) -> bool:
    if " " in value or worded(value) or how in ("space", "call", "bar", "arrow"):
        return how in ("space", "bar") and random_like(value, 20)
    if hexadecimal(value) or random_like(value, 16):
        return True
    if how in ("say", "comma"):
        return mixed(value) and len(value) >= 8 and compiled(r"\d").search(value) is not None
    digits = sum(c.isdigit() for c in value)
    if mixed(value) and len(value) >= 6 and digits >= 2 and digits < len(value):
        return True
    return (quoted or how == "eq") and len(value) >= 20 and not worded(value) and digits > 0
