"""The stream by meaning: the nearest windows of each note, with cosines that can be compared between two languages."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from mdmem.index.language import wide
from mdmem.recall.streams import POOL, Candidate, Streams, owners_of, rows_in, window_rows

if TYPE_CHECKING:
    from mdmem.recall.query import Query


def aim(found: Streams, query: Query, wanted: Collection[int] | None, vector: Any) -> None:
    """Set whom of a conversation the question names, and the vector to search with then. Not in a store of two languages,
    whose cosines are evened out by the question's own vector."""
    from mdmem.recall import speakers

    texts = window_rows(found.index.catalog, found.leading)
    names = speakers.speakers((texts[window]["text"] for window in found.leading if window in texts), query.text)
    if not names or (found.store.config.get("recall.languages") and found.index.level(vector, wide(query.text), wanted)):
        return
    found.aim = speakers.aimed(found.store.index.dense, query.text, vector, names)
    found.speakers = names if found.aim is not None else []


def search(found: Streams, query: Query, wanted: Collection[int] | None, by_note: dict[int, Candidate], vector: Any) -> None:
    """Add the notes of the nearest windows. Where the store holds two languages each one is searched, since the nearest of
    all would be those of the question's own."""
    asked = wide(query.text)
    vector = vector if found.aim is None else found.aim
    if not query.plain and found.store.config.get("recall.languages"):
        found.level = found.index.level(vector, asked, wanted)
    for script in (None,) if found.level is None else (asked, not asked):
        near = found.index.vector_search(vector, wanted, POOL, script)
        found.meaning = found.meaning or bool(near)
        owners = owners_of(found.index.catalog, [window for window, _ in near])
        for window, cosine in near:
            if window in owners:
                _take(found, by_note.setdefault(owners[window], Candidate(owners[window])), window, cosine, bool(script))


def complete(found: Streams, vector: Any) -> None:
    """Words or a date alone brought these in: look up how near they are, so that no stream counts them as strangers."""
    lacking = {candidate.note: candidate for candidate in found.candidates if candidate.cosine is None}
    rows = rows_in(found.index.catalog, "SELECT rowid, note, wide FROM windows WHERE note IN (%s)", list(lacking))
    owner = {row["rowid"]: row for row in rows}
    cosines = found.index.cosines(vector if found.aim is None else found.aim, sorted(owner))
    for window in sorted(cosines):
        row = owner[window]
        _take(found, lacking[row["note"]], window, cosines[window], bool(row["wide"]))
    if found.aim is not None:
        _measured(found, vector)


def _measured(found: Streams, vector: Any) -> None:
    """Give each candidate the cosine to the question itself, and stretch `near` to the span of these: in the same order, and
    comparable with another store's."""
    near = [candidate for candidate in found.candidates if candidate.near is not None]
    cosines = found.index.cosines(vector, sorted({candidate.near_window for candidate in near}))
    if not near or not cosines:
        return
    low, high = min(cosines.values()), max(cosines.values())
    values = [candidate.near or 0.0 for candidate in near]
    bottom, span = min(values), max(values) - min(values)
    for candidate, value in zip(near, values, strict=True):
        candidate.cosine = cosines.get(candidate.near_window, candidate.cosine)
        candidate.near = low + (high - low) * ((value - bottom) / span if span > 0 else 1.0)


def _take(found: Streams, candidate: Candidate, window: int, cosine: float, written: bool) -> None:
    near = cosine if found.level is None else found.level.near(cosine, written)
    if candidate.near is None or near > candidate.near:
        candidate.cosine, candidate.near, candidate.near_window = cosine, near, window
        candidate.foreign = found.level is not None and written != found.level.asked
