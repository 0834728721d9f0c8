"""What is searched on tantivy: live windows with exact statistics, candidates by its order, scores by the formula of score.py.

The additions are those of score.Corpus in the same order, so that equal windows have equal scores to the last bit.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tantivy

from mdmem.index.score import Corpus, Coverage, Hit, Settings, Term, TextHits, _Part
from mdmem.index.segment import FIELDS, MemorySegment, Postings, Row, Segment, frequencies, memory
from mdmem.index.tantivy_rows import Place, RowFiles, hashed, score, scored, unpack

MARGIN = 100  # candidates beyond the limit, or half of it: 99.6 % of the best 200 of 4,000 were among 300
CLAUSES = 1_000  # notes that are asked for one by one; more go as a set
FEW = 200  # notes of a filter that goes into the query; with more, each candidate is looked at
BITS = 20  # terms told apart by one float32 score
COUNTED = 20_000  # numbers of windows or notes with a term that are kept

_Query = tantivy.Query
_Occur = tantivy.Occur
Packed = dict[str, int]


class TantivyCorpus(Corpus):
    """The windows of tantivy without the notes in `gone`, and the windows `fresh`, as one index. Immutable."""

    def __init__(
        self,
        searcher: Any,
        schema: Any,
        gone: Collection[int],
        fresh: Sequence[Row],
        folder: Path,
        settings: Settings | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.searcher = searcher
        self.schema = schema
        self.rows = RowFiles(folder).open()
        # Where nothing that was deleted is still there, tantivy's own statistics are those of the living windows.
        self.intact = searcher.num_docs == sum(searcher.doc_freq("first", value) for value in (0, 1))
        self._counted: dict[tuple[str, str], int] = {}
        self.gone = frozenset(gone)
        self.fresh = [(row, frequencies(row)) for row in fresh]
        self._fresh_segment: MemorySegment | None = memory(fresh) if fresh else None
        totals = self._totals(_Query.all_query())
        if self.gone:
            hidden = self._totals(self._among("note", self.gone))
            totals = [all_of - part for all_of, part in zip(totals, hidden)]
        for row, _ in self.fresh:
            totals = [totals[0] + 1, *(total + len(terms) for total, terms in zip(totals[1:], row.fields))]
        self.count = totals[0]
        self.averages = [total / self.count if self.count and total else 1.0 for total in totals[1:]]

    def _totals(self, query: Any) -> list[int]:
        """Return [windows, terms of each field] of the windows that a query fits."""
        sums = {f"length{number}": {"sum": {"field": f"length{number}"}} for number in range(len(FIELDS))}
        sums["windows"] = {"value_count": {"field": "window"}}
        found = self.searcher.aggregate(query, sums)
        return [round(found[name]["value"] or 0) for name in ("windows", *(f"length{n}" for n in range(len(FIELDS))))]

    @cached_property
    def parts(self) -> list[_Part]:  # type: ignore[override]
        """Everything as segments, read whole: for the query language and for checks."""
        whole = TantivySegment(self.searcher, self.schema, self.rows)
        dead = frozenset(doc for doc, note in enumerate(whole.notes) if note in self.gone)
        found = [_Part(whole, dead)]
        return [*found, _Part(self._fresh_segment, frozenset())] if self._fresh_segment is not None else found

    def _among(self, field: str, values: Collection[int]) -> Any:
        if len(values) > CLAUSES:
            return _Query.const_score_query(_Query.term_set_query(self.schema, field, sorted(values)), 0.0)
        clauses = [(_Occur.Should, self._term(field, value)) for value in sorted(values)]
        return _Query.const_score_query(_Query.boolean_query(clauses), 0.0)

    def _term(self, field: str, value: Any) -> Any:
        return _Query.term_query(self.schema, field, value, "basic" if field != "all" else "freq")

    def _number(self, query: Any) -> int:
        """Return how many windows a query fits, those of hidden notes left out."""
        if self.gone:
            query = _Query.boolean_query([(_Occur.Must, query), (_Occur.MustNot, self._among("note", self.gone))])
        return int(self.searcher.search(query, limit=1, count=True).count)

    def _holding(self, field: str, text: str) -> int:
        """Return how many windows (field `all`) or notes (`whole`) hold a term, hidden ones left out."""
        found: int = self.searcher.doc_freq(field, text)
        if not found or (self.intact and not self.gone):
            return found
        kept = self._counted.get((field, text))
        if kept is None:
            if len(self._counted) >= COUNTED:
                self._counted.clear()
            kept = self._counted[field, text] = self._number(self._term(field, text))
        return kept

    def weigh(self, words: Iterable[tuple[str, float]]) -> list[Term]:
        """Return the query's terms with their document frequencies; see score.Corpus.weigh."""
        terms = []
        for text, weight in words:
            df = self._holding("all", text) + sum(text in packed for _, packed in self.fresh)
            idf = math.log(1.0 + (self.count - df + 0.5) / (df + 0.5)) if df else 0.0
            terms.append(Term(text, weight, df, idf))
        return terms

    def search(self, words: Iterable[tuple[str, float]], allowed: Collection[int] | None, limit: int) -> TextHits:
        """Return the best `limit` windows among the notes in `allowed`; see score.Corpus.search."""
        terms = self.weigh(words)
        used = [(number, term) for number, term in enumerate(terms) if term.df and term.weight]
        if not used or limit <= 0 or (allowed is not None and not allowed):
            return TextHits([], terms, self.count)
        found: list[tuple[float, int, int, tuple[int, ...]]] = []
        wanted = limit + max(limit // 2, MARGIN)
        chosen = list(self._candidates([term for _, term in used], allowed, wanted))
        rows, sizes = self.rows.read(place for place, *_ in chosen), [lengths for *_, lengths in chosen]
        scores = scored(rows, sizes, used, self.averages, self.settings)
        for (_, window, note, _), (value, matched) in zip(chosen, scores):
            found.append((-value, window, note, matched))
        for fresh, packed in self.fresh:
            if allowed is None or fresh.note in allowed:
                counted = [(number, term, _unpacked(packed.get(term.text, 0))) for number, term in used]
                value, matched = score(counted, [len(part) for part in fresh.fields], self.averages, self.settings)
                found.append((-value, fresh.window, fresh.note, matched))
        found.sort()
        hits = [Hit(window, note, -negative, matched) for negative, window, note, matched in found[:limit] if negative < 0.0]
        return TextHits(hits, terms, self.count)

    def _candidates(
        self, terms: Sequence[Term], allowed: Collection[int] | None, wanted: int
    ) -> Iterator[tuple[Place, int, int, tuple[int, ...]]]:
        """Yield (place of its row, window, note, lengths) of the first `wanted` windows in tantivy's order that are allowed."""
        # Weights below zero are for the exact score alone.
        query = _Query.boolean_query(
            [(_Occur.Should, _Query.boost_query(self._term("all", term.text), max(term.weight, 0.01))) for term in terms]
        )
        if allowed is not None and len(allowed) <= FEW:
            query = _Query.boolean_query([(_Occur.Must, self._among("note", allowed)), (_Occur.Must, query)])
        asked = wanted
        while True:
            addresses = [address for _, address in self.searcher.search(query, limit=asked, count=False).hits]
            notes = self._values("note", addresses)
            chosen = [
                place for place, note in enumerate(notes) if note not in self.gone and (allowed is None or note in allowed)
            ]
            if len(chosen) >= wanted or len(addresses) < asked:
                break
            asked *= 4
        places = chosen[:wanted]
        kept = [addresses[place] for place in places]
        where = map(Place, *(self._values(name, kept) for name in ("file", "at", "size")))
        lengths = zip(*(self._values(f"length{number}", kept) for number in range(len(FIELDS))))
        yield from zip(where, self._values("window", kept), [notes[place] for place in places], lengths)

    def _values(self, field: str, addresses: list[Any]) -> list[int]:
        found: list[int] = self.searcher.fast_field_values(field, addresses) if addresses else []
        return found

    def coverage(self, terms: Sequence[Term], notes: Collection[int]) -> Coverage:
        """Return which of the terms stand anywhere in each of `notes`; see score.Corpus.coverage."""
        found: dict[int, set[int]] = {}
        used = [(number, term.text) for number, term in enumerate(terms) if term.df]
        counts = [0] * len(terms)
        for number, text in used:
            counts[number] = self._holding("whole", text)
        asked = [note for note in notes if note not in self.gone]
        for start in range(0, len(used) if asked else 0, BITS):
            part = used[start : start + BITS]
            # The score of a note is a sum of powers of two: one for each term that it holds.
            clauses = [(_Occur.Must, self._among("note", asked))]
            clauses += [
                (_Occur.Should, _Query.const_score_query(self._term("whole", text), float(1 << bit)))
                for bit, (_, text) in enumerate(part)
            ]
            hits = self.searcher.search(_Query.boolean_query(clauses), limit=1 << 20, count=False).hits
            for (marks, _), note in zip(hits, self._values("note", [address for _, address in hits])):
                bits = round(marks)
                held = {number for bit, (number, _) in enumerate(part) if bits >> bit & 1}
                if held:
                    found.setdefault(note, set()).update(held)
        wholes: dict[int, set[str]] = {}
        for row, packed in self.fresh:
            wholes.setdefault(row.note, set()).update(packed)
        for note, held_terms in wholes.items():
            mine = {number for number, text in used if text in held_terms}
            for number in mine:
                counts[number] += 1
            if mine and note in notes:
                found.setdefault(note, set()).update(mine)
        if not hasattr(self, "_whole_notes"):
            self._whole_notes = self._number(self._term("first", 1)) + len(wholes)
        return Coverage({note: frozenset(held) for note, held in found.items()}, counts, self._whole_notes)


class TantivySegment(Segment):
    """All windows of tantivy as one segment, for what needs postings: slow on a term that stands in many windows."""

    def __init__(self, searcher: Any, schema: Any, rows: RowFiles) -> None:
        self.name = "tantivy"
        self.dead = frozenset()
        self._searcher, self._schema, self._files = searcher, schema, rows
        found = searcher.search(_Query.all_query(), limit=max(1, searcher.num_docs), count=False).hits
        self._addresses = sorted((address for _, address in found), key=lambda a: (a.segment_ord, a.doc))
        self._places = {(address.segment_ord, address.doc): place for place, address in enumerate(self._addresses)}
        columns = ["window", "note", *(f"length{number}" for number in range(len(FIELDS))), "file", "at", "size"]
        values = [searcher.fast_field_values(name, self._addresses) if self._addresses else [] for name in columns]
        self.windows, self.notes = array("q", values[0]), array("q", values[1])
        self.lengths = tuple(array("I", column) for column in values[2:-3])
        self._rows = list(map(Place, *values[-3:]))
        self._cache: dict[str, Postings | None] = {}

    def postings(self, term: str) -> Postings | None:
        """Return where a term stands; see segment.Segment."""
        if term not in self._cache:
            self._cache[term] = self._read(term)
        return self._cache[term]

    def _read(self, term: str) -> Postings | None:
        query = _Query.term_query(self._schema, "all", term, "freq")
        hits = self._searcher.search(query, limit=max(1, len(self._addresses)), count=False).hits
        docs = sorted(self._places[(address.segment_ord, address.doc)] for _, address in hits)
        key = hashed(term)
        rows = []
        for row in map(unpack, self._files.read(self._rows[doc] for doc in docs)):
            number = row.numbers().get(key)
            rows.append(() if number is None else row.frequencies(number))
        return _postings(docs, rows) if docs else None

    def terms(self, prefix: str = "") -> Iterator[str]:
        """Yield the terms that start with `prefix`; see segment.Segment."""
        found = self._searcher.terms_with_prefix("all", prefix)
        return iter(sorted((term for term, _ in found), key=str.encode))

    def every(self) -> Iterator[tuple[str, Postings]]:
        """Yield each term with its postings, read from the rows."""
        names = {hashed(term): term for term in self.terms()}
        places: dict[str, tuple[list[int], list[Sequence[int]]]] = {}
        for doc, place in enumerate(self._rows):
            row = unpack(self._files.read([place])[0])
            for key, number in row.numbers().items():
                # A term that is in no list of terms is a damage, which a check sees by its absence.
                docs, rows = places.setdefault(names.get(key, ""), ([], []))
                docs.append(doc)
                rows.append(row.frequencies(number))
        for term, (docs, rows) in places.items():
            yield term, _postings(docs, rows)


def _postings(docs: Sequence[int], rows: Sequence[Sequence[int]]) -> Postings:
    columns = [bytes(row[field] if field < len(row) else 0 for row in rows) for field in range(len(FIELDS))]
    return Postings(docs, tuple(column if any(column) else None for column in columns))


def _unpacked(packed: int) -> Sequence[int]:
    return [packed >> 8 * field & 255 for field in range(len(FIELDS))] if packed else ()
