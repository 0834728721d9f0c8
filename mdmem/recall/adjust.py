"""What age and standing do to a score. Pure: facts of the catalog and the time come in, factors go out."""

from __future__ import annotations

from datetime import datetime

from mdmem.clock import read_stamp, seconds
from mdmem.errors import UsageError

DAY = 86400.0
# How much of its score a note keeps however old it is.
FAST_FLOOR = 0.7
SLOW_FLOOR = 0.9
FAST_TYPES = frozenset({"event", "context", "session"})
# A log of a session mentions much and states little: a fact of its own wins when both fit.
SESSION_WEIGHT = 0.9


def window_days(setting: str) -> float | None:
    """Return the decay window in days from a setting such as `45d`; None for `off`. Raises UsageError."""
    if setting.strip().lower() in ("off", "none", "no", "0", "false"):
        return None
    try:
        days = seconds(setting) / DAY
    except UsageError:
        days = 0.0
    if days <= 0:
        raise UsageError(f"recall.decay_window is {setting!r}", hint="mdmem config set recall.decay_window 45d, or off")
    return days


def floor_of(kind: str, type_: str, tier: str, pinned: bool) -> float:
    """Return f, the share of its score that a note never loses: 1 for pinned and core ones, 0.7 for event, context
    and session, else 0.9."""
    if pinned or tier == "core":
        return 1.0
    if kind == "session" or type_ in FAST_TYPES:
        return FAST_FLOOR
    return SLOW_FLOOR


def decay(age_days: float, window: float | None, floor: float) -> float:
    """Return f + (1 − f)·2^(−age/window), from 1 for a new note down to f; an age below zero counts as zero."""
    if window is None:
        return 1.0
    exponent = max(0.0, age_days) / window
    return floor + (1.0 - floor) * (2.0**-exponent if exponent < 1000 else 0.0)


def age_in_days(updated: str, now: datetime) -> float:
    """Return how many days ago the last change was; 0 for a date that cannot be read."""
    moment = read_stamp(updated)
    return (now - moment).total_seconds() / DAY if moment else 0.0


def kind_weight(kind: str, asked: bool) -> float:
    """Return the factor of a kind; `asked`: the caller named the kinds, so that none is put back."""
    return SESSION_WEIGHT if kind == "session" and not asked else 1.0
