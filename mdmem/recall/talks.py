"""Of a question that names a speaker: what the notes of one conversation say of each other. Pure.

A conversation of others, in which the name does not stand, hardly tells of who is named. What is told is taken up again in the
session after, so that a session whose next one is near to the question gains. And where a name belongs to speakers of several
conversations, the one that fits the question better as a whole is meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from mdmem.recall.words import label_of

if TYPE_CHECKING:
    from mdmem.recall.rank import Key, Ranked
    from mdmem.recall.streams import Streams

# What a conversation of others keeps of its score.
OTHERS = 0.6
# Beside the score: how near the session after is.
FOLLOWED = 0.1
# What a conversation that fits not at all would lose; how well one fits is the mean of its best notes.
MEANT, BEST = 0.2, 3
# The text of this many notes that lead is read to know who talks there.
LOOKED = 40


@dataclass(frozen=True)
class Note:
    """A note that leads: who talks in what was read of it, which share of the names stands in it, when it was written, how
    near to the question it is (0…1), its score."""

    talkers: frozenset[str]
    named: float
    when: str
    near: float
    score: float


@dataclass(frozen=True)
class Told:
    """What the others of its conversation say of a note: factors of its score, and what is added between them (0…1)."""

    others: float = 1.0
    followed: float = 0.0
    meant: float = 1.0


def talkers(texts: Iterable[str]) -> frozenset[str]:
    """Return the labels of the lines of a note: of a conversation, who talks. Its first text that has two is enough."""
    found: set[str] = set()
    for text in texts:
        found.update(label for line in text.split("\n") if ":" in line or "：" in line if (label := label_of(line)))
        if len(found) > 1:
            break
    return frozenset(found)


def told(notes: Sequence[Note]) -> list[Told]:
    """Return for each note what its conversation says of it; nothing for one that is no conversation.

    Notes with the same two or more talkers are of one conversation; a label that a single note has is no talker."""
    counts = Counter(name for note in notes for name in note.talkers)
    talks: dict[frozenset[str], list[int]] = {}
    for place, note in enumerate(notes):
        pair = frozenset(name for name in note.talkers if counts[name] > 1)
        if len(pair) > 1:
            talks.setdefault(pair, []).append(place)
    out = [Told()] * len(notes)
    others = [OTHERS + (1.0 - OTHERS) * note.named for note in notes]
    followed = [0.0] * len(notes)
    fits: dict[frozenset[str], float] = {}
    for pair, places in talks.items():
        ordered = sorted(places, key=lambda place: (notes[place].when, place))
        for place, after in pairwise(ordered):
            followed[place] = notes[after].near
        scores = sorted((others[place] * notes[place].score + FOLLOWED * followed[place] for place in places), reverse=True)
        fits[pair] = sum(scores[:BEST]) / BEST
    top = max(fits.values(), default=0.0)
    for pair, places in talks.items():
        meant = 1.0 - MEANT * (1.0 - fits[pair] / top) if top > 0 else 1.0
        for place in places:
            out[place] = Told(others[place], followed[place], meant)
    return out


def weigh(ranked: Mapping[Key, Ranked], texts: Mapping[Key, Sequence[str]], near: Mapping[Key, float], total: float) -> bool:
    """Let conversations whose speaker the question names weigh in on the scores, which are sums divided by `total`; tells
    whether there are any. `texts`: what was read of the notes that lead; `near`: how near each note is, 0…1."""
    found: dict[Key, Told] = {}
    for number in sorted({key[0] for key in texts}):
        keys = [key for key in texts if key[0] == number and ranked[key].streams.speakers]
        if not keys:
            continue
        names = _names(ranked[keys[0]].streams)
        notes = []
        for key in keys:
            candidate = ranked[key].candidate
            assert candidate.row is not None
            named = sum(name <= candidate.matched for name in names) / len(names)
            score = ranked[key].score * total
            notes.append(Note(talkers(texts[key]), named, candidate.row["created"] or "", near.get(key, 0.0), score))
        found.update(zip(keys, told(notes)))
    if all(one == Told() for one in found.values()):
        return False
    for key, one in ranked.items():
        what = found.get(key, Told())
        one.score = (one.score * total * what.others + FOLLOWED * what.followed) * what.meant / (total + FOLLOWED)
        one.steps += [(name, round(value, 4)) for name, value in vars(what).items() if value != getattr(Told, name)]
    return True


def _names(streams: Streams) -> list[frozenset[int]]:
    """Return for each speaker whom the question names the numbers of the terms of the name: none of a name that is no term of
    the question, which counts as standing everywhere."""
    from mdmem.index.analyzer import tokens

    number = {term.text: place for place, term in enumerate(streams.terms)}
    return [frozenset(number[term] for term in tokens(name) if term in number) for name in streams.speakers]
