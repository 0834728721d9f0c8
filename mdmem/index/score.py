"""BM25F over segments: exact lengths, exact document frequencies, filters before the cut. No files, no query language.

Formula (Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond", section 3.6):
  x(t, d)  = sum over fields f of  boost_f * tf_f / (1 - b + b * length_f / average_f)
  score(d) = sum over terms t of   weight_t * idf(t) * x * (k1 + 1) / (k1 + x)
  idf(t)   = ln(1 + (N - df + 0.5) / (df + 0.5))
Two kernels do the same additions in the same order, so that their scores are equal to the last bit: one in plain Python
for a process that has not loaded numpy (loading costs more than scoring ten thousand windows), one in numpy.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mdmem.index.segment import FIELDS, Postings, Segment

# From this many postings on, over all searches of a process, importing numpy is the cheaper way: 65 to 85 ms of processor time,
# for 0.4 µs a posting.
_NUMPY_PAYS = 150_000
_OFTEN = 8  # a process that has searched so often will search again
_OWNERS = 1_000_000  # notes of terms that a part keeps: 8 MB
_KEPT = 1_000_000  # postings whose strengths a part keeps: 16 MB
# What this process has done without numpy so far.
_done = {"postings": 0, "searches": 0}


@dataclass(frozen=True)
class Settings:
    """Parameters of the formula; one boost per field: body, title, headings, tags."""

    k1: float = 1.2
    b: float = 0.75
    boosts: tuple[float, float, float, float] = (1.0, 2.0, 1.0, 1.5)


class Term(NamedTuple):
    """A query term: its text, its weight in the query, in how many live windows it stands, and its idf."""

    text: str
    weight: float
    df: int
    idf: float


class Hit(NamedTuple):
    """A window that matched: rowids, BM25F score, and which of the query's terms stand in it (indices into `terms`)."""

    window: int
    note: int
    score: float
    matched: tuple[int, ...]


@dataclass(frozen=True)
class TextHits:
    """The best windows, best first (equal scores: lower rowid first), with the evidence that a relevance gate needs."""

    hits: list[Hit]
    terms: list[Term]
    windows: int  # live windows in the index


class Coverage(NamedTuple):
    """Which terms stand in which note (indices into the terms), in how many notes each stands, and how many there are."""

    matched: dict[int, frozenset[int]]
    counts: list[int]
    notes: int


@dataclass
class _Part:
    """A segment with its live documents and what was computed for it."""

    segment: Segment
    dead: frozenset[int]
    norms: dict[int, Any] = field(default_factory=dict)  # field → 1 / (1 - b + b * length / average) per document
    alive: Any = None  # numpy mask of the documents that are not dead, once it was asked for
    kept: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # term → (documents, x), numpy
    owners: dict[str, Any] = field(default_factory=dict)  # term → notes that hold it, ascending, numpy
    held: int = 0  # postings in `kept`
    owned: int = 0  # notes in `owners`
    mask: tuple[Collection[int], Any] | None = None  # notes allowed last, and whether each document is of one


class Corpus:
    """Segments seen as one index, without the documents of the notes in `gone`, and with all of `fresh`.

    Immutable: a new one is made when a segment or `gone` changes; then all statistics are counted anew."""

    def __init__(
        self,
        segments: Sequence[Segment],
        gone: Collection[int] = (),
        fresh: Sequence[Segment] = (),
        settings: Settings | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.parts = [_Part(segment, _dead(segment, gone)) for segment in segments]
        self.parts += [_Part(segment, segment.dead) for segment in fresh]
        self.count = sum(part.segment.size - len(part.dead) for part in self.parts)
        self._notes: int | None = None
        self.averages = []
        for number in range(len(FIELDS)):
            total = 0
            for part in self.parts:
                lengths = part.segment.lengths[number]
                total += part.segment.totals[number] - sum(lengths[doc] for doc in part.dead)
            self.averages.append(total / self.count if self.count and total else 1.0)

    def weigh(self, words: Iterable[tuple[str, float]]) -> list[Term]:
        """Return the query's terms with their document frequencies; terms that stand nowhere have df 0 and idf 0."""
        terms = []
        for text, weight in words:
            df = 0
            for part in self.parts:
                found = part.segment.postings(text)
                if found is not None:
                    df += len(found.docs) - _count(found, part.dead)
            idf = math.log(1.0 + (self.count - df + 0.5) / (df + 0.5)) if df else 0.0
            terms.append(Term(text, weight, df, idf))
        return terms

    def search(self, words: Iterable[tuple[str, float]], allowed: Collection[int] | None, limit: int) -> TextHits:
        """Return the best `limit` windows among the notes in `allowed` (None: all) that hold at least one term.

        `words` are (term, weight) without repeats."""
        terms = self.weigh(words)
        used = [(number, term) for number, term in enumerate(terms) if term.df and term.weight]
        if not used or limit <= 0 or (allowed is not None and not allowed):
            return TextHits([], terms, self.count)
        numpy = sys.modules.get("numpy")
        if numpy is None:
            _done["postings"] += sum(term.df for _, term in used)
            _done["searches"] += 1
            if _done["postings"] > _NUMPY_PAYS or _done["searches"] > _OFTEN:
                import numpy
        found: list[tuple[float, int, int, int]] = []
        for number, part in enumerate(self.parts):
            scores = self._with_numpy(part, used, allowed, limit) if numpy else self._plain(part, used, allowed)
            windows = part.segment.windows
            found += [(-score, windows[doc], number, doc) for doc, score in scores]
        found.sort()
        best = found[:limit]
        matched: dict[tuple[int, int], list[int]] = {(number, doc): [] for _, _, number, doc in best}
        for number, part in enumerate(self.parts):
            docs = [doc for where, doc in matched if where == number]
            for index, term in used if docs else ():
                for doc in _standing(part.segment.postings(term.text), docs, numpy):
                    matched[number, doc].append(index)
        hits = [
            Hit(window, self.parts[number].segment.notes[doc], -negative, tuple(matched[number, doc]))
            for negative, window, number, doc in best
        ]
        return TextHits(hits, terms, self.count)

    def coverage(self, terms: Sequence[Term], notes: Collection[int]) -> Coverage:
        """Return which of the terms stand anywhere in each of `notes`, and how many notes hold each term."""
        numpy = sys.modules.get("numpy")
        if self._notes is None:
            # A note's windows stand in one segment, so that no note is counted twice.
            self._notes = sum(self._count_notes(part, numpy) for part in self.parts)
        if numpy is not None:
            return self._covered(terms, list(notes), self._notes)
        found: dict[int, set[int]] = {}
        counts = [0] * len(terms)
        for part in self.parts:
            for index, term in enumerate(terms):
                if not term.df:
                    continue
                holding = _holding(part, term.text)
                counts[index] += len(holding)
                for note in holding.intersection(notes):
                    found.setdefault(note, set()).add(index)
        return Coverage({note: frozenset(indices) for note, indices in found.items()}, counts, self._notes)

    def _covered(self, terms: Sequence[Term], notes: list[int], total: int) -> Coverage:
        """Return the coverage by way of arrays: a row of marks for each term, notes with the same marks share a set."""
        import numpy as np

        wanted = np.array(notes, np.int64)
        held = np.zeros((len(terms), len(notes)), bool)
        counts = [0] * len(terms)
        for part in self.parts:
            for index, term in enumerate(terms):
                owning = self._owners(part, term.text) if term.df else ()
                if len(owning):
                    counts[index] += len(owning)
                    places = np.minimum(np.searchsorted(owning, wanted), len(owning) - 1)
                    held[index] |= owning[places] == wanted
        sets: dict[bytes, frozenset[int]] = {}
        found = {}
        for place, (note, marks) in enumerate(zip(notes, map(bytes, np.packbits(held, axis=0).T))):
            if marks not in sets:
                sets[marks] = frozenset(np.flatnonzero(held[:, place]).tolist())
            if sets[marks]:
                found[note] = sets[marks]
        return Coverage(found, counts, total)

    def _count_notes(self, part: _Part, numpy: Any) -> int:
        if numpy is None:
            return len({note for doc, note in enumerate(part.segment.notes) if not part.dead or doc not in part.dead})
        notes = numpy.frombuffer(part.segment.notes, numpy.int64)[self._living(part)] if part.segment.size else ()
        return len(_distinct(notes)) if len(notes) else 0

    def _owners(self, part: _Part, text: str) -> Any:
        """Return the notes that hold a term, ascending, as an array."""
        import numpy as np

        owning = part.owners.get(text)
        if owning is None:
            found = part.segment.postings(text)
            docs = np.array(found.docs if found is not None else (), np.intp)
            if part.dead and len(docs):
                docs = docs[self._living(part)[docs]]
            owning = _distinct(np.frombuffer(part.segment.notes, np.int64)[docs]) if len(docs) else np.zeros(0, np.int64)
            part.owned += len(owning)
            if part.owned > _OWNERS:
                part.owners.clear()
                part.owned = len(owning)
            part.owners[text] = owning
        return owning

    def _living(self, part: _Part) -> Any:
        """Return a mask of the documents that are not dead."""
        import numpy as np

        if part.alive is None:
            part.alive = np.ones(part.segment.size, bool)
            part.alive[list(part.dead)] = False
        return part.alive

    def _plain(self, part: _Part, used: list[tuple[int, Term]], allowed: Collection[int] | None) -> list[tuple[int, float]]:
        segment, settings = part.segment, self.settings
        k1, top = settings.k1, settings.k1 + 1.0
        scores: dict[int, float] = {}
        get = scores.get
        for _, term in used:
            found = segment.postings(term.text)
            if found is None:
                continue
            factor = term.weight * term.idf
            columns = [
                (column, settings.boosts[number], self._norm(part, number, None))
                for number, column in enumerate(found.tfs)
                if column is not None
            ]
            if len(columns) == 1:
                column, boost, norm = columns[0]
                for doc, tf in zip(found.docs, column):
                    x = tf * boost * norm[doc]
                    scores[doc] = get(doc, 0.0) + factor * (x * top / (k1 + x))
            else:
                for index, doc in enumerate(found.docs):
                    x = 0.0
                    for column, boost, norm in columns:
                        x += column[index] * boost * norm[doc]
                    scores[doc] = get(doc, 0.0) + factor * (x * top / (k1 + x))
        notes, dead = segment.notes, part.dead
        return [
            (doc, score)
            for doc, score in scores.items()
            if doc not in dead and score > 0.0 and (allowed is None or notes[doc] in allowed)
        ]

    def _with_numpy(
        self, part: _Part, used: list[tuple[int, Term]], allowed: Collection[int] | None, limit: int
    ) -> list[tuple[int, float]]:
        import numpy as np

        scores = np.zeros(part.segment.size)
        for _, term in used:
            kept = part.kept.get(term.text)
            if kept is None:
                kept = self._strengths(part, term.text)
                part.held += len(kept[0])
                if part.held > _KEPT:
                    part.kept.clear()
                    part.held = len(kept[0])
                part.kept[term.text] = kept
            docs, x = kept
            if len(docs):
                scores[docs] += term.weight * term.idf * x
        if part.dead:
            scores[~self._living(part)] = 0.0
        if allowed is not None:
            # A set that cannot change and is asked for again and again is looked up once.
            if part.mask is None or part.mask[0] is not allowed or not isinstance(allowed, frozenset):
                notes = np.frombuffer(part.segment.notes, dtype=np.int64) if part.segment.size else np.zeros(0, np.int64)
                part.mask = (allowed, np.isin(notes, np.fromiter(allowed, dtype=np.int64, count=len(allowed))))
            scores[~part.mask[1]] = 0.0
        live = np.flatnonzero(scores > 0.0)
        if len(live) > limit:
            values = scores[live]
            # Everything that ties with the last place stays in, so that the tie is broken by rowid, not by chance.
            live = live[values >= np.partition(values, len(live) - limit)[len(live) - limit]]
        return list(zip(live.tolist(), scores[live].tolist()))

    def _strengths(self, part: _Part, text: str) -> tuple[Any, Any]:
        """Return (documents, x * (k1 + 1) / (k1 + x)) of a term as arrays."""
        import numpy as np

        k1, top = self.settings.k1, self.settings.k1 + 1.0
        found = part.segment.postings(text)
        if found is None:
            return np.zeros(0, np.intp), np.zeros(0)
        docs = np.array(found.docs, dtype=np.intp)
        x = np.zeros(len(docs))
        first = True
        for number, column in enumerate(found.tfs):
            if column is None:
                continue
            norm = self._norm(part, number, np)
            value = np.frombuffer(column, dtype=np.uint8).astype(np.float64) * self.settings.boosts[number] * norm[docs]
            x = value if first else x + value
            first = False
        return docs, x * top / (k1 + x)

    def _norm(self, part: _Part, number: int, np: Any) -> Any:
        norm = part.norms.get(number)
        if norm is None or (np is not None and isinstance(norm, list)):
            b, average = self.settings.b, self.averages[number]
            lengths = part.segment.lengths[number]
            if np is None:
                norm = [1.0 / ((1.0 - b) + b * length / average) for length in lengths]
            else:
                norm = 1.0 / ((1.0 - b) + b * np.array(lengths, dtype=np.float64) / average)
            part.norms[number] = norm
        return norm


def _dead(segment: Segment, gone: Collection[int]) -> frozenset[int]:
    if not gone:
        return segment.dead
    numpy = sys.modules.get("numpy")
    if numpy is None or not segment.size:
        return segment.dead | {doc for doc, note in enumerate(segment.notes) if note in gone}
    notes = numpy.frombuffer(segment.notes, numpy.int64)
    wanted = numpy.fromiter(gone, numpy.int64, len(gone))
    return segment.dead.union(numpy.flatnonzero(numpy.isin(notes, wanted)).tolist())


def _distinct(numbers: Any) -> Any:
    """Return the different values of an array of rowids, ascending."""
    import numpy as np

    top = int(numbers.max()) + 1
    if top > 16 * len(numbers):
        return np.unique(numbers)
    # Rowids lie close together: marking them costs less than sorting.
    mark = np.zeros(top, bool)
    mark[numbers] = True
    return np.flatnonzero(mark)


def _holding(part: _Part, text: str) -> set[int]:
    """Return the notes with a living document that holds a term."""
    held = part.segment.postings(text)
    if held is None:
        return set()
    owners, dead = part.segment.notes, part.dead
    if dead:
        return {owners[doc] for doc in held.docs if doc not in dead}
    return set(map(owners.__getitem__, held.docs))


def _count(found: Postings, dead: frozenset[int]) -> int:
    """Return in how many of the documents `dead` the term stands."""
    if len(dead) * 16 < len(found.docs):
        return sum(_stands(found, doc) for doc in dead)
    return sum(map(dead.__contains__, found.docs)) if dead else 0


def _standing(found: Postings | None, docs: list[int], numpy: Any) -> list[int]:
    """Return those of the documents that a term stands in."""
    if found is None or numpy is None or not len(found.docs):
        return [doc for doc in docs if _stands(found, doc)]
    # The array of document numbers as it is, without a copy.
    held = numpy.frombuffer(found.docs, numpy.uint32)
    wanted = numpy.array(docs, numpy.uint32)
    places = numpy.minimum(numpy.searchsorted(held, wanted), len(held) - 1)
    standing: list[int] = wanted[held[places] == wanted].tolist()
    return standing


def _stands(found: Postings | None, doc: int) -> bool:
    if found is None:
        return False
    at = bisect_left(found.docs, doc)
    return at < len(found.docs) and found.docs[at] == doc
