"""One stretch of a body that both sides changed: what can be merged without asking, and in which order.

Everything here depends on the content of the two sides alone, never on which of them is "ours".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from mdmem.repo.merge_lines import Key, deleted, union
from mdmem.repo.merge_tokens import Token, flat, items, weak

Units = list[Token]
_WORD = re.compile("[a-z0-9_]+|[^\x00-\x7f]")


@dataclass
class Found:
    """What a stretch's merge learned: whether anything is known of the base, whether a generated block was joined."""

    known: bool
    regenerate: bool = False


def keys_of(units: Units) -> list[Key]:
    """Return the keys of units."""
    return [unit.key for unit in units]


def one_unit(state: Found, base: Token | None, ours: Token, theirs: Token) -> Token:
    """Return a unit that both sides hold; its bytes can differ in line end or in what was generated."""
    if ours.lines == theirs.lines or (base and theirs.lines == base.lines):
        return ours
    if base and ours.lines == base.lines:
        return theirs
    if not ours.managed:
        return min(ours, theirs, key=lambda unit: unit.lines)
    state.regenerate = True
    lines: list[bytes] = [min(ours.lines[0], theirs.lines[0])]
    for o0, o1, t0, t1 in union(ours.lines[1:-1], theirs.lines[1:-1], weak):
        left, right = ours.lines[1 + o0 : 1 + o1], theirs.lines[1 + t0 : 1 + t1]
        lines += left if left == right else [line for side in sorted((left, right)) for line in side]
    return Token(ours.key, (*lines, min(ours.lines[-1], theirs.lines[-1])), managed=True)


def resolve(state: Found, base: Units, ours: Units, theirs: Units) -> Units | None:
    """Return the merge of a stretch that both sides changed, None when it is a real clash."""
    b, o, t = keys_of(base), keys_of(ours), keys_of(theirs)
    if o == t:
        return [one_unit(state, None, left, right) for left, right in zip(ours, theirs, strict=True)]
    if state.known and (o == b or t == b):
        return theirs if o == b else ours
    words = [[key for key in keys if not weak(key)] for keys in (b, o, t)]
    if state.known and words[0] in words[1:] and words[1] != words[2]:
        # Where one side changed no more than empty lines, the other side's change is the one that says something.
        return theirs if words[1] == words[0] else ours
    if any(unit.section for unit in (*base, *ours, *theirs)):
        return None
    if (whole := absorbed(base, ours, theirs)) is not None:
        return whole
    head, tail = _shared_ends(o, t)
    cut = min(head, len(b)) if b[:head] == o[:head] else 0
    rest = base[cut:]
    if tail and keys_of(rest)[-tail:] == o[len(o) - tail :]:
        rest = rest[: len(rest) - tail]
    left, right = ours[head : len(ours) - tail], theirs[head : len(theirs) - tail]
    middle: Units | None = None
    if state.known and keys_of(rest) in (keys_of(left), keys_of(right)):
        middle = right if keys_of(rest) == keys_of(left) else left
    elif not left or not right:
        # One side has nothing but what both have: the other inserted, unless a known text went missing here.
        middle = (left or right) if all(weak(unit.key) for unit in rest) else None
    elif state.known and all(weak(unit.key) for unit in rest):
        middle = _insert(left, right)
    return None if middle is None else [*ours[:head], *middle, *ours[len(ours) - tail :]]


def _shared_ends(o: list[Key], t: list[Key]) -> tuple[int, int]:
    """Return how many units at the start and at the end are the same, leaving the empty line that parts paragraphs."""
    head = 0
    while head < min(len(o), len(t)) and o[head] == t[head]:
        head += 1
    tail = 0
    while tail < min(len(o), len(t)) - head and o[-1 - tail] == t[-1 - tail]:
        tail += 1
    if head == min(len(o), len(t)) or tail == min(len(o), len(t)) - head:
        return head, tail
    parted = head
    while head and weak(o[head - 1]):
        head -= 1
    while head == parted and tail and weak(o[-tail]):
        tail -= 1
    return head, tail


def absorbed(base: Units, ours: Units, theirs: Units) -> Units | None:
    """Return the side that already holds every change of the other, None when neither or both do.

    A side that deleted a text is not absorbed by one that re-wrote it: new lines that share a word with the deleted ones
    are taken for their new form. Characters outside ASCII count as a word each.
    """
    old = {unit.key for unit in base if unit.section}
    sections = [{unit.key for unit in units if unit.section} for units in (ours, theirs)]
    if old != sections[0] & old or old != sections[1] & old:
        return None
    texts = [[line.removesuffix(b"\r") for line in flat(units) if line.strip()] for units in (base, ours, theirs)]
    has_right = sections[1] <= sections[0] and _holds(*texts)
    has_left = sections[0] <= sections[1] and _holds(texts[0], texts[2], texts[1])
    if has_left == has_right:
        return None
    return ours if has_right else theirs


def _holds(base: list[bytes], big: list[bytes], small: list[bytes]) -> bool:
    """Tell whether all that one side changed has been changed by the other one too, in the same order."""
    old, more, less = Counter(base), Counter(big), Counter(small)
    if base == small:
        return False
    for line in {*old, *less}:
        change, done = less[line] - old[line], more[line] - old[line]
        if (change > 0 and done < change) or (change < 0 and done > change):
            return False
    new = _words(line for line in more if more[line] > max(old[line], less[line]))
    if new and _words(deleted(base, small)) & new:
        return False
    rest = iter(big)
    return all(any(line == other for other in rest) for line in small if line in more)


def _words(lines: Iterable[bytes]) -> set[str]:
    return {word for line in lines for word in _WORD.findall(line.decode("utf-8", "replace").lower())}


def related(one: Units, two: Units) -> bool:
    """Tell whether two texts can be forms of one: equal, or with a word in common."""
    return keys_of(one) == keys_of(two) or bool(_words(flat(one)) & _words(flat(two)))


def respaced(base: Units, ours: Units, theirs: Units) -> Units | None:
    """Return the merge of two sides that differ in empty lines alone, None when they differ in more."""
    if [unit.lines for unit in ours if not weak(unit.key)] != [unit.lines for unit in theirs if not weak(unit.key)]:
        return None
    gaps = [_gaps(units) for units in (base, ours, theirs)]
    same = len(gaps[0]) == len(gaps[1])
    words = [unit for unit in ours if not weak(unit.key)]
    found: Units = []
    for at, (one, two) in enumerate(zip(gaps[1], gaps[2], strict=True)):
        old = gaps[0][at] if same else None
        if old is not None and len(old) in (len(one), len(two)):
            found += two if len(one) == len(old) else one
        else:
            found += one if len(one) >= len(two) else two
        found += words[at : at + 1]
    return found


def _gaps(units: Units) -> list[Units]:
    """Return the empty lines before each other unit, and those at the end."""
    gaps: list[Units] = [[]]
    for unit in units:
        if weak(unit.key):
            gaps[-1].append(unit)
        else:
            gaps.append([])
    return gaps


def _insert(ours: Units, theirs: Units) -> Units:
    """Return both insertions at one place, what they share once, in an order that depends on their content alone."""
    left, right = items(ours), items(theirs)
    if left is not None and right is not None:
        return _interleave(left, right)
    found: Units = []
    one: Units = []
    two: Units = []
    for o0, o1, t0, t1 in [*union(keys_of(ours), keys_of(theirs), weak), (0, 0, 0, 0)]:
        same = keys_of(ours[o0:o1]) == keys_of(theirs[t0:t1])
        if same and o1 > o0 and weak(ours[o0].key):
            # An empty line that both have belongs to what stands beside it: it parts paragraphs that stay apart.
            one, two = one + ours[o0:o1], two + theirs[t0:t1]
        elif same:
            found += one if keys_of(one) == keys_of(two) else _beside(one, two) if one and two else one or two
            found += ours[o0:o1]
            one, two = [], []
        else:
            one, two = one + ours[o0:o1], two + theirs[t0:t1]
    return found


def _interleave(ours: list[tuple[Token, ...]], theirs: list[tuple[Token, ...]]) -> Units:
    """Return two runs of list items as one: each keeps its order, the smaller head goes first, equal ones once."""
    found: Units = []
    for o0, o1, t0, t1 in union([_item(i) for i in ours], [_item(i) for i in theirs], lambda key: False):
        left, right = ours[o0:o1], theirs[t0:t1]
        if [_item(i) for i in left] == [_item(i) for i in right]:
            right = []
        while left or right:
            first = not right or (bool(left) and _item(left[0]) < _item(right[0]))
            found += (left if first else right).pop(0)
    return found


def _item(units: tuple[Token, ...]) -> bytes:
    return b"\n".join(line for unit in units for line in unit.lines)


def _beside(one: Units, two: Units) -> Units:
    """Return two inserted texts one after the other, as paragraphs of their own where either is one."""
    first, second = sorted((one, two), key=lambda units: [line.strip() for line in flat(units) if line.strip()])
    for near, far in ((first, second), (second, first)):
        # A text that has no empty line before it continues the paragraph above; the other one starts a new paragraph.
        if not weak(near[0].key) and weak(far[0].key):
            return near + far
        if weak(near[-1].key) and not weak(far[-1].key):
            return near + far
    loose = any(weak(unit.key) for unit in one + two)
    if loose and not weak(first[-1].key) and not weak(second[0].key):
        return [*first, Token(b"", (b"",)), *second]
    if weak(first[-1].key) and weak(second[0].key):
        second = second[next((at for at, unit in enumerate(second) if not weak(unit.key)), len(second)) :]
    return first + second
