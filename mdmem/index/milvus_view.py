"""What the shared index has for one question, as a small index in memory that recall searches like any other.

The engine gives candidates: the windows with the highest inner products for words and for meaning, and notes of the days that
the question names. All windows of these notes are fetched, put into a catalog and a corpus in memory, and scored there by
score.py with the statistics of the whole: ranks are those of a local index as long as the candidates hold the best.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from mdmem.errors import UsageError
from mdmem.index.catalog import MemoryCatalog
from mdmem.index.flush import text_rows
from mdmem.index.milvus import KEYS, Engine, dimension, key_of, piece_of, quoted, stretch
from mdmem.index.score import Corpus, Coverage, Term, TextHits
from mdmem.index.segment import memory
from mdmem.index.text import query_words

Note = tuple[str, str]  # repository and note, as the engine names them
DATED = 50
MARGIN = 50  # windows beyond those that are wanted
_FIELDS = ("repo", "note", "mark", "ord", "row", "meaning")


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
        counts = [max(count, self._known.get(term.text, [0, 0])[1]) for count, term in zip(here.counts, terms)]
        return Coverage(here.matched, counts, max(here.notes, self._whole))


class SharedView:
    """The reading half of an index for one question; see asof.View. Nothing is written."""

    def __init__(self, engine: Engine, condition: str, scopes: dict[str, dict[str, dict[str, Any]]], pool: int) -> None:
        """`condition`: the filter in the engine's language; `scopes`: repository → scope → what was counted there, for those
        that whoever asks may read: nothing else counts in a weight."""
        self.engine = engine
        self.condition = condition
        self.scopes = [(key_of(repo), scope, counted) for repo, held in scopes.items() for scope, counted in held.items()]
        self.pool = pool
        self.catalog = MemoryCatalog("shared")
        self.vectors: dict[int, Any] = {}
        self.near: list[tuple[int, float]] = []
        self._windows: dict[tuple[str, str, int], int] = {}
        self._make: Callable[[frozenset[int]], WholeCorpus] | None = None
        self._corpus: tuple[frozenset[int], WholeCorpus] | None = None

    def fetch(self, words: Sequence[tuple[str, float]], vector: Any, days: Sequence[tuple[str, str]]) -> None:
        """Get the candidates for (term, weight) pairs, the question's vector (None: no search by meaning), and days (first,
        last). Raises SharedDown."""
        known = self._frequencies([term for term, _ in words])
        count = sum(int(counted["windows"]) for _, _, counted in self.scopes)
        notes: dict[Note, None] = {}
        asked: dict[int, float] = {}
        for term, weight in words:
            df = known.get(term, [0, 0])[0]
            if df and weight > 0:
                place = dimension(term)
                asked[place] = asked.get(place, 0.0) + weight * math.log(1.0 + (count - df + 0.5) / (df + 0.5))
        if asked:
            # More than are wanted: the weights there are of the averages at the time of the push.
            hits = self.engine.nearest("words", asked, self.condition, self.pool + MARGIN)
            notes.update({(repo, note): None for repo, note, _ in hits})
        near: list[tuple[str, str, int]] = []
        if vector is not None:
            near = self.engine.nearest("meaning", [float(value) for value in vector], self.condition, self.pool)
            notes.update({(repo, note): None for repo, note, _ in near})
        for first, last in days:
            when = f"{self.condition} and ord == 0 and created >= {json.dumps(first)} and created <= {json.dumps(last + '~')}"
            found = self.engine.few(self.engine.windows, when, ["repo", "note"], DATED)
            notes.update({(row["repo"], row["note"]): None for row in found})
        self._take(notes, vector is not None)
        lengths = [sum(column) for column in zip(*(counted["lengths"] for _, _, counted in self.scopes))]
        total = sum(int(counted["notes"]) for _, _, counted in self.scopes)
        rows = self.catalog.read(lambda connection: text_rows(connection, self._rowids()))
        self._make = lambda gone: WholeCorpus((r for r in rows if r.note not in gone), count, lengths, total, known)
        places = [self._windows[place] for place in near if place in self._windows]
        cosines = self.cosines(vector, places) if vector is not None else {}
        self.near = sorted(((w, c) for w, c in cosines.items() if c), key=lambda pair: (-pair[1], pair[0]))

    def _rowids(self) -> list[int]:
        return [row["rowid"] for row in self.catalog.rows("SELECT rowid FROM notes")]

    def _frequencies(self, terms: Sequence[str]) -> dict[str, list[int]]:
        """Return {term: [windows, notes]} over the repositories that are asked."""
        keys = sorted(
            {f"{repo}:{piece_of(term, scope, counted['pieces'])}" for repo, scope, counted in self.scopes for term in terms}
        )
        known: dict[str, list[int]] = {}
        for start in range(0, len(keys), KEYS):
            part = keys[start : start + KEYS]
            for row in self.engine.few(self.engine.state, f"pk in {quoted(part)}", ["blob"]):
                piece = stretch(row["blob"])
                for term in terms:
                    if term in piece:
                        before = known.get(term, [0, 0])
                        known[term] = [before[0] + piece[term][0], before[1] + piece[term][1]]
        return known

    def _take(self, notes: Iterable[Note], meaning: bool) -> None:
        """Fetch all windows of the notes and put them into the catalog."""
        fields = _FIELDS if meaning else _FIELDS[:-1]
        wanted = sorted(notes)
        chosen = set(wanted)
        found: dict[Note, dict[str, dict[int, Any]]] = {}
        for start in range(0, len(wanted), KEYS):
            part = wanted[start : start + KEYS]
            inside = f"repo in {quoted(sorted({repo for repo, _ in part}))} and note in {quoted(sorted({n for _, n in part}))}"
            for row in self.engine.few(self.engine.windows, f"{inside} and ({self.condition})", fields):
                key = (row["repo"], row["note"])
                if key in chosen:
                    found.setdefault(key, {}).setdefault(row["mark"], {})[int(row["ord"])] = row
        with self.catalog.writing() as connection:
            for key in sorted(found):
                # While a writer is at work a note may stand there in two versions; one whole one is shown.
                whole = [parts for _, parts in sorted(found[key].items()) if 0 in parts]
                if whole:
                    self._put(connection, key, whole[0])

    def _put(self, connection: Any, key: Note, parts: dict[int, Any]) -> None:
        opened = {number: stretch(row["row"]) for number, row in sorted(parts.items())}
        columns, tags, names = opened[0]["note"]
        label = opened[0]["repo"]
        columns = {**columns, "folder": label, "path": f"{label}: {columns['path']}"}
        marks = ", ".join("?" * len(columns))
        cursor = connection.execute(f"INSERT INTO notes ({', '.join(columns)}) VALUES ({marks})", list(columns.values()))
        note = int(cursor.lastrowid or 0)
        connection.executemany("INSERT OR IGNORE INTO tags (note, tag) VALUES (?, ?)", [(note, tag) for tag in tags])
        connection.executemany(
            "INSERT OR IGNORE INTO names (key, how, note) VALUES (?, ?, ?)", [(name, how, note) for name, how in names]
        )
        for number, window in opened.items():
            cursor = connection.execute(
                "INSERT INTO windows (note, ord, heading, text, start_line, end_line, hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (note, number, window["heading"], window["text"], *window["lines"], window["hash"]),
            )
            rowid = int(cursor.lastrowid or 0)
            self._windows[(*key, number)] = rowid
            if window["near"] and "meaning" in parts[number]:
                self.vectors[rowid] = parts[number]["meaning"]

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
        """Return (window rowid, cosine), best first; `script` chooses nothing, since only the nearest of all are here."""
        if allowed is None:
            return self.near[:limit]
        owner = {row["rowid"]: row["note"] for row in self.catalog.rows("SELECT rowid, note FROM windows")}
        return [pair for pair in self.near if owner[pair[0]] in allowed][:limit]

    def cosines(self, query: Any, wanted: Sequence[int]) -> dict[int, float]:
        """Return {window rowid: cosine}; see Index.cosines."""
        import numpy as np

        asked = np.asarray(query, np.float32).astype(np.float64)
        found = {window: self.vectors[window] for window in wanted if window in self.vectors}
        return {window: float(np.dot(np.asarray(row, np.float32).astype(np.float64), asked)) for window, row in found.items()}

    def level(self, query: Any, asked: bool, allowed: Collection[int] | None = None) -> None:
        """Return None: of what is not near, the shared index tells nothing, so that languages cannot be evened out."""

    def window_vectors(self, wanted: Sequence[int]) -> dict[int, Any]:
        """Return {window rowid: its vector}; see Index.window_vectors."""
        import numpy as np

        return {window: np.asarray(self.vectors[window], np.float32) for window in wanted if window in self.vectors}
