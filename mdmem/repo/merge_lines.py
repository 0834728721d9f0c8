"""Three-way comparison of sequences: which stretches both, one or neither side changed. Knows nothing of notes.

The comparison is patience diff (Cohen 2007): lines that occur once on both sides are anchors, the longest increasing
run of them is kept, the gaps are compared again; a small gap without anchors gets a longest common subsequence. Weak
lines (blank ones) never are anchors, so two paragraphs are not held apart by the empty line between them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from itertools import chain

Key = Hashable
Weak = Callable[[Key], bool]

_LCS_CELLS = 300_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """Half-open ranges of base, ours and theirs, and who changed them: same, ours, theirs or both."""

    b0: int
    b1: int
    o0: int
    o1: int
    t0: int
    t1: int
    kind: str


@dataclass(frozen=True, slots=True)
class _Hunk:
    b0: int
    b1: int
    x0: int
    x1: int


def matches(a: Sequence[Key], b: Sequence[Key], weak: Weak) -> list[tuple[int, int]]:
    """Return the pairs (index in a, index in b) of equal elements, increasing in both."""
    found: list[tuple[int, int]] = []
    todo = [(0, len(a), 0, len(b))]
    while todo:
        a0, a1, b0, b1 = todo.pop()
        while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
            found.append((a0, b0))
            a0, b0 = a0 + 1, b0 + 1
        while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
            a1, b1 = a1 - 1, b1 - 1
            found.append((a1, b1))
        if a0 == a1 or b0 == b1:
            continue
        anchors = _unique(a, a0, a1, b, b0, b1, weak) or _common(a, a0, a1, b, b0, b1, weak)
        last_a, last_b = a0, b0
        for i, j in anchors:
            todo.append((last_a, i, last_b, j))
            found.append((i, j))
            last_a, last_b = i + 1, j + 1
        if anchors:
            todo.append((last_a, a1, last_b, b1))
    found.sort()
    return found


def _unique(
    a: Sequence[Key], a0: int, a1: int, b: Sequence[Key], b0: int, b1: int, weak: Weak
) -> list[tuple[int, int]]:
    """Return the longest increasing run of pairs of elements that occur once in each range."""
    places: dict[Key, list[int]] = {}
    for index in range(a0, a1):
        places.setdefault(a[index], []).append(index)
    others: dict[Key, list[int]] = {}
    for index in range(b0, b1):
        if b[index] in places:
            others.setdefault(b[index], []).append(index)
    pairs = [
        (here[0], others[key][0])
        for key, here in places.items()
        if len(here) == 1 and len(others.get(key, ())) == 1 and not weak(key)
    ]
    return _increasing(pairs)


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest run of pairs, sorted by the first part, whose second part increases."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        at = bisect_left(tails, j)
        before.append(ends[at - 1] if at else -1)
        if at == len(tails):
            tails.append(j)
            ends.append(index)
        else:
            tails[at] = j
            ends[at] = index
    run: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        run.append(pairs[at])
        at = before[at]
    return run[::-1]


def _common(
    a: Sequence[Key], a0: int, a1: int, b: Sequence[Key], b0: int, b1: int, weak: Weak
) -> list[tuple[int, int]]:
    """Return a longest common subsequence of the strong elements, nothing when the ranges are too large for it."""
    left = set(a[a0:a1])
    right = set(b[b0:b1])
    shared = {key for key in left & right if not weak(key)}
    rows = [i for i in range(a0, a1) if a[i] in shared]
    columns = [j for j in range(b0, b1) if b[j] in shared]
    if not rows or len(rows) * len(columns) > _LCS_CELLS:
        return []
    table = [[0] * (len(columns) + 1)]
    for i in rows:
        last = table[-1]
        row = [0]
        for at, j in enumerate(columns):
            row.append(last[at] + 1 if a[i] == b[j] else max(last[at + 1], row[at]))
        table.append(row)
    found: list[tuple[int, int]] = []
    r, c = len(rows), len(columns)
    while r and c:
        if a[rows[r - 1]] == b[columns[c - 1]]:
            found.append((rows[r - 1], columns[c - 1]))
            r, c = r - 1, c - 1
        elif table[r - 1][c] >= table[r][c - 1]:
            r -= 1
        else:
            c -= 1
    return found[::-1]


def _hunks(base: Sequence[Key], side: Sequence[Key], weak: Weak) -> list[_Hunk]:
    hunks: list[_Hunk] = []
    i = j = 0
    for m, n in [*matches(base, side, weak), (len(base), len(side))]:
        if m > i or n > j:
            hunks.append(_Hunk(i, m, j, n))
        i, j = m + 1, n + 1
    return hunks


def deleted(base: Sequence[bytes], side: Sequence[bytes]) -> list[bytes]:
    """Return the lines of the base in whose place a side has nothing."""
    return [line for h in _hunks(base, side, lambda key: False) if h.x0 == h.x1 for line in base[h.b0 : h.b1]]


def three_way(base: Sequence[Key], ours: Sequence[Key], theirs: Sequence[Key], weak: Weak) -> list[Stretch]:
    """Return stretches that cover all three sequences, in order.

    Edits of ranges of the base that only touch are separate; they are one stretch when they overlap, insert at the same
    place, or touch and bring the same strong element.
    """
    found: list[Stretch] = []
    queue = sorted(
        [(h.b0, h.b1, 0, h) for h in _hunks(base, ours, weak)] + [(h.b0, h.b1, 1, h) for h in _hunks(base, theirs, weak)],
        key=lambda entry: entry[:3],
    )
    sides = (ours, theirs)
    b = o = t = 0
    at = 0
    while at < len(queue):
        low, high, who, hunk = queue[at]
        group: tuple[list[_Hunk], list[_Hunk]] = ([], [])
        group[who].append(hunk)
        at += 1
        while at < len(queue):
            start, end, other, following = queue[at]
            overlaps = start < high or (start == end == low == high)
            touches = start == high and bool(group[1 - other])
            if not overlaps and not (touches and _share(following, group[1 - other], sides[other], sides[1 - other], weak)):
                break
            high = max(high, end)
            group[other].append(following)
            at += 1
        if low > b:
            gap = low - b
            found.append(Stretch(b, low, o, o + gap, t, t + gap, "same"))
            b, o, t = low, o + gap, t + gap
        o1 = o + (high - low) + sum((h.x1 - h.x0) - (h.b1 - h.b0) for h in group[0])
        t1 = t + (high - low) + sum((h.x1 - h.x0) - (h.b1 - h.b0) for h in group[1])
        kind = "both" if group[0] and group[1] else "ours" if group[0] else "theirs"
        found.append(Stretch(b, high, o, o1, t, t1, kind))
        b, o, t = high, o1, t1
    if b < len(base):
        gap = len(base) - b
        found.append(Stretch(b, b + gap, o, o + gap, t, t + gap, "same"))
    return found


def _share(hunk: _Hunk, others: list[_Hunk], side: Sequence[Key], other: Sequence[Key], weak: Weak) -> bool:
    new = {key for key in side[hunk.x0 : hunk.x1] if not weak(key)}
    return any(key in new for h in others for key in other[h.x0 : h.x1])


def union(ours: Sequence[Key], theirs: Sequence[Key], weak: Weak) -> list[tuple[int, int, int, int]]:
    """Return stretches (o0, o1, t0, t1) that cover both: equal ones have o1-o0 == t1-t0 and hold the same elements."""
    found: list[tuple[int, int, int, int]] = []
    o = t = 0
    for i, j in [*matches(ours, theirs, weak), (len(ours), len(theirs))]:
        if i > o or j > t:
            found.append((o, i, t, j))
        if i < len(ours):
            found.append((i, i + 1, j, j + 1))
        o, t = i + 1, j + 1
    return found


def sequence(known: bool, base: Sequence[str], ours: Sequence[str], theirs: Sequence[str], once: bool = False) -> list[str]:
    """Return the order of keys, items or comment lines that both sides' orders give; what both brought stands once."""
    if not known:
        found = list(_both(ours, theirs, once))
    else:
        found = []
        for s in three_way(base, ours, theirs, lambda key: False):
            left, right = ours[s.o0 : s.o1], theirs[s.t0 : s.t1]
            found += _both(left, right, once) if s.kind == "both" else right if s.kind == "theirs" else left
    return list(dict.fromkeys(found)) if once else found


def _both(left: Sequence[str], right: Sequence[str], once: bool) -> Sequence[str]:
    """Return two runs as one; a run that holds all of the other one gives the order."""
    if once and (set(left) >= set(right) or set(right) >= set(left)):
        return min((left, right), key=lambda names: (-len(set(names)), list(names)))
    found: list[str] = []
    for o0, o1, t0, t1 in union(left, right, lambda key: False):
        one, two = left[o0:o1], right[t0:t1]
        found += one if one == two else _zip(one, two, once)
    return found


def _zip(left: Sequence[str], right: Sequence[str], once: bool) -> list[str]:
    """Return two runs as one: names by the smaller head, comment lines not torn apart."""
    if not once:
        return list(chain(*sorted((list(left), list(right)))))
    a, b = list(left), list(right)
    found: list[str] = []
    while a or b:
        found.append((a if not b or (a and a[0] < b[0]) else b).pop(0))
    return found


def arranged(
    known: bool, base: Sequence[str], ours: Sequence[str], theirs: Sequence[str], needed: Collection[str]
) -> list[str]:
    """Return the needed names in the order of the side that has them all; where both or none have, in a merged order."""
    sides = [[name for name in side if name in needed] for side in (ours, theirs)]
    full = [side for side in sides if len(side) == len(needed)]
    if len(full) == 1:
        return full[0]
    if full:
        old = [name for name in base if name in needed]
        return full[1] if known and full[0] == old else full[0] if known and full[1] == old else min(full)
    return _complete(sequence(known, base, ours, theirs, once=True), needed, ours, theirs)


def _complete(order: Sequence[str], needed: Collection[str], *sides: Sequence[str]) -> list[str]:
    """Return the needed names in that order; one that it lacks stands after the name that it follows in a side."""
    found = [name for name in order if name in needed]
    there = set(found)
    for side in sides:
        at = 0
        for name in side:
            if name in there:
                at = found.index(name) + 1
            elif name in needed:
                found.insert(at, name)
                there.add(name)
                at += 1
    return found
