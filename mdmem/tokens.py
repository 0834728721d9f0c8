"""The one way that mdmem counts tokens."""

from __future__ import annotations


def count_tokens(text: str) -> int:
    """Return an estimate in tokens: ASCII characters / 4 (rounded up) + every other character."""
    ascii_count = len(text.encode("ascii", "ignore"))
    return -(-ascii_count // 4) + len(text) - ascii_count
