"""Edges between notes: resolved by name, kept right while notes come and go, walked in both directions.

A target may be an id, a path, a file name without `.md`, a title or an alias. One that fits nothing, more than one note,
or the note itself is kept as an edge without a destination, with the reason as its state.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mdmem.index.catalog import Catalog, clean, listed
from mdmem.notes.names import fold

if TYPE_CHECKING:
    from mdmem.index.links import Edge

OK, DANGLING, AMBIGUOUS, SELF = "ok", "dangling", "ambiguous", "self"


def target_key(target: str) -> str:
    """Return the form under which a target is looked up."""
    key = clean(fold(target.strip()))
    return key[2:] if key.startswith("./") else key


def last_part(key: str) -> str:
    """Return the last part of a folded name: `a/x.md` → x."""
    return key.removesuffix(".md").rpartition("/")[2]


def look_up(
    connection: sqlite3.Connection, key: str, near: str = "", among: Collection[int] | None = None
) -> tuple[list[int], str]:
    """Return (note rowids, state) for a folded target; `near` is the path of the note that points.

    Order: id, path, path ending, file name, title, alias; the first that fits anything decides. `among`: the notes that
    there are for whoever asks (None: all)."""
    found: dict[int, list[int]] = {}
    for how, note in connection.execute("SELECT how, note FROM names WHERE key = ?", (key,)):
        if among is None or note in among:
            found.setdefault(how, []).append(note)
    if not found and ("/" in key or key.endswith(".md")):
        return _by_ending(connection, key, among)
    if not found:
        return [], DANGLING
    notes = found[min(found)]
    if len(notes) == 1:
        return notes, OK
    # Of files with one name the one in the same folder is meant, as in any wiki.
    folder = fold(near.rpartition("/")[0])
    rows = connection.execute("SELECT rowid, path FROM notes WHERE rowid IN (SELECT value FROM json_each(?))", (listed(notes),))
    close = [row[0] for row in rows if fold(row[1].rpartition("/")[0]) == folder] if near else []
    return (close, OK) if len(close) == 1 else (sorted(notes), AMBIGUOUS)


def _by_ending(connection: sqlite3.Connection, key: str, among: Collection[int] | None) -> tuple[list[int], str]:
    ending = "/" + key.removesuffix(".md") + ".md"
    rows = connection.execute(
        "SELECT n.rowid, n.path FROM names JOIN notes n ON n.rowid = names.note WHERE names.key = ? AND names.how = 2",
        (last_part(key),),
    )
    fits = sorted(row[0] for row in rows if fold("/" + row[1]).endswith(ending))
    notes = [note for note in fits if among is None or note in among]
    return notes, OK if len(notes) == 1 else AMBIGUOUS if notes else DANGLING


def store_edges(connection: sqlite3.Connection, note: int, edges: Iterable[Edge]) -> None:
    """Write the edges that start at a note. They dangle until `resolve_again` is called with their targets' keys."""
    values = []
    for edge in edges:
        key = target_key(edge.target)
        values.append((note, edge.rel, clean(edge.target), key, last_part(key), None, edge.origin, edge.line, DANGLING))
    if values:
        connection.executemany("INSERT INTO edges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def _resolved(connection: sqlite3.Connection, note: int, path: str, key: str) -> tuple[int | None, str]:
    notes, state = look_up(connection, key, path)
    if state != OK:
        return None, state
    return (None, SELF) if notes[0] == note else (notes[0], OK)


def resolve_again(connection: sqlite3.Connection, keys: Iterable[str], gone: Iterable[int] = ()) -> None:
    """Look up again every edge whose target's name came, went or moved: `keys` are the folded names."""
    # `a/x` may be met by any file called x, so the last part decides what is looked at.
    lasts = {last_part(key) for key in keys}
    rows: dict[int, tuple[int, str, int | None, str, str]] = {}
    for column, values in (("last", lasts), ("dst", set(gone))):
        if values:
            found = connection.execute(
                "SELECT e.rowid, e.src, e.key, e.dst, e.state, n.path FROM edges e JOIN notes n ON n.rowid = e.src "
                f"WHERE e.{column} IN (SELECT value FROM json_each(?))",
                (listed(values),),
            )
            rows.update((row[0], tuple(row[1:])) for row in found)
    changed = []
    for rowid, (src, key, dst, state, path) in rows.items():
        now = _resolved(connection, src, path, key)
        if now != (dst, state):
            changed.append((*now, rowid))
    connection.executemany("UPDATE edges SET dst = ?, state = ? WHERE rowid = ?", changed)


@dataclass(frozen=True)
class Step:
    """One edge on the way: from note to note, `forward` when walked as written."""

    src: int
    rel: str
    dst: int
    forward: bool


@dataclass(frozen=True)
class Neighbour:
    """A note that was reached: its distance and the edges that led there."""

    note: int
    depth: int
    steps: tuple[Step, ...]


def neighbours(
    catalog: Catalog,
    notes: Iterable[int],
    depth: int = 1,
    rel: Iterable[str] | None = None,
    direction: str = "both",
    limit: int | None = None,
    links: bool = True,
    among: Collection[int] | None = None,
) -> list[Neighbour]:
    """Return the notes within `depth` edges, nearest first, each once, by a shortest way.

    `direction` is out, in or both; `rel` keeps only these relations; without `links` only edges of fields count; `among`:
    no way leads through any other note. Notes of one distance come in the order in which they were met (their starting
    notes' order, then rowid). Cycles end."""
    kinds = set(rel) if rel is not None else None
    start = list(dict.fromkeys(notes))
    way: dict[int, tuple[Step, ...]] = dict.fromkeys(start, ())
    found: list[Neighbour] = []
    front = start

    def walk(connection: sqlite3.Connection) -> None:
        nonlocal front
        found.clear()
        way.clear()
        way.update(dict.fromkeys(start, ()))
        front = start
        for distance in range(1, depth + 1):
            following: list[int] = []
            for note, step in _around(connection, front, direction, kinds, links):
                other = step.dst if step.forward else step.src
                if other not in way and (among is None or other in among):
                    way[other] = (*way[note], step)
                    following.append(other)
                    found.append(Neighbour(other, distance, way[other]))
                    if limit is not None and len(found) >= limit:
                        return
            if not following:
                return
            front = following

    catalog.read(walk)
    return found


def _around(
    connection: sqlite3.Connection, front: list[int], direction: str, kinds: set[str] | None, links: bool
) -> list[tuple[int, Step]]:
    """Return (note of the front, step) for every edge at the front, in the order of the front."""
    place = {note: number for number, note in enumerate(front)}
    steps: list[tuple[int, Step]] = []
    wanted = listed(front)
    for end, forward in (("src", True), ("dst", False)):
        if direction == ("in" if forward else "out"):
            continue
        rows = connection.execute(
            f"SELECT src, rel, dst, origin FROM edges WHERE {end} IN (SELECT value FROM json_each(?)) AND dst IS NOT NULL",
            (wanted,),
        )
        for src, rel, dst, origin in rows:
            if (kinds is None or rel in kinds) and (links or origin == "field"):
                steps.append((src if forward else dst, Step(src, rel, dst, forward)))
    steps.sort(key=lambda pair: (place[pair[0]], not pair[1].forward, pair[1].rel, pair[1].dst, pair[1].src))
    return steps


def path_between(
    catalog: Catalog,
    start: int,
    end: int,
    depth: int = 6,
    direction: str = "both",
    rel: Iterable[str] | None = None,
    among: Collection[int] | None = None,
) -> tuple[Step, ...] | None:
    """Return the edges of a shortest way between two notes, () when they are one, None when there is none in `depth`."""
    if start == end:
        return ()
    for found in neighbours(catalog, [start], depth, rel, direction, among=among):
        if found.note == end:
            return found.steps
    return None
