"""What the shared index has for one question, as a small index in memory that recall searches like any other.

The engine gives candidates: the windows with the highest inner products for words and for meaning, and the newest notes of
the days that the question names. What else these notes have is fetched by key; all of it is put into a catalog and a corpus
in memory, and scored there by score.py with the statistics of the whole: ranks are those of a local index as long as the
candidates hold the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from mdmem.errors import UsageError
from mdmem.index.catalog import MemoryCatalog
from mdmem.index.milvus import ROWS, SCRIPTS, Engine, dimension, key_of, key_of_row, piece_of, quoted, stretch
from mdmem.index.milvus_held import Held, Note, opened
from mdmem.index.score import Corpus, Coverage, Term, TextHits
from mdmem.index.segment import memory
from mdmem.index.text import query_words

DATED = 50
PAIRS = 64  # repositories and scopes in which terms are counted for a question
MARGIN = 50  # windows beyond those that are wanted
_FIELDS = ("repo", "note", "mark", "ord", "size", "script", "row", "meaning")


class WholeCorpus(Corpus):
    """The windows of the candidates, scored as a part of the whole: counts, averages and frequencies are given."""

    def __init__(
        self, rows: Iterable[Any], count: int, lengths: Sequence[int], notes: int, known: dict[str, list[int]]
    ) -> None:
        super().__init__([memory(rows)])
        # What stands in the candidates stands in the whole, also when the list of terms is older than a note.
        self.count = max(count, self.count)
        if count:
            self.averages = [total / count if total else 1.0 for total in lengths]
        self._whole, self._known = notes, known

    def weigh(self, words: Iterable[tuple[str, float]]) -> list[Term]:
        """Return the terms with their frequencies in the whole; see score.Corpus.weigh."""
        out = []
        for term in super().weigh(words):
            df = min(self.count, max(term.df, self._known.get(term.text, [0, 0])[0]))
            idf = math.log(1.0 + (self.count - df + 0.5) / (df + 0.5)) if df else 0.0
            out.append(Term(term.text, term.weight, df, idf))
        return out

    def coverage(self, terms: Sequence[Term], notes: Collection[int]) -> Coverage:
        """Return which terms stand in which note, and in how many notes of the whole; see score.Corpus.coverage."""
        here = super().coverage(terms, notes)
        notes_in_all = max(here.notes, self._whole)
        known = [self._known.get(term.text, [0, 0])[1] for term in terms]
        counts = [min(notes_in_all, max(count, before)) for count, before in zip(here.counts, known)]
        return Coverage(here.matched, counts, notes_in_all)


class SharedView:
    """The reading half of an index for one question; see asof.View. Nothing is written.

    `find` gets what words and days bring, `find_near` what meaning does, `settle` makes it searchable."""

    def __init__(self, engine: Engine, condition: str, scopes: dict[str, dict[str, dict[str, Any]]], pool: int) -> None:
        """`condition`: the filter in the engine's language; `scopes`: repository → scope → what was counted there, for those
        that whoever asks may read: nothing else counts in a weight."""
        self.engine = engine
        self.condition = condition
        pairs = [(key_of(repo), scope, counted) for repo, held in scopes.items() for scope, counted in held.items()]
        self.scopes = sorted(pairs, key=lambda pair: (-int(pair[2]["windows"]), pair[:2]))
        self.pool = pool
        self.count = sum(int(counted["windows"]) for _, _, counted in pairs)
        self.known: dict[str, list[int]] = {}
        # What the engine gave: {note: {mark: {number of the window: row}}}, and by script the keys of the nearest windows.
        self._found: dict[Note, dict[str, dict[int, Any]]] = {}
        self._near: dict[bool | None, list[tuple[str, str, int]]] = {}
        self._fields: tuple[str, ...] = _FIELDS
        self._held = Held({})
        self._make: Callable[[frozenset[int]], WholeCorpus] | None = None
        self._corpus: tuple[frozenset[int], WholeCorpus] | None = None

    def find(self, words: Sequence[tuple[str, float]], days: Sequence[str], meaning: bool) -> None:
        """Get the candidates for (term, weight) pairs, and the newest notes of days (each a condition on `created`); `meaning`:
        with their vectors. Raises SharedDown."""
        self._fields = _FIELDS if meaning else _FIELDS[:-1]
        if lacking := [term for term, _ in words if term not in self.known]:
            self.learn(lacking)
        asked: dict[int, float] = {}
        for term, weight in words:
            # A writer at work has a new list of terms and an old count for a moment: no term is in more than all windows.
            df = min(self.count, self.known.get(term, [0, 0])[0])
            if df and weight > 0:
                place = dimension(term)
                asked[place] = asked.get(place, 0.0) + weight * math.log(1.0 + (self.count - df + 0.5) / (df + 0.5))
        if asked:
            # More than are wanted: the weights there are of the averages at the time of the push.
            self._add(self.engine.nearest("words", asked, self.condition, self.pool + MARGIN, self._fields))
        for when in days:
            self._add(self._newest(f"{self.condition} and ord == 0 and {when}"))

    def _newest(self, condition: str) -> list[dict[str, Any]]:
        """Return the DATED rows that were created last."""
        windows = self.engine.windows
        rows = self.engine.few(windows, condition, self._fields, DATED + 1)
        if len(rows) > DATED:
            # The engine gives no order: of many the keys come first.
            keys = self.engine.few(windows, condition, ["pk", "created"])
            last = sorted(keys, key=lambda row: (row["created"], row["pk"]), reverse=True)[:DATED]
            rows = self.engine.few(windows, f"pk in {quoted(row['pk'] for row in last)} and {self.condition}", self._fields)
        return rows

    def find_near(self, vector: Any, scripts: Sequence[bool | None]) -> None:
        """Get the windows that are nearest to a vector: in a CJK script (True), in others (False), or in whichever (None).

        Raises SharedDown."""
        asked = [float(value) for value in vector]
        for script in scripts:
            which = 'script != ""' if script is None else f'script == "{SCRIPTS[script]}"'
            rows = self.engine.nearest("meaning", asked, f"{self.condition} and {which}", self.pool, self._fields)
            self._near[script] = [(row["repo"], row["note"], int(row["ord"])) for row in rows]
            self._add(rows)

    def texts(self) -> Iterator[str]:
        """Yield the text of each window that was found so far."""
        for marks in self._found.values():
            for parts in marks.values():
                for row in parts.values():
                    yield opened(row)["text"]

    def mixed(self) -> bool:
        """Tell whether windows of both kinds of script are among what may be read."""
        sums = [sum(column) for column in zip(*(counted["scripts"] for _, _, counted in self.scopes))]
        return bool(sums) and all(sums)

    def settle(self) -> None:
        """Make everything that was found so far searchable, in the place of what was before. Raises SharedDown."""
        self._held, self._corpus = Held(self._whole()), None
        lengths = [sum(column) for column in zip(*(counted["lengths"] for _, _, counted in self.scopes))]
        total = sum(int(counted["notes"]) for _, _, counted in self.scopes)
        found = self._held.rows()
        self._make = lambda gone: WholeCorpus((r for r in found if r.note not in gone), self.count, lengths, total, self.known)

    @property
    def catalog(self) -> MemoryCatalog:
        """The notes that were found."""
        return self._held.catalog

    def learn(self, terms: Iterable[str]) -> None:
        """Get how many windows and notes each term stands in, for `known`. Raises SharedDown."""
        wanted = list(dict.fromkeys(terms))
        self.known |= {term: [0, 0] for term in wanted} | self._frequencies(wanted)

    def _frequencies(self, terms: Sequence[str]) -> dict[str, list[int]]:
        """Return {term: [windows, notes]} over the repositories that are asked: counted in the PAIRS largest repositories and
        scopes, and where there are more, drawn out to all; a term that is in none of the counted then counts as one."""
        pairs = self.scopes[:PAIRS]
        asked = [(repo, counted, piece_of(term, scope, counted["pieces"])) for repo, scope, counted in pairs for term in terms]
        keys = sorted({f"{repo}:{counted['turn']}:{name}" for repo, counted, name in asked})
        repos = quoted(sorted({repo for repo, _, _ in pairs}))
        known: dict[str, list[int]] = {}
        for start in range(0, len(keys), ROWS):
            inside = f"repo in {repos} and pk in {quoted(keys[start : start + ROWS])}"
            for row in self.engine.few(self.engine.state, inside, ["blob"]):
                piece = stretch(row["blob"])
                for term in terms:
                    if term in piece:
                        before = known.get(term, [0, 0])
                        known[term] = [before[0] + piece[term][0], before[1] + piece[term][1]]
        if len(self.scopes) > PAIRS:
            share = self.count / max(1, sum(int(counted["windows"]) for _, _, counted in pairs))
            known = {term: [max(1, round(share * number)) for number in known.get(term, [0, 0])] for term in terms}
        return known

    def _add(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            parts = self._found.setdefault((row["repo"], row["note"]), {}).setdefault(row["mark"], {})
            parts.setdefault(int(row["ord"]), row)

    def _whole(self) -> dict[Note, dict[int, Any]]:
        """Return the notes with all their windows; what lacks is fetched."""
        found = self._found
        lacking = [
            key_of_row(repo, note, number, mark)
            for (repo, note), marks in sorted(found.items())
            for mark, parts in sorted(marks.items())
            for number in range(next(iter(parts.values()))["size"])
            if number not in parts
        ]
        for start in range(0, len(lacking), ROWS):
            wanted = f"pk in {quoted(lacking[start : start + ROWS])} and {self.condition}"
            rows = self.engine.few(self.engine.windows, wanted, self._fields)
            self._add(row for row in rows if row["mark"] in found.get((row["repo"], row["note"]), {}))
        # While a writer is at work a note may stand there in two versions; one whole one is shown.
        whole: dict[Note, dict[int, Any]] = {}
        for key, marks in sorted(found.items()):
            for _, parts in sorted(marks.items()):
                if len(parts) == parts[min(parts)]["size"] and 0 in parts:
                    whole.setdefault(key, parts)
        return whole

    def corpus(self, without: frozenset[int] = frozenset()) -> Corpus:
        """Return the windows of the candidates; `without`: see Index.corpus."""
        if self._corpus is None or self._corpus[0] != without:
            assert self._make is not None
            self._corpus = without, self._make(without)
        return self._corpus[1]

    def text_hits(
        self,
        query: str | Sequence[tuple[str, float]],
        allowed: Collection[int] | None = None,
        limit: int = 50,
        without: frozenset[int] = frozenset(),
    ) -> TextHits:
        """Return the best windows by BM25F; see Index.text_hits."""
        words = query_words(query) if isinstance(query, str) else list(query)
        return self.corpus(without).search(words, allowed, limit)

    def syntax_hits(
        self, query: str, allowed: Collection[int] | None = None, limit: int = 50, without: frozenset[int] = frozenset()
    ) -> TextHits:
        """Raises UsageError: the shared index knows no query language."""
        raise UsageError("the shared index knows no query language", hint="leave out --query-syntax")

    def vector_search(
        self, query: Any, allowed: Collection[int] | None = None, limit: int = 50, script: bool | None = None
    ) -> list[tuple[int, float]]:
        """Return (window rowid, product with `query`), best first, of those that find_near has brought for that script."""
        keys = self._near[script] if script in self._near else [key for some in self._near.values() for key in some]
        places = self._held.windows
        values = self.cosines(query, [places[key] for key in dict.fromkeys(keys) if key in places])
        near = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
        if allowed is None:
            return near[:limit]
        owner = {row["rowid"]: row["note"] for row in self.catalog.rows("SELECT rowid, note FROM windows")}
        return [pair for pair in near if owner[pair[0]] in allowed][:limit]

    def cosines(self, query: Any, wanted: Sequence[int]) -> dict[int, float]:
        """Return {window rowid: cosine}; see Index.cosines."""
        import numpy as np

        found = {window: self._held.vectors[window] for window in wanted if window in self._held.vectors}
        if not found:
            return {}
        # As in an exact search of stored vectors, to the last digit: of two notes that are equally near, the same comes first.
        rows = np.asarray([*found.values()], np.float32).astype(np.float64)
        products = (rows * np.asarray(query, np.float32).astype(np.float64)).sum(axis=1)
        return dict(zip(found, products.tolist()))

    def two_scripts(self, allowed: Collection[int] | None = None, least: int = 1) -> bool:
        """Tell whether there are windows of both kinds of script, `least` of each; see Index.two_scripts. Raises SharedDown."""
        if not self.mixed():
            return False
        for script in (False, True):
            if script in self._near:
                count = len(self._near[script])
            else:
                which = f'{self.condition} and script == "{SCRIPTS[script]}"'
                count = len(self.engine.few(self.engine.windows, which, ["pk"], least))
            if count < least:
                return False
        return True

    def level(self, query: Any, asked: bool, allowed: Collection[int] | None = None) -> None:
        """Return None: of what is not near, the shared index tells nothing, so that languages cannot be evened out."""

    def window_vectors(self, wanted: Sequence[int]) -> dict[int, Any]:
        """Return {window rowid: its vector}; see Index.window_vectors."""
        import numpy as np

        vectors = self._held.vectors
        return {window: np.asarray(vectors[window], np.float32) for window in wanted if window in vectors}
