"""JSON for processes of some milliseconds: the C core of the standard library without its Python layer.

`import json` also brings `re`, `enum` and `functools`, which costs a hook as much as a whole start of Python. Texts and
results are the same as those of `json.loads` and of `json.dumps` with `separators=(",", ":")`; where there is no C core, and
for what it cannot do, `json` itself is used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    from _json import encode_basestring_ascii as _quoted
    from _json import make_scanner as _make_scanner
except ImportError:  # pragma: no cover - another Python than CPython
    _make_scanner = None  # type: ignore[assignment,misc]


class _Plain:
    """What the C scanner reads its settings from: those of `json.loads`."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.__getitem__

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


def loads(data: bytes | str) -> Any:
    """Return the value in a JSON text (bytes: UTF-8, with or without a BOM). Raises ValueError or RecursionError."""
    text = data if isinstance(data, str) else _text(data)
    if _make_scanner is not None:
        stripped = text.strip(" \t\n\r")
        try:
            value, end = _make_scanner(_Plain())(stripped, 0)  # type: ignore[arg-type]
        except StopIteration:
            raise ValueError("not a JSON text") from None
        if end != len(stripped):
            raise ValueError("something follows the JSON text")
        return value
    import json  # pragma: no cover

    return json.loads(text)  # pragma: no cover


def _text(data: bytes) -> str:
    return (data[3:] if data.startswith(b"\xef\xbb\xbf") else data).decode("utf-8", "replace")


def dumps(value: Any) -> str:
    """Return a value as JSON in ASCII on one line. Raises TypeError, ValueError or RecursionError."""
    if _make_scanner is not None:
        kind = type(value)
        if kind is str:
            return _quoted(value)
        if value is None:
            return "null"
        if kind is bool:
            return "true" if value else "false"
        if kind is int or (kind is float and value == value and value not in (float("inf"), float("-inf"))):
            return repr(value)
        if kind is dict and all(type(key) is str for key in value):
            return "{" + ",".join([f"{_quoted(key)}:{dumps(inner)}" for key, inner in value.items()]) + "}"
        if kind is list or kind is tuple:
            return "[" + ",".join([dumps(inner) for inner in value]) + "]"
    import json

    return json.dumps(value, separators=(",", ":"))
