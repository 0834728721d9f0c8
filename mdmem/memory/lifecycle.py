"""How a memory fades and what keeps it: strength by age, a score of age, use and worth, and the tier that follows. Pure.

Formulas are those of memory-lancedb-pro and UltraMemory, with λ a true half-life for every β."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

CORE, WORKING, PERIPHERAL = "core", "working", "peripheral"
# β of the Weibull curve: below 1 the fall is steep at first and then slow, above 1 the other way round.
BETA = {CORE: 0.8, WORKING: 1.0, PERIPHERAL: 1.3}
HALF_LIFE = 30.0  # days, of a note of no importance that nobody used
LONGEST = 3.0  # times that use alone may lengthen it
FORGETS_USE = 30.0  # days in which what a use is worth halves
# What is looked up and not lived through keeps its strength however old it is.
LASTING_KINDS = frozenset({"entity", "note", "task", "message", "agent"})
LASTING_TYPES = frozenset({"profile", "preference", "procedure", "pattern", "decision"})
# From which use, score and importance on a note rises, and where it falls: apart, so that none goes up and down.
RISE_USE, RISE_SCORE = 3, 0.4
CORE_USE, CORE_SCORE, CORE_IMPORTANCE = 10, 0.7, 0.8
FALL_SCORE, FALL_AGE, FALL_USE = 0.15, 60.0, 3
CORE_AT_MOST = 100
DEFAULT_IMPORTANCE, DEFAULT_CONFIDENCE = 0.5, 0.7


@dataclass(frozen=True)
class Facts:
    """What is known of one note. Ages in days; `used`: how often it was cited; `rested`: days since then."""

    age: float
    kind: str = "memory"
    type: str = ""
    tier: str = WORKING
    importance: float = DEFAULT_IMPORTANCE
    confidence: float = DEFAULT_CONFIDENCE
    used: int = 0
    rested: float = 0.0
    pinned: bool = False

    @property
    def lasting(self) -> bool:
        """Whether its age takes nothing from it."""
        return self.pinned or self.kind in LASTING_KINDS or self.type in LASTING_TYPES


@dataclass(frozen=True)
class Curve:
    """How strength falls: `weibull` with β by tier, or `exponential` (β = 1), and the half-life in days to start from."""

    shape: str = "weibull"
    half_life: float = HALF_LIFE


def half_life(facts: Facts, curve: Curve | None = None) -> float:
    """Return λ in days: base·exp(1.5·importance), longer by 0.5·ln(1 + recent use), at most LONGEST times."""
    grown = (curve or Curve()).half_life * math.exp(1.5 * min(1.0, max(0.0, facts.importance)))
    recent = facts.used * 2.0 ** (-max(0.0, facts.rested) / FORGETS_USE)
    return min(LONGEST, 1.0 + 0.5 * math.log1p(recent)) * grown


def strength(facts: Facts, curve: Curve | None = None) -> float:
    """Return what age has left of a note, 1 to 0; all of it for what is lasting."""
    if facts.lasting:
        return 1.0
    curve = curve or Curve()
    beta = BETA.get(facts.tier, 1.0) if curve.shape == "weibull" else 1.0
    return fallen(facts.age, half_life(facts, curve), beta)


def fallen(age: float, half: float, beta: float = 1.0) -> float:
    """Return exp(−ln2·(t/λ)^β) of an age and a half-life in the same unit: ½ at t = λ for every β; an age below 0 is 0."""
    return math.exp(-math.log(2) * min(1e6, (max(0.0, age) / half) ** beta))


def frequency(facts: Facts) -> float:
    """Return how much a note is used, 0 to 1: 1 − exp(−n/5), less the longer it rests."""
    often = 1.0 - math.exp(-facts.used / 5.0)
    return often * (0.5 + 0.5 * math.exp(-max(0.0, facts.rested) / FORGETS_USE)) if facts.used > 1 else often


def score(facts: Facts, curve: Curve | None = None) -> float:
    """Return 0.4·strength + 0.3·frequency + 0.3·importance·confidence."""
    return 0.4 * strength(facts, curve) + 0.3 * frequency(facts) + 0.3 * facts.importance * facts.confidence


def tier_of(facts: Facts, curve: Curve | None = None) -> str:
    """Return the tier that a note's facts call for, seen from the one it has: one step up or down at most."""
    worth = score(facts, curve)
    if facts.tier == PERIPHERAL:
        return WORKING if facts.used >= RISE_USE and worth >= RISE_SCORE else PERIPHERAL
    if facts.tier == CORE:
        return WORKING if worth < FALL_SCORE and facts.used < FALL_USE else CORE
    if facts.used >= CORE_USE and worth >= CORE_SCORE and facts.importance >= CORE_IMPORTANCE:
        return CORE
    fading = not facts.lasting and facts.age > FALL_AGE and facts.used < FALL_USE
    return PERIPHERAL if worth < FALL_SCORE or fading else WORKING


def retier(known: Sequence[tuple[str, Facts]], most: int = CORE_AT_MOST, curve: Curve | None = None) -> dict[str, str]:
    """Return {key: new tier} of what changes. At most `most` are core: beyond it the pinned stay, then the best by score."""
    wanted = {key: tier_of(facts, curve) for key, facts in known}
    facts_of = dict(known)
    core = [key for key, tier in wanted.items() if tier == CORE]
    core.sort(key=lambda key: (not facts_of[key].pinned, -score(replace(facts_of[key], tier=CORE), curve), key))
    for key in core[most:]:
        if not facts_of[key].pinned:
            wanted[key] = WORKING
    return {key: tier for key, tier in wanted.items() if tier != facts_of[key].tier}
