"""From evidence to one score per note: fusion of the streams, then what words together, dates, age and kind add.

The weights were set by measurement (docs/benchmarks.md says how and what else was tried)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from mdmem.memory.feedback import ratings
from mdmem.memory.lifecycle import Curve
from mdmem.recall import adjust, fuse, talks
from mdmem.recall.query import Query
from mdmem.recall.speakers import answered_share
from mdmem.recall.streams import Candidate, Streams, window_rows, written
from mdmem.recall.when import closeness, distance
from mdmem.recall.words import labelled_share, pairs_of, phrase_share

Key = tuple[int, int]  # number of the store, rowid of the note

# Within the word stream: the best window's BM25 against the share of the question found anywhere in the note.
SHARE = 0.5
# Best share of the question that any note holds, from which on words count in full. Where hardly a word is found
# (another language, other words for the same thing) the best match by words is still a poor one.
TRUSTED = 0.6
# What a note in another language than the question's is credited with, of the best match by words.
FOREIGN = 0.4
# Beside the fused score of 0…1.
PHRASE = 0.15
SAID = 0.2
# In a conversation whose speaker the question names: what the speaker's lines count, with those that they answer, and how
# much of their weight the words keep beside a meaning that does without the name.
ANSWERS = 0.3
KEPT = 0.75
DATE = 0.4
# More for what was written on the very day that is named: what was said on 29 April is not found on the 28th.
DAY = 0.15
GRAPH = 0.1
# The text of this many notes that lead so far is read, for what only the text can tell.
READ = 20


@dataclass
class Ranked:
    """A candidate with its score and how it came about."""

    key: Key
    streams: Streams
    candidate: Candidate
    score: float
    steps: list[tuple[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """What the configuration says about ranking."""

    fusion: str
    weight: float
    window: float | None  # days of decay; None: off
    shape: str = "weibull"  # of decay
    conversations: bool = True  # whether notes of one conversation weigh in on each other


def rank(found: list[Streams], query: Query, settings: Settings, now: datetime) -> list[Ranked]:
    """Return every candidate of every store, best first; equal scores: later change first, then id, then path.

    Scores of words are scaled over all stores together, cosines are compared as they are."""
    pool = {(number, c.note): c for number, streams in enumerate(found) for c in streams.candidates}
    ranked = {key: Ranked(key, found[key[0]], candidate, 0.0) for key, candidate in pool.items()}
    base = _streams(pool, query, replace(settings, weight=word_weight(found, settings)))
    if query.plain:
        for key, score in base.items():
            ranked[key].score = score
    else:
        dates = {key: value for key, one in ranked.items() if (value := _near_date(one)) > 0}
        leading, texts = _leading(ranked, base, dates, query)
        total = _add(ranked, base, _extras(ranked, dates, query, leading, texts))
        if settings.conversations and query.mode == "hybrid":
            near = fuse.near_scaled({key: c.near for key, c in pool.items() if c.near is not None})
            talks.weigh(ranked, texts, near, total)
    asked = query.filters.kinds is not None
    curve = Curve(settings.shape, settings.window) if query.decay and settings.window is not None else None
    use = {} if curve is None else {number: ratings(streams.store) for number, streams in enumerate(found)}
    for one in ranked.values():
        _age(one, curve, use, asked, now, query.explain)
    if query.explain:
        _explain(ranked.values(), base, query)
    out: list[Ranked] = []
    for _, tied in groupby(sorted(ranked.values(), key=_score), key=_score):
        same = list(tied)
        out += same if len(same) == 1 else sorted(same, key=_tie)
    return out


def word_weight(found: Iterable[Streams], settings: Settings) -> float:
    """Return the share of the words in the sum of the two streams."""
    return settings.weight * (KEPT if any(streams.speakers for streams in found) else 1.0)


def _score(one: Ranked) -> float:
    return -one.score


def _tie(one: Ranked) -> tuple[tuple[int, ...], str, str]:
    row = one.candidate.row
    assert row is not None
    later = tuple(-ord(char) for char in row["updated"] or "")
    return (later, row["id"] or "", row["path"])


def _explain(ranked: Iterable[Ranked], base: Mapping[Key, float], query: Query) -> None:
    """Put what the streams found before the steps that followed."""
    for one in ranked:
        found: list[tuple[str, Any]] = []
        for name in ("bm25", "cosine"):
            value = getattr(one.candidate, name)
            if value is not None:
                found.append((name, round(value, 4)))
        if one.streams.level is not None and one.candidate.near is not None:
            found.append(("other language" if one.candidate.foreign else "near", round(one.candidate.near, 4)))
        if not query.plain:
            found.append(("share", round(one.candidate.share, 4)))
        found.append(("fused", round(base[one.key], 4)))
        one.steps[:0] = found


def _streams(pool: Mapping[Key, Candidate], query: Query, settings: Settings) -> dict[Key, float]:
    """Return the fused score of each candidate, 0…1 (plain `semantic`: the cosine)."""
    words = {key: c.bm25 for key, c in pool.items() if c.bm25 is not None}
    near = {key: c.near for key, c in pool.items() if c.near is not None}
    if query.mode == "semantic":
        base = dict(near) if query.plain else fuse.scaled(near)
    elif query.mode == "keyword" or not near:
        base = _worded(pool, words, query)
    elif settings.fusion == "rrf":
        base = fuse.rrf(words, near)
    elif query.plain:
        base = fuse.minmax(words, near, settings.weight)
    else:
        right = fuse.near_scaled(near)
        left = _translated(pool, _worded(pool, words, query), right)
        base = {key: settings.weight * left.get(key, 0.0) + (1 - settings.weight) * right.get(key, 0.0) for key in pool}
    for key in pool:
        base.setdefault(key, 0.0)
    return base


def _worded(pool: Mapping[Key, Candidate], words: Mapping[Key, float], query: Query) -> dict[Key, float]:
    """Return the word stream: the best window's BM25, and how much of the question the whole note holds; both less
    where no note holds much of it."""
    scaled = fuse.scaled(words, 0.0)
    if query.plain or query.query_syntax:
        return scaled
    trust = min(1.0, max((candidate.share for candidate in pool.values()), default=0.0) / TRUSTED)
    return {key: trust * ((1 - SHARE) * scaled.get(key, 0.0) + SHARE * c.share) for key, c in pool.items()}


def _translated(pool: Mapping[Key, Candidate], words: dict[Key, float], near: Mapping[Key, float]) -> dict[Key, float]:
    """Return the word stream with what a note in the other language would have of it: it cannot hold the question's words,
    and is taken to match them as it matches the meaning, at a part of what the best one has."""
    top = max(words.values(), default=0.0)
    return {key: max(value, FOREIGN * top * near.get(key, 0.0)) if pool[key].foreign else value for key, value in words.items()}


def _leading(
    ranked: dict[Key, Ranked], base: Mapping[Key, float], dates: Mapping[Key, float], query: Query
) -> tuple[list[Key], dict[Key, list[str]]]:
    """Return the notes that lead so far, best first, and the texts of their best windows."""
    if query.mode == "semantic" or query.query_syntax:
        return [], {}
    most = talks.LOOKED if any(one.streams.speakers for one in ranked.values()) else READ
    leading = sorted(ranked, key=lambda key: (-(base[key] + DATE * dates.get(key, 0.0)), key))[:most]
    texts: dict[Key, list[str]] = {}
    for number in sorted({key[0] for key in leading}):
        mine = [ranked[key] for key in leading if key[0] == number and _worth_reading(ranked[key])]
        if not mine:
            continue
        rows = window_rows(mine[0].streams.index.catalog, sorted({w for one in mine for w in one.candidate.windows}))
        texts.update({one.key: [rows[w]["text"] for w in one.candidate.windows if w in rows] for one in mine})
    return leading, texts


def _worth_reading(one: Ranked) -> bool:
    """Tell whether the text of a note can tell more: two words of the question stand there, or it may be a conversation."""
    return len(one.candidate.matched) > 1 or bool(one.streams.speakers)


def _extras(
    ranked: dict[Key, Ranked], dates: dict[Key, float], query: Query, leading: list[Key], texts: Mapping[Key, Sequence[str]]
) -> dict[str, tuple[float, dict[Key, float]]]:
    """Return {name: (weight, {key: value 0…1})} of the evidence that applies to this question."""
    out: dict[str, tuple[float, dict[Key, float]]] = {}
    if any(one.streams.periods for one in ranked.values()):
        out["date"] = (DATE, dates)
    days = {key: 1.0 for key in dates if _on_the_day(ranked[key])}
    if days:
        out["day"] = (DAY, days)
    out.update(_read(ranked, leading[:READ], texts, pairs_of(query.text) if leading else []))
    lifted = {key: value for key, one in ranked.items() if (value := one.streams.lift.get(key[1], 0.0))}
    if lifted:
        out["graph"] = (GRAPH, lifted)
    return out


def _near_date(one: Ranked) -> float:
    row = one.candidate.row
    if not one.streams.periods or row is None:
        return 0.0
    return max(
        (closeness(period, moment.date()) for period in one.streams.periods for moment in written(row)),
        default=0.0,
    )


def _on_the_day(one: Ranked) -> bool:
    """Tell whether a note was written on a day, not only in a month or a year, that the question names."""
    row = one.candidate.row
    moments = written(row) if row is not None else []
    return any(distance(p, m.date()) == 0 for p in one.streams.periods if p.days == 1 for m in moments)


def _read(
    ranked: dict[Key, Ranked], leading: list[Key], texts: Mapping[Key, Sequence[str]], pairs: list[tuple[str, str]]
) -> dict[str, tuple[float, dict[Key, float]]]:
    """Return what the best windows of the leading notes say: the question's phrases, and lines of whom it names."""
    phrases: dict[Key, float] = {}
    said: dict[Key, float] = {}
    for number in sorted({key[0] for key in leading}):
        mine = [ranked[key] for key in leading if key[0] == number and key in texts]
        if not mine:
            continue
        streams = mine[0].streams
        worth = streams.worth()
        number_of = {term.text: index for index, term in enumerate(streams.terms)}
        ends = [(number_of.get(left, -1), number_of.get(right, -1)) for left, right in pairs]
        for one in mine:
            held = texts[one.key]
            # Where no pair has both its words, no text needs to be taken apart.
            both = any(left in one.candidate.matched and right in one.candidate.matched for left, right in ends)
            phrases[one.key] = phrase_share(pairs, held, worth) if both else 0.0
            share_of = answered_share if streams.speakers else labelled_share
            said[one.key] = max((share_of(text, worth) for text in held), default=0.0)
    out: dict[str, tuple[float, dict[Key, float]]] = {}
    weight_said = ANSWERS if any(one.streams.speakers for one in ranked.values()) else SAID
    for name, weight, values in (("phrase", PHRASE, phrases), ("said", weight_said, said)):
        if any(values.values()):
            out[name] = (weight, values)
    return out


def _add(ranked: dict[Key, Ranked], base: dict[Key, float], extras: dict[str, tuple[float, dict[Key, float]]]) -> float:
    """Set each score: the weighted mean of the fused score and what applies beside it. Returns the sum of the weights."""
    total = 1.0 + sum(weight for weight, _ in extras.values())
    for key, one in ranked.items():
        score = base[key]
        for name, (weight, values) in extras.items():
            value = values.get(key, 0.0)
            if value:
                score += weight * value
                one.steps.append((name, round(value, 4)))
        one.score = score / total
    return total


def _age(
    one: Ranked, curve: Curve | None, use: Mapping[int, Mapping[str, Any]], asked: bool, now: datetime, explain: bool
) -> None:
    row = one.candidate.row
    assert row is not None
    decay = 1.0
    if curve is not None:
        decay = adjust.fading(row, now, curve, use[one.key[0]].get(str(row["id"] or row["path"])))
    kind = adjust.kind_weight(row["kind"] or "", asked)
    one.score *= decay * kind
    if not explain:
        return
    for name, factor in (("decay", decay), ("kind", kind)):
        if round(factor, 4) != 1.0:
            one.steps.append((name, round(factor, 4)))
    one.steps.append(("score", round(one.score, 6)))
