"""What age and standing do to a score. Pure: facts of the catalog and the time come in, factors go out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from sqlite3 import Row
from typing import Any

from mdmem.clock import read_stamp, seconds
from mdmem.errors import UsageError
from mdmem.memory import lifecycle

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
    return floor + (1.0 - floor) * lifecycle.fallen(age_days, window)


def fading(row: Row | Mapping[str, Any], now: datetime, curve: lifecycle.Curve, use: Mapping[str, Any] | None = None) -> float:
    """Return what age leaves of a note's score: f + (1 − f)·strength, the strength that also decides about tiers and pruning.

    `row`: of the catalog; `use`: {used, last} of it on this device."""
    tier, pinned = row["tier"] or "", bool(row["pinned"])
    floor = floor_of(row["kind"] or "", row["type"] or "", tier, pinned)
    if floor == 1.0:
        return 1.0
    importance, last = row["importance"], str((use or {}).get("last", ""))
    used = (use or {}).get("used", 0)
    facts = lifecycle.Facts(
        age=age_in_days(row["updated"] or "", now),
        kind=row["kind"] or "",
        type=row["type"] or "",
        tier=tier if tier in lifecycle.BETA else lifecycle.WORKING,
        importance=lifecycle.DEFAULT_IMPORTANCE if importance is None else min(1.0, max(0.0, float(importance))),
        used=used if isinstance(used, int) else 0,
        rested=age_in_days(last, now) if last else 0.0,
        pinned=pinned,
    )
    return floor + (1.0 - floor) * lifecycle.strength(facts, curve)


def age_in_days(updated: str, now: datetime) -> float:
    """Return how many days ago the last change was; 0 for a date that cannot be read."""
    moment = read_stamp(updated)
    return (now - moment).total_seconds() / DAY if moment else 0.0


def kind_weight(kind: str, asked: bool) -> float:
    """Return the factor of a kind; `asked`: the caller named the kinds, so that none is put back."""
    return SESSION_WEIGHT if kind == "session" and not asked else 1.0
