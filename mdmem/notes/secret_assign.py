"""Secrets that a keyword names: `key = value` in every spelling, English and Chinese; random values of any name.

A keyword is found first, then the separator after it, then the value; the value decides (secret_words). Each step reads
a bounded stretch, so that the whole is linear in the length of the text.
"""

from __future__ import annotations

from collections.abc import Iterator

from mdmem.notes.secret_shapes import Span, compiled
from mdmem.notes.secret_words import WORDS, code, hexadecimal, mixed, placeholder, random_like, worded

STRONG, MEDIUM, WEAK = "strong", "medium", "weak"
_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyz0123456789_-.$"
_CAP = 400

# The first letters of a keyword, the keyword from there, how sure it is, whether it may follow a letter directly.
_KEYWORDS: tuple[tuple[bytes, str, str, bool], ...] = (
    (b"passw", r"passw(?:or[dt]|d)s?", STRONG, True),
    (b"passp", r"passphrases?", STRONG, True),
    (b"passc", r"passcodes?", STRONG, True),
    (b"pass", r"pass(?![a-z])", STRONG, False),
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
_KEY_OWNERS = (
    r"(?i)(?:api|access|secret|private|sign|signing|encrypt|encryption|decryption|master|account|storage|shared|auth|app"
    r"|application|service|client|license|licence|ssh|deploy|deployment|hmac|aes|des|rsa|jwt|jwk|crypto|consumer|subscription|admin|root|rest|write|read|ingest|ingestion"
    r"|publishable|integration|developer|vendor|merchant|session|webhook|host|server|bot|project|team|user|personal|org"
    r"|instrumentation|openai|anthropic|claude|gemini|google|azure|aws|stripe|twilio|sendgrid|mailgun|github|gitlab|slack"
    r"|datadog|dd|sentry|algolia|mistral|cohere|groq|deepseek|dashscope|qwen|zhipu|moonshot|openrouter|together|replicate"
    r"|pinecone|cloudflare|fernet|django|flask|rails|vapid|firebase|supabase|maps|recaptcha|captcha|tmdb|weather|newrelic"
    r"|segment|amplitude|mixpanel|posthog|serper|serpapi|tavily|brave|exa)[_\-. ]?$"
)
_NOT_SECRET_KEYS = (
    r"(?i)(?:public|pub|foreign|primary|cache|sort|partition|hash|range|row|fact|lookup|index|dict|map|object|s3|file|group"
    r"|unique|composite|natural|surrogate|hot|arrow|short ?cut|idempotency|dedup|dedupe|translation|i18n|message|config"
    r"|settings?|data|event|routing|query|json|column|cursor|page|react|item|node|parent|search|sub|super|meta|tab|enter"
    r"|ctrl|alt|shift|esc|function|lock|metric|label|trace)[_\-. ]?$"
)
_SUFFIX = (
    r"(?i)(?:[_\-. ]?(?:\d{1,3}|prod|production|dev|development|test|testing|stage|staging|live|qa|uat|local|root|admin"
    r"|main|old|new|current|default|primary|secondary|backup|value|val|string|str|text|plain|plaintext|raw|b64|base64|clear"
    r"|confirm|confirmation|again|hash)(?![a-z]))*"
    r"(?![A-Za-z0-9_])(?![\-.][A-Za-z])"
)
_PAREN = r"(?:[ \t]{0,4}[(（][^()（）\n]{0,40}[)）])?"
_SEPARATOR = (
    r"(?i)(?P<q>\\{0,3}[\"'`])?[\])]{0,2}(?:[*_~`]{1,3})?" + _PAREN + r"(?:"
    r"(?P<typed>[?!]?[ \t]{0,8}:[ \t]{0,8}(?:[&*]|\[\])?[A-Za-z_][\w.]{0,30}"
    r"(?:[<\[][\w.,<>\[\]| ?&*]{0,40}[>\]])?[?]?(?: ?\| ?\w{1,20})?[ \t]{0,8}=(?![=>~]))"
    r"|(?P<arrow>[ \t]{0,20}(?:=>|->|==={0,1}))"
    r"|(?P<eq>[ \t]{0,20}(?::=|[?+|]?=(?![=~])|＝))"
    r"|(?P<pair>[\"'`]?[ \t]{0,8}[,;]?[ \t]{0,8}(?:\\?[rn]|\r?\n[ \t]{0,40})?\\{0,3}[\"'`]?value\\{0,3}[\"'`]?[ \t]{0,8}[:=])"
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
_OPEN = r"(?:[bfru]{0,2}|@|\$)(\\{0,7})(\"\"\"|'''|[\"'`“‘「『])"
_CLOSE = {"“": "”", "‘": "’", "「": "」", "『": "』"}
# A bare value ends at white space, at Chinese text, and where punctuation belongs to what surrounds it.
_BARE = (
    r"(?:[^\s\"'`<>&;,|\\\u2018-\u201f\u3000-\u303f\u4e00-\u9fff\uff00-\uff20\uff3b-\uff65]"
    r"|[\"'`](?=[\w$!@#%^&*])|<(?![/A-Za-z!])|>(?![\s<]|$)|&(?!amp;|\w{1,40}=)|[;,](?![\s\"'`\])}]|$|[\w.\- ]{1,40}[=:]|\\[nr])"
    r"|\|(?![\s|]|$)|\\(?![nrt\"'`]|u00)|\\[nrt](?=[a-z0-9]{0,3}[A-Z0-9!@#$%]))"
)


def find_assigned(text: str, low: bytes, found: list[tuple[int, int]]) -> list[Span]:
    """Return the spans of values that a keyword marks, or that look random; `found` are the key-like runs."""
    return [*_keywords(text, low), *_chinese(text), *_entropy(text, found)]


def _keywords(text: str, low: bytes) -> Iterator[Span]:
    for stem, expression, strength, inside in _KEYWORDS:
        at = low.find(stem)
        while at >= 0:
            end = at + len(stem)
            match = compiled("(?i:" + expression + ")").match(text, at)
            if match:
                end = match.end()
                span = _after_keyword(text, low, at, end, strength, inside)
                if span:
                    yield span
                    end = max(end, span[1])
            at = low.find(stem, end)


def _after_keyword(text: str, low: bytes, at: int, end: int, strength: str, inside: bool) -> Span | None:
    suffix = compiled(_SUFFIX).match(text, end, min(len(text), end + 80))
    if suffix is None:
        return None
    before = low[max(0, at - 64) : at]
    name_at = at - (len(before) - len(before.rstrip(_NAME_BYTES)))
    left = text[name_at:at]
    hump = text[at].isupper() and left[-1:].islower()
    if not inside and left[-1:].isalpha() and not hump:
        return None
    if strength == WEAK:
        strength = _key_strength(text, left, at)
        if not strength:
            return None
    elif strength == MEDIUM and text[end - 1] in "sS" and low[at : at + 6] == b"tokens":
        return None
    kind = "password" if strength in (STRONG, "pin") else "secret"
    option = left.startswith("-") and text[name_at - 1 : name_at] in ("", " ", "\t", "\n", "\"", "'", "`", "(", "[", ",")
    return _value_after(text, suffix.end(), name_at, strength, kind, option)


def _key_strength(text: str, left: str, at: int) -> str:
    words = left if left else text[max(0, at - 20) : at]
    if compiled(_NOT_SECRET_KEYS).search(words):
        return ""
    if compiled(_KEY_OWNERS).search(words):
        return "secret"
    if left[-1:].isalpha() and not (text[at].isupper() and left[-1:].islower()):
        return ""
    return WEAK


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
    if how == "space" and option:
        how = "option"
    start = separator.end()
    below = compiled(_NEXT_LINE).match(text, start, min(len(text), start + 60))
    if below and how in ("colon", "eq", "typed", "tag", "option"):
        start = below.end()
        own = text[text.rfind("\n", max(0, name_at - 80), name_at) + 1 : name_at]
        deeper = len(below["indent"]) > len(own) - len(own.lstrip(" \t"))
        how = "deeper" if deeper else "below"
    elif start < len(text) and text[start] in "\r\n":
        return None
    found = _read(text, start)
    if found is None:
        return None
    first, last, quoted = found
    if _secret(text, first, last, quoted, strength, how):
        if not quoted and last - first >= _CAP:
            more = compiled(r"\S*").match(text, last)
            last = more.end() if more else last
        return first, last, kind
    return None


def _read(text: str, at: int) -> tuple[int, int, bool] | None:
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
        while last > 0 and not opening[1] and text[last - 1] == "\\" and text[last - 2] != "\\":
            last = text.find(close, last + 1, limit)
        if last < 0:
            last = limit
            while last > first and text[last - 1] in "\r\n \t":
                last -= 1
        return (first, last, True) if last > first else None
    bare = compiled(_BARE + f"{{1,{_CAP}}}").match(text, at)
    if bare is None:
        return None
    first, last = bare.span()
    value = bare[0]
    for opener, closer in ("()", "[]", "{}"):
        while value.endswith(closer) and value.count(closer) > value.count(opener):
            value = value[:-1].rstrip(".,;:")
    value = value.rstrip(".,;:")
    return (first, first + len(value), False) if value else None


_PATH = r"(?i)(?:https?|file|git|ssh)://|(?:~|\.{1,2})?/(?:[\w.\-]+/)+[\w.\-]*$|(?:~|\.{1,2})/[\w.\-]+$|[a-z]:\\\w"
_DIRECT = frozenset(("eq", "colon", "typed", "comma", "pair", "deeper", "below", "tag", "option"))


def _secret(text: str, first: int, last: int, quoted: bool, strength: str, how: str) -> bool:
    value = text[first:last]
    line_end = text.find("\n", last, last + 200)
    after = text[last : line_end if line_end >= 0 else last + 200]
    plain = value.strip().strip("*_.,;:!?()[]{}\"'`").lower()
    if placeholder(value) or plain in WORDS or (not plain and len(value) < 4):
        return False
    if not quoted and (how == "arrow" or code(value, after)):
        return False
    if compiled(_PATH).match(value):
        return False
    rest = after.strip()
    alone = not rest or rest[0] in ",;}])|#\"'`<&\\" or rest.startswith(("//", "--", "||"))
    if strength == "pin":
        return how in ("eq", "colon", "deeper") and compiled(r"\d{4,8}$").match(value) is not None
    if strength == WEAK:
        return how in _DIRECT and random_like(value, 16)
    if strength == "signature":
        digest = compiled(r"[0-9a-f]{32,}$").match(value) is not None
        return how in _DIRECT and not worded(value) and (random_like(value, 16) or digest)
    if strength == MEDIUM:
        return _medium(value, quoted, how)
    if " " in value:
        prose = any(word.strip(".,!?:;").lower() in WORDS for word in value.split())
        return quoted and strength == STRONG and not prose and how not in ("call", "space")
    if compiled(r"\d{1,3}[a-z]{0,2}$").match(value):
        return False
    if strength == "secret":
        if hexadecimal(value):
            return True
        several = len(compiled(r"[-_./:]").split(value)) > 1
        if worded(value) and (several or not alone or how not in ("eq", "typed", "option", "pair")):
            return False
        if how == "space" and not random_like(value, 16):
            return False
    return _strong(value, quoted, how, alone)


def _strong(value: str, quoted: bool, how: str, alone: bool) -> bool:
    if how in ("eq", "typed", "pair", "deeper"):
        return True
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
        return mixed(value) or (quoted and not worded(value)) or (quoted and alone)
    if how == "space":
        strict = compiled(r"(?=.*[a-z])(?=.*\d)(?=.*[A-Z!@#$%^&*+=?]).{6,}$").match(value) is not None
        return (quoted or strict) and mixed(value)
    return False


def _medium(value: str, quoted: bool, how: str) -> bool:
    if " " in value or worded(value) or how in ("space", "call", "bar", "arrow"):
        return how in ("space", "bar") and random_like(value, 20)
    if hexadecimal(value) or random_like(value, 16):
        return True
    if how in ("say", "comma"):
        return mixed(value) and len(value) >= 8
    digits = sum(c.isdigit() for c in value)
    if mixed(value) and len(value) >= 6 and digits >= 2 and digits < len(value):
        return True
    return (quoted or how == "eq") and len(value) >= 20 and not worded(value) and digits > 0


_CHINESE_STRONG = ("密码", "密碼", "口令", "通行码", "提取码", "访问码")
_CHINESE = (*_CHINESE_STRONG, "密钥", "密鑰", "金鑰", "令牌", "私钥", "私鑰", "授权码", "凭证", "凭据")
_CHINESE_AFTER = (
    r"[*_~`”’」』\"']{0,3}(?:[ \t]{0,4}[(（\[【][^()（）\n\[\]【】]{0,30}[)）\]】])?[*_~`]{0,3}[ \t]{0,8}"
    r"(?:(?P<sign>[：:=＝])|(?P<say>[\u4e00-\u9fff]{0,6}?(?:是|为|為|成|叫|用|到)(?:[ \t]{0,2}[：:])?))"
    r"[*_~]{0,3}[ \t\u3000]{0,8}(?:\r?\n[ \t]{0,8})?"
)


def _chinese(text: str) -> Iterator[Span]:
    if text.isascii():
        return
    for word in _CHINESE:
        strength = STRONG if word in _CHINESE_STRONG else MEDIUM
        at = text.find(word)
        while at >= 0:
            end = at + len(word)
            match = compiled(_CHINESE_AFTER).match(text, end, min(len(text), end + 90))
            found = _read(text, match.end()) if match else None
            if match and found:
                first, last, quoted = found
                how = "say" if not match["sign"] else "eq" if strength == STRONG else "colon"
                if _chinese_secret(text, first, last, quoted, strength, how):
                    yield first, last, "password" if strength == STRONG else "secret"
                    end = last
            at = text.find(word, end)


def _chinese_secret(text: str, first: int, last: int, quoted: bool, strength: str, how: str) -> bool:
    value = text[first:last]
    if value[0] > "\u2e7f":
        return quoted and how == "eq" and not placeholder(value)
    if value.isdigit() and len(value) < 4:
        return False
    return _secret(text, first, last, quoted, strength, how)


_BEFORE = r"([A-Za-z_$][\w.\-$]{0,60})\\{0,3}[\"'`\])]{0,3}[ \t]{0,8}(?::=|=>?|:|：|＝)[ \t]{0,8}[bfru]?\\{0,3}[\"'`]?$"
_NOT_SECRET_NAMES = (
    r"(?i)(?:^|[_\-.]|(?<=[a-z])(?=[A-Z]))(?:u?u?id|ids|guid|hash|sha\d*|md5|digest|checksum|etag|integrity|fingerprint|commit|rev|revision|ref|oid|tree"
    r"|parent|blob|version|url|uri|href|src|path|file|filename|name|image|img|icon|logo|photo|picture|avatar|data|content|body|text|title|model|branch"
    r"|tag|cursor|nonce|class|address|addr|txid|tx|block|cid|resource|arn|host|hostname|email|user|slug|pubkey|key|cert|certificate|request|trace|span"
    r"|prompt|device|build|snapshot|container|layer|job|run|task|thread|message|msg|query|next|page|state|challenge|verifier|issuer|sub|link|anchor)$"
)


def _entropy(text: str, found: list[tuple[int, int]]) -> Iterator[Span]:
    """Values of 20 to 200 characters that look random and are assigned to a name of any kind."""
    for first, last in found:
        if not 20 <= last - first <= 200 or text[first - 1 : first] not in ("=", ":", " ", "\t", '"', "'", "`", "：", "＝"):
            continue
        name = compiled(_BEFORE).search(text, max(0, first - 90), first)
        if name is None or compiled(_NOT_SECRET_NAMES).search(name[1]):
            continue
        if name.start() and text[name.start() - 1] in "?&":
            continue
        value = text[first:last].rstrip(".")
        kinds = {0 if c.isdigit() else 1 if c.isupper() else 2 for c in value if c.isalnum()}
        if len(kinds) == 3 and random_like(value):
            tail = compiled(r"={0,2}").match(text, last)
            yield first, tail.end() if tail and value == text[first:last] else first + len(value), "secret"
