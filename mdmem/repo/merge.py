"""The three-way merge of one note: three texts in, one text and a list of conflicts out. Pure: no clock, disk or git.

The laws (each one is tested): merge(b, o, t) == merge(b, t, o) to the byte; it never raises; merge(b, m, m) == m, and a
result merged again with one of its sides stays as it is; a text that only one side changed is that side's, byte for
byte; what is not understood is kept; no line of one side is lost unless the other side deleted it; the result can be
read as a note when both sides can.

A side that cannot be read as a note (bad block, not UTF-8, NUL) is never repaired. When its lines and the other's merge
without a clash, they are merged as plain text. Else the readable side stays the note and the other file stands complete
in a conflict section of its body; where neither can be read, the result is one section that holds both files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from mdmem.repo.merge_block import Block
from mdmem.repo.merge_body import insert_file, merge_bodies, several
from mdmem.repo.merge_conflicts import Conflict, Version, find_conflicts, mark_deleted_conflict, settle
from mdmem.repo.merge_fields import merge_blocks
from mdmem.repo.merge_markers import read_markers
from mdmem.repo.merge_section import BOM, Origin, Text, build_section
from mdmem.repo.merge_side import (
    Form,
    Side,
    file_section,
    form_of,
    join,
    lines_of,
    note_of,
    origin_of,
    plain,
    problem_of,
    read_side,
)
from mdmem.repo.merge_tokens import tokens

__all__ = ["Conflict", "Merged", "Version", "find_conflicts", "mark_deleted_conflict", "merge", "read_markers", "settle"]

T = TypeVar("T")


@dataclass(frozen=True)
class Merged:
    """The merged file, the conflicts that this merge brought about, and whether a generated block must be made anew."""

    text: bytes
    conflicts: list[Conflict] = field(default_factory=list)
    regenerate: bool = False


def merge(base: bytes | None, ours: bytes, theirs: bytes, path: str = "", now: datetime | None = None) -> Merged:
    """Return the merge of two files with their common ancestor; never raises.

    `base` None or empty: nothing is known of an ancestor. `now` lets a side whose `updated` lies in the future not win by
    it; without it no time counts as the future. `path` changes nothing: the result depends on the texts alone.
    """
    if ours == theirs or (base is not None and theirs == base):
        return Merged(ours)
    if base is not None and ours == base:
        return Merged(theirs)
    ours, theirs = sorted((ours, theirs))
    if base is not None and not base.removeprefix(BOM).strip():
        base = None
    regenerate = False
    try:
        text, regenerate = _merge(base, ours, theirs, now)
    except Exception:  # promised: any bytes give a result, and both versions in one file is always right
        text = _keep_both(base, ours, theirs)
    known = {conflict.key for side in (ours, theirs) for conflict in find_conflicts(side)}
    return Merged(text, [conflict for conflict in find_conflicts(text) if conflict.key not in known], regenerate)


def _merge(base: bytes | None, ours: bytes, theirs: bytes, now: datetime | None) -> tuple[bytes, bool]:
    if file_section(ours) or file_section(theirs):
        return _keep_both(base, ours, theirs), False
    healed = sorted(_healed(side, now) for side in (ours, theirs))
    if healed != [ours, theirs]:
        again = merge(base, healed[0], healed[1], now=now)
        return again.text, again.regenerate
    bad = [problem_of(side) is not None for side in (ours, theirs)]
    if any(bad):
        return _merge_bad(base, ours, theirs, bad), False
    texts = (base, ours, theirs)
    forms = [form_of(text) for text in texts if text is not None]
    uniform = all(form.newline for form in forms)
    old, one, two = (None if text is None else _side(text, uniform) for text in texts)
    assert one is not None and two is not None
    block = merge_blocks(old.block if old else None, one.block, two.block, (one.origin, two.origin), now)
    known_body = old.body if old and not _marked(old, one, two) else None
    body = merge_bodies(known_body, one.body, two.body, (one.origin, two.origin))
    result = join(block, body.lines, _form(old, one, two))
    document = note_of(result).doc
    if document.problem or document.has_block != block.present or document.fields != _fields(block):
        raise ValueError("the parts do not make one note")
    return result, body.regenerate


def _side(data: bytes, uniform: bool) -> Side | None:
    """Return a readable side; None for a base that cannot be read."""
    form = form_of(data)
    if problem_of(data) is not None:
        return None
    return read_side(data, form if uniform else Form(form.bom, b"", form.is_open))


def _fields(block: Block) -> dict[str, object]:
    return {entry.name: entry.value for entry in block.entries}


def _form(base: Side | None, ours: Side, theirs: Side) -> Form:
    def pick(get: Callable[[Form], T], choose: Callable[[T, T], T]) -> T:
        one, two = get(ours.form), get(theirs.form)
        if base is not None and get(base.form) in (one, two):
            return two if one == get(base.form) else one
        return choose(one, two)

    return Form(
        pick(lambda form: form.bom, lambda a, b: a or b),
        pick(lambda form: form.newline, min),
        pick(lambda form: form.is_open, lambda a, b: a and b),
    )


def _marked(base: Side, ours: Side, theirs: Side) -> bool:
    """Tell whether a base is itself a text with git's conflict markers (several merge bases), and not a text about them."""
    if not any(warning.code == "conflict_markers" for warning in note_of(base.data).doc.warnings):
        return False
    lines = {line for line in base.body if line.startswith(b"<<<<<<<")}
    return not lines & {*ours.body, *theirs.body}


def _healed(data: bytes, now: datetime | None) -> bytes:
    """Return a file whose frontmatter holds git's conflict markers as the merge of the two sides that it was made from."""
    problem = problem_of(data)
    sides = read_markers(data) if problem is not None and problem.code == "conflicted" else None
    if sides is None or any(problem_of(side) is not None for side in sides[1:]):
        return data
    return merge(*sides, now=now).text


def _merge_bad(base: bytes | None, ours: bytes, theirs: bytes, bad: list[bool]) -> bytes:
    """Return the merge of two files of which at least one cannot be read as a note."""
    for data, other in ((ours, theirs), (theirs, ours)):
        if _contains(data, other):
            return data
    if base is not None and (merged := _merge_lines(base, ours, theirs)) is not None:
        return merged
    if all(bad):
        return _keep_both(base, ours, theirs)
    good, other = (theirs, ours) if bad[0] else (ours, theirs)
    side = read_side(good, form_of(good))
    versions = (Text(b"\n".join(side.body)), Text(other, True))
    body = insert_file(side.body, versions[0], versions[1], (side.origin, origin_of(other)))
    result = join(side.block, body.lines, Form(side.form.bom, side.form.newline, False))
    if problem_of(result) is not None:
        raise ValueError("the parts do not make one note")
    return result


def _contains(data: bytes, other: bytes) -> bool:
    """Tell whether a conflict section of one file holds the other file."""
    if b"<!-- mdmem:conflict" not in data:
        return False
    units = tokens(lines_of(plain(data, form_of(data))))
    return any(Text(other, True) in dict(unit.section.versions) for unit in units if unit.section)


def _merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the merge of three files as plain lines, None when they clash."""
    forms = [form_of(data) for data in (base, ours, theirs)]
    if not all(form.newline for form in forms):
        forms = [Form(form.bom, b"", form.is_open) for form in forms]
    sides = [
        Side(data, form, Block(), lines_of(plain(data, form)), Origin()) for data, form in zip((base, ours, theirs), forms)
    ]
    merged = merge_bodies(sides[0].body, sides[1].body, sides[2].body, (Origin(), Origin()))
    return None if merged.made else join(Block(), merged.lines, _form(*sides))


def _keep_both(base: bytes | None, ours: bytes, theirs: bytes) -> bytes:
    """Return a file that is one conflict section with each version of the whole file."""
    values: list[dict[Text, Origin]] = []
    for data in (base or b"", ours, theirs):
        section = file_section(data)
        values.append(dict(section.versions) if section else {Text(data, True): origin_of(data)})
    old: set[Text] = set(values[0]) if base is not None else set()
    kept = several(old, set(values[1]), set(values[2]))
    for data, versions in zip((ours, theirs), values[1:]):
        if set(versions) == kept:
            return data
    if len(kept) == 1:
        return kept.pop().data
    origins = {text: min(side[text] for side in values if text in side) for text in kept}
    return b"\n".join(build_section(origins.items()).lines) + b"\n"
