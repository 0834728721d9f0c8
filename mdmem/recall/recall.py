"""The pipeline: query → two streams of windows → notes → fusion → decay → the best, with snippets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mdmem.recall import adjust, fuse
from mdmem.recall.query import DEFAULT_KINDS, Query
from mdmem.recall.select import allowed

if TYPE_CHECKING:
    import sqlite3

    from mdmem.index.score import TextHits
    from mdmem.store import Store

POOL = 200  # windows that each stream hands on


@dataclass
class Hit:
    """One note that was found, with its best passage; `steps` tells what each stage did to its score."""

    id: str
    path: str
    store: str
    kind: str
    type: str
    title: str
    score: float
    snippet: str
    start_line: int
    end_line: int
    created: str
    updated: str
    scope: str
    agent: str
    tags: list[str]
    text: str = ""
    cosine: float | None = None
    bm25: float | None = None
    steps: list[tuple[str, Any]] = field(default_factory=list)

    def as_dict(self, explain: bool = False) -> dict[str, Any]:
        """Return the JSON form."""
        names = ("id", "path", "store", "kind", "type", "title", "score", "snippet", "start_line", "end_line")
        out: dict[str, Any] = {name: getattr(self, name) for name in (*names, "created", "updated", "scope", "agent", "tags")}
        out["score"] = round(self.score, 6)
        if explain:
            out["explain"] = dict(self.steps)
        return out


@dataclass
class Recall:
    """The answer to one query."""

    query: Query
    results: list[Hit]
    mode: str
    notices: list[str] = field(default_factory=list)
    context: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return {query, mode, results, notices} and, with a budget, the context block."""
        out: dict[str, Any] = {"query": self.query.text, "mode": self.mode}
        out["results"] = [hit.as_dict(self.query.explain) for hit in self.results]
        out["notices"] = self.notices
        if self.query.budget is not None:
            out["context"] = self.context
        return out


def recall(store: Store, query: Query) -> Recall:
    """Return the best notes for a query; one stream being down is a notice, not an error."""
    query = query.checked()
    index = store.index
    notices = list(index.refresh().notices)
    filters = query.filters
    asked = filters.kinds is not None
    if not asked:
        from dataclasses import replace

        filters = replace(filters, kinds=DEFAULT_KINDS)
    wanted = allowed(store, filters)
    words = _words(store, query, wanted) if query.mode != "semantic" else None
    meaning: dict[int, tuple[float, int]] = {}
    if query.mode != "keyword":
        meaning = _meaning(store, query, wanted)
        if not meaning and wanted and query.mode == "hybrid":
            notices.append("searched by words only: no vectors yet, or no model")
    best_words = _best([(hit.note, hit.score, hit.window) for hit in words.hits] if words else [])
    scores = _fused(store, query, best_words, meaning)
    rows = _rows(store, scores)
    hits = _adjusted(store, query, rows, scores, asked)
    hits.sort(key=lambda pair: (-pair[1], _negated(pair[0]["updated"]), pair[0]["path"]))
    results = [
        _hit(store, row, score, best_words.get(row["rowid"]), meaning.get(row["rowid"]), words)
        for row, score in hits[: query.limit]
    ]
    notices += index.take_notices()
    found = Recall(query, results, query.mode, list(dict.fromkeys(notices)))
    if query.budget is not None:
        from mdmem.recall.pack import Item, pack

        items = [Item(h.id, h.path, h.type or h.kind, h.title, h.text, h.updated, h.start_line, h.end_line) for h in results]
        found.context = pack(items, query.budget).text
    return found


def _negated(stamp: str | None) -> tuple[int, ...]:
    """Return a key that sorts later stamps first."""
    return tuple(-ord(char) for char in stamp or "")


def _words(store: Store, query: Query, wanted: set[int]) -> TextHits:
    if query.query_syntax:
        return store.index.syntax_hits(query.text, wanted, POOL)
    return store.index.text_hits(query.text, wanted, POOL)


def _best(found: list[tuple[int, float, int]]) -> dict[int, tuple[float, int]]:
    """Return {note: (its best window's score, that window)}."""
    out: dict[int, tuple[float, int]] = {}
    for note, score, window in found:
        if note not in out or score > out[note][0]:
            out[note] = (score, window)
    return out


def _meaning(store: Store, query: Query, wanted: set[int]) -> dict[int, tuple[float, int]]:
    found = store.index.vector_search(query.text, wanted, POOL)
    if not found:
        return {}
    owners = store.index.catalog.rows(
        f"SELECT rowid, note FROM windows WHERE rowid IN ({', '.join('?' * len(found))})", [window for window, _ in found]
    )
    note_of = {row["rowid"]: row["note"] for row in owners}
    return _best([(note_of[window], score, window) for window, score in found if window in note_of])


def _fused(
    store: Store, query: Query, words: dict[int, tuple[float, int]], meaning: dict[int, tuple[float, int]]
) -> dict[int, float]:
    left = {note: pair[0] for note, pair in words.items()}
    right = {note: pair[0] for note, pair in meaning.items()}
    if query.mode == "keyword":
        return fuse.scaled(left, 0.0)
    if query.mode == "semantic":
        return dict(right)
    if (query.fusion or store.config.get("recall.fusion")) == "rrf":
        return fuse.rrf(left, right)
    weight = query.weight if query.weight is not None else float(store.config.get("recall.bm25_weight"))
    return fuse.minmax(left, right, weight)


def _rows(store: Store, scores: dict[int, float]) -> list[sqlite3.Row]:
    out: list[sqlite3.Row] = []
    keys = list(scores)
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        out += store.index.catalog.rows(f"SELECT * FROM notes WHERE rowid IN ({', '.join('?' * len(part))})", part)
    return out


def _adjusted(
    store: Store, query: Query, rows: list[sqlite3.Row], scores: dict[int, float], asked: bool
) -> list[tuple[sqlite3.Row, float]]:
    window = adjust.window_days(str(store.config.get("recall.decay_window"))) if query.decay else None
    now = store.clock.now()
    out = []
    for row in rows:
        floor = adjust.floor_of(row["kind"] or "", row["type"] or "", row["tier"] or "", bool(row["pinned"]))
        factor = adjust.decay(adjust.age_in_days(row["updated"] or "", now), window, floor)
        out.append((row, scores[row["rowid"]] * factor * adjust.kind_weight(row["kind"] or "", asked)))
    return out


def _hit(
    store: Store,
    row: sqlite3.Row,
    score: float,
    words: tuple[float, int] | None,
    meaning: tuple[float, int] | None,
    text_hits: TextHits | None,
) -> Hit:
    from mdmem.index.analyzer import tokens
    from mdmem.recall.snippet import snippet

    window = store.index.catalog.row("SELECT * FROM windows WHERE rowid = ?", ((words or meaning or (0, 0))[1],))
    weights = {term.text: term.weight * term.idf for term in text_hits.terms} if text_hits else {}
    shown = snippet(window["text"], window["start_line"], weights, tokens) if window else None
    tags = [tag["tag"] for tag in store.index.catalog.rows("SELECT tag FROM tags WHERE note = ? ORDER BY tag", (row["rowid"],))]
    return Hit(
        id=row["id"] or "",
        path=row["path"],
        store="",
        kind=row["kind"] or "",
        type=row["type"] or "",
        title=row["title"] or "",
        score=score,
        snippet=shown.text if shown else "",
        start_line=shown.start_line if shown else 1,
        end_line=shown.end_line if shown else 1,
        created=row["created"] or "",
        updated=row["updated"] or "",
        scope=row["scope"] or "",
        agent=row["agent"] or "",
        tags=tags,
        text=window["text"] if window else "",
        cosine=meaning[0] if meaning else None,
        bm25=words[0] if words else None,
    )
