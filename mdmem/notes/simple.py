"""Reads the blocks that most notes have, line by line, without loading YAML.

It accepts only lines whose meaning no YAML reader disputes and gives up (None) on everything else;
a property test holds it to the exact result of the YAML reader.
"""

from __future__ import annotations

import re

from mdmem.notes.values import FORBIDDEN, Value

# A first character that starts nothing special, then no `: `, no ` #`, no colon at the end, no tab.
_PLAIN = r"[^\s\-?:,\[\]{}#&*!|>'\"%@`~=<\\\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
_TEXT = rf"{_PLAIN}(?:[^\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]*)"
_DOUBLE = r"\"[^\"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]*\""
_SINGLE = r"'[^'\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]*'"
# Blanks at the end are part of _TEXT: a pattern that could split them in many ways would take for ever to fail.
_SCALAR = rf"(?:{_TEXT}|(?:{_DOUBLE}|{_SINGLE}) *)"
_LINE = re.compile(
    rf"(?P<indent> *)(?:- +(?P<item>{_SCALAR})|"
    rf"(?P<key>[A-Za-z_][A-Za-z0-9_-]{{0,99}}):(?: +(?P<value>{_SCALAR}|\[\] *)| *))\Z"
)

_COMMENT_BAD = re.compile(FORBIDDEN.pattern + "|\r")


def _scalar(text: str) -> str | None:
    """Return the value of a scalar as _SCALAR matched it, or None when only YAML can tell."""
    text = text.rstrip(" ")
    if text[0] in "\"'":
        return text[1:-1]
    if ": " in text or " #" in text or text[-1] == ":":
        return None
    return text


def read_simple(block: str) -> dict[str, Value] | None:
    """Return the fields of a simple block, or None: not simple, or not valid."""
    fields: dict[str, Value] = {}
    parent = ""  # the last top-level key that had no value yet
    items: list[Value] | None = None
    nested: dict[str, Value] | None = None
    indent = -1
    for line in block.split("\n"):
        if line.endswith("\r"):
            line = line[:-1]
        if not line:
            continue
        if line[0] == "#" and not _COMMENT_BAD.search(line):
            continue
        found = _LINE.match(line)
        if found is None:
            return None
        column = len(found["indent"])
        key = found["key"]
        if key is not None and column == 0:
            if key in fields:
                return None
            items = nested = None
            parent = ""
            text = found["value"]
            if text is None:
                fields[key] = ""
                parent = key
            elif text[0] == "[":
                fields[key] = []
            else:
                value = _scalar(text)
                if value is None:
                    return None
                fields[key] = value
            continue
        if not parent:
            return None
        if items is None and nested is None:
            indent = column
        elif column != indent:
            return None
        if key is None:
            if nested is not None:
                return None
            if items is None:
                items = []
                fields[parent] = items
            value = _scalar(found["item"])
            if value is None:
                return None
            items.append(value)
            continue
        if items is not None:
            return None
        if nested is None:
            nested = {}
            fields[parent] = nested
        if key in nested:
            return None
        text = found["value"]
        value = "" if text is None else None if text[0] == "[" else _scalar(text)
        if value is None:
            return None
        nested[key] = value
    return fields
