"""The pipeline: query → streams of one or more stores → rank → the best, with snippets and a context block."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mdmem.config import DEFAULTS
from mdmem.errors import MdmemError
from mdmem.recall import adjust, stages
from mdmem.recall.hit import Hit, Recall
from mdmem.recall.query import Query
from mdmem.recall.rank import Ranked, Settings, rank, word_weight
from mdmem.recall.streams import Streams, gather, window_rows

if TYPE_CHECKING:
    from mdmem.store import Store

MATCHED = 8  # words of the question named with a hit

__all__ = ["Hit", "Recall", "recall", "recall_many"]


def recall(store: Store, query: Query) -> Recall:
    """Return the best notes for a query, best first; none is no error. One stream being down is a notice; both down
    raises MdmemError. Raises UsageError for a query that makes no sense, NotFound when `as_of` lies before the store."""
    return recall_many([("", store)], query)


def recall_many(stores: Sequence[tuple[str, Store]], query: Query) -> Recall:
    """Return the best notes of several stores, each given with the name that its hits carry ('' for one's own).

    The settings of the first store count. A store that fails is named in the notices, and the others answer."""
    query = query.checked()
    settings = _settings(stores[0][1], query)
    found, names, notices = _gathered(stores, query)
    mode = _mode(query, found, notices)
    on = stages.switches(stores[0][1].config, query)
    settings, kind = stages.routed(query, settings, on, found)
    ranked = stages.reordered(rank(found, query, settings, stores[0][1].clock.now()), query, on, notices)
    results = [_hit(one, names[one.key[0]]) for one in ranked[: query.limit]]
    answer = Recall(query, results, mode, list(dict.fromkeys(notices)))
    if query.explain:
        answer.explained = _explained(found, query, settings) | {"stages": on.on(), "kind": kind.kind if kind else None}
    if query.budget is not None:
        answer.context, needed = _context(ranked, names, query)
        if not answer.context:
            why = f"none of the passages fits into {query.budget} tokens, the smallest needs {needed}"
            answer.notices.append(f"the context block is empty: {why if results else 'nothing was found'}")
    return answer


def ranking(stores: Sequence[tuple[str, Store]], query: Query, vector: Any = None) -> list[Ranked]:
    """Return every candidate in order, without passages; `vector`: the question's, where the caller has it."""
    query = query.checked()
    found, _, notices = _gathered(stores, query, vector)
    on = stages.switches(stores[0][1].config, query)
    settings, _ = stages.routed(query, _settings(stores[0][1], query), on, found)
    return stages.reordered(rank(found, query, settings, stores[0][1].clock.now()), query, on, notices)


def _gathered(
    stores: Sequence[tuple[str, Store]], query: Query, vector: Any = None
) -> tuple[list[Streams], list[str], list[str]]:
    """Return (what each store has, its name, notices)."""
    found: list[Streams] = []
    names: list[str] = []
    notices: list[str] = []
    first = stores[0][1]
    # The shared index is asked once, beside the first store.
    engine = first.config.get("index.engine") == "milvus"
    if engine and (query.as_of is not None or query.query_syntax):
        engine = False
        notices.append("the shared index knows no --as-of and no --query-syntax; answered from the local index alone")
    for number, (name, store) in enumerate(stores):
        try:
            if engine and number == 0:
                from mdmem.recall.shared import gather_both

                several = gather_both(store, query, vector, [other for _, other in stores[1:]])
            else:
                several = [gather(store, query, vector if vector is not None else _embedded(found, store, query))]
        except MdmemError as error:
            if len(stores) == 1:
                raise
            notices.append(f"{name or store.root}: {error}")
            continue
        for streams in several:
            notices += [f"{name}: {text}" if name else text for text in streams.notices]
            found.append(streams)
            names.append(name)
    return found, names, notices


def _embedded(found: Sequence[Streams], store: Store, query: Query) -> Any:
    """Return the question's vector as a store that was asked before had it from the same model, which this one then uses
    too: a model is loaded once, and a question runs through it once. None where there is none."""
    if query.mode == "keyword" or not found:
        return None
    dense = store.index.dense
    names = [name for name in DEFAULTS if name.startswith("embedding.")]
    for streams in found:
        other = streams.store
        model = other.index.dense.loaded if other is not store else None
        if model is not None and all(other.config.get(name) == store.config.get(name) for name in names):
            if dense.loaded is None:
                dense.use(model)
            if streams.asked is not None and dense.loaded is model:
                return streams.asked
    return None


def _settings(store: Store, query: Query) -> Settings:
    config = store.config
    weight = query.weight if query.weight is not None else float(config.get("recall.bm25_weight"))
    return Settings(
        fusion=query.fusion or str(config.get("recall.fusion")),
        weight=min(1.0, max(0.0, weight)),
        window=adjust.window_days(str(config.get("recall.decay_window"))),
        shape=str(config.get("lifecycle.decay")),
        conversations=bool(config.get("recall.conversations")),
    )


def _mode(query: Query, found: list[Streams], notices: list[str]) -> str:
    """Return the mode that was really used, and say so when it is not the one asked for."""
    if query.mode == "keyword" or any(streams.meaning for streams in found):
        return query.mode
    if not any(streams.candidates for streams in found):
        return query.mode
    if not any("words only" in text for text in notices):
        notices.append("searched by words only: no vectors yet, or no model")
    return "keyword"


def _hit(one: Ranked, name: str) -> Hit:
    from mdmem.index.analyzer import tokens
    from mdmem.recall.snippet import snippet

    candidate, row, catalog = one.candidate, one.candidate.row, one.streams.index.catalog
    assert row is not None
    if candidate.cosine is None and candidate.near is not None:
        from mdmem.recall.meaning import cosines

        cosines(one.streams, [candidate])
    window = window_rows(catalog, [candidate.window]).get(candidate.window)
    if window is None:
        window = catalog.row("SELECT * FROM windows WHERE note = ? ORDER BY ord LIMIT 1", (candidate.note,))
    shown = snippet(window["text"], window["start_line"], one.streams.worth(), tokens) if window is not None else None
    tags = [tag["tag"] for tag in catalog.rows("SELECT tag FROM tags WHERE note = ? ORDER BY tag", (candidate.note,))]
    terms = sorted((one.streams.terms[number] for number in candidate.matched), key=lambda term: (term.df, term.text))
    return Hit(
        id=row["id"] or "",
        path=row["path"],
        store=name,
        kind=row["kind"] or "",
        type=row["type"] or "",
        title=row["title"] or "",
        score=one.score,
        snippet=shown.text if shown else "",
        start_line=shown.start_line if shown else 1,
        end_line=shown.end_line if shown else 1,
        created=row["created"] or "",
        updated=row["updated"] or "",
        scope=row["scope"] or "",
        agent=row["agent"] or "",
        tags=tags,
        text=window["text"] if window is not None else "",
        cosine=candidate.cosine,
        bm25=candidate.bm25,
        share=candidate.share,
        matched=[term.text for term in terms[:MATCHED]],
        steps=one.steps,
    )


def _explained(found: list[Streams], query: Query, settings: Settings) -> dict[str, Any]:
    """Return what was searched for, and with which settings."""
    return {
        "terms": [
            {"term": term.text, "windows": term.df, "idf": round(term.idf, 3), "weight": term.weight}
            | ({"synonym": True} if term.text in streams.synonyms else {})
            for streams in found
            for term in streams.terms
        ],
        "dates": [[str(p.first), str(p.last)] for streams in found[:1] for p in streams.periods],
        "filters": {name: str(value) for name, value in query.filters.given().items()},
        "candidates": sum(len(streams.candidates) for streams in found),
        "fusion": settings.fusion,
        "bm25_weight": word_weight(found, settings),
        "speakers": sorted({name for streams in found for name in streams.speakers}),
        "decay_window_days": settings.window if query.decay else None,
        "decay": settings.shape if query.decay and settings.window is not None else None,
    }


def _context(ranked: list[Ranked], names: list[str], query: Query) -> tuple[str, int]:
    """Return the context block, best windows in order of rank, as many of the first `limit` as fit; and, where none does,
    the tokens that the smallest needs."""
    from mdmem.recall.pack import Item, pack

    assert query.budget is not None
    items = []
    for one in ranked[: query.limit]:
        hit = _hit(one, names[one.key[0]])
        path = f"{hit.store}: {hit.path}" if hit.store else hit.path
        lines, shorter = (hit.start_line, hit.end_line), _shorter(one, hit.text)
        items.append(Item(hit.id, path, hit.type or hit.kind, hit.title, hit.text, hit.updated, *lines, shorter))
    text = pack(items, query.budget).text
    least = [replace(item, text=(item.text, *item.shorter)[-1]) for item in items]
    return text, 0 if text else min((pack([item], sys.maxsize).tokens for item in least), default=0)


def _shorter(one: Ranked, text: str) -> tuple[str, ...]:
    """Return the overview and the one-line summary of a note, where they are shorter than the passage."""
    import json

    row = one.streams.index.catalog.row("SELECT fields FROM notes WHERE rowid = ?", (one.candidate.note,))
    fields = json.loads(row["fields"] or "{}") if row is not None else {}
    told = [fields.get(name) for name in ("overview", "summary")]
    return tuple(level for level in told if isinstance(level, str) and 0 < len(level) < len(text))
