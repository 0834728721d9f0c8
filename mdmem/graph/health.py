"""The graph at a glance: how much there is, and what a person should look at."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.graph.blockers import WAITS, waits
from mdmem.graph.nodes import ENDED, WAITING, Link, links, name_of, ready
from mdmem.index.edges import OK
from mdmem.recall.query import Filters
from mdmem.recall.select import rows

if TYPE_CHECKING:
    import sqlite3

    from mdmem.store import Store

STALE_DAYS = 30


def health(store: Store) -> dict[str, Any]:
    """Return counts of entities and edges by type and state, what waits, rings of waiting, and what lacks a summary."""
    among = ready(store)
    found = rows(store, Filters(retired=True))
    entities = [row for row in found if row["kind"] == "entity"]
    edges = links(store, among)
    linked = {link.src for link in edges if link.dst is not None} | {link.dst for link in edges if link.dst is not None}
    live = [row for row in entities if (row["status"] or "") not in ENDED]
    before = stamp(store.clock.now() - timedelta(days=STALE_DAYS))
    known = {row["rowid"]: row for row in found}
    states = Counter(link.state for link in edges)
    rings = [[name_of(known[note]) for note in ring] for ring in _rings(edges, known)]
    said = sum(bool(row["summary"]) for row in entities)
    return {
        "notes": len(found),
        "entities": len(entities),
        "types": _counted(row["type"] or "" for row in entities),
        "edges": len(edges),
        "relations": _counted(link.rel for link in edges),
        "states": {name: states.get(name, 0) for name in ("ok", "dangling", "ambiguous", "self")},
        "isolated": sum(row["rowid"] not in linked for row in entities),
        "waiting": sum(row["status"] in WAITING for row in found),
        "stale": sum((row["updated"] or "") <= before for row in live),
        "rings": rings,
        "summaries": round(said / len(entities), 3) if entities else None,
        "healthy": not rings and not sum(count for state, count in states.items() if state != OK),
    }


def _counted(words: Any) -> dict[str, int]:
    return dict(sorted(Counter(words).items(), key=lambda item: (-item[1], item[0])))


def _rings(edges: list[Link], known: dict[int, sqlite3.Row]) -> list[list[int]]:
    """Return the groups of notes that wait for each other (strongly connected components, Tarjan 1972)."""
    waiting = waits(link for link in edges if link.rel in (*WAITS, "blocks"))
    after = {
        note: sorted({link.dst for link in found if link.dst is not None and _live(known, link.dst)})
        for note, found in waiting.on.items()
        if _live(known, note)
    }
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    rings = []
    for start in sorted(after):
        if start in number:
            continue
        work = [(start, iter(after[start]))]
        number[start] = low[start] = len(number)
        stack.append(start)
        while work:
            note, rest = work[-1]
            for other in rest:
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    work.append((other, iter(after.get(other, ()))))
                    break
                if other in stack:
                    low[note] = min(low[note], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[note])
                if low[note] == number[note]:
                    ring = stack[stack.index(note) :]
                    del stack[stack.index(note) :]
                    if len(ring) > 1:
                        rings.append(ring)
    return rings


def _live(known: dict[int, sqlite3.Row], note: int) -> bool:
    return note in known and (known[note]["status"] or "") not in ENDED
