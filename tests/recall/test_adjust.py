"""Decay and kind weights."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from mdmem.errors import UsageError
from mdmem.recall.adjust import age_in_days, decay, floor_of, kind_weight, window_days

NOW = datetime(2026, 11, 30, tzinfo=timezone.utc)


def test_decay_halves_the_part_above_the_floor_each_window() -> None:
    assert decay(0, 45, 0.7) == 1.0
    assert decay(45, 45, 0.7) == pytest.approx(0.85)
    assert decay(90, 45, 0.9) == pytest.approx(0.925)
    assert decay(1e9, 45, 0.7) == pytest.approx(0.7)


def test_an_old_note_keeps_its_floor_and_a_date_in_the_future_gains_nothing() -> None:
    assert decay(-400, 45, 0.7) == 1.0
    assert all(decay(age, 45, 0.9) >= 0.9 for age in (0, 10, 1e4, 1e12))


def test_decay_off() -> None:
    assert window_days("off") is None
    assert decay(10_000, None, 0.7) == 1.0
    assert window_days("45d") == 45.0


@pytest.mark.parametrize("bad", ["soon", "-3d", "0d", ""])
def test_a_window_that_is_none(bad: str) -> None:
    with pytest.raises(UsageError):
        window_days(bad)


@pytest.mark.parametrize(
    ("kind", "type_", "tier", "pinned", "floor"),
    [
        ("memory", "event", "", False, 0.7),
        ("memory", "context", "", False, 0.7),
        ("session", "", "", False, 0.7),
        ("memory", "decision", "", False, 0.9),
        ("note", "", "", False, 0.9),
        ("memory", "event", "core", False, 1.0),
        ("memory", "event", "", True, 1.0),
    ],
)
def test_floor_by_type_tier_and_pin(kind: str, type_: str, tier: str, pinned: bool, floor: float) -> None:
    assert floor_of(kind, type_, tier, pinned) == floor


def test_age_counts_from_the_last_change() -> None:
    assert age_in_days("2026-11-20T00:00:00Z", NOW) == 10.0
    assert age_in_days("2026-11-20", NOW) == 10.0
    assert age_in_days("2026-02-30", NOW) == 0.0


def test_sessions_weigh_less_unless_asked_for() -> None:
    assert kind_weight("session", asked=False) < 1.0 == kind_weight("session", asked=True) == kind_weight("memory", asked=False)
