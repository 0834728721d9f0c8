"""What belongs to a note: the notes around it, and the way between two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdmem.graph.nodes import brief, name_of, ready, rows_of
from mdmem.recall.select import note_by

if TYPE_CHECKING:
    import sqlite3

    from mdmem.index.edges import Step
    from mdmem.store import Store

FAR = 20  # edges that `path` looks along


@dataclass(frozen=True)
class Related:
    """A note that was asked about, and those around it: {…, depth, via} each, nearest first."""

    note: dict[str, Any]
    found: list[dict[str, Any]]
    cut: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"note": self.note, "related": self.found, "count": len(self.found), "more": self.cut}


def related(
    store: Store,
    reference: str,
    *,
    depth: int = 1,
    rel: Sequence[str] = (),
    direction: str = "both",
    limit: int = 20,
) -> Related:
    """Return the notes within `depth` edges, each with the edges that led to it. `limit` 0: all.

    Raises NotFound, Ambiguous."""
    among = ready(store)
    start = note_by(store, reference)
    found = store.index.neighbours(start["rowid"], depth, rel or None, direction, limit + 1 if limit else None, among=among)
    shown = found[:limit] if limit else found
    rows = rows_of(store, {end for one in shown for step in one.steps for end in (step.src, step.dst)})
    out = [{**brief(rows[one.note]), "depth": one.depth, "via": steps_of(one.steps, rows)} for one in shown]
    return Related(brief(start), out, len(found) > len(shown))


def steps_of(steps: Iterable[Step], rows: dict[int, sqlite3.Row]) -> list[dict[str, Any]]:
    """Return the edges of a way as data: {from, rel, to, forward}, in the order walked."""
    out = []
    for step in steps:
        first, last = (step.src, step.dst) if step.forward else (step.dst, step.src)
        out.append({"from": name_of(rows[first]), "rel": step.rel, "to": name_of(rows[last]), "forward": step.forward})
    return out


def path(store: Store, one: str, other: str, *, rel: Sequence[str] = (), depth: int = FAR) -> dict[str, Any]:
    """Return {from, to, found, length, notes, steps}: a shortest way between two notes along edges in either direction.

    Raises NotFound, Ambiguous."""
    among = ready(store)
    start, end = note_by(store, one), note_by(store, other)
    steps = store.index.path_between(start["rowid"], end["rowid"], depth, rel=rel or None, among=among)
    out: dict[str, Any] = {"from": brief(start), "to": brief(end), "found": steps is not None}
    steps = steps or ()
    rows = rows_of(store, {start["rowid"], *(end for step in steps for end in (step.src, step.dst))})
    passed = [start["rowid"], *(step.dst if step.forward else step.src for step in steps)]
    out["length"] = len(steps)
    out["notes"] = [brief(rows[note]) for note in passed] if out["found"] else []
    out["steps"] = steps_of(steps, rows)
    return out
