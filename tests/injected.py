"""How often the tests of faults injected what, over all processes of a run: told at its end."""

from __future__ import annotations

from collections import Counter

counts: Counter[str] = Counter()


def count(what: str, number: int = 1) -> None:
    """Account something that was injected."""
    counts[what] += number
