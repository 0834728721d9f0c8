"""How a memory fades, and what lifts it to another tier."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mdmem.memory.lifecycle import CORE, LONGEST, PERIPHERAL, WORKING, Curve, Facts, half_life, retier, score, strength, tier_of

EVENT = Facts(age=0.0, type="event")


@pytest.mark.parametrize("tier", [CORE, WORKING, PERIPHERAL])
def test_the_half_life_is_one_for_every_beta(tier: str) -> None:
    facts = replace(EVENT, tier=tier)
    assert strength(facts) == 1.0
    assert strength(replace(facts, age=half_life(facts))) == pytest.approx(0.5)


def test_beta_bends_the_curve_by_tier() -> None:
    ages = half_life(EVENT) * 3, half_life(EVENT) / 3
    late = [strength(replace(EVENT, tier=tier, age=ages[0])) for tier in (CORE, WORKING, PERIPHERAL)]
    early = [strength(replace(EVENT, tier=tier, age=ages[1])) for tier in (CORE, WORKING, PERIPHERAL)]
    assert late[0] > late[1] > late[2]
    assert early[0] < early[1] < early[2]
    assert strength(replace(EVENT, tier=CORE, age=ages[0]), Curve("exponential")) == pytest.approx(0.125)


def test_importance_and_use_lengthen_the_half_life_up_to_a_limit() -> None:
    assert half_life(replace(EVENT, importance=1.0)) > half_life(EVENT) > half_life(replace(EVENT, importance=0.0)) == 30.0
    used = replace(EVENT, used=10)
    assert half_life(used) > half_life(replace(used, rested=90.0)) > half_life(EVENT)
    assert half_life(replace(EVENT, used=10**9)) == pytest.approx(LONGEST * half_life(EVENT))


@pytest.mark.parametrize(
    "facts", [Facts(1e6, type="preference"), Facts(1e6, type="decision"), Facts(1e6, kind="entity"), Facts(1e6, pinned=True)]
)
def test_what_is_looked_up_does_not_fade(facts: Facts) -> None:
    assert strength(facts) == 1.0


def test_numbers_out_of_range_give_numbers() -> None:
    assert strength(replace(EVENT, age=1e12)) == pytest.approx(0.0)
    assert strength(replace(EVENT, age=-5.0)) == 1.0
    assert 0.0 <= score(replace(EVENT, age=1e12, importance=0.0)) < 0.01


def test_tiers_rise_and_fall_one_step_and_not_back_at_once() -> None:
    low = Facts(age=5.0, type="fact", tier=PERIPHERAL, used=3, importance=0.6)
    assert tier_of(low) == WORKING
    assert tier_of(replace(low, used=2)) == PERIPHERAL
    # What rose stays up with the same facts: no note goes up and down.
    assert tier_of(replace(low, tier=WORKING)) == WORKING
    high = Facts(age=1.0, type="fact", tier=WORKING, used=20, importance=0.95, confidence=1.0)
    assert tier_of(high) == CORE and tier_of(replace(high, tier=CORE)) == CORE
    assert tier_of(replace(high, importance=0.7)) == WORKING
    old = Facts(age=61.0, type="event", tier=WORKING, used=2)
    assert tier_of(old) == PERIPHERAL
    assert tier_of(replace(old, used=3)) == WORKING
    assert tier_of(replace(old, type="preference")) == WORKING
    assert tier_of(Facts(age=900.0, type="event", tier=CORE, importance=0.1)) == WORKING


def test_core_has_a_limit_that_pinned_notes_do_not_count_against_falling() -> None:
    known = [(f"n{n:03}", Facts(age=1.0, tier=CORE, importance=n / 10, pinned=n == 0)) for n in range(6)]
    assert retier(known, most=3) == {"n001": WORKING, "n002": WORKING, "n003": WORKING}
    assert retier(known, most=6) == {}
    assert "n000" not in retier(known, most=0)
