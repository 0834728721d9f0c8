"""Decay and kind weights."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from mdmem.errors import UsageError
from mdmem.memory import lifecycle
from mdmem.recall.adjust import age_in_days, decay, fading, floor_of, kind_weight, window_days

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


def row(**fields: Any) -> dict[str, Any]:
    made = {"kind": "memory", "type": "event", "tier": "", "pinned": 0, "importance": None, "updated": "2026-09-01T00:00:00Z"}
    return made | fields


def test_recall_and_pruning_have_one_curve() -> None:
    """What recall takes from a note is what its strength has lost, above the floor of its type."""
    curve = lifecycle.Curve("weibull", 45.0)
    for fields in ({}, {"tier": "peripheral"}, {"importance": 0.9}, {"type": "fact", "importance": 0.1}, {"kind": "session"}):
        given = row(**fields)
        facts = lifecycle.Facts(
            90.0, given["kind"], given["type"], given["tier"] or "working", given["importance"] or lifecycle.DEFAULT_IMPORTANCE
        )
        floor = floor_of(given["kind"], given["type"], given["tier"], False)
        assert fading(given, NOW, curve) == pytest.approx(floor + (1 - floor) * lifecycle.strength(facts, curve))


def test_importance_and_use_slow_the_fall_and_the_tier_shapes_it() -> None:
    weibull, exponential = lifecycle.Curve("weibull", 45.0), lifecycle.Curve("exponential", 45.0)
    plain = fading(row(), NOW, weibull)
    assert fading(row(importance=0.9), NOW, weibull) > plain > fading(row(importance=0.1), NOW, weibull)
    assert fading(row(), NOW, weibull, {"used": 8, "last": "2026-11-29T00:00:00Z"}) > plain
    # λ is about 95 days: young peripheral notes fall less, old ones more.
    old = {"updated": "2025-01-01"}
    assert fading(row(tier="peripheral"), NOW, weibull) > plain
    assert fading(row(tier="peripheral", **old), NOW, weibull) < fading(row(**old), NOW, weibull) < plain
    assert fading(row(tier="peripheral"), NOW, exponential) == fading(row(), NOW, exponential) == plain


@pytest.mark.parametrize(
    "fields",
    [{"type": "decision"}, {"type": "preference"}, {"kind": "entity"}, {"kind": "note"}, {"pinned": 1}, {"tier": "core"}],
)
def test_what_is_looked_up_does_not_fade(fields: dict[str, Any]) -> None:
    assert fading(row(updated="2001-01-01", **fields), NOW, lifecycle.Curve("weibull", 45.0)) == 1.0


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
