"""What may change the order of what was found: standing, length, one voice of many, sameness. Pure: scores and vectors
come in, an order goes out. Each has its switch; docs/benchmarks.md says what each is worth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

# Use, score and importance decide a tier; the tier says how much is needed to come first (1: as found).
TIERS = {"core": 1.05, "working": 1.0, "peripheral": 0.9}
# Prior art: 0.6 + 0.8·w, which is 1 at the start (w = 0.5); here half of that, so that one rating turns no order over.
RATED, UNRATED = 0.4, 0.8
ANCHOR = 500  # characters up to which a note is short
SHORTEST = 0.3  # what the longest note keeps
PER_SESSION = 3
DEPTH = 20  # places that are looked at


def standing(tier: str, weight: float | None) -> float:
    """Return the factor of a note's tier and of its ratings on this device (`weight` 0…1, None: never rated)."""
    return TIERS.get(tier, 1.0) * (1.0 if weight is None else UNRATED + RATED * weight)


def length_factor(characters: int, anchor: int = ANCHOR) -> float:
    """Return 1 / (1 + 0.5·log2(max(length / anchor, 1))), never below SHORTEST (memory-lancedb-pro's formula)."""
    return max(SHORTEST, 1.0 / (1.0 + 0.5 * math.log2(max(characters / anchor, 1.0))))


def diverse(items: Sequence[T], group: Callable[[T], Hashable | None], most: int = PER_SESSION, depth: int = DEPTH) -> list[T]:
    """Return the items with at most `most` of one group among the first `depth`; those put back follow in their order
    before the rest, so that nothing is lost and a short list is filled up. None is no group."""
    head: list[T] = []
    back: list[T] = []
    counts: Counter[Hashable] = Counter()
    taken = 0
    for item in items:
        if len(head) == depth:
            break
        taken += 1
        key = group(item)
        if key is not None and counts[key] >= most:
            back.append(item)
            continue
        if key is not None:
            counts[key] += 1
        head.append(item)
    return [*head, *back, *items[taken:]]


def mmr(
    scores: Sequence[float], alike: Sequence[Sequence[float]], balance: float = 0.7, places: int | None = None
) -> list[int]:
    """Return the order of maximal marginal relevance (Carbonell and Goldstein 1998): next is the greatest
    balance·score − (1 − balance)·(likeness to the nearest one taken). `scores` fall; both are 0…1; ties: the earlier.
    `places`: only that many are chosen so, and the others follow in their order."""
    left = list(range(len(scores)))
    out: list[int] = []
    near = [0.0] * len(scores)
    while left and (places is None or len(out) < places):
        best = max(left, key=lambda place: (balance * scores[place] - (1.0 - balance) * near[place], -place))
        left.remove(best)
        out.append(best)
        for place in left:
            near[place] = max(near[place], alike[best][place])
    return out + left


def likeness(vectors: Sequence[Any]) -> list[list[float]]:
    """Return how alike each two vectors are, 0…1: their cosines scaled from the least to the greatest among them, since a
    model squeezes them into a narrow band. None (no vector yet) is like nothing."""
    import numpy as np

    known = [number for number, vector in enumerate(vectors) if vector is not None]
    out = [[0.0] * len(vectors) for _ in vectors]
    if len(known) < 2:
        return out
    matrix = np.stack([np.asarray(vectors[number], np.float64) for number in known])
    # Few and short: threads of a matrix product would take longer to begin than this.
    cosines = np.einsum("ik,jk->ij", matrix, matrix)
    apart = cosines[~np.eye(len(known), dtype=bool)]
    low, high = float(apart.min()), float(apart.max())
    if high <= low:
        return out
    scaled = np.round((cosines - low) / (high - low), 6)
    np.fill_diagonal(scaled, 0.0)
    for one, row in zip(known, scaled.tolist()):
        for other, value in zip(known, row):
            out[one][other] = value
    return out


def blended(prior: Mapping[T, float], judged: Mapping[T, float], share: float) -> dict[T, float]:
    """Return share·(judgement scaled to 0…1) + (1 − share)·(prior scaled to 0…1) for what was judged."""
    from mdmem.recall.fuse import scaled

    before = scaled({key: prior[key] for key in judged})
    after = scaled(judged)
    return {key: share * after[key] + (1.0 - share) * before[key] for key in judged}
