"""Three-way merge of frontmatter, key by key, by the rule of each field.

Only one side changed a key: its lines are taken as they are. Both did: sets, ids, dates, facts and status have a rule;
for anything else both values are written down under `conflicts:` and the first in content order stands in the field.
A field with such a record is one value with several versions, as a conflict section of a body is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

from mdmem.clock import read_stamp
from mdmem.notes import quoting
from mdmem.notes.schema import FIELDS
from mdmem.repo.merge_align import aligned
from mdmem.repo.merge_block import Block, Entry, Items, new_entry, read_items, with_children
from mdmem.repo.merge_body import several
from mdmem.repo.merge_lines import arranged, sequence
from mdmem.repo.merge_record import (
    NAMES,
    Choice,
    Mark,
    Record,
    at_path,
    entry_from,
    find_entry,
    find_path,
    put_entry,
    read_record,
    record_entry,
)
from mdmem.repo.merge_section import Origin

PROVENANCE = ("agent", "device", "source", "session", "originSessionId")
SKEW = timedelta(minutes=5)  # two machines' clocks may differ by this much before a time counts as the future
_CLAUDE = {"modified": "latest"}


@dataclass
class _Merge:
    known: bool
    origins: tuple[Origin, Origin]
    now: datetime | None
    records: tuple[Record, Record, Record]
    birth: int  # which side was created first; matters only without a base
    result: Record = field(default_factory=Record)
    ids: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    top: frozenset[str] = frozenset()  # the keys at the top level of any side


def merge_blocks(
    base: Block | None, ours: Block, theirs: Block, origins: tuple[Origin, Origin], now: datetime | None = None
) -> Block:
    """Return the merge of three blocks; base None: nothing is known of it. Raises BadBlock when no valid block results."""
    known = base is not None
    old, one, two = aligned(base or Block(), ours, theirs, known)
    records = read_record(old), read_record(one), read_record(two)
    top = frozenset(entry.name for block in (old, one, two) for entry in block.entries)
    state = _Merge(known, origins, now, records, _birth(one, two), top=top)
    entries = _entries(state, old.entries, one.entries, two.entries, "")
    entries = _add_ids(state, entries)
    entries = _records(state, entries, old, (one, two))
    tail = tuple(sequence(known, old.tail, one.tail, two.tail))
    present = bool(entries) or _pick(known, old.present, one.present, two.present, max)
    sides = [block for block in (one, two) if block.present] or [Block()]
    frame = sides[0]
    if len(sides) == 2:
        opening = _pick(known, old.opening, one.opening, two.opening, min)
        closing = _pick(known, old.closing, one.closing, two.closing, max)
        frame = Block(opening, closing)
    return Block(frame.opening, frame.closing, entries, tail, present)


T = TypeVar("T")


def _pick(known: bool, base: T, ours: T, theirs: T, choose: Callable[[T, T], T]) -> T:
    if known and theirs == base:
        return ours
    if known and ours == base:
        return theirs
    return choose(ours, theirs)


def _birth(ours: Block, theirs: Block) -> int:
    """Return 0 when our side was created first, 1 when theirs was; by content where the dates do not tell."""

    def key(block: Block) -> tuple[bool, str, list[str]]:
        entry = find_entry(block.entries, "created")
        moment = read_stamp(entry.value) if entry and isinstance(entry.value, str) else None
        found = [find_entry(block.entries, name) for name in PROVENANCE]
        return moment is None, moment.isoformat() if moment else "", [e.mark if e else "" for e in found]

    return 0 if key(ours) <= key(theirs) else 1


def _entries(
    state: _Merge, base: Sequence[Entry], ours: Sequence[Entry], theirs: Sequence[Entry], prefix: str
) -> tuple[Entry, ...]:
    maps = [{entry.name: entry for entry in side} for side in (base, ours, theirs)]
    found: dict[str, Entry] = {}
    for name in sorted(maps[1].keys() | maps[2].keys()):
        b, o, t = (entries.get(name) for entries in maps)
        if name in NAMES and all(record.readable for record in state.records):
            found[name] = o or t or new_entry(name, "")
            continue
        plain = prefix == "metadata." and name not in state.top
        merged = _field(state, name if plain else prefix + name, b, o, t)
        if merged is None:
            continue
        if o is not None and t is not None:
            lead = sequence(state.known and b is not None, b.lead if b else (), o.lead, t.lead)
            merged = replace(merged, lead=tuple(lead))
        found[name] = merged
    order = arranged(state.known, list(maps[0]), list(maps[1]), list(maps[2]), found.keys())
    return tuple(found[name] for name in order)


def _same(one: Entry | None, two: Entry | None) -> bool:
    return one is two is None or (one is not None and two is not None and one.raw() == two.raw())


def _field(state: _Merge, name: str, b: Entry | None, o: Entry | None, t: Entry | None) -> Entry | None:
    """Return the merged entry of one field, None when it is removed; notes conflicts in the state."""
    state.seen.add(name)
    if any(name in record.conflicts for record in state.records):
        return _versions(state, name, b, o, t)
    if _same(o, t) or (state.known and _same(t, b)):
        return o
    if state.known and _same(o, b):
        return t
    if o is not None and t is not None and o.mark == t.mark:
        return min(o, t, key=Entry.raw)
    if not state.known and (o is None or t is None):
        return o or t
    if state.known and b is not None and o is not None and t is not None:
        # Where one side changed only quoting or a comment, the other side's value is the change.
        if o.mark == b.mark:
            return t
        if t.mark == b.mark:
            return o
    if name == "metadata" or _rule(name) == "facts":
        parts = [_parts(entry) for entry in (b, o, t)]
        if None not in parts:
            children = _entries(state, parts[0] or (), parts[1] or (), parts[2] or (), name + ".")
            tails = tuple(entry.tail if entry else () for entry in (b, o, t))
            frame = min((e for e in (o, t) if e is not None), key=lambda e: (not e.children, e.rest[0]))
            tail = sequence(state.known, tails[0], tails[1], tails[2])
            return with_children(frame, children, tail) if children or tail else None
    decided = _decide(state, name, b, o, t)
    return decided[0] if decided else _versions(state, name, b, o, t)


def _parts(entry: Entry | None) -> tuple[Entry, ...] | None:
    return () if entry is None or entry.value in ("", {}) else entry.children


def _rule(name: str) -> str:
    return "scalar" if "." in name else _CLAUDE.get(name) or FIELDS.get(name, "scalar")


def _decide(state: _Merge, name: str, b: Entry | None, o: Entry | None, t: Entry | None) -> tuple[Entry | None] | None:
    """Return what the field's rule says (an entry, or a removal), None when no rule decides.

    A date or a claim that one side removed and the other one changed stays.
    """
    rule = _rule(name)
    if rule == "set":
        return _set(state, b, o, t)
    if rule in ("earliest", "latest", "smallest") and (o is None or t is None):
        return (o or t,)
    if o is None or t is None or not isinstance(o.value, str) or not isinstance(t.value, str):
        return None
    if rule == "smallest":
        # A claim that was given back is empty; of two that stand the smaller text is the earlier one.
        return (min((o, t), key=lambda entry: (not str(entry.value).strip(), str(entry.value).strip(), entry.raw())),)
    if rule == "identity":
        kept, other = sorted((o, t), key=lambda entry: entry.mark)
        if not str(kept.value).strip():
            return (other,)
        state.ids.append(str(other.value))
        return (kept,)
    if rule in ("earliest", "latest"):
        times = [(read_stamp(entry.value), entry) for entry in (o, t) if isinstance(entry.value, str)]
        dated = sorted(
            ((moment, entry) for moment, entry in times if moment is not None), key=lambda pair: (pair[0], pair[1].raw())
        )
        if len(dated) < 2:
            return None
        if dated[0][0] == dated[1][0] or rule == "earliest":
            return (dated[0][1],)
        return (dated[1][1],)
    winner = None
    if rule == "status":
        winner = _later(state)
    elif name in PROVENANCE and not state.known:
        winner = state.birth
    if winner is None:
        return None
    kept, other = (o, t) if winner == 0 else (t, o)
    state.result.aside[name, other.mark] = Choice(other.rest, other.value, state.origins[1 - winner])
    return (kept,)


def _later(state: _Merge) -> int | None:
    """Return the side with the later `updated`, None for a tie, a missing time, or a time in the future."""
    ours, theirs = (read_stamp(origin.updated) for origin in state.origins)
    if ours is None or theirs is None or ours == theirs:
        return None
    if state.now is not None and max(ours, theirs) - state.now > SKEW:
        return None
    return 0 if ours > theirs else 1


def _set(state: _Merge, b: Entry | None, o: Entry | None, t: Entry | None) -> tuple[Entry | None] | None:
    """Return the three-way union of two lists in which a removal is real; None when they are not lists of texts."""
    sides = [read_items(entry) for entry in (b if state.known else None, o, t)]
    if None in sides:
        return None
    base, ours, theirs = (side or Items() for side in sides)
    old, one, two = set(base.texts), set(ours.texts), set(theirs.texts)
    kept = (one & two) | (one - old) | (two - old)
    if not kept and (o is None or t is None):
        return (None,)
    same = [entry for entry, texts in ((o, one), (t, two)) if entry is not None and texts == kept]
    if same:
        return (min(same, key=Entry.raw),)
    order = arranged(state.known, base.texts, ours.texts, theirs.texts, kept)
    template = min((entry for entry in (o, t) if entry is not None), key=Entry.raw)
    return (write_items(template, order, (ours, theirs)),)


def write_items(template: Entry, order: Sequence[str], sides: Sequence[Items]) -> Entry:
    """Return a list's entry with these texts: in brackets when each side is, else one a line, lines kept where they can be."""
    sides = [side for side in sides if side.texts]
    if not order or (sides and all(side.flow for side in sides)):
        made = entry_from([f"{template.key}: {quoting.inline(list(order))}"])
    else:
        lines = [template.key + ":"]
        for text in order:
            raw = [side.lines[text] for side in sides if text in side.lines]
            lines += ["  " + line if line.strip() else line for line in (min(raw) if raw else quoting.item(text, 0))]
        made = entry_from(lines)
    return replace(made, lead=template.lead)


def _versions(state: _Merge, name: str, b: Entry | None, o: Entry | None, t: Entry | None) -> Entry | None:
    """Return the entry that stands in a field which may have several versions, and write these down."""
    choices: dict[Mark, Choice] = {}
    marks: list[set[Mark]] = []
    written: set[Mark] = set()
    for number, entry in enumerate((b, o, t)):
        record = state.records[number].conflicts.get(name, {})
        found = set(record)
        if entry is not None or state.known:
            found.add(entry.mark if entry else None)
        marks.append(found)
        for key, choice in record.items():
            old = choices.get(key) if key in written else None
            choices[key] = min(old, choice, key=lambda c: c.origin) if old else choice
            written.add(key)
        if number:
            own = Choice(entry.rest if entry else None, entry.value if entry else "", state.origins[number - 1])
            if own.mark not in choices:
                choices[own.mark] = own
            elif own.mark not in written:
                choices[own.mark] = min(choices[own.mark], own, key=lambda c: (c.origin, c.rest or ()))
    none: set[Mark] = set()
    base, ours, theirs = (marks[0] if state.known else none), marks[1], marks[2]
    if state.known and theirs == base:
        kept = ours
    elif ours == theirs or (state.known and ours == base):
        kept = theirs
    else:
        kept = several(base, ours, theirs)
    ordered = sorted((choices[key] for key in kept), key=Choice.rank)
    if len(kept) > 1:
        state.result.conflicts[name] = {choice.mark: choice for choice in ordered}
    return _standing(name, ordered, o, t)


def _standing(name: str, ordered: Sequence[Choice], o: Entry | None, t: Entry | None) -> Entry | None:
    entries = [entry for entry in (o, t) if entry is not None]
    first = next((choice for choice in ordered if choice.rest is not None), None)
    if first is None or not entries:
        return None
    same = [entry for entry in entries if entry.mark == first.mark]
    if same:
        return min(same, key=Entry.raw)
    frame = min(entries, key=Entry.raw)
    assert first.rest is not None
    made = entry_from([frame.key + first.rest[0], *first.rest[1:]])
    return replace(made, lead=frame.lead)


def _add_ids(state: _Merge, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Put the ids that were given up into `aliases`."""
    if not state.ids:
        return entries
    old = find_entry(entries, "aliases")
    items = read_items(old)
    if items is None or "aliases" in state.result.conflicts:
        for name in state.ids:
            state.result.aside["id", name] = Choice((": " + quoting.scalar(name),), name)
        return entries
    new = [name for name in state.ids if name not in items.texts]
    if not new:
        return entries
    if old is not None:
        return put_entry(entries, "aliases", write_items(old, sorted({*items.texts, *new}), [items]))
    made = new_entry("aliases", list(new))
    for at, entry in enumerate(entries):
        if entry.name == "id":
            return (*entries[: at + 1], made, *entries[at + 1 :])
        if entry.name == "metadata" and any(child.name == "id" for child in entry.children or ()):
            inner = (*(entry.children or ()), made)
            return (*entries[:at], with_children(entry, inner, entry.tail), *entries[at + 1 :])
    return (*entries, made)


def _records(state: _Merge, entries: tuple[Entry, ...], old: Block, blocks: tuple[Block, Block]) -> tuple[Entry, ...]:
    """Return entries with `conflicts:` and `merged:` as they are after this merge."""
    base, ours, theirs = state.records
    for name in sorted((ours.conflicts.keys() | theirs.conflicts.keys()) - state.seen):
        # A map that only one side changed was taken as it is: look at the field in it.
        _versions(state, name, *(at_path(block.entries, find_path(block.entries, name)) for block in (old, *blocks)))
    result = state.result
    sides = list(zip(blocks, (ours, theirs), strict=True))
    result.deleted = _deleted(state)
    for record in (ours, theirs):
        for key, lines in record.other.items():
            if _stays(state, key in base.other, key in ours.other, key in theirs.other):
                result.other[key] = min(result.other.get(key, lines), lines)
        for place, choice in record.aside.items():
            if _stays(state, place in base.aside, place in ours.aside, place in theirs.aside):
                recorded = [r.aside[place] for r in (ours, theirs) if place in r.aside]
                result.aside[place] = min(recorded, key=lambda c: c.origin) if place in result.aside else choice
    for name in NAMES:
        if not all(record.readable for record in state.records):
            if not (result.conflicts if name == "conflicts" else result.aside):
                continue
            raise ValueError(f"the key {name} is taken")
        kept = [e for block, record in sides if (e := find_entry(block.entries, name)) and _equal(record, result, name)]
        made = min(kept, key=Entry.raw) if kept else record_entry(result, name)
        if made is not None or find_entry(entries, name) is not None:
            entries = put_entry(entries, name, made)
    return entries


def _equal(one: Record, two: Record, name: str) -> bool:
    """Tell whether two records hold the same list of that name."""
    lists = [{key: lines for key, lines in record.other.items() if key.startswith(name + "\0")} for record in (one, two)]
    if lists[0] != lists[1]:
        return False
    return one.aside == two.aside if name == "merged" else (one.conflicts, one.deleted) == (two.conflicts, two.deleted)


def _stays(state: _Merge, base: bool, ours: bool, theirs: bool) -> bool:
    if not state.known:
        return ours or theirs
    return (ours and theirs) or (ours and not base) or (theirs and not base)


def _deleted(state: _Merge) -> Origin | None:
    base, ours, theirs = (record.deleted for record in state.records)
    stays = _stays(state, base is not None, ours is not None, theirs is not None)
    return min((origin for origin in (ours, theirs) if origin is not None), default=None) if stays else None
