"""Secrets that a keyword names: `key = value` in every spelling, English and Chinese; random values of any name.

A keyword is found first, then the separator after it, then the value; the value decides (secret_words). Each step reads
a bounded stretch, so that the whole is linear in the length of the text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from mdmem.notes.secret_headers import cookie_values
from mdmem.notes.secret_shapes import Span, compiled
from mdmem.notes.secret_values import CAP, MEDIUM, STRONG, WEAK, is_secret, read_value
from mdmem.notes.secret_words import placeholder, random_like

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
_PAREN = r"(?:[ \t]{0,4}[(（][^()（）\n]{0,40}[)）])?"
_SEPARATOR = (
    r"(?i)(?P<q>\\{0,3}[\"'`])?[\])]{0,2}(?:[*_~`]{1,3})?" + _PAREN + r"(?:"
    r"(?P<typed>[?!]?[ \t]{0,8}:[ \t]{0,8}(?:[&*]|\[\])?[A-Za-z_][\w.]{0,30}"
    r"(?:[<\[][\w.,<>\[\]| ?&*]{0,40}[>\]])?[?]?(?: ?\| ?\w{1,20})?[ \t]{0,8}=(?![=>~]))"
    r"|(?P<arrow>[ \t]{0,20}(?:=>|->|==={0,1}))"
    r"|(?P<eq>[ \t]{0,20}(?::=|[?+|]?=(?![=~])|＝))"
    r"|(?P<pair></(?:key|name|string)>\s{0,40}<(?:string|value)>"
    r"|[\"'`]?[ \t]{0,8}[,;]?[ \t]{0,8}(?:\\?[rn]|\r?\n[ \t]{0,40})?\\{0,3}[\"'`]?value\\{0,3}[\"'`]?[ \t]{0,8}[:=])"
    r"|(?P<colon>[ \t]{0,20}[:：](?![:=]))"
    r"|(?P<comma>[ \t]{0,8},(?=[ \t]{0,8}[bfru]{0,2}\\{0,3}[\"'`]))"
    r"|(?P<tag>(?:[ \t][^<>\n]{0,80})?>)"
    r"|(?P<bar>[ \t]{0,40}\|)"
    r"|(?P<call>\((?=[\"'`]))"
    r"|(?P<say>(?:[ \t]{1,3}(?:for|of|to|on|in|at|there|here)(?:[ \t]{1,3}[\w.\-@/]{1,30}){0,4}?)?"
    r"(?:[ \t]{1,3}(?:is|was|are|will|be|now|still|currently|changed|set|reset|rotated|to|as|equals|reads|=|:)(?![\w])){1,4}:?)"
    r"|(?P<space>(?=[ \t]))"
    r")(?:[*_~]{1,3}(?=[ \t]))?[ \t]{0,40}"
)
_NEXT_LINE = r"(?:[|>][+\-]?\d?)?[ \t]{0,8}\\?(?:\r?\n|\\r\\n|\\n)(?P<indent>[ \t>]{0,40})"


def find_assigned(text: str, low: bytes, found: list[tuple[int, int]]) -> list[Span]:
    """Return the spans of values that a keyword marks, or that look random; `found` are the key-like runs."""
    return [*_keywords(text, low, [first for first, _ in found]), *_chinese(text), *_entropy(text, found)]


def _keywords(text: str, low: bytes, starts: list[int]) -> Iterator[Span]:
    for stem, expression, strength, inside in _KEYWORDS:
        at = low.find(stem)
        while at >= 0:
            end = at + len(stem)
            if stem == b"cookie" and low.startswith(b":", end):
                end = yield from cookie_values(text, end)
            match = compiled("(?i:" + expression + ")").match(text, at)
            if match and (strength != WEAK or _run_near(starts, end) or _before(text, at).endswith(_KEY_OWNERS)):
                span = None
                if not _idle(text, match.end(), at):
                    span = _after_keyword(text, low, at, match.end(), strength, inside)
                if span and span[2]:
                    yield span
                # A long value that was no secret is not read again for each keyword inside it.
                if span and (span[2] or span[1] - span[0] > 40):
                    end = max(end, span[1])
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
    # Left for a closer look: `--password word`, and a keyword at the end of a line with its value below.
    return text[first - 1 : first] not in ("-", "_") and (end > at or text[first - 1 : first] in ("", " ", "\n"))


def _after_keyword(text: str, low: bytes, at: int, end: int, strength: str, inside: bool) -> Span | None:
    """Return the span of the value after the keyword, with kind "" when the value is no secret; None without one."""
    suffix = compiled(_SUFFIX).match(text, end, min(len(text), end + 80))
    if suffix is None:
        return None
    before = low[max(0, at - 64) : at]
    name_at = at - (len(before) - len(before.rstrip(_NAME_BYTES)))
    left = text[name_at:at]
    hump = text[at].isupper() and left[-1:].islower()
    if end - at == 4 and left != "require":
        inside = False
    if not inside and left[-1:].isalpha() and not hump:
        return None
    if strength == WEAK:
        strength = _key_strength(text, left, at)
        if not strength:
            return None
    elif strength == MEDIUM and text[end - 1] in "sS" and low[at : at + 6] == b"tokens":
        return None
    kind = "password" if strength in (STRONG, "pin") else "secret"
    option = left.startswith("-") and text[name_at - 1 : name_at] in ("", " ", "\t", "\n", '"', "'", "`", "(", "[", ",")
    return _value_after(text, suffix.end(), name_at, strength, kind, option)


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


def _value_after(text: str, at: int, name_at: int, strength: str, kind: str, option: bool) -> Span | None:
    separator = compiled(_SEPARATOR).match(text, at, min(len(text), at + 260))
    if separator is None:
        return None
    how = separator.lastgroup or ""
    if how == "q":
        return None
    if how == "tag" and "<" not in text[max(0, name_at - 60) : name_at]:
        return None
    if how == "comma" and not separator["q"]:
        return None
    if how == "say" and text[separator.end() - 1] == ":":
        how = "colon"
    if how == "space" and option:
        how = "option"
    start = separator.end()
    below = compiled(_NEXT_LINE).match(text, start, min(len(text), start + 60))
    if below and how in ("colon", "eq", "typed", "tag", "option", "say"):
        start = below.end()
        own = text[text.rfind("\n", max(0, name_at - 80), name_at) + 1 : name_at]
        deeper = len(below["indent"]) > len(own) - len(own.lstrip(" \t"))
        how = "deeper" if deeper else "below"
    elif start < len(text) and text[start] in "\r\n":
        return None
    found = read_value(text, start)
    if found is None:
        return None
    first, last, quoted = found
    # A tag that is never closed counts when it begins its line.
    line_before = text[max(0, name_at - 30) : name_at].rpartition("\n")[2].strip()
    if how == "tag" and text[last : last + 2] != "</" and line_before != "<":
        return None
    if strength == MEDIUM and how == "eq" and text[name_at:at].isupper():
        strength = "secret"
    if is_secret(text, first, last, quoted, strength, how):
        if not quoted and last - first >= CAP:
            more = compiled(r"\S*").match(text, last)
            last = more.end() if more else last
        return first, last, kind
    return first, last, ""


_CHINESE_STRONG = ("密码", "密碼", "口令", "通行码", "提取码", "访问码")
# One character to look for, the keywords that it ends or begins.
_CHINESE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("码", ("密码", "通行码", "提取码", "访问码", "授权码")),
    ("碼", ("密碼", "授權碼")),
    ("令", ("口令", "令牌")),
    ("钥", ("密钥", "私钥")),
    ("鑰", ("密鑰", "金鑰", "私鑰")),
    ("凭", ("凭证", "凭据")),
)
_CHINESE_AFTER = (
    r"[*_~`”’」』\"']{0,3}(?:[ \t]{0,4}[(（\[【][^()（）\n\[\]【】]{0,30}[)）\]】])?[*_~`]{0,3}[ \t]{0,8}"
    r"(?:(?P<sign>[：:=＝])|(?P<say>[\u4e00-\u9fff]{0,6}?(?:是|为|為|成|叫|用|到)了?(?:[ \t]{0,2}[：:])?))"
    r"[*_~]{0,3}[ \t\u3000]{0,8}(?:\r?\n[ \t]{0,8})?"
)


def _chinese(text: str) -> Iterator[Span]:
    if text.isascii():
        return
    for character, words in _CHINESE:
        at = text.find(character)
        while at >= 0:
            end = at + 1
            for word in words:
                first = at - word.index(character)
                if text.startswith(word, first):
                    strength = STRONG if word in _CHINESE_STRONG else MEDIUM
                    span = _after_chinese(text, first + len(word), strength)
                    if span:
                        yield span
                        end = max(end, span[1])
                    break
            at = text.find(character, end)


def _after_chinese(text: str, at: int, strength: str) -> Span | None:
    match = compiled(_CHINESE_AFTER).match(text, at, min(len(text), at + 90))
    found = read_value(text, match.end()) if match else None
    if match is None or found is None:
        return None
    first, last, quoted = found
    how = "say" if not match["sign"] else "eq" if strength == STRONG else "colon"
    if not _chinese_secret(text, first, last, quoted, strength, how):
        return None
    return first, last, "password" if strength == STRONG else "secret"


def _chinese_secret(text: str, first: int, last: int, quoted: bool, strength: str, how: str) -> bool:
    value = text[first:last]
    if value[0] > "\u2e7f":
        return quoted and how == "eq" and not placeholder(value)
    if value.isdigit() and len(value) < 4:
        return False
    return is_secret(text, first, last, quoted, strength, how)


_NOT_SECRET_NAMES = (
    r"(?i)(?:^|[_\-.]|(?<=[a-z])(?=[A-Z]))(?:u?u?id|ids|guid|hash|sha\d*|md5|digest|checksum|etag|integrity|fingerprint|commit|rev|revision|ref|oid|tree"
    r"|parent|blob|version|url|uri|href|src|path|file|filename|name|image|img|icon|logo|photo|picture|avatar|data|content|body|text|title|model|branch"
    r"|tag|cursor|nonce|class|address|addr|txid|tx|block|cid|resource|arn|host|hostname|email|user|slug|pubkey|key|cert|certificate|request|trace|span"
    r"|prompt|device|build|snapshot|container|layer|job|run|task|thread|message|msg|query|next|page|state|challenge|verifier|issuer|sub|link|anchor)$"
)


_WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.$"


def _entropy(text: str, found: list[tuple[int, int]]) -> Iterator[Span]:
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
    return "" if rest[-1:] in ("?", "&") or not name[:1].isalpha() else name
