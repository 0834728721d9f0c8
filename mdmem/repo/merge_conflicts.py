"""The conflicts that wait in a note, and settling them. Pure: bytes in, bytes or a list out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mdmem.errors import BadNote, MdmemError, NotFound, UsageError
from mdmem.notes import fences, quoting
from mdmem.notes.schema import FIELDS
from mdmem.notes.values import BadBlock, Value
from mdmem.repo.merge_block import Block, Entry, new_entry, with_children
from mdmem.repo.merge_markers import read_markers
from mdmem.repo.merge_record import Choice, entry_from, find_path, put_entry, read_record, record_entry
from mdmem.repo.merge_section import Origin, Text, find_sections, tidy
from mdmem.repo.merge_side import Side, form_of, join, lines_of, note_of, plain, problem_of, read_side

_ONE_TEXT = frozenset(name for name, rule in FIELDS.items() if rule not in ("set", "facts"))


@dataclass(frozen=True, slots=True)
class Version:
    """One of the versions of a conflict: what `--keep NUMBER` keeps. `removed`: the field, passage or note is gone."""

    number: int
    text: str
    agent: str = ""
    device: str = ""
    updated: str = ""
    removed: bool = False
    whole: bool = False
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Conflict:
    """An open conflict of a note.

    `kind`: field, body, file (the other version is a whole file that cannot be read as a note), deleted (the note was
    edited here and deleted there), markers (git's own, where no driver ran). `field` is empty for all but the first.
    `name` is what settle() and `mdmem resolve --field` take (`body`; where the body has several: `body:1`, `body:2`);
    `line` is 1-based.
    """

    kind: str
    name: str
    versions: tuple[Version, ...]
    field: str = ""
    line: int | None = None

    @property
    def key(self) -> tuple[str, str, frozenset[tuple[bytes, bool]]]:
        """What makes it the same conflict in another text: its kind, field and set of versions."""
        return self.kind, self.field, frozenset((version.data, version.removed) for version in self.versions)


def find_conflicts(data: bytes) -> list[Conflict]:
    """Return the open conflicts of a file, those of fields first, then the body's from top to bottom; never raises."""
    if not any(sign in data for sign in (b"conflicts", b"<!-- mdmem:conflict", b"<<<<<<<")):
        return []
    note = note_of(data)
    if note.doc.problem is not None:
        return _marker_conflict(data) if note.doc.problem.code == "conflicted" else []
    try:
        side = read_side(data, form_of(data))
    except BadBlock:
        return []
    record = read_record(side.block)
    found = [
        Conflict("field", name, _choices(choices.values()), name, note.line_of(name.rpartition(".")[2]))
        for name, choices in sorted(record.conflicts.items())
        if len(choices) > 1
    ]
    if record.deleted is not None:
        here = Version(1, "the note as it stands", *_who(side.origin), data=b"note")
        found.append(Conflict("deleted", "deleted", (here, Version(2, "", *_who(record.deleted), removed=True))))
    sections = find_sections(side.body)
    for number, (start, _, section) in enumerate(sections, 1):
        whole = any(text.whole for text, _ in section.versions)
        name = "body" if len(sections) == 1 else f"body:{number}"
        found.append(
            Conflict("file" if whole else "body", name, _passages(section.versions), line=note.doc.body_line + start)
        )
    return found + (_marker_conflict(data) if _has_markers(side.body) else [])


def _who(origin: Origin) -> tuple[str, str, str]:
    return origin.agent, origin.device, origin.updated


def _choices(choices: Iterable[Choice]) -> tuple[Version, ...]:
    ordered = sorted(choices, key=Choice.rank)
    return tuple(
        Version(number, _shown(c.value), *_who(c.origin), c.rest is None, data=(c.mark or "").encode("utf-8", "replace"))
        for number, c in enumerate(ordered, 1)
    )


def _shown(value: Value) -> str:
    return value if isinstance(value, str) else quoting.inline(value)


def _passages(versions: Sequence[tuple[Text, Origin]]) -> tuple[Version, ...]:
    return tuple(
        Version(n, text.data.decode("utf-8", "replace"), *_who(origin), not (text.data or text.whole), text.whole, text.data)
        for n, (text, origin) in enumerate(versions, 1)
    )


def _marker_conflict(data: bytes) -> list[Conflict]:
    sides = read_markers(data)
    if sides is None:
        return []
    versions = _passages([(Text(side, True), Origin()) for side in sorted(set(sides[1:]))])
    return [Conflict("markers", "markers", versions, line=data.count(b"\n", 0, data.find(b"<<<<<<<")) + 1)]


def _has_markers(lines: Sequence[bytes]) -> bool:
    """Tell whether git's markers stand outside code blocks: a text about git shows them in one."""
    shown: list[bytes] = []
    fence = b""
    for line in lines:
        mark = line.lstrip()[:3]
        if mark in (b"```", b"~~~") and fence in (b"", mark):
            fence = b"" if fence else mark
        elif not fence:
            shown.append(line)
    return read_markers(b"\n".join(shown)) is not None


def settle(data: bytes, field: str | None, keep: str) -> bytes:
    """Return a file with its conflicts settled: all, or those of one name (`body` for all of the body, `body:2`, a key).

    `keep`: the number of a version, `both`, `deleted`, or any other text as the new value. Empty bytes mean that the note
    is to be deleted. Raises NotFound when there is no such conflict, UsageError when that choice does not exist there.
    """
    found = find_conflicts(data)
    chosen = [c for c in found if field is None or field in (c.name, c.field, c.name.partition(":")[0])]
    if not chosen:
        names = ", ".join(conflict.name for conflict in found)
        what = "this note has no such conflict" if found else "this note has no conflict"
        raise NotFound(what, hint=names and f"open: {names}")
    # From the last to the first, so that the names of those that wait stay true.
    for conflict in reversed(chosen):
        data = _settle(data, conflict, keep)
        if not data or conflict.kind in ("file", "markers"):
            break
    return data


def _settle(data: bytes, conflict: Conflict, keep: str) -> bytes:
    version = next((v for v in conflict.versions if str(v.number) == keep or (keep == "deleted" and v.removed)), None)
    if version is None and (keep == "deleted" or (keep.isdigit() and conflict.kind != "field")):
        raise UsageError(f"{conflict.name} has no version {keep}", hint=f"keep 1 to {len(conflict.versions)}, both or a text")
    if conflict.kind == "markers":
        return _settle_markers(data, version, keep)
    side = read_side(data, form_of(data))
    if conflict.kind == "deleted":
        if version is None and keep != "both":
            raise UsageError("this note was edited here and deleted there", hint="keep 1 (the note) or deleted")
        return b"" if version is not None and version.removed else _unmark_deleted(side)
    if conflict.kind == "field":
        return _settle_field(side, conflict.field, _picked(side, conflict, version, keep))
    return _settle_section(side, conflict, version, keep)


def _settle_markers(data: bytes, version: Version | None, keep: str) -> bytes:
    if version is not None:
        return version.data
    sides = read_markers(data)
    if keep != "both" or sides is None:
        raise UsageError("git's markers stand in this file", hint="keep 1, 2 or both")
    from mdmem.repo.merge import merge  # knows this module

    return merge(*sides).text


def _picked(side: Side, conflict: Conflict, version: Version | None, keep: str) -> Choice:
    name = conflict.field
    ordered = sorted(read_record(side.block).conflicts[name].values(), key=Choice.rank)
    if version is not None:
        return ordered[version.number - 1]
    short = name.rpartition(".")[2]
    value: Value = keep
    if keep == "both":
        values = [choice.value for choice in ordered if choice.rest is not None]
        if name in _ONE_TEXT or any(isinstance(part, dict) for part in values):
            raise UsageError(f"{name} holds one value", hint="keep 1, 2 or a text")
        value = [item for part in values for item in (part if isinstance(part, list) else [part])]
    elif FIELDS.get(name) == "set":
        value = [word.strip() for word in keep.split(",") if word.strip()]
    return Choice(new_entry(short, value).rest, value)


def _settle_field(side: Side, name: str, choice: Choice) -> bytes:
    entries = _set_field(side.block.entries, name, choice)
    record = read_record(side.block)
    record.conflicts.pop(name)
    return _rebuilt(side, put_entry(entries, "conflicts", record_entry(record, "conflicts")))


def _rebuilt(side: Side, entries: Sequence[Entry]) -> bytes:
    result = join(replace(side.block, entries=tuple(entries)), side.body, side.form)
    if (problem := problem_of(result)) is not None:
        raise BadNote("this value cannot be written into the note", why=problem.message, hint="make the change in an editor")
    return result


def _set_field(entries: Sequence[Entry], name: str, choice: Choice) -> tuple[Entry, ...]:
    """Return entries with one field set: where it stands, else in the map that it was in, else at the top level."""
    path = find_path(entries, name)
    parts = name.split(".", 1)
    if path is None and len(parts) == 2 and parts[0] in ("facts", "metadata"):
        path = parts
    return _put(entries, path or [name], choice)


def _put(entries: Sequence[Entry], path: Sequence[str], choice: Choice) -> tuple[Entry, ...]:
    old = next((entry for entry in entries if entry.name == path[0]), None)
    if len(path) > 1:
        frame = old or new_entry(path[0], "")
        inner = _put(frame.children or (), path[1:], choice)
        new: Entry | None = with_children(frame, inner, frame.tail) if old or inner else None
    elif choice.rest is None:
        new = None
    else:
        key = old.key if old else quoting.key(path[0])
        new = entry_from([key + choice.rest[0], *choice.rest[1:]])
    if old is None:
        return (*entries, new) if new else tuple(entries)
    found: list[Entry] = []
    for entry in entries:
        if entry is not old:
            found.append(entry)
        elif new is not None:
            found.append(replace(new, lead=old.lead))
    return tuple(found)


def _settle_section(side: Side, conflict: Conflict, version: Version | None, keep: str) -> bytes:
    if version is not None and version.whole:
        return version.data
    number = int(conflict.name.partition(":")[2] or 1)
    start, end, section = find_sections(side.body)[number - 1]
    if version is not None:
        lines = version.data.split(b"\n") if version.data else []
    elif keep == "both":
        lines = []
        for text, _ in section.versions:  # a removed one comes first and has no lines
            lines += [b""] * bool(lines) + lines_of(plain(text.data, form_of(text.data)))
    else:
        lines = keep.strip("\n").encode("utf-8", "replace").split(b"\n")
    if section.stray:
        lines = [*section.stray, b"", *lines]
    before, after = side.body[:start], side.body[end:]
    if not lines and before and not before[-1].strip() and after and not after[0].strip():
        del after[0]
    return join(side.block, [*before, *lines, *after], side.form)


def _unmark_deleted(side: Side) -> bytes:
    record = read_record(side.block)
    record.deleted = None
    entries = put_entry(side.block.entries, "conflicts", record_entry(record, "conflicts"))
    if not entries and not side.block.tail:
        return join(Block(), side.body, side.form)
    return _rebuilt(side, entries)


def mark_deleted_conflict(data: bytes, agent: str = "", device: str = "", date: str = "") -> bytes:
    """Return a note that was edited here with the record that it was deleted elsewhere (by whom, where, when).

    The edit stays; `find_conflicts` lists it and `settle(…, "deleted")` deletes the note. Marking twice changes nothing.
    A file that cannot be read as a note is returned as it is: it is never written to.
    """
    if problem_of(data) is not None:
        return data
    try:
        side = read_side(data, form_of(data))
        record = read_record(side.block)
        if record.deleted is not None or not record.readable:
            return data
        record.deleted = Origin(tidy(agent), tidy(device), tidy(date))
        if not side.block.present:
            side = replace(side, block=Block(closing=("---", ""), present=True))
        result = _rebuilt(side, put_entry(side.block.entries, "conflicts", record_entry(record, "conflicts")))
    except (BadBlock, MdmemError):
        return data
    return result if fences.split(result).problem is None else data
