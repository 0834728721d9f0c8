"""How many examples a property test draws: its own number, or a thousand where `MDMEM_TEST_PROFILE=search` looks for faults."""

from __future__ import annotations

import os

SEARCH = 1000
SEARCHING = os.environ.get("MDMEM_TEST_PROFILE") == "search"


def examples(number: int) -> int:
    """Return `number`, or SEARCH where that is more and the run is one that searches."""
    return max(number, SEARCH) if SEARCHING else number
