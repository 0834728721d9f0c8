"""The graph as a stream of recall: what belongs to an entity that the question names joins the candidates, and related
candidates lift each other a little. `recall.graph` switches it off; benchmarks/graph_recall.py measures what it brings."""

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

# A name in a script without borders between words: of how many characters at least, and how much of a question is looked at.
SHORTEST, LOOKED = 2, 2000

_CJK = (("\u3040", "\u30ff"), ("\u3400", "\u4dbf"), ("\u4e00", "\u9fff"), ("\uf900", "\ufaff"), ("\U00020000", "\U000323af"))
_WORD = re.compile(r"[^\s?!,;:()\"“”„«»。，？！、；：]+")


def named(catalog: Catalog, text: str, wanted: Collection[int] | None) -> list[int]:
    """Return the entities (rowids) that a question names by title, alias or id, the longest name first.

    Words stand apart by spaces; a Chinese or Japanese name is found inside its sentence, the longest one at each place."""
    folded = fold(text)
    inside = _inside(catalog, folded[:LOOKED], wanted)
    for name, places in inside.items():
        for at in places:
            folded = folded[:at] + " " * len(name) + folded[at + len(name) :]
    words = [word.strip(".'’") for word in _WORD.findall(_parted(folded))]
    words = [re.sub(r"['’]s$", "", word) for word in words if word]
    spans = [(size, at) for size in range(min(WORDS, len(words)), 0, -1) for at in range(len(words) - size + 1)]
    keys = {" ".join(words[at : at + size]): size for size, at in spans}
    # A name of several words counts as many; a Chinese one as its characters.
    keys |= {name: len(name) for name in inside}
    rows = catalog.rows(
        "SELECT DISTINCT names.key AS key, n.rowid AS note FROM names JOIN notes n ON n.rowid = names.note "
        "WHERE names.key IN (SELECT value FROM json_each(?)) AND n.kind = 'entity'",
        (listed(keys),),
    )
    found = sorted(rows, key=lambda row: (-keys[row["key"]], -len(row["key"]), row["note"]))
    notes = dict.fromkeys(row["note"] for row in found if wanted is None or row["note"] in wanted)
    return list(notes)[:NAMED]


def _is_cjk(char: str) -> bool:
    return any(first <= char <= last for first, last in _CJK)


def _any_cjk(text: str) -> bool:
    return not text.isascii() and any(map(_is_cjk, text))


def _parted(text: str) -> str:
    """Return text with a space between a CJK character and a letter or digit of another script. Not by a pattern: compiling one
    takes longer than the look at a question."""
    if not _any_cjk(text):
        return text
    cjk = [_is_cjk(char) for char in text]
    plain = [char.isalnum() and not there for char, there in zip(text, cjk)]
    borders = [(cjk[at - 1] and plain[at]) or (plain[at - 1] and cjk[at]) for at in range(1, len(text))]
    return text[0] + "".join(f" {char}" if border else char for char, border in zip(text[1:], borders))


def _inside(catalog: Catalog, text: str, wanted: Collection[int] | None) -> dict[str, list[int]]:
    """Return {name: where it begins} of the entity names with a CJK character in a folded text, none inside another one."""
    if not _any_cjk(text):
        return {}
    rows = catalog.rows(
        "SELECT names.key AS key, n.rowid AS note FROM notes n JOIN names ON names.note = n.rowid "
        "WHERE n.kind = 'entity' AND length(names.key) >= ? AND instr(?, names.key)",
        (SHORTEST, text),
    )
    known = {row["key"] for row in rows if _any_cjk(row["key"]) and (wanted is None or row["note"] in wanted)}
    taken: set[int] = set()
    out: dict[str, list[int]] = {}
    for name in sorted(known, key=lambda name: (-len(name), name)):
        for found in re.finditer(re.escape(name), text):
            place = range(found.start(), found.end())
            if _whole(text, place.start, place.stop) and taken.isdisjoint(place):
                out.setdefault(name, []).append(place.start)
                taken.update(place)
    return out


def _whole(text: str, at: int, end: int) -> bool:
    """Return whether a stretch cuts no word of letters and digits in two."""

    def plain(place: int) -> bool:
        return 0 <= place < len(text) and text[place].isalnum() and not _is_cjk(text[place])

    return not (plain(at - 1) and plain(at)) and not (plain(end - 1) and plain(end))


def join(catalog: Catalog, text: str, wanted: Collection[int] | None, by_note: dict[int, Candidate]) -> dict[int, float]:
    """Add the neighbours of the entities that a question names to the candidates; return {note: lift 0…1}."""
    from mdmem.index.edges import neighbours
    from mdmem.recall.streams import Candidate

    if catalog.value("SELECT 1 FROM edges WHERE dst IS NOT NULL LIMIT 1") is None:
        return {}
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
    near = sorted((c for c in pool if c.near is not None), key=lambda c: (-(c.near or 0.0), c.note))[:LEADING]
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
