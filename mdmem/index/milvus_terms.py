"""How often each term stands in a repository, as the shared index keeps it: for each scope, so that what is hidden from a
reader counts in no weight. Counted over a commit, or changed by what a push brings and takes away.

The list of a scope is named by the turn that wrote it and the commit's record names the turn of each scope, so that a writer
that was overtaken or killed changes no list in use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from mdmem.index.milvus import BUCKETS, PIECE, PLAIN_DIMS, ROWS, SMALL, Engine, key_of, piece_of, quoted, squeeze, stretch
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


def changed(engine: Engine, repo: str, before: Mapping[str, Any], more: Counts, less: Counts) -> Counts:
    """Return the counts of the scopes that `more` or `less` touch, as they were `before` (scope → what was recorded) with the
    one added and the other taken away; a scope that is left without notes has no terms. Raises SharedDown."""
    found: Counts = {}
    for scope in sorted({*more, *less}):
        known = before.get(scope)
        sums = {**nothing()[0], **{name: known[name] for name in nothing()[0]}} if known else nothing()[0]
        terms = listed(engine, repo, scope, known) if known else {}
        for sign, part in ((1, more), (-1, less)):
            one, held = part.get(scope, nothing())
            sums = {name: _sum(sums[name], sign, one[name]) for name in sums}
            for term, entry in held.items():
                terms[term] = _sum(terms.get(term, [0, 0]), sign, entry)
        found[scope] = sums, {term: entry for term, entry in terms.items() if entry[0] > 0} if sums["notes"] > 0 else {}
    return found


def _sum(one: Any, sign: int, other: Any) -> Any:
    if isinstance(one, list):
        return [_sum(a, sign, b) for a, b in zip(one, other)]
    return max(0, one + sign * other)


def listed(engine: Engine, repo: str, scope: str, known: Mapping[str, Any]) -> Terms:
    """Return the list of terms of a scope. Raises SharedDown."""
    found: Terms = {}
    keys = names_of(repo, scope, known)
    for start in range(0, len(keys), ROWS):
        inside = f"repo in {quoted([key_of(repo)])} and pk in {quoted(keys[start : start + ROWS])}"
        for row in engine.few(engine.state, inside, ["blob"]):
            found.update(stretch(row["blob"]))
    return found


def names_of(repo: str, scope: str, known: Mapping[str, Any]) -> list[str]:
    """Return the primary keys of the pieces of a scope's list."""
    pieces = int(known["pieces"])
    return [_pk(repo, known["turn"], f"terms:{key_of(scope)}:{pieces}:{number}") for number in range(pieces)]


def write(engine: Engine, repo: str, turn: str, counts: Counts, keep_lease: Callable[[], None]) -> dict[str, dict[str, Any]]:
    """Write the lists of some scopes under a turn; returns what is to be recorded of each. Raises SharedDown."""
    scopes: dict[str, dict[str, Any]] = {}
    pieces: dict[str, Terms] = {}
    for scope, (sums, terms) in counts.items():
        if not sums["notes"]:
            continue
        number = 1 if len(terms) <= SMALL else BUCKETS
        scopes[scope] = {**sums, "pieces": number, "turn": turn}
        for term, entry in terms.items():
            pieces.setdefault(_pk(repo, turn, piece_of(term, scope, number)), {})[term] = entry
    keep_lease()
    engine.put(engine.state, [state_row(repo, pk, _fitting(terms)) for pk, terms in pieces.items()])
    return scopes


def _fitting(terms: Terms) -> Terms:
    """Return what of a piece fits into a row: of a repository of millions of terms the rarest are left out, and count as
    standing where they are seen."""
    while len(squeeze(terms)) > PIECE:
        terms = dict(sorted(terms.items(), key=lambda entry: -entry[1][0])[: len(terms) * 3 // 4])
    return terms


def _pk(repo: str, turn: str, piece: str) -> str:
    return f"{key_of(repo)}:{turn}:{piece}"


def state_row(repo: str, pk: str, value: Any) -> dict[str, Any]:
    """Return a row of the collection of states."""
    return {"pk": pk, "repo": key_of(repo), "blob": squeeze(value), "meaning": [1.0] * PLAIN_DIMS}
