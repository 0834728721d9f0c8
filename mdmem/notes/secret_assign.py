"""Secrets that a keyword names: `key = value` in every spelling, English and Chinese; random values of any name.

A keyword is found first, then the separator after it, then the value; the value decides (secret_words). Each step reads
a bounded stretch, so that the whole is linear in the length of the text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Iterator

from mdmem.notes.secret_headers import cookie_values
from mdmem.notes.secret_shapes import Span, compiled
from mdmem.notes.secret_values import CAP, MEDIUM, STRONG, WEAK, is_secret, read_value
from mdmem.notes.secret_words import mixed, placeholder

_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyz0123456789_-.$"

# The first letters of a keyword, the keyword from there, how sure it is, whether it may follow a letter directly.
_KEYWORDS: tuple[tuple[bytes, str, str, bool], ...] = (
    (b"pass", r"pass(?:w(?:or[dt]|d)s?|phrases?|codes?|(?![a-z]))", STRONG, True),
    (b"pw", r"pw(?:d|s)?(?![a-z])", STRONG, False),
    (b"secret", r"secrets?(?:[_\-. ]?(?:access)?[_\-. ]?(?:key|token))?", "secret", True),
    (b"token", r"tokens?", MEDIUM, True),
    (b"key", r"keys?", WEAK, True),
    (b"cred", r"cred(?:ential)?s?", MEDIUM, False),
    (b"auth", r"auth(?![a-z])", MEDIUM, False),
    (b"sig", r"sig(?:nature)?(?![a-z])", "signature", False),
    (b"cookie", r"cookies?", MEDIUM, True),
    (b"pin", r"pin(?:[_ -]?code)?(?![a-z])", "pin", False),
)
_TOKEN_OWNERS = tuple(
    """api access auth refresh secret session bot bearer github gitlab slack npm pypi hf huggingface vault deploy personal
    private security service oauth jwt csrf xsrf device registration push webhook account admin root upload master""".split()  # noqa: SIM905
)
# What stands before "key": a secret, or the name of a thing in a program.
_KEY_OWNERS = tuple(
    """api access secret private sign signing encrypt encryption decryption master account storage shared auth app
    application service client license licence ssh deploy deployment hmac aes des rsa jwt jwk crypto consumer subscription
    admin root rest write read ingest ingestion publishable integration developer vendor merchant session webhook host
    server bot project team user personal org instrumentation openai anthropic claude gemini google azure aws stripe twilio
    sendgrid mailgun github gitlab slack datadog dd sentry algolia mistral cohere groq deepseek dashscope qwen zhipu moonshot
    openrouter together replicate pinecone cloudflare fernet django flask rails vapid firebase supabase maps recaptcha
    captcha tmdb weather newrelic segment amplitude mixpanel posthog serper serpapi tavily brave exa""".split()  # noqa: SIM905
)
_NOT_SECRET_KEYS = tuple(
    """public pub foreign primary cache sort partition hash range row fact lookup index dict map object s3 file group unique
    composite natural surrogate hot arrow shortcut idempotency dedup dedupe translation i18n message config setting settings
    data event routing query json column cursor page react item node parent search sub super meta tab enter ctrl alt shift
    esc function lock metric label trace""".split()  # noqa: SIM905
)
_SUFFIX = (
    r"(?i)(?:[_\-. ]?(?:\d{1,3}|prod|production|dev|development|test|testing|stage|staging|live|qa|uat|local|root|admin"
    r"|main|old|new|current|default|primary|secondary|backup|value|val|string|str|text|plain|plaintext|raw|b64|base64|clear"
    r"|base|confirm|confirmation|again|hash)(?![a-z]))*"
    r"(?![A-Za-z0-9_])(?![\-.][A-Za-z])"
)
# A remark in brackets; a quoted text in them is the argument of a call, not a remark.
_PAREN = r"(?:[ \t]{0,4}[(（](?![\"'`])[^()（）\n]{0,40}[)）])?"
_SEPARATOR = (
    r"(?i)(?P<q>\\{0,3}[\"'`])?[\])]{0,2}(?:[*_~`]{1,3})?" + _PAREN + r"(?:"
    r"(?P<typed>[?!]?[ \t]{0,8}:[ \t]{0,8}(?:[&*]|\[\])?[A-Za-z_][\w.]{0,30}"
    r"(?:[<\[][\w.,<>\[\]| ?&*]{0,40}[>\]])?[?]?(?: ?\| ?\w{1,20})?[ \t]{0,8}=(?![=>~]))"
    r"|(?P<arrow>[ \t]{0,20}(?:=>|->|==={0,1}))"
    r"|(?P<eq>\s{0,20}(?::=|[?+|]?=(?![=~])|＝))"
    r"|(?P<pair></(?:key|name|string)>\s{0,40}<(?:string|value)>"
    r"|[\"'`]?[ \t]{0,8}[,;]?[ \t]{0,8}(?:\\?[rn]|\r?\n[ \t]{0,40})?\\{0,3}[\"'`]?value\\{0,3}[\"'`]?[ \t]{0,8}[:=])"
    r"|(?P<colon>\s{0,20}[:：](?![:=]|[a-z]{1,12}:`))"
    r"|(?P<comma>[ \t]{0,8},(?=[ \t]{0,8}[bfru]{0,2}\\{0,3}[\"'`]))"
    r"|(?P<tag>(?:[ \t][^<>\n]{0,80})?>)"
    r"|(?P<bar>[ \t]{1,40}\||\|(?=[ \t]))"
    r"|(?P<call>\((?=[\"'`]))"
    r"|(?P<say>(?:[ \t]{1,3}(?:for|of|to|on|in|at|there|here)(?:[ \t]{1,3}[\w.\-@/'%]{1,30}){0,4}?)?"
    r"(?:(?:[ \t]{1,3}(?:is|was|are|will|be|now|still|currently|changed|set|reset|rotated|to|as|equals|reads|=|:)(?!\w)){1,4}:?"
    r"|[ \t]{0,2}(?:是|为|為|改成|改为|设为)了?[：:]?))"
    r"|(?P<space>(?=[ \t\r\n]))"
    r")(?:[*_~]{1,3}(?=[ \t]))?[ \t]{0,40}"
)
# Plain words in a row, in a list of passwords, that are passed over in search of the next one.
_MISSES = 8
_NEXT_ITEM = r"[\"']?(?:[ \t]{0,8},\s{0,20}|[ \t]{0,8}\r?\n[ \t]{0,40}-[ \t]{1,4})(?=[^\s])"
_NEXT_LINE = (
    r"(?:[|>][+\-]?\d?)?[ \t]{0,8}\\?(?:\r?\n[ \t]{0,40}(?=\r?\n))?(?:\r?\n|\\r\\n|\\n)"
    r"(?P<indent>[ \t>]{0,40})(?P<item>-[ \t]{1,4})?"
)


def find_keywords(text: str, low: bytes, found: list[tuple[int, int]]) -> Iterator[Span]:
    """Yield the spans of values after a keyword; `found` are the key-like runs (secret_shapes.runs)."""
    starts = [first for first, _ in found]
    for stem, expression, strength, inside in _KEYWORDS:
        at = low.find(stem)
        keyword = compiled("(?i:" + expression + ")") if at >= 0 else None
        while keyword is not None and at >= 0:
            end = at + len(stem)
            if stem == b"cookie" and low.startswith(b":", end):
                end = yield from cookie_values(text, end)
            match = keyword.match(text, at)
            if match and strength == STRONG:
                yield from _said_before(text, at)
            if match and strength == WEAK and not _run_near(starts, end) and not _before(text, at).endswith(_KEY_OWNERS):
                match = None
            if match and not _idle(text, match.end(), at):
                end = max(end, (yield from _after_keyword(text, low, at, match.end(), strength, inside)))
            at = low.find(stem, end)


def _run_near(starts: list[int], at: int) -> bool:
    """Return whether a key-like run begins within 100 characters after `at`."""
    index = bisect_left(starts, at)
    return index < len(starts) and starts[index] < at + 100


def _idle(text: str, at: int, first: int) -> bool:
    """Return whether the rest of the line is plain words, so that no value can follow the keyword at `first`."""
    stop = min(len(text), at + 120)
    words = compiled(r"[A-Za-z \t.,;/\-)]*+").match(text, at, stop)
    end = words.end() if words else at
    if end < stop and text[end] not in "\r\n":
        return False
    # Left for a closer look: `--password word`, and a keyword alone on its line with its value below.
    return text[first - 1 : first] not in ("-", "_") and (end > at or not _alone(text, first))


def _alone(text: str, first: int) -> bool:
    """Return whether nothing but markup stands before `first` on its line."""
    start = text.rfind("\n", max(0, first - 80), first) + 1
    return not text[start:first].strip("#*->•_ \t")


def _after_keyword(text: str, low: bytes, at: int, end: int, strength: str, inside: bool) -> Generator[Span, None, int]:
    """Yield the spans of the values after the keyword at `at`; returns where to look for the next one."""
    suffix = compiled(_SUFFIX).match(text, end, min(len(text), end + 80))
    if suffix is None:
        return end
    before = low[max(0, at - 64) : at]
    name_at = at - (len(before) - len(before.rstrip(_NAME_BYTES)))
    left = text[name_at:at]
    hump = text[at].isupper() and left[-1:].islower()
    if end - at == 4 and left != "require":
        inside = False
    if not inside and left[-1:].isalpha() and not hump:
        return end
    if strength == WEAK:
        strength = _key_strength(text, left, at)
    elif strength == MEDIUM:
        strength = _token_strength(text, low, at, end)
    if not strength:
        return end
    return (yield from _values(text, suffix.end(), name_at, strength, sure=bool(left) or low[at:end] not in _COMMON))


def _key_strength(text: str, left: str, at: int) -> str:
    words = _before(text, at)
    if words.endswith(_NOT_SECRET_KEYS):
        return ""
    if words.endswith(_KEY_OWNERS):
        return "secret"
    if left[-1:].isalpha() and not (text[at].isupper() and left[-1:].islower()):
        return ""
    return WEAK


def _before(text: str, at: int) -> str:
    return text[max(0, at - 20) : at].rstrip("_-. ").lower()


def _token_strength(text: str, low: bytes, at: int, end: int) -> str:
    """A token that says whose it is counts like a secret key; several tokens are a number of words."""
    if low[at : at + 6] == b"tokens":
        return ""
    words = _before(text, at)
    if low[at : at + 5] == b"token" and compiled(_ASSIGNED_TIGHT).match(text, end, end + 80):
        return "secret"
    if low[at : at + 5] == b"token" and (words.endswith(_TOKEN_OWNERS) or text[max(0, at - 3) : end].isupper()):
        return "secret"
    return MEDIUM


# `token=abc`, and not `f(token=abc)`
_ASSIGNED_TIGHT = r"=[^\s=,()\[\]]{3,60}(?=\s|$|[&\"'`;])"
_SAID = (
    r"(?<![^\s\"'`(])([^\s\"'`]{4,60})[\"'`]?[ \t]{1,3}(?:is|as|was)"
    r"[ \t]{1,3}(?:(?:the|my|our|a|your|its|their)[ \t]{1,3})?(?:\w{1,12}[ \t]{1,3})?$"
)


def _said_before(text: str, at: int) -> Iterator[Span]:
    """`hunter2 is the password`: the value comes first."""
    words = text[max(0, at - 24) : at].split(" ")
    if words[-1] or not {"is", "as", "was"}.intersection(words[-4:]):
        return
    match = compiled(_SAID).search(text, max(0, at - 100), at)
    if match and compiled(r"\d").search(match[1]) and mixed(match[1]) and not placeholder(match[1]):
        yield match.start(1), match.end(1), "password"


_COMMON = (b"pass", b"auth", b"cred", b"creds", b"sig")
# Words before a name that is being defined: what follows is a body, not a value.
_DEFINES = ("def ", "function ", "func ", "fn ", "class ", "sub ", "interface ", "struct ", "enum ", "trait ", "type ")


_TESTS = ("if ", "elif ", "not ", "and ", "or ", "in ", "while ", "with ")


def _values(text: str, at: int, name_at: int, strength: str, sure: bool) -> Generator[Span, None, int]:
    """Yield the span of the value whose separator may start at `at`, and of its neighbours in a list. A keyword that is
    not `sure` is a common word too (pass, auth, cred): only a direct assignment counts."""
    place = None if text[max(0, name_at - 12) : name_at].endswith(_DEFINES) else _value_place(text, at, name_at)
    if place is None:
        return at
    start, how, listed = place
    if not sure and how in ("say", "space", "bar"):
        return at
    kind, name_end = "password" if strength in (STRONG, "pin") else "secret", at
    missed, passed_over = 0, False
    while True:
        found = read_value(text, start)
        if found is None:
            return at
        first, last, quoted = found
        if how == "tag" and text[last : last + 2] != "</" and not _alone(text, name_at - 1):
            # A tag that is never closed counts when it begins its line.
            return at
        passed_on = not quoted and last - first > 2 and text[name_at:name_end].lower().endswith(text[first:last].lower())
        in_list = listed or text[start : start + 1] in ("[", "(")
        if passed_on or not is_secret(text, first, last, quoted, strength, how):
            missed, passed_over = missed + 1, True
            if strength != STRONG or not in_list or missed > _MISSES:
                # A long value that was no secret is not read again for each keyword inside it.
                return last if last - first > 40 else at
        else:
            if not quoted and last - first >= CAP:
                more = compiled(r"\S*").match(text, last)
                last = more.end() if more else last
            yield first, last, kind
            missed = 0
            # Keywords inside an item that was passed over are still to be looked at.
            at = at if passed_over else last
        following = compiled(_NEXT_ITEM).match(text, last, last + 80) if in_list else None
        if following is None:
            return at
        start, listed, how = following.end(), True, "below"


def _value_place(text: str, at: int, name_at: int) -> tuple[int, str, bool] | None:
    """Return (start of the value, kind of separator, whether it is an item of a list below) after a keyword."""
    separator = compiled(_SEPARATOR).match(text, at, min(len(text), at + 260))
    how = separator.lastgroup or "" if separator else ""
    if separator is None or how == "q":
        return None
    if how == "tag" and "<" not in text[max(0, name_at - 60) : name_at]:
        return None
    if how == "comma" and not separator["q"]:
        return None
    if how == "say" and text[separator.end() - 1] in ":：":
        how = "colon"
    start = separator.end()
    below = compiled(_NEXT_LINE).match(text, start, min(len(text), start + 60))
    if how == "space" and _is_option(text, name_at):
        how = "option"
    elif how == "space" and below:
        # A keyword alone on its line, the value alone on the next: a form, a list of accounts.
        if not _alone(text, name_at):
            return None
        return below.end(), "bar", False
    if below and how in ("colon", "eq", "typed", "tag", "option", "say"):
        if ")" in separator[0] or text[max(0, name_at - 6) : name_at].endswith(_TESTS):
            return None  # the body of a function, of an `if`
        own = text[text.rfind("\n", max(0, name_at - 80), name_at) + 1 : name_at]
        deeper = len(below["indent"]) > len(own) - len(own.lstrip(" \t"))
        return below.end(), "deeper" if deeper and not below["item"] else "below", bool(below["item"])
    if text[start : start + 1] in ("\r", "\n", "") or (not separator["q"] and _closes(text, start)):
        return None
    return start, how, False


def _closes(text: str, at: int) -> bool:
    """Return whether the quote at `at` ends a string that holds the keyword: `"Password: "`."""
    quote = text[at : at + 1]
    if quote not in ('"', "'"):
        return False
    before = text[text.rfind("\n", max(0, at - 120), at) + 1 : at][-120:]
    return len(compiled(rf"(?<![A-Za-z\\]){quote}|{quote}(?![A-Za-z])").findall(before)) % 2 == 1


def _is_option(text: str, name_at: int) -> bool:
    return text[name_at : name_at + 1] == "-" and text[name_at - 1 : name_at] in (
        "",
        " ",
        "\t",
        "\n",
        '"',
        "'",
        "`",
        "(",
        "[",
        ",",
    )
