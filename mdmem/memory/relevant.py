"""What the memory has to say about a prompt: candidates by words and meaning, the gate, and a block of quoted notes.

Used by the prompt hook alone (words only) and by the warm process (with the model). Reads the index as it is: nothing is
refreshed or rebuilt here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.memory import gate
from mdmem.memory.context import Viewer, key
from mdmem.memory.near import space_of, vectors_of
from mdmem.memory.prompts import forced, searchable
from mdmem.memory.quoting import Quote, block, head, shortened
from mdmem.recall.select import agent_scopes, hidden, readable

if TYPE_CHECKING:
    from mdmem.store import Store

# Windows looked at by each way of searching, and notes given at most.
CANDIDATES = 40
MOST = 3
# Windows that the model hands on: the nearest ones by plain cosine.
POOL = 200
# A further note is given only when its chance is this share of the best one's.
BESIDE = 0.6


def relevant(store: Store, request: dict[str, Any], dense: bool) -> dict[str, Any]:
    """Return {text, keys, shown}: the block for the prompt in `request` ('' when nothing is relevant) and what is in it.

    `request` holds prompt, scope, agent, device, own, budget, seen. Never raises for a damaged index: then nothing is found.
    """
    return packed(str(store.root), request, found_in(store, request, dense))


def packed(root: str, request: dict[str, Any], found: list[tuple[float, Quote]]) -> dict[str, Any]:
    """Return {text, keys, shown} of what was found in one store or in several, each with its chance."""
    best = sorted(found, key=lambda one: (-one[0], one[1].path))
    quotes = [quote for chance, quote in best[:MOST] if chance >= BESIDE * best[0][0]]
    if not quotes:
        return {"text": "", "keys": [], "shown": []}
    made = block("for this prompt", root, quotes, int(request.get("budget", 900)))
    keys = [quote.id or quote.path for quote in made.kept]
    return {"text": made.text, "keys": keys, "shown": [quote.line() for quote in made.kept]}


def found_in(store: Store, request: dict[str, Any], dense: bool, name: str = "") -> list[tuple[float, Quote]]:
    """Return (chance, quote) of the notes of one store that pass the gate, best first, at most MOST. `name`: that of another
    store than the session's, named in the origin."""
    found = []
    for chance, window, row in judged(store, searchable(str(request["prompt"])), dense, request)[:MOST]:
        path = f"{name}:{row['path']}" if name else str(row["path"])
        text, title = shortened(_text(store, row, window)), str(row["title"] or "")
        found.append((chance, Quote(str(row.get("id") or ""), path, "", head({**row, "path": path}), text, title)))
    return found


def judged(store: Store, prompt: str, dense: bool, request: dict[str, Any]) -> list[tuple[float, int, dict[str, Any]]]:
    """Return (chance, best window, row) of the notes that pass the gate, best first."""
    weighed = weigh(store, prompt, dense)
    evidence = weighed.notes
    if not evidence:
        return []
    rows = _rows(store, list(evidence))
    seen = set(request.get("seen", ()))
    scope, agent, device = (str(request.get(name, "")) for name in ("scope", "agent", "device"))
    viewer = Viewer("", "", scope, agent, device, patterns=agent_scopes(store))
    least = gate.limit(any(found.meaning is not None for found in evidence.values()), forced(prompt), weighed.windows)
    passed = []
    for note, found in evidence.items():
        row = rows.get(note)
        if row is None or found.chance < least or not viewer.sees(row) or key(row) in seen:
            continue
        if request.get("own") and row.get("device") != viewer.device:
            continue
        passed.append((found.chance, found.window, row))
    return sorted(passed, key=lambda one: (-one[0], str(one[2]["path"])))


@dataclass
class Evidence:
    """What speaks for a note (see memory.gate), and its best window; `meaning` is (near, plain, asks)."""

    share: float
    mass: float
    meaning: tuple[float, float, float] | None
    window: int

    @property
    def chance(self) -> float:
        """The chance that the note answers the prompt."""
        return gate.chance(self.share, self.mass, self.meaning)


class Weighed(NamedTuple):
    """The evidence for each candidate (by the note's rowid), and how many windows there are to find it in."""

    notes: dict[int, Evidence]
    windows: int


def weigh(store: Store, prompt: str, dense: bool, make: bool = False) -> Weighed:
    """Return the evidence for the candidates for a prompt; without `dense`, or a model, from its words alone.

    `make`: take the time to prepare a model that is new here (see near.space_of)."""
    index = store.index
    by_window: dict[int, tuple[int, Evidence]] = {}
    words = gate.telling_words(prompt)
    windows = 0
    if words:
        closed = hidden(store)
        hits = index.text_hits(gate.with_concepts(words), readable(store) if closed else None, CANDIDATES, closed)
        weighing = gate.Weighing(hits.terms, hits.windows, len(words))
        windows = hits.windows
        for hit in hits.hits:
            by_window[hit.window] = (hit.note, Evidence(*weighing.evidence(hit.matched), None, hit.window))
    if dense:
        windows = max(windows, _add_meaning(store, prompt, by_window, make))
    found: dict[int, Evidence] = {}
    for note, evidence in by_window.values():
        best = found.get(note)
        if best is None:
            found[note] = evidence
            continue
        # A note's evidence is the best of its windows, each part by itself; it is shown by the best window.
        if evidence.chance > best.chance:
            best.window = evidence.window
        best.share, best.mass = max(best.share, evidence.share), max(best.mass, evidence.mass)
        if evidence.meaning is not None and best.meaning is not None:
            near, plain, asks = evidence.meaning
            best.meaning = (max(best.meaning[0], near), max(best.meaning[1], plain), asks)
    return Weighed(found, windows)


def _add_meaning(store: Store, prompt: str, by_window: dict[int, tuple[int, Evidence]], make: bool) -> int:
    """Add the nearest windows as candidates, and to every candidate how near it is; returns how many windows have a vector."""
    index = store.index
    space = space_of(store, make)
    vector = index.dense.question(prompt) if space is not None else None
    if space is None or vector is None:
        return 0
    pool = [window for window, _ in index.vector_search(vector, readable(store), POOL)]
    wanted = list(dict.fromkeys([*by_window, *pool]))
    marks = ",".join("?" * len(wanted))
    rows = index.catalog.rows(f"SELECT rowid, note, hash FROM windows WHERE rowid IN ({marks})", wanted)
    have, matrix = vectors_of(store, [row["hash"] for row in rows])
    near, plain = space.nearness(vector, matrix)
    scales = dict(zip(have, zip(near.tolist(), plain.tolist(), strict=True), strict=True))
    asks = space.asks(vector)
    for place, row in enumerate(rows):
        window = row["rowid"]
        if window not in by_window:
            by_window[window] = (row["note"], Evidence(0.0, 0.0, None, window))
        # A window without a vector (yet) is judged as a stranger: its words must carry it.
        by_window[window][1].meaning = (*scales.get(place, (0.0, 0.0)), asks)
    return space.windows


def _rows(store: Store, notes: list[int]) -> dict[int, dict[str, Any]]:
    """Return the rows of those notes that may be given: good ones that still hold."""
    from mdmem.clock import stamp

    marks = ",".join("?" * len(notes))
    rows = store.index.catalog.rows(
        f"SELECT rowid, path, id, kind, type, title, summary, scope, agent, device, status, updated, expires FROM notes "
        f"WHERE rowid IN ({marks}) AND state = 'ok' AND kind IN ('memory', 'entity', 'note') "
        f"AND coalesce(status, 'active') NOT IN ('superseded', 'forgotten', 'archived') AND coalesce(expires, '9') > ?",
        [*notes, stamp(store.clock.now())],
    )
    return {row["rowid"]: dict(row) for row in rows}


def _text(store: Store, row: dict[str, Any], window: int) -> str:
    found = store.index.catalog.row("SELECT text FROM windows WHERE rowid = ?", (window,))
    return str(found["text"]) if found is not None else str(row.get("summary") or "")
