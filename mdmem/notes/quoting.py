"""Writes values as YAML: read back exactly by our reader, and not changed by a YAML 1.1 reader.

Obsidian, VS Code and scripts re-write what they read, so a text that they would take for a
number, a time or a truth value is quoted when their form of it differs from what was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mdmem.clock import read_stamp
from mdmem.errors import BadNote
from mdmem.notes.values import FORBIDDEN, Given, Value

_FIRST = frozenset("-?:,[]{}#&*!|>'\"%@`~=<\\")
_WORDS = frozenset(("null", "y", "n", "yes", "no", "on", "off", ".nan", ".inf", "+.inf", "true", "false"))
# Numbers that print as they are written: those may stay plain.
_STEADY = re.compile(r"(?:0|[1-9]\d{0,14}|0\.\d{0,14}[1-9]|[1-9]\d{0,9}\.\d{0,5}[1-9])\Z", re.A)
_NUMBER = re.compile(r"[-+]?[.\d][\d_.,:]*(?:[eE][-+]?\d*)?\Z|0[xob][0-9a-fA-F_]+\Z", re.A)
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt ].*)?\Z", re.A)
_KEY = re.compile(r"[A-Za-z_][\w .-]*\Z", re.A)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def check(text: str) -> str:
    """Return text unchanged; raises BadNote when it holds a character that no value may hold."""
    found = FORBIDDEN.search(text)
    if found:
        raise BadNote(
            "this text cannot be a field",
            why=f"it holds the character U+{ord(found[0]):04X}",
            hint="take the character out",
            code="control_character",
        )
    return text


def may_be_plain(text: str, flow: bool = False) -> bool:
    """Tell whether text can stand without quotes and mean itself to every reader."""
    if not text or text[0] in _FIRST or text != text.strip():
        return False
    if "\n" in text or "\r" in text or "\t" in text or ": " in text or " #" in text or text[-1] == ":":
        return False
    if flow and any(mark in text for mark in ",[]{}:?"):
        return False
    if text in ("true", "false"):
        return True
    if text.lower() in _WORDS or text.startswith(("---", "...")):
        return False
    if _DATE.match(text):
        return read_stamp(text) is not None  # many YAML readers stop at a date that does not exist
    return not _NUMBER.match(text) or bool(_STEADY.match(text))


def scalar(text: str, style: str = "", flow: bool = False) -> str:
    """Return text as a one-line scalar, in the wanted style (`"`, `'` or plain) where that can hold it."""
    check(text)
    if style not in ("'", '"') and may_be_plain(text, flow):
        return text
    single_line = not any(mark in text for mark in "\n\r\t")
    if single_line and (style == "'" or (style != '"' and ('"' in text or "\\" in text) and "'" not in text)):
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(_ESCAPES.get(char, char) for char in text) + '"'


def key(text: str, flow: bool = False) -> str:
    """Return text as a key."""
    plain = _KEY.match(text) and text.lower() not in _WORDS and may_be_plain(text, flow)
    return text if plain else scalar(text, '"', flow)


def inline(value: Given, flow: bool = True) -> str:
    """Return any value on one line, lists and maps in flow form."""
    if isinstance(value, str):
        return scalar(value, flow=flow)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key(str(name), True)}: {inline(item)}" for name, item in value.items()) + "}"
    inner = ", ".join(inline(item) for item in value)
    return f"[ {inner} ]" if inner.startswith("[") else f"[{inner}]"  # [[a]] would be read as a wikilink


def literal(text: str) -> tuple[str, list[str]] | None:
    """Return header and lines (not indented) of a literal block, or None when one cannot hold the text."""
    if "\n" not in text or "\r" in text or text[0] in " \t\n":
        return None
    body = text.removesuffix("\n")
    lines = body.split("\n")
    if not lines[-1] or any(line and not line.strip() for line in lines):
        return None
    return ("|" if body != text else "|-"), lines


def entry(name: str, value: Given, indent: int = 0) -> list[str]:
    """Return the lines of `name: value`: one key a line, one list item a line."""
    return _lines(" " * indent + key(name) + ":", value, indent)


def item(value: Given, indent: int) -> list[str]:
    """Return the lines of one list item whose dash stands at column `indent`."""
    if isinstance(value, str):
        return _lines(" " * indent + "-", value, indent)
    if not value or not isinstance(value, Mapping):
        # A list in a list is rare and reads better on one line.
        return [" " * indent + "- " + inline(value)]
    lines = [line for name, part in value.items() for line in entry(str(name), part, indent + 2)]
    return [" " * indent + "- " + lines[0][indent + 2 :], *lines[1:]]


def _lines(head: str, value: Given, indent: int) -> list[str]:
    if isinstance(value, str):
        block = literal(check(value))
        if block:
            pad = " " * (indent + 2)
            return [f"{head} {block[0]}", *(pad + line if line else "" for line in block[1])]
        return [f"{head} {scalar(value)}"]
    if not value:
        return [f"{head} {inline(value)}"]
    if isinstance(value, Mapping):
        return [head, *(line for name, part in value.items() for line in entry(str(name), part, indent + 2))]
    return [head, *(line for part in value for line in item(part, indent + 2))]


def as_value(value: Given) -> Value:
    """Return a given value as it will be read back; raises BadNote on a forbidden character."""
    if isinstance(value, str):
        return check(value)
    if isinstance(value, Mapping):
        return {check(str(name)): as_value(part) for name, part in value.items()}
    return [as_value(part) for part in value]
