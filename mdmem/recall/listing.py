"""Notes by their fields, without a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mdmem.recall.query import Filters
from mdmem.recall.select import agent_scopes, rows

if TYPE_CHECKING:
    import sqlite3

    from mdmem.store import Store

_ORDER = {
    "updated": "ORDER BY n.updated DESC, n.path",
    "created": "ORDER BY n.created DESC, n.path",
    "title": "ORDER BY n.title COLLATE NOCASE, n.path",
    "path": "ORDER BY n.path",
}
_SHOWN = ("id", "path", "kind", "type", "category", "title", "summary", "status", "priority", "scope", "agent")
_DATES = ("created", "updated")


def select(store: Store, filters: Filters, *, sort: str = "updated", limit: int = 0) -> list[sqlite3.Row]:
    """Return the rows that fit, in order; the catalog is refreshed first. `limit` 0: all."""
    store.index.refresh(embed_budget_s=0.0)
    # Where an agent may not read all notes, what fits is known only after the rows are there.
    first = f" LIMIT {limit}" if limit and agent_scopes(store) is None else ""
    found = rows(store, filters, _ORDER[sort] + first)
    return found[:limit] if limit else found


def as_row(row: sqlite3.Row) -> dict[str, Any]:
    """Return a catalog row as JSON data."""
    return {name: row[name] or "" for name in (*_SHOWN, *_DATES)}
