"""Joining the word stream and the meaning stream into one score per note. Pure; no cut-off anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Key = TypeVar("Key")

RRF_K = 60
# What the cosines of a question spread over in a store of hundreds of notes, and from how many candidates on they show it.
SPAN, FEW = 0.1, 20


def scaled(scores: Mapping[Key, float], floor: float | None = None) -> dict[Key, float]:
    """Return the scores mapped to 0…1: `floor` (or the lowest score) gives 0, the highest 1, below the floor 0.

    Where all are equal each is a full match: 1."""
    if not scores:
        return {}
    high = max(scores.values())
    low = min(scores.values()) if floor is None else floor
    span = high - low
    if span <= 0:
        return dict.fromkeys(scores, 1.0)
    return {key: max(0.0, (score - low) / span) for key, score in scores.items()}


def near_scaled(meaning: Mapping[Key, float]) -> dict[Key, float]:
    """Return cosines mapped to 0…1 over their candidates. Of a few candidates the lowest does not show how low cosines get:
    two notes at 0.82 and 0.80 are both near, not the best and the worst there is; the span is then at least SPAN."""
    if not meaning or len(meaning) >= FEW:
        return scaled(meaning)
    return scaled(meaning, min(min(meaning.values()), max(meaning.values()) - SPAN))


def minmax(words: Mapping[Key, float], meaning: Mapping[Key, float], weight: float = 0.5) -> dict[Key, float]:
    """Return weight·words + (1 − weight)·meaning, each scaled to 0…1 over its own candidates; a note that one
    stream did not find has 0 there. BM25 is scaled from 0, since no shared word is a true zero; cosines, which
    a model squeezes into a narrow band, from the lowest one. Weights 0 and 1 keep one stream's order."""
    left, right = scaled(words, 0.0), scaled(meaning)
    return {
        key: weight * left.get(key, 0.0) + (1.0 - weight) * right.get(key, 0.0) for key in dict.fromkeys([*words, *meaning])
    }


def rrf(words: Mapping[Key, float], meaning: Mapping[Key, float], k: int = RRF_K) -> dict[Key, float]:
    """Return Σ (k + 1) / (k + rank) over the streams, halved: reciprocal rank fusion (Cormack et al. 2009) scaled
    so that first in both gives 1. Equal scores share the better rank."""
    fused: dict[Key, float] = dict.fromkeys([*words, *meaning], 0.0)
    for stream in (words, meaning):
        for key, rank in ranks(stream).items():
            fused[key] += (k + 1) / (k + rank) / 2
    return fused


def ranks(scores: Mapping[Key, float]) -> dict[Key, int]:
    """Return the rank of each key, the best 1; equal scores share a rank."""
    out: dict[Key, int] = {}
    rank = 0
    last: float | None = None
    for place, (key, score) in enumerate(sorted(scores.items(), key=lambda item: -item[1]), start=1):
        if score != last:
            rank, last = place, score
        out[key] = rank
    return out
