"""Secrets that a Chinese keyword names: 密码：…, 口令是…, 密钥=…, and the word for password in some other languages.

The value is read and judged as in English text."""

from __future__ import annotations

from collections.abc import Iterator

from mdmem.notes.secret_shapes import Span, compiled
from mdmem.notes.secret_values import MEDIUM, STRONG, is_secret, read_value
from mdmem.notes.secret_words import placeholder

_STRONG = ("密码", "密碼", "口令", "通行码", "提取码", "访问码", "验证码", "パスワード", "비밀번호", "contraseña")
# One character to look for, the keywords that it ends or begins.
_KEYWORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("码", ("密码", "通行码", "提取码", "访问码", "授权码", "验证码")),
    ("碼", ("密碼", "授權碼")),
    ("令", ("口令", "令牌")),
    ("钥", ("密钥", "私钥")),
    ("鑰", ("密鑰", "金鑰", "私鑰")),
    ("凭", ("凭证", "凭据")),
    ("ド", ("パスワード",)),
    ("호", ("비밀번호",)),
    ("ñ", ("contraseña",)),
)
_AFTER = (
    r"[*_~`”’」』\"']{0,3}(?:[ \t]{0,4}[(（\[【][^()（）\n\[\]【】]{0,30}[)）\]】])?[*_~`]{0,3}[ \t]{0,8}"
    r"(?:(?P<sign>[：:=＝])|(?P<bare>(?=[ \t]?[!-~]))"
    r"|(?P<say>[\u4e00-\u9fff]{0,6}?(?:是|为|為|成|叫|用|到)了?(?:[ \t]{0,2}[：:])?))"
    r"[*_~]{0,3}[ \t\u3000]{0,8}(?:\r?\n[ \t]{0,8})?"
)


def find_chinese(text: str) -> Iterator[Span]:
    """Yield the spans of values after a Chinese keyword."""
    if text.isascii():
        return
    for character, words in _KEYWORDS:
        at = text.find(character)
        while at >= 0:
            end = at + 1
            for word in words:
                first = at - word.index(character)
                if text.startswith(word, first):
                    strength = STRONG if word in _STRONG else MEDIUM
                    span = _after_chinese(text, first + len(word), strength)
                    if span:
                        yield span
                        end = max(end, span[1])
                    break
            at = text.find(character, end)


def _after_chinese(text: str, at: int, strength: str) -> Span | None:
    match = compiled(_AFTER).match(text, at, min(len(text), at + 90))
    found = read_value(text, match.end()) if match else None
    if match is None or found is None:
        return None
    first, last, quoted = found
    how = "space" if match["bare"] is not None else "say" if not match["sign"] else "eq" if strength == STRONG else "colon"
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
