"""What the shared index has for one question, as a small index in memory that recall searches like any other.

The engine gives candidates: the windows with the highest inner products for words and for meaning, and notes of the days that
the question names. What else these notes have is fetched by key; all of it is put into a catalog and a corpus in memory, and
scored there by score.py with the statistics of the whole: ranks are those of a local index as long as the candidates hold
the best.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from mdmem.errors import UsageError
from mdmem.index.catalog import MemoryCatalog
from mdmem.index.flush import text_rows
from mdmem.index.milvus import ROWS, Engine, dimension, key_of, key_of_row, piece_of, quoted, stretch
from mdmem.index.score import Corpus, Coverage, Term, TextHits
from mdmem.index.segment import memory
from mdmem.index.text import query_words

Note = tuple[str, str]  # repository and note, as the engine names them
DATED = 50
PAIRS = 64  # repositories and scopes in which terms are counted for a question
MARGIN = 50  # windows beyond those that are wanted
_FIELDS = ("repo", "note", "mark", "ord", "size", "row", "meaning")
# Columns of a note that are taken from the engine: whoever may write there names no others.
_COLUMNS = (
    *("id", "kind", "type", "category", "title", "summary", "scope", "agent", "device", "session", "status", "priority"),
    *("tier", "pinned", "importance", "initiative", "due", "expires", "valid_from", "valid_until", "fact_key", "created"),
    *("updated", "sha", "state", "body_line", "size", "fields"),
)


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
    """The reading half of an index for one question; see asof.View. Nothing is written."""

    def __init__(self, engine: Engine, condition: str, scopes: dict[str, dict[str, dict[str, Any]]], pool: int) -> None:
        """`condition`: the filter in the engine's language; `scopes`: repository → scope → what was counted there, for those
        that whoever asks may read: nothing else counts in a weight."""
        self.engine = engine
        self.condition = condition
        pairs = [(key_of(repo), scope, counted) for repo, held in scopes.items() for scope, counted in held.items()]
        self.scopes = sorted(pairs, key=lambda pair: (-int(pair[2]["windows"]), pair[:2]))
        self.pool = pool
        self.catalog = MemoryCatalog("shared")
        self.vectors: dict[int, Any] = {}
        self.near: list[tuple[int, float]] = []
        self.known: dict[str, list[int]] = {}
        self._windows: dict[tuple[str, str, int], int] = {}
        self._make: Callable[[frozenset[int]], WholeCorpus] | None = None
        self._corpus: tuple[frozenset[int], WholeCorpus] | None = None

    def fetch(self, words: Sequence[tuple[str, float]], vector: Any, days: Sequence[tuple[str, str]]) -> None:
        """Get the candidates for (term, weight) pairs, the question's vector (None: no search by meaning), and days (first,
        last). Raises SharedDown."""
        if lacking := [term for term, _ in words if term not in self.known]:
            self.learn(lacking)
        known = self.known
        count = self._windows_in(self.scopes)
        fields = _FIELDS if vector is not None else _FIELDS[:-1]
        asked: dict[int, float] = {}
        for term, weight in words:
            # A writer at work has a new list of terms and an old count for a moment: no term is in more than all windows.
            df = min(count, known.get(term, [0, 0])[0])
            if df and weight > 0:
                place = dimension(term)
                asked[place] = asked.get(place, 0.0) + weight * math.log(1.0 + (count - df + 0.5) / (df + 0.5))
        rows: list[dict[str, Any]] = []
        if asked:
            # More than are wanted: the weights there are of the averages at the time of the push.
            rows += self.engine.nearest("words", asked, self.condition, self.pool + MARGIN, fields)
        near: list[dict[str, Any]] = []
        if vector is not None:
            near = self.engine.nearest("meaning", [float(value) for value in vector], self.condition, self.pool, fields)
            rows += near
        for first, last in days:
            when = f"{self.condition} and ord == 0 and created >= {json.dumps(first)} and created <= {json.dumps(last + '~')}"
            rows += self.engine.few(self.engine.windows, when, fields, DATED)
        self._take(rows, fields)
        lengths = [sum(column) for column in zip(*(counted["lengths"] for _, _, counted in self.scopes))]
        total = sum(int(counted["notes"]) for _, _, counted in self.scopes)
        found = self.catalog.read(lambda connection: text_rows(connection, self._rowids()))
        self._make = lambda gone: WholeCorpus((r for r in found if r.note not in gone), count, lengths, total, known)
        keys = [(row["repo"], row["note"], int(row["ord"])) for row in near]
        places = [self._windows[key] for key in keys if key in self._windows]
        cosines = self.cosines(vector, places) if vector is not None else {}
        self.near = sorted(((w, c) for w, c in cosines.items() if c), key=lambda pair: (-pair[1], pair[0]))

    def _rowids(self) -> list[int]:
        return [row["rowid"] for row in self.catalog.rows("SELECT rowid FROM notes")]

    @staticmethod
    def _windows_in(pairs: Iterable[tuple[str, str, dict[str, Any]]]) -> int:
        return sum(int(counted["windows"]) for _, _, counted in pairs)

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
            share = self._windows_in(self.scopes) / max(1, self._windows_in(pairs))
            known = {term: [max(1, round(share * number)) for number in known.get(term, [0, 0])] for term in terms}
        return known

    def _take(self, rows: Iterable[dict[str, Any]], fields: Sequence[str]) -> None:
        """Fetch what else the notes of these rows have, and put them into the catalog."""
        found: dict[Note, dict[str, dict[int, Any]]] = {}
        for row in rows:
            found.setdefault((row["repo"], row["note"]), {}).setdefault(row["mark"], {})[int(row["ord"])] = row
        lacking = [
            key_of_row(repo, note, number, mark)
            for (repo, note), marks in sorted(found.items())
            for mark, parts in sorted(marks.items())
            for number in range(next(iter(parts.values()))["size"])
            if number not in parts
        ]
        for start in range(0, len(lacking), ROWS):
            wanted = f"pk in {quoted(lacking[start : start + ROWS])} and {self.condition}"
            for row in self.engine.few(self.engine.windows, wanted, fields):
                marks = found.get((row["repo"], row["note"]), {})
                if row["mark"] in marks:
                    marks[row["mark"]][int(row["ord"])] = row
        # While a writer is at work a note may stand there in two versions; one whole one is shown.
        whole: dict[Note, dict[int, Any]] = {}
        for key, marks in sorted(found.items()):
            for _, parts in sorted(marks.items()):
                if len(parts) == parts[min(parts)]["size"] and 0 in parts:
                    whole.setdefault(key, parts)
        self._put(whole)

    def _put(self, whole: dict[Note, dict[int, Any]]) -> None:
        """Put notes with all their windows into the catalog. What a row holds is data of whoever wrote it."""
        notes: list[tuple[Any, ...]] = []
        tags: list[tuple[int, str]] = []
        names: list[tuple[str, int, int]] = []
        windows: list[tuple[Any, ...]] = []
        for rowid, (key, parts) in enumerate(whole.items(), 1):
            opened = {number: stretch(row["row"]) for number, row in sorted(parts.items())}
            columns, tagged, named = opened[0]["note"]
            label = opened[0]["repo"]
            notes.append((rowid, label, f"{label}: {columns['path']}", *(columns.get(column) for column in _COLUMNS)))
            tags += [(rowid, tag) for tag in tagged]
            names += [(name, how, rowid) for name, how in named]
            for number, window in opened.items():
                place = len(windows) + 1
                windows.append((place, rowid, number, window["heading"], window["text"], *window["lines"], window["hash"]))
                self._windows[(*key, number)] = place
                if window["near"] and "meaning" in parts[number]:
                    self.vectors[place] = parts[number]["meaning"]
        marks = ", ".join("?" * (3 + len(_COLUMNS)))
        with self.catalog.writing() as connection:
            connection.executemany(f"INSERT INTO notes (rowid, folder, path, {', '.join(_COLUMNS)}) VALUES ({marks})", notes)
            connection.executemany("INSERT OR IGNORE INTO tags (note, tag) VALUES (?, ?)", tags)
            connection.executemany("INSERT OR IGNORE INTO names (key, how, note) VALUES (?, ?, ?)", names)
            connection.executemany(
                "INSERT INTO windows (rowid, note, ord, heading, text, start_line, end_line, hash) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                windows,
            )

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
        """Return (window rowid, product with `query`), best first; `script` chooses nothing, since only the nearest of all are
        here."""
        values = self.cosines(query, [window for window, _ in self.near])
        near = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
        if allowed is None:
            return near[:limit]
        owner = {row["rowid"]: row["note"] for row in self.catalog.rows("SELECT rowid, note FROM windows")}
        return [pair for pair in near if owner[pair[0]] in allowed][:limit]

    def cosines(self, query: Any, wanted: Sequence[int]) -> dict[int, float]:
        """Return {window rowid: cosine}; see Index.cosines."""
        import numpy as np

        asked = np.asarray(query, np.float32).astype(np.float64)
        found = {window: self.vectors[window] for window in wanted if window in self.vectors}
        return {window: float(np.dot(np.asarray(row, np.float32).astype(np.float64), asked)) for window, row in found.items()}

    def two_scripts(self, allowed: Collection[int] | None = None) -> bool:
        """Return False: only the nearest of all are here, so that no language can be searched by itself."""
        return False

    def level(self, query: Any, asked: bool, allowed: Collection[int] | None = None) -> None:
        """Return None: of what is not near, the shared index tells nothing, so that languages cannot be evened out."""

    def window_vectors(self, wanted: Sequence[int]) -> dict[int, Any]:
        """Return {window rowid: its vector}; see Index.window_vectors."""
        import numpy as np

        return {window: np.asarray(self.vectors[window], np.float32) for window in wanted if window in self.vectors}
