"""Finding entities by words and by meaning: recall's pipeline with the graph's own weights and window."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mdmem.graph.nodes import brief
from mdmem.index.catalog import listed
from mdmem.notes.names import fold
from mdmem.recall.query import Filters, Query
from mdmem.recall.recall import recall

if TYPE_CHECKING:
    from mdmem.store import Store

KINDS = ("entity", "note")
WORDS = 0.3  # share of BM25 beside 0.7 of the cosine, both scaled min-max
DAYS = 180
LIMIT = 10


def search(
    store: Store, text: str, *, types: Sequence[str] = (), days: int | None = DAYS, limit: int = LIMIT
) -> dict[str, Any]:
    """Return {results, mode, notices}: entities that fit, best first, updated in the last `days` (None: at any time).

    Raises UsageError for an empty query."""
    since = store.clock.now() - timedelta(days=days) if days is not None else None
    filters = Filters(kinds=KINDS, types=tuple(types) or None, since=since)
    found = recall(store, Query(text, limit, filters=filters, fusion="minmax", weight=WORDS, decay=False))
    catalog = store.index.catalog
    named = catalog.rows(
        "SELECT * FROM notes WHERE path IN (SELECT value FROM json_each(?))", (listed(hit.path for hit in found.results),)
    )
    rows = {row["path"]: row for row in named}
    out = []
    # Who types an entity's own name means that entity, however often others speak of it.
    asked = fold(text.strip())
    for hit in sorted(found.results, key=lambda hit: asked not in (fold(hit.title), fold(hit.id))):
        row = rows.get(hit.path)
        if row is not None:
            out.append({**brief(row), "score": round(hit.score, 6), "snippet": hit.snippet, "line": hit.start_line})
    return {"query": text, "mode": found.mode, "results": out, "notices": found.notices}
