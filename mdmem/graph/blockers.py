"""What is blocked or waits, by what, since when, and who waits for it in turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.graph.nodes import ENDED, THINGS, WAITING, Link, brief, links, name_of, ready
from mdmem.graph.since import since
from mdmem.recall.query import Filters
from mdmem.recall.select import rows

if TYPE_CHECKING:
    import sqlite3

    from mdmem.store import Store

WAITS = ("blocked_by", "depends_on")
STALE_DAYS = 3


@dataclass
class Waits:
    """Who waits for whom: by note, what it names, and by note, who names it."""

    on: dict[int, list[Link]] = field(default_factory=dict)
    for_: dict[int, list[int]] = field(default_factory=dict)


def waits(found: Iterable[Link]) -> Waits:
    """Return the edges of waiting, `X blocks Y` turned round to `Y waits for X`."""
    out = Waits()
    for link in found:
        if link.rel in WAITS:
            out.on.setdefault(link.src, []).append(link)
            if link.dst is not None:
                out.for_.setdefault(link.dst, []).append(link.src)
        elif link.rel == "blocks" and link.dst is not None:
            turned = Link(link.dst, "blocks", link.target, link.src, link.state, link.origin, link.line)
            out.on.setdefault(link.dst, []).append(turned)
            out.for_.setdefault(link.src, []).append(link.dst)
    return out


def blockers(store: Store, stale_days: float = STALE_DAYS, limit: int = 0) -> list[dict[str, Any]]:
    """Return what is blocked or waiting and was not updated for `stale_days`, longest blocked first.

    Each: the note, `since`, `by` (what it waits for, ended ones marked), `blocks` (who waits for it, also indirectly)."""
    among = ready(store)
    known = {row["rowid"]: row for row in rows(store, Filters(kinds=THINGS, retired=True))}
    waiting = waits(links(store, among, (*WAITS, "blocks")))
    before = stamp(store.clock.now() - timedelta(days=stale_days))
    stuck = [
        row
        for row in rows(store, Filters(kinds=THINGS, statuses=WAITING))
        if not stale_days or (row["updated"] or "") <= before
    ]
    began = since(store, stuck)
    out = []
    for row in stuck:
        found = {**brief(row), "since": began.get(row["rowid"]) or row["updated"] or ""}
        found["by"] = [by for link in waiting.on.get(row["rowid"], ()) if (by := _blocker(link, known))]
        found["blocks"], found["cycle"] = _in_turn(row["rowid"], waiting, known)
        out.append(found)
    out.sort(key=lambda one: (one["since"], one["path"]))
    return out[:limit] if limit else out


def _blocker(link: Link, known: dict[int, sqlite3.Row]) -> dict[str, Any]:
    row = known.get(link.dst) if link.dst is not None else None
    if row is None:
        return {"rel": link.rel, "target": link.target, "state": link.state, "ended": False}
    ended = (row["status"] or "") in ENDED
    return {**_named(row), "rel": link.rel, "target": name_of(row), "ended": ended}


def _named(row: sqlite3.Row) -> dict[str, Any]:
    shown = {name: row[name] or "" for name in ("path", "title", "status", "scope")}
    return {"id": name_of(row), **shown}


def _in_turn(start: int, waiting: Waits, known: dict[int, sqlite3.Row]) -> tuple[list[dict[str, Any]], bool]:
    """Return (who waits for a note, nearest first, ended ones left out; whether it waits for itself in the end)."""
    out: list[dict[str, Any]] = []
    seen = {start}
    cycle = False
    queue = deque([(start, 0)])
    while queue:
        note, depth = queue.popleft()
        for other in waiting.for_.get(note, ()):
            cycle |= other == start
            row = known.get(other)
            if other in seen or row is None or (row["status"] or "") in ENDED:
                continue
            seen.add(other)
            out.append({**_named(row), "depth": depth + 1})
            queue.append((other, depth + 1))
    return out, cycle
