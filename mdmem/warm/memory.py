"""How the warm process keeps its memory small: what a large store takes for a moment is given back to the system.

GNU's C library gives each thread a heap of its own and keeps what was freed there: a process that answers each request in
a new thread, and now and then reads the rows of a hundred thousand notes, then holds what nobody uses. Elsewhere nothing
of this is there, and nothing is done."""

from __future__ import annotations

from typing import Any

# Parameters of mallopt.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
# A block of so many bytes is mapped by itself and goes back when it is freed; so much that was freed at the end of a heap
# stays. What one search takes is below both, also among a hundred thousand windows: fetching that anew each time would cost
# more than it gives.
LARGE, SLACK = 4 << 20, 16 << 20
HEAPS = 2


def sparing() -> None:
    """Have the C library keep little of what is freed. To be called before the first thread is started."""
    mallopt = _of_libc("mallopt")
    if mallopt is not None:
        for name, value in ((_ARENA_MAX, HEAPS), (_MMAP_THRESHOLD, LARGE), (_TRIM_THRESHOLD, SLACK)):
            mallopt(name, value)


def trim() -> None:
    """Give freed memory back to the system."""
    malloc_trim = _of_libc("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


def _of_libc(name: str) -> Any:
    try:
        import ctypes

        return getattr(ctypes.CDLL(None), name)
    except (ImportError, OSError, AttributeError, TypeError):
        return None  # another C library than GNU's
