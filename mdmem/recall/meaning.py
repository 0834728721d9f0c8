"""The stream by meaning: the nearest windows of each note, on one scale for every passage and both languages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from mdmem.index.language import wide
from mdmem.recall.common import common_of
from mdmem.recall.streams import POOL, Candidate, Streams, rows_in, window_rows

if TYPE_CHECKING:
    import sqlite3

    from mdmem.index.catalog import Catalog
    from mdmem.recall.query import Query


def aim(found: Streams, query: Query, wanted: Collection[int] | None, vector: Any) -> None:
    """Set whom of a conversation the question names, and the vector to search with then. Not in a store of two languages,
    whose cosines are evened out by the question's own vector."""
    from mdmem.recall import speakers

    texts = window_rows(found.index.catalog, found.leading)
    names = speakers.speakers((texts[window]["text"] for window in found.leading if window in texts), query.text)
    if not names or (found.store.config.get("recall.languages") and found.index.two_scripts(wanted, 2)):
        return
    found.aim = speakers.aimed(found.store.index.dense, query.text, vector, names)
    found.speakers = names if found.aim is not None else []


def turn(found: Streams, query: Query, wanted: Collection[int] | None, vector: Any) -> None:
    """Set the vector to search with, and what makes its products with windows of two languages comparable."""
    found.asked = vector
    found.turned = vector if found.aim is None else found.aim
    if query.plain or found.aim is not None:
        return
    asked = wide(query.text)
    even = bool(found.store.config.get("recall.languages"))
    common = common_of(found.store) if found.store.config.get("recall.common") else None
    if common is not None:
        found.turned, found.level = common.turned(vector, asked, even, _named(found))
    elif even:
        found.level = found.index.level(vector, asked, wanted)


def search(found: Streams, query: Query, wanted: Collection[int] | None, by_note: dict[int, Candidate], vector: Any) -> None:
    """Add the notes of the nearest windows. Where the store holds two languages each one is searched, since the nearest of
    all would be those of the question's own."""
    turn(found, query, wanted, vector)
    asked = wide(query.text)
    if found.level is not None and found.store.config.get("recall.languages"):
        found.two = found.index.two_scripts(wanted)
    for script in (asked, not asked) if found.two else (None,):
        near = found.index.vector_search(found.turned, wanted, POOL, script)
        found.meaning = found.meaning or bool(near)
        rows = _rows(found.index.catalog, "rowid", [window for window, _ in near])
        for window, value in near:
            if window in rows:
                row = rows[window]
                _take(found, by_note.setdefault(row["note"], Candidate(row["note"])), row, value)


def _named(found: Streams) -> Any:
    """Return what the other words for what a question names add to its vector; None where there is nothing."""
    if not found.concepts:
        return None
    from mdmem.recall.wordvectors import direction

    return direction(found.store, found.concepts)


def complete(found: Streams, explain: bool) -> None:
    """Words or a date alone brought these in: look up how near they are, so that no stream counts them as strangers."""
    lacking = {candidate.note: candidate for candidate in found.candidates if candidate.near is None}
    rows = _rows(found.index.catalog, "note", list(lacking))
    values = found.index.cosines(found.turned, sorted(rows))
    for window in sorted(values):
        _take(found, lacking[rows[window]["note"]], rows[window], values[window])
    if found.aim is not None:
        _measured(found)
    if explain:
        cosines(found, found.candidates)


def _measured(found: Streams) -> None:
    """Give each candidate the cosine to the question itself, and stretch `near` to the span of these: in the same order, and
    comparable with another store's."""
    near = [candidate for candidate in found.candidates if candidate.near is not None]
    cosines = found.index.cosines(found.asked, sorted({candidate.near_window for candidate in near}))
    if not near or not cosines:
        return
    low, high = min(cosines.values()), max(cosines.values())
    values = [candidate.near or 0.0 for candidate in near]
    bottom, span = min(values), max(values) - min(values)
    for candidate, value in zip(near, values, strict=True):
        candidate.cosine = cosines.get(candidate.near_window, candidate.cosine)
        candidate.near = low + (high - low) * ((value - bottom) / span if span > 0 else 1.0)


def cosines(found: Streams, candidates: Sequence[Candidate]) -> None:
    """Set the cosine of each candidate's nearest window to the question as it was asked."""
    lacking = [candidate for candidate in candidates if candidate.cosine is None and candidate.near is not None]
    known = found.index.cosines(found.asked, sorted({candidate.near_window for candidate in lacking})) if lacking else {}
    for candidate in lacking:
        candidate.cosine = known.get(candidate.near_window)


def _rows(catalog: Catalog, column: str, values: Sequence[int]) -> dict[int, sqlite3.Row]:
    """Return {window rowid: row} of windows, by their own rowids or by those of their notes."""
    sql = f"SELECT rowid, note, wide FROM windows WHERE {column} IN (%s)"
    return {row["rowid"]: row for row in rows_in(catalog, sql, values)}


def _take(found: Streams, candidate: Candidate, row: sqlite3.Row, value: float) -> None:
    written = bool(row["wide"])
    near = value if found.level is None else found.level.near(value, written)
    if candidate.near is None or near > candidate.near:
        candidate.near, candidate.near_window = near, row["rowid"]
        candidate.foreign = found.level is not None and found.two and written != found.level.asked
