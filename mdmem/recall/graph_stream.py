"""The graph as a stream of recall: what belongs to an entity that the question names joins the candidates, and related
candidates lift each other a little. Off unless `recall.graph` is on: questions that name no entity gain nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from mdmem.index.catalog import listed
from mdmem.notes.names import fold

if TYPE_CHECKING:
    from mdmem.index.catalog import Catalog
    from mdmem.recall.streams import Candidate

WORDS = 6  # words of the longest name that is looked for
NAMED = 5  # entities of a question
JOINED = 30  # neighbours that become candidates
LEADING = 20  # best candidates of each stream that may lift each other
# As parts of 1: a neighbour of a named entity, and one related candidate, at most three of them (prior art: +0.03 a related
# hit, at most 0.09; here times the weight in rank).
NEIGHBOUR, RELATED, MOST = 1.0, 0.3, 0.9

_WORD = re.compile(r"[^\s?!,;:()\"“”„«»。，？！、；：]+")


def named(catalog: Catalog, text: str, wanted: Collection[int] | None) -> list[int]:
    """Return the entities (rowids) that a question names by title, alias or id, the longest name first."""
    words = [word.strip(".'’") for word in _WORD.findall(fold(text))]
    words = [re.sub(r"['’]s$", "", word) for word in words if word]
    spans = [(size, at) for size in range(min(WORDS, len(words)), 0, -1) for at in range(len(words) - size + 1)]
    keys = {" ".join(words[at : at + size]): size for size, at in spans}
    rows = catalog.rows(
        "SELECT DISTINCT names.key AS key, n.rowid AS note FROM names JOIN notes n ON n.rowid = names.note "
        "WHERE names.key IN (SELECT value FROM json_each(?)) AND n.kind = 'entity'",
        (listed(keys),),
    )
    found = sorted(rows, key=lambda row: (-keys[row["key"]], -len(row["key"]), row["note"]))
    notes = dict.fromkeys(row["note"] for row in found if wanted is None or row["note"] in wanted)
    return list(notes)[:NAMED]


def join(catalog: Catalog, text: str, wanted: Collection[int] | None, by_note: dict[int, Candidate]) -> dict[int, float]:
    """Add the neighbours of the entities that a question names to the candidates; return {note: lift 0…1}."""
    from mdmem.index.edges import neighbours
    from mdmem.recall.streams import Candidate

    entities = named(catalog, text, wanted)
    lift: dict[int, float] = {}
    if entities:
        around = neighbours(catalog, entities, 1, limit=JOINED, among=wanted)
        for note in (*entities, *(one.note for one in around)):
            by_note.setdefault(note, Candidate(note))
            lift[note] = NEIGHBOUR
    for note, count in _related(catalog, _leading(by_note.values())).items():
        lift[note] = max(lift.get(note, 0.0), min(MOST, RELATED * count))
    return lift


def _leading(candidates: Iterable[Candidate]) -> list[int]:
    pool = list(candidates)
    words = sorted((c for c in pool if c.bm25 is not None), key=lambda c: (-(c.bm25 or 0.0), c.note))[:LEADING]
    near = sorted((c for c in pool if c.cosine is not None), key=lambda c: (-(c.cosine or 0.0), c.note))[:LEADING]
    return list(dict.fromkeys(c.note for c in (*words, *near)))


def _related(catalog: Catalog, notes: list[int]) -> dict[int, int]:
    """Return how many others among these notes each one is linked to, in either direction."""
    marks = listed(notes)
    rows = catalog.rows(
        "SELECT DISTINCT min(src, dst) AS one, max(src, dst) AS other FROM edges "
        "WHERE src IN (SELECT value FROM json_each(?)) AND dst IN (SELECT value FROM json_each(?))",
        (marks, marks),
    )
    out: dict[int, int] = {}
    for row in rows:
        for note in (row["one"], row["other"]):
            out[note] = out.get(note, 0) + 1
    return out
