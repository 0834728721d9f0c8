"""How often each term stands in a repository, as the shared index keeps it: for each scope, so that what is hidden from a
reader counts in no weight. Counted over a commit, or changed by what a push brings and takes away.

The list of a scope is named by the turn that wrote it and the commit's record names the turn of each scope, so that a writer
that was overtaken or killed changes no list in use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from mdmem.index.milvus import BUCKETS, PIECE, PLAIN_DIMS, ROWS, SMALL, Engine, dimension, key_of, quoted, squeeze, stretch
from mdmem.index.score import Corpus
from mdmem.index.segment import FIELDS

Terms = dict[str, list[int]]  # term → [windows, notes]
Counts = dict[str, tuple[dict[str, Any], Terms]]  # scope → (windows, notes, lengths, scripts; terms)


def nothing() -> tuple[dict[str, Any], Terms]:
    """Return the counts of a scope without notes."""
    return {"windows": 0, "notes": 0, "lengths": [0] * len(FIELDS), "scripts": [0, 0]}, {}


def counted(corpus: Corpus, scope_of: Mapping[int, str], wide: Collection[int]) -> Counts:
    """Return the counts of the notes in `scope_of` (rowid → scope); `wide`: the windows in a CJK script."""
    found: Counts = {scope: nothing() for scope in sorted(set(scope_of.values()))}
    for scope in scope_of.values():
        found[scope][0]["notes"] += 1
    for part in corpus.parts:
        owners, dead = part.segment.notes, part.dead
        scopes = [scope_of.get(note, "") for note in owners]
        for doc, scope in enumerate(scopes):
            if scope and doc not in dead:
                one = found[scope][0]
                one["windows"] += 1
                one["scripts"][part.segment.windows[doc] in wide] += 1
                for number, column in enumerate(part.segment.lengths):
                    one["lengths"][number] += column[doc]
        # Where all are of one scope, none is looked up.
        alone = scopes[0] if scopes and len(set(scopes)) == 1 else ""
        for term, held in part.segment.every():
            docs: dict[str, list[int]] = {}
            if alone:
                docs[alone] = [doc for doc in held.docs if doc not in dead] if dead else list(held.docs)
            else:
                for doc in held.docs:
                    if doc not in dead and scopes[doc]:
                        docs.setdefault(scopes[doc], []).append(doc)
            for scope, mine in docs.items():
                if mine:
                    entry = found[scope][1].setdefault(term, [0, 0])
                    entry[0] += len(mine)
                    # A note's windows stand in one segment, so that none is counted twice.
                    entry[1] += len({owners[doc] for doc in mine})
    return found


def carry(
    engine: Engine, repo: str, turn: str, before: Mapping[str, Any], more: Counts, less: Counts
) -> dict[str, dict[str, Any]]:
    """Write, under a turn, the lists of the scopes that `more` or `less` touch: as they were `before` (scope → what was
    recorded) with the one added and the other taken away. Returns what is to be recorded of each; a scope that is left without
    notes is not among them. Raises SharedDown."""
    scopes: dict[str, dict[str, Any]] = {}
    for scope in sorted({*more, *less}):
        (plus, added), (minus, removed) = more.get(scope, nothing()), less.get(scope, nothing())
        known = before.get(scope)
        old = known or nothing()[0]
        sums = {name: _sum(_sum(old[name], 1, plus[name]), -1, minus[name]) for name in plus}
        if not sums["notes"]:
            continue
        differing = {*added, *removed}
        if known is None or known["pieces"] == 1:
            terms: Terms = {}
            for piece in _pieces(engine, repo, scope, known).values() if known else ():
                terms.update(piece)
            _change(terms, differing, added, removed)
            scopes |= write(engine, repo, turn, {scope: (sums, terms)})
            continue
        # Piece by piece, so that of a long list only what differs is looked at term by term.
        number = int(known["pieces"])
        inside: dict[int, set[str]] = {}
        for term in differing:
            inside.setdefault(dimension(term) % number, set()).add(term)
        pieces = _pieces(engine, repo, scope, known)
        for place, mine in inside.items():
            _change(pieces.setdefault(place, {}), mine, added, removed)
        _put(engine, repo, {_pk(repo, turn, scope, number, place): piece for place, piece in pieces.items() if piece})
        scopes[scope] = {**sums, "pieces": number, "turn": turn}
    return scopes


def _change(terms: Terms, differing: Collection[str], added: Terms, removed: Terms) -> None:
    none = [0, 0]
    for term in differing:
        entry = _sum(_sum(terms.get(term, none), 1, added.get(term, none)), -1, removed.get(term, none))
        if entry[0]:
            terms[term] = entry
        else:
            terms.pop(term, None)


def _sum(one: Any, sign: int, other: Any) -> Any:
    if isinstance(one, list):
        return [_sum(a, sign, b) for a, b in zip(one, other)]
    return max(0, one + sign * other)


def listed(engine: Engine, repo: str, scope: str, known: Mapping[str, Any]) -> Terms:
    """Return the list of terms of a scope. Raises SharedDown."""
    found: Terms = {}
    for piece in _pieces(engine, repo, scope, known).values():
        found.update(piece)
    return found


def _pieces(engine: Engine, repo: str, scope: str, known: Mapping[str, Any]) -> dict[int, Terms]:
    """Return the pieces of a scope's list by their numbers."""
    found: dict[int, Terms] = {}
    keys = names_of(repo, scope, known)
    for start in range(0, len(keys), ROWS):
        inside = f"repo in {quoted([key_of(repo)])} and pk in {quoted(keys[start : start + ROWS])}"
        for row in engine.few(engine.state, inside, ["pk", "blob"]):
            found[int(row["pk"].rpartition(":")[2])] = stretch(row["blob"])
    return found


def names_of(repo: str, scope: str, known: Mapping[str, Any]) -> list[str]:
    """Return the primary keys of the pieces of a scope's list."""
    number = int(known["pieces"])
    return [_pk(repo, known["turn"], scope, number, place) for place in range(number)]


def write(engine: Engine, repo: str, turn: str, counts: Counts) -> dict[str, dict[str, Any]]:
    """Write the lists of some scopes under a turn; returns what is to be recorded of each. Raises SharedDown."""
    scopes: dict[str, dict[str, Any]] = {}
    for scope, (sums, terms) in counts.items():
        if not sums["notes"]:
            continue
        number = 1 if len(terms) <= SMALL else BUCKETS
        scopes[scope] = {**sums, "pieces": number, "turn": turn}
        pieces: dict[int, Terms] = {}
        for term, entry in terms.items():
            pieces.setdefault(dimension(term) % number, {})[term] = entry
        _put(engine, repo, {_pk(repo, turn, scope, number, place): piece for place, piece in pieces.items()})
    return scopes


def _put(engine: Engine, repo: str, pieces: Mapping[str, Terms]) -> None:
    """Write pieces; of a repository of millions of terms the rarest are left out, and count as standing where they are seen."""
    rows = []
    for pk, terms in pieces.items():
        row = state_row(repo, pk, terms)
        while len(row["blob"]) > PIECE:
            terms = dict(sorted(terms.items(), key=lambda entry: -entry[1][0])[: len(terms) * 3 // 4])
            row = state_row(repo, pk, terms)
        rows.append(row)
    engine.put(engine.state, rows)


def _pk(repo: str, turn: str, scope: str, number: int, place: int) -> str:
    return f"{key_of(repo)}:{turn}:terms:{key_of(scope)}:{number}:{place}"


def state_row(repo: str, pk: str, value: Any) -> dict[str, Any]:
    """Return a row of the collection of states."""
    return {"pk": pk, "repo": key_of(repo), "blob": squeeze(value), "meaning": [1.0] * PLAIN_DIMS}
