"""Candidates of one store: by words, by meaning, by date, with the raw evidence for each note.

Knows the index; knows nothing of how the evidence is weighed."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from mdmem.errors import MdmemError, UsageError
from mdmem.recall.query import DEFAULT_KINDS, Filters, Query
from mdmem.recall.select import allowed, hidden
from mdmem.recall.when import Period, periods
from mdmem.recall.words import terms_of

if TYPE_CHECKING:
    import sqlite3

    from mdmem.index.catalog import Catalog
    from mdmem.index.language import Level, Shift
    from mdmem.index.score import Corpus, Term, TextHits
    from mdmem.recall.expand import Concept
    from mdmem.store import Store

POOL = 200  # windows that each stream hands on
LOOKED = 8  # best windows by words that tell whether this is a conversation, and whose
DATED, DAYS = 50, 31  # notes of the days that a question names, if these are so many at most
_MARKS = 500  # values in one SQL statement
_COLUMNS = (
    "rowid, path, id, kind, type, title, scope, agent, tier, pinned, created, updated, importance, valid_from, session, size"
)


class Searchable(Protocol):
    """An index, now or as of a date."""

    @property
    def catalog(self) -> Catalog: ...

    def corpus(self, without: frozenset[int] = ...) -> Corpus: ...

    def text_hits(
        self, query: Any, allowed: Collection[int] | None = None, limit: int = 50, without: frozenset[int] = ...
    ) -> TextHits: ...

    def syntax_hits(
        self, query: str, allowed: Collection[int] | None = None, limit: int = 50, without: frozenset[int] = ...
    ) -> TextHits: ...

    def vector_search(
        self, query: Any, allowed: Collection[int] | None = None, limit: int = 50, script: bool | None = None
    ) -> list[tuple[int, float]]: ...

    def cosines(self, query: Any, wanted: Sequence[int]) -> dict[int, float]: ...

    def two_scripts(self, allowed: Collection[int] | None = None, least: int = 1) -> bool: ...

    def level(self, query: Any, asked: bool, allowed: Collection[int] | None = None) -> Level | None: ...

    def window_vectors(self, wanted: Sequence[int]) -> dict[int, Any]: ...


@dataclass
class Candidate:
    """A note that may answer, and why: its best window by words and by meaning, each with the raw score.

    `near` is made comparable between passages and languages; `foreign`: that window is not in the question's language; `cosine`
    is looked up for what is shown."""

    note: int
    bm25: float | None = None
    word_window: int = 0
    cosine: float | None = None
    near: float | None = None
    near_window: int = 0
    foreign: bool = False
    share: float = 0.0
    matched: frozenset[int] = frozenset()
    row: sqlite3.Row | None = None

    @property
    def windows(self) -> tuple[int, ...]:
        """The best window by words and the nearest one, each once."""
        return tuple(dict.fromkeys(window for window in (self.word_window, self.near_window) if window))

    @property
    def window(self) -> int:
        """The window to show: the one with the words, else the nearest in meaning."""
        return self.word_window or self.near_window


@dataclass
class Streams:
    """What one store has for a question."""

    store: Store
    index: Searchable
    candidates: list[Candidate]
    terms: list[Term] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    meaning: bool = False  # whether vectors were searched
    windows: int = 0
    synonyms: frozenset[str] = frozenset()  # terms that stand for words of the question
    concepts: list[Concept] = field(default_factory=list)  # other words, that stand in the store, for what the question names
    asked: Any = None  # the question's vector, and what is searched: less what all questions have in common
    turned: Any = None
    level: Level | Shift | None = None  # what makes products with windows of two languages comparable
    two: bool = False  # whether the store holds two languages, each of which is searched
    lift: dict[int, float] = field(default_factory=dict)  # what the graph adds to a note, 0…1
    speakers: list[str] = field(default_factory=list)  # of a conversation, whom the question names
    aim: Any = None  # the vector that is searched with where it is not the question's own
    leading: list[int] = field(default_factory=list)  # the best windows by words
    hidden: frozenset[int] = frozenset()  # notes that this agent may not read: no statistic counts them

    def worth(self) -> dict[str, float]:
        """Return {term: weight · idf} of the question's terms."""
        return {term.text: term.weight * term.idf for term in self.terms}


def gather(store: Store, query: Query, vector: Any = None) -> Streams:
    """Return the candidates of a store. `vector`: the question's vector where the caller has it; None: embed it here.

    Trouble in one stream is a notice, and what the other one found is returned; trouble in both raises MdmemError."""
    begun = _begun(store, query) if vector is None and query.mode != "keyword" else None
    index, notices = _index(store, query)
    if vector is None and query.mode != "keyword":
        vector = begun or asked_vector(store, query, notices)
    return candidates(store, query, index, vector, notices)


def _begun(store: Store, query: Query) -> Callable[[list[str]], Any] | None:
    """Begin to embed the question beside what follows, where a model of this process is ready; returns what waits for the
    vector and gives it as asked_vector does. The model works without Python's lock, so that a second core takes it."""
    if not store.index.dense.beside():
        return None
    from threading import Thread

    said: list[str] = []
    out: list[Any] = []

    def work() -> None:
        try:
            out.append(asked_vector(store, query, said))
        except Exception as error:
            out.append(error)

    thread = Thread(target=work, daemon=True)
    thread.start()

    def wait(notices: list[str]) -> Any:
        thread.join()
        notices += said
        if isinstance(out[0], Exception):
            raise out[0]
        return out[0]

    return wait


def aims(store: Store, query: Query) -> bool:
    """Tell whether the speakers of a conversation that a question names are looked for."""
    return not query.plain and query.mode == "hybrid" and bool(store.config.get("recall.speakers"))


def candidates(
    store: Store,
    query: Query,
    index: Searchable,
    vector: Any,
    notices: list[str],
    aimed: tuple[list[str], Any] | None = None,
) -> Streams:
    """Return the candidates of an index that is up to date; see gather. `vector` may be what waits for it; `aimed`: whom of a
    conversation the question names and the vector to search with (None: its own), where that was found out before."""
    from mdmem.recall import meaning

    wanted = allowed(store, searched(query.filters), index.catalog)
    found = Streams(store, index, [], notices=notices, hidden=hidden(store, index.catalog))
    if aimed is not None:
        found.speakers, found.aim = aimed
    by_note: dict[int, Candidate] = {}
    if query.mode != "semantic":
        try:
            by_words(found, query, wanted, by_note)
        except UsageError:
            raise
        except MdmemError as error:
            vector = vector(notices) if callable(vector) else vector
            if vector is None:
                raise
            notices.append(f"{error}; searching by meaning only")
    vector = vector(notices) if callable(vector) else vector
    if vector is not None:
        if aimed is None and aims(store, query):
            meaning.aim(found, query, wanted, vector)
        meaning.search(found, query, wanted, by_note, vector)
    if not query.plain:
        found.periods = periods(query.text, query.as_of or store.clock.now())
        _by_date(found, wanted, by_note)
        if store.config.get("recall.graph"):
            from mdmem.recall.graph_stream import join

            found.lift = join(index.catalog, query.text, wanted, by_note)
    found.candidates = [by_note[note] for note in sorted(by_note)]
    _complete(found, query)
    notices += store.index.take_notices()
    return found


def asked_vector(store: Store, query: Query, notices: list[str]) -> Any:
    """Return the question's vector, or None with a notice; raises MdmemError when meaning alone was asked for."""
    dense = store.index.dense
    vector = dense.question(query.text)
    if vector is None:
        if query.mode == "semantic":
            why = dense.trouble or "embeddings are switched off"
            raise MdmemError(
                "there is no search by meaning", why, hint="mdmem recall --keyword …", code="embedding_unavailable"
            )
        if dense.trouble:
            notices.append(dense.trouble)
    return vector


def searched(filters: Filters) -> Filters:
    """Return the filters with the kinds that are searched unless others are asked for."""
    return filters if filters.kinds is not None else replace(filters, kinds=DEFAULT_KINDS)


def _index(store: Store, query: Query) -> tuple[Searchable, list[str]]:
    # By words alone: nothing is embedded, so that no model is loaded.
    refreshed = store.index.refresh(embed_budget_s=0.0) if query.mode == "keyword" else store.index.refresh()
    notices = list(refreshed.notices)
    if query.as_of is None:
        return store.index, notices
    from mdmem.errors import NotFound
    from mdmem.repo.history import rev_at

    rev = rev_at(store.git, query.as_of)
    if rev is None:
        day = query.as_of.date().isoformat()
        raise NotFound(f"the store has no commit at or before {day}", hint="mdmem history", code="no_revision")
    return store.index.as_of(rev, query.as_of), notices


def by_words(found: Streams, query: Query, wanted: Collection[int] | None, by_note: dict[int, Candidate]) -> None:
    """Add the notes of the best windows by words, and set terms, concepts and the leading windows."""
    if query.query_syntax:
        hits = found.index.syntax_hits(query.text, wanted, POOL, found.hidden)
    else:
        words = terms_of(query.text)
        if not query.plain and found.store.config.get("recall.synonyms"):
            from mdmem.recall.expand import alike, expanded, held

            found.concepts = held(alike(query.text), lambda terms: _standing(found, terms))
            added = expanded(found.concepts, words)
            found.synonyms = frozenset(term for term, _ in added)
            words = [*words, *added]
        hits = found.index.text_hits(words, wanted, POOL, found.hidden)
    if not hits.windows and not hits.terms and found.index.catalog.value("SELECT 1 FROM windows LIMIT 1"):
        raise MdmemError("the text index cannot be read", hint="mdmem index rebuild text", code="index_damaged")
    found.terms, found.windows = hits.terms, hits.windows
    found.leading = [hit.window for hit in hits.hits[:LOOKED]]
    for hit in hits.hits:
        candidate = by_note.setdefault(hit.note, Candidate(hit.note))
        if candidate.bm25 is None or hit.score > candidate.bm25:
            candidate.bm25, candidate.word_window = hit.score, hit.window


def _standing(found: Streams, terms: Sequence[str]) -> dict[str, int]:
    """Return {term: windows it is in} of those that stand there; {} with a damaged text index: the search will tell."""
    try:
        weighed = found.index.corpus(found.hidden).weigh((term, 1.0) for term in terms)
        return {term.text: term.df for term in weighed if term.df}
    except MdmemError:
        return {}


def _by_date(found: Streams, wanted: Collection[int] | None, by_note: dict[int, Candidate]) -> None:
    """Add the notes written on the days that the question names, so that `what did we do on 4 May` has candidates."""
    for period in found.periods:
        if period.days > DAYS:
            continue
        column = "substr(created, 6, 5)" if period.any_year else "substr(created, 1, 10)"
        first, last = (day.isoformat()[5 if period.any_year else 0 :] for day in (period.first, period.last))
        rows = found.index.catalog.rows(
            f"SELECT rowid FROM notes WHERE {column} BETWEEN ? AND ? ORDER BY created DESC, rowid", (first, last)
        )
        fits = (row["rowid"] for row in rows if wanted is None or row["rowid"] in wanted)
        for note in islice(fits, DATED):
            by_note.setdefault(note, Candidate(note))


def _complete(found: Streams, query: Query) -> None:
    """Give every candidate its row, the share of the question that stands in it, and how near it is where that can be had."""
    from mdmem.recall import meaning

    notes = [candidate.note for candidate in found.candidates]
    rows = {
        row["rowid"]: row for row in rows_in(found.index.catalog, f"SELECT {_COLUMNS} FROM notes WHERE rowid IN (%s)", notes)
    }
    # A note that another process deleted meanwhile has no row any more.
    found.candidates = [candidate for candidate in found.candidates if candidate.note in rows]
    for candidate in found.candidates:
        candidate.row = rows[candidate.note]
    if query.plain:
        return
    if found.terms and not query.query_syntax:
        _share(found, set(rows))
    if found.meaning:
        meaning.complete(found, query.explain)


def _share(found: Streams, notes: set[int]) -> None:
    """Set for each candidate which terms stand in it, and their share of the question: by idf over whole notes, since a
    name that every long note holds once says less than its windows make believe."""
    covered = found.index.corpus(found.hidden).coverage(found.terms, notes)
    worth = [
        term.weight * math.log(1.0 + (covered.notes - count + 0.5) / (count + 0.5))
        for term, count in zip(found.terms, covered.counts)
    ]
    # A synonym stands for a word of the question: it adds to what a note holds, not to what was asked.
    total = sum(value for term, value in zip(found.terms, worth) if term.text not in found.synonyms)
    shares: dict[frozenset[int], float] = {}
    for candidate in found.candidates:
        matched = candidate.matched = covered.matched.get(candidate.note, frozenset())
        if total > 0:
            if matched not in shares:
                shares[matched] = min(1.0, sum(worth[number] for number in sorted(matched)) / total)
            candidate.share = shares[matched]


def window_rows(catalog: Catalog, windows: Sequence[int]) -> dict[int, sqlite3.Row]:
    """Return {window rowid: its row}."""
    return {row["rowid"]: row for row in rows_in(catalog, "SELECT * FROM windows WHERE rowid IN (%s)", windows)}


def rows_in(catalog: Catalog, sql: str, values: Sequence[int]) -> list[sqlite3.Row]:
    out: list[sqlite3.Row] = []
    for start in range(0, len(values), _MARKS):
        part = values[start : start + _MARKS]
        out += catalog.rows(sql % ", ".join("?" * len(part)), part)
    return out


def written(row: sqlite3.Row) -> list[datetime]:
    """Return the moments that a note is about: when it was written, and from when it holds."""
    from mdmem.clock import read_stamp

    found = [read_stamp(row[name]) for name in ("created", "valid_from") if row[name]]
    return [moment for moment in found if moment is not None]
