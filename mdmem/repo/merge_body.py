"""Three-way merge of a note's body: by line, then by paragraph where lines clash.

Edits that do not overlap are both taken. Both sides' insertions at one place both stay. What remains is widened to whole
paragraphs (of which each side's own version is then readable) and becomes a conflict section. A section that is already
there is one value with several versions: a side that settled it wins over a side that left it, and a new text joins the
versions instead of nesting. The caller orders the two sides by content, so nothing here depends on who is "ours".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from mdmem.repo.merge_lines import Key, Stretch, three_way, union
from mdmem.repo.merge_section import Origin, Section, Text, build_section
from mdmem.repo.merge_stretch import Found, absorbed, keys_of, one_unit, related, resolve, respaced
from mdmem.repo.merge_tokens import Token, paragraph_starts, section_token, tokens, weak

Units = list[Token]
Values = dict[Text, Origin]


@dataclass
class BodyMerge:
    """The merged lines, the sections made by this merge, and whether a generated block must be made anew."""

    lines: list[bytes]
    made: list[Section] = field(default_factory=list)
    regenerate: bool = False


@dataclass
class _Part:
    """A stretch of the three bodies, with its merged units once they are known."""

    base: Units
    ours: Units
    theirs: Units
    starts: tuple[bool, bool]  # may a paragraph begin here, in ours and in theirs
    same: bool
    merged: Units | None


@dataclass
class _Merge(Found):
    origins: tuple[Origin, Origin] = (Origin(), Origin())
    made: list[Section] = field(default_factory=list)


def merge_bodies(
    base: Sequence[bytes] | None, ours: Sequence[bytes], theirs: Sequence[bytes], origins: tuple[Origin, Origin]
) -> BodyMerge:
    """Return the merge of three bodies given as lines; `base` None means that nothing is known of it."""
    if ours == theirs or (base is not None and theirs == base):
        return BodyMerge(list(ours))
    if base is not None and ours == base:
        return BodyMerge(list(theirs))
    units = (tokens(base or []), tokens(ours), tokens(theirs))
    if (whole := absorbed(*units) or respaced(*units)) is not None:
        return BodyMerge(_lines(whole))
    state = _Merge(base is not None, origins=origins)
    parts = _parts(state, *units)
    if state.known:
        _rescue(parts, *units)
    parts = _widen(parts)
    merged: Units = []
    for part in parts:
        for piece in [part] if part.merged is not None else _paragraphs(state, part):
            _append(merged, _clash(state, piece) if piece.merged is None else piece.merged, state.made)
    return BodyMerge(_lines(merged), state.made, state.regenerate)


def insert_file(lines: Sequence[bytes], ours: Text, theirs: Text, origins: tuple[Origin, Origin]) -> BodyMerge:
    """Return the body that holds a readable note's body and the full text of a file that could not be read as one."""
    values: Values = {}
    for text, origin in ((ours, origins[0]), (theirs, origins[1])):
        if text.whole:
            values[text] = origin
        else:
            for version, recorded in _values(tokens(lines), origin).items():
                values.setdefault(version, recorded)
    old = [unit.section for unit in tokens(lines) if unit.section]
    if len(old) == 1 and dict(old[0].versions).keys() >= values.keys():
        return BodyMerge(list(lines))
    section = build_section(values.items())
    return BodyMerge(list(section.lines), [section])


def _lines(units: Units) -> list[bytes]:
    return [line for unit in units for line in unit.lines]


def _parts(state: _Merge, base: Units, ours: Units, theirs: Units) -> list[_Part]:
    keys = (keys_of(base), keys_of(ours), keys_of(theirs))
    if state.known:
        stretches = three_way(*keys, weak)
    else:
        stretches = [_blind(*found) for found in union(keys[1], keys[2], weak)]
    starts = paragraph_starts(ours), paragraph_starts(theirs)
    parts: list[_Part] = []
    for s in stretches:
        b, o, t = base[s.b0 : s.b1], ours[s.o0 : s.o1], theirs[s.t0 : s.t1]
        if s.kind == "same":
            for at in range(s.o1 - s.o0):
                unit = one_unit(state, b[at] if at < len(b) else None, o[at], t[at])
                edges = (starts[0][s.o0 + at], starts[1][s.t0 + at])
                parts.append(_Part(b[at : at + 1], [o[at]], [t[at]], edges, True, [unit]))
            continue
        merged = o if s.kind == "ours" else t if s.kind == "theirs" else resolve(state, b, o, t)
        parts.append(_Part(b, o, t, (starts[0][s.o0], starts[1][s.t0]), False, merged))
    parts.append(_Part([], [], [], (True, True), True, []))
    return parts


def _blind(o0: int, o1: int, t0: int, t1: int) -> Stretch:
    """Return a stretch of two bodies without a base: what only one has counts as its insertion."""
    kind = "ours" if t0 == t1 else "theirs" if o0 == o1 else "both"
    return Stretch(0, 0, o0, o1, t0, t1, kind)


def _rescue(parts: list[_Part], base: Units, ours: Units, theirs: Units) -> None:
    """Keep a line that stands more than once and of which each side deleted another copy: both still want one."""
    left: set[Key] = set()
    for part in parts:
        left |= {unit.key for unit in (part.ours + part.theirs if part.merged is None else part.merged)}
    both = {unit.key for unit in ours} & {unit.key for unit in theirs}
    lost = {unit.key for unit in base if unit.key in both and unit.key not in left and not weak(unit.key)}
    for part in parts:
        for unit in part.base:
            if unit.key in lost and part.merged is not None:
                part.merged = [*part.merged, unit]
                lost.discard(unit.key)


def _widen(parts: list[_Part]) -> list[_Part]:
    """Return the parts with each clash grown over its neighbours to whole paragraphs."""
    wide: list[_Part] = []
    done = at = 0
    while at < len(parts):
        if parts[at].merged is not None:
            at += 1
            continue
        first = at
        while first > done and not all(parts[first].starts):
            first -= 1
        if first == done and wide and not all(parts[first].starts):
            first, done = done - 1, done - 1
            joined = [wide.pop(), *parts[done + 1 : at + 1]]
        else:
            wide += parts[done:first]
            joined = parts[first : at + 1]
        at += 1
        while at < len(parts) and not all(parts[at].starts):
            joined.append(parts[at])
            at += 1
        wide.append(_join(joined))
        done = at
    return wide + parts[done:]


def _join(parts: list[_Part]) -> _Part:
    sides: tuple[Units, Units, Units] = ([], [], [])
    for part in parts:
        for whole, units in zip(sides, (part.base, part.ours, part.theirs), strict=True):
            whole += units
    return _Part(*sides, parts[0].starts, False, None)


def _paragraphs(state: _Merge, part: _Part) -> list[_Part]:
    """Return a clash cut into its paragraphs, where each one of a side is a form of the same one of the others."""
    sides = [_blocks(units) for units in (part.base, part.ours, part.theirs)]
    base, ours, theirs = sides if state.known else (sides[1], sides[1], sides[2])
    if not len(base) == len(ours) == len(theirs) > 1:
        return [part]
    pieces: list[_Part] = []
    for (_, b), (before, o), (gap, t) in zip(base, ours, theirs):
        pieces.append(_Part([], [], [], (True, True), False, before if len(before) >= len(gap) else gap))
        if not o and not t:
            continue
        if not (related(b, o) and related(b, t) and related(o, t)):
            return [part]
        known = b if state.known else []
        pieces.append(_Part(known, o, t, (True, True), False, resolve(state, known, o, t)))
    return pieces


def _blocks(units: Units) -> list[tuple[Units, Units]]:
    """Return (empty lines before, paragraph or section) for each of them, and the empty lines at the end."""
    found: list[tuple[Units, Units]] = [([], [])]
    for unit in units:
        before, block = found[-1]
        if weak(unit.key) and not block:
            before.append(unit)
        elif weak(unit.key):
            found.append(([unit], []))
        elif block and (unit.section or block[-1].section):
            found.append(([], [unit]))
        else:
            block.append(unit)
    return found if not found[-1][1] else [*found, ([], [])]


def _values(units: Units, origin: Origin) -> Values:
    """Return the versions that a stretch of one side stands for: one, or as many as its section has."""
    many = max((len(unit.section.versions) for unit in units if unit.section), default=1)
    found: Values = {}
    for number in range(many):
        lines: list[bytes] = []
        whole, source = False, origin
        for unit in units:
            if unit.section is None:
                lines += unit.lines
                continue
            text, source = unit.section.versions[min(number, len(unit.section.versions) - 1)]
            whole = text.whole and len([u for u in units if not weak(u.key)]) == 1
            lines = [text.data] if whole else [*lines, *text.data.split(b"\n")]
        text = Text(lines[0], True) if whole else Text(_strip(lines))
        found[text] = min(found.get(text, source), source)
    return found


def _strip(lines: list[bytes]) -> bytes:
    kept = list(lines)
    while kept and not kept[0].strip():
        del kept[0]
    while kept and not kept[-1].strip():
        del kept[-1]
    return b"\n".join(kept)


def _clash(state: _Merge, part: _Part) -> Units:
    """Return the units of a clash: each side's versions in one section, or the side that has settled it."""
    for units, other in ((part.ours, part.theirs), (part.theirs, part.ours)):
        # A section that holds all of the other side already, with more text beside it: nothing new came.
        if not any(unit.section for unit in part.base + other) and _covers(units, part.base, other):
            return units
    ours, theirs = _values(part.ours, state.origins[0]), _values(part.theirs, state.origins[1])
    base = _values(part.base, Origin()) if state.known else {}
    kept = several(set(base), set(ours), set(theirs))
    sides = [side for side, values in ((part.ours, ours), (part.theirs, theirs)) if set(values) == kept]
    if sides:
        return min(sides, key=_lines)
    if len(kept) == 1:
        return [Token(line, (line,)) for line in kept.pop().data.split(b"\n")]
    recorded: Values = {}
    for values, units in ((ours, part.ours), (theirs, part.theirs)):
        written = _written(units)
        for text in kept & values.keys():
            # What an earlier merge wrote down about a version is nearer to its source than this merge's side.
            if text not in recorded or text in written:
                old = recorded.get(text)
                recorded[text] = values[text] if old is None or text in written else min(old, values[text])
    head, tail = _frame(part)
    section = build_section(recorded.items())
    state.made.append(section)
    return [*head, section_token(section), *tail]


T = TypeVar("T")


def _covers(units: Units, base: Units, other: Units) -> bool:
    """Tell whether a section of one side holds what the other side changed, apart from lines that this side left alone."""
    written = _written(units)
    if not written:
        return False
    b, x = keys_of(base), keys_of(other)
    head = next((at for at, pair in enumerate(zip(b, x)) if pair[0] != pair[1]), min(len(b), len(x)))
    tail = next((at for at, pair in enumerate(zip(b[::-1], x[::-1])) if pair[0] != pair[1]), min(len(b), len(x)))
    cuts = ((i, len(x) - j) for i in (0, head) for j in (0, tail))
    return any(Text(_strip(_lines(other[i:j]))) in written for i, j in cuts if i <= j)


def _written(units: Units) -> set[Text]:
    return {text for unit in units if unit.section for text, _ in unit.section.versions}


def several(base: set[T], ours: set[T], theirs: set[T]) -> set[T]:
    """Return the versions that stay when both sides changed a value that can have several.

    A three-way set, in which a side that holds one version alone has chosen it and keeps it.
    """
    kept = (ours & theirs) | (ours - base) | (theirs - base)
    for side in (ours, theirs):
        if len(side) == 1 and side != base:
            kept |= side
    return kept or ours | theirs


def _frame(part: _Part) -> tuple[Units, Units]:
    """Return the empty lines before and after a clash, those of the side that has more of them."""
    heads: list[Units] = []
    tails: list[Units] = []
    for units in (part.ours, part.theirs):
        inner = [at for at, unit in enumerate(units) if not weak(unit.key)]
        if inner:
            heads.append(units[: inner[0]])
            tails.append(units[inner[-1] + 1 :])
    return max(heads, key=len, default=[]), max(tails, key=len, default=[])


def _append(merged: Units, units: Units, made: list[Section]) -> None:
    """Add units; a section made now is held apart from text by empty lines."""
    fresh = {id(section) for section in made}
    for unit in units:
        new = unit.section is not None and id(unit.section) in fresh
        after = bool(merged) and merged[-1].section is not None and id(merged[-1].section) in fresh
        if merged and (new or after) and not weak(merged[-1].key) and not weak(unit.key):
            merged.append(Token(b"", (b"",)))
        merged.append(unit)
