"""Bounds of time on a machine that others use as well: what takes a process must not fail because nothing gets a processor."""

from __future__ import annotations

import subprocess
import sys
import time

# Seconds that a bare Python takes to start on a machine that has nothing else to do.
QUIET = 0.05


def slowness() -> float:
    """Return how many times longer than on a quiet machine a bare Python takes to start just now, at least 1."""
    took = []
    for _ in range(3):
        began = time.monotonic()
        subprocess.run([sys.executable, "-S", "-c", "pass"], check=True)
        took.append(time.monotonic() - began)
    return max(1.0, sorted(took)[1] / QUIET)


def within(began: float, seconds: float, what: object = "") -> None:
    """Assert that not more than `seconds` went by since `began` (time.monotonic), times slowness where they did."""
    took = time.monotonic() - began
    if took >= seconds:
        slow = slowness()
        told = f"{what}: {took:.1f} s; {seconds:g} are allowed where Python starts {slow:.1f} times as fast"
        assert took < seconds * slow, told
