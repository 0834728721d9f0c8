"""Notes and edges as the graph's answers show them, for the agent that asks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdmem.index.catalog import listed
from mdmem.index.edges import DANGLING, OK, SELF, look_up
from mdmem.recall.select import readable

if TYPE_CHECKING:
    import sqlite3

    from mdmem.store import Store

WAITING = ("blocked", "waiting")
# `completed` and `closed` are none of our words, and what people write.
ENDED = ("done", "failed", "cancelled", "completed", "closed", "superseded", "forgotten", "archived")
# Kinds that stand for something in the world of a team, as against records of what was said.
THINGS = ("entity", "note", "task", "memory")
_SHOWN = ("id", "path", "kind", "type", "title", "status", "priority", "scope", "updated")


def brief(row: sqlite3.Row) -> dict[str, Any]:
    """Return a note's row as the JSON data that every answer of the graph holds."""
    return {name: row[name] or "" for name in _SHOWN}


def name_of(row: sqlite3.Row) -> str:
    """Return what a person types to name a note: its id, else its path."""
    return str(row["id"] or row["path"])


def rows_of(store: Store, notes: Iterable[int]) -> dict[int, sqlite3.Row]:
    """Return {rowid: row} of some notes; the caller has asked which of them may be read."""
    found = store.index.catalog.rows(
        "SELECT rowid, * FROM notes WHERE rowid IN (SELECT value FROM json_each(?))", (listed(notes),)
    )
    return {row["rowid"]: row for row in found}


def ready(store: Store) -> set[int] | None:
    """Bring the catalog up to the files, and return the notes that this agent may read (None: all)."""
    store.index.refresh(embed_budget_s=0.0)
    return readable(store)


@dataclass(frozen=True)
class Link:
    """One edge for the agent that asks: `dst` is None when it leads to no note that there is for it."""

    src: int
    rel: str
    target: str
    dst: int | None
    state: str
    origin: str
    line: int | None


def links(store: Store, among: Collection[int] | None, rel: Iterable[str] | None = None) -> list[Link]:
    """Return the edges that start at readable notes. One that leads to a note of a hidden scope dangles, and one that is
    ambiguous only by such notes is not."""
    where = "" if rel is None else "WHERE e.rel IN (SELECT value FROM json_each(?))"
    values = () if rel is None else (listed(rel),)
    found = store.index.catalog.rows(
        f"SELECT e.src, e.rel, e.target, e.dst, e.state, e.origin, e.line, e.key, n.path FROM edges e "
        f"JOIN notes n ON n.rowid = e.src {where} ORDER BY e.src, e.rowid",
        values,
    )
    out = []
    for row in found:
        if among is not None and row["src"] not in among:
            continue
        dst, state = row["dst"], row["state"]
        if among is not None and (state not in (OK, SELF, DANGLING) or (dst is not None and dst not in among)):
            dst, state = _again(store, row, among)
        out.append(Link(row["src"], row["rel"], row["target"], dst, state, row["origin"], row["line"]))
    return out


def _again(store: Store, row: sqlite3.Row, among: Collection[int]) -> tuple[int | None, str]:
    notes, state = store.index.catalog.read(lambda connection: look_up(connection, row["key"], row["path"], among))
    if state != OK:
        return None, state
    return (None, SELF) if notes[0] == row["src"] else (notes[0], OK)
