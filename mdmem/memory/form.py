"""The few changes of form that make notes merge well as text. Never a change of meaning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mdmem.errors import BadNote, ConflictFound, MdmemError

if TYPE_CHECKING:
    from mdmem.store import Store


@dataclass
class Tidied:
    """What `fmt` looked at, changed, and had to leave."""

    looked: int = 0
    changed: list[str] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)


def tidy(store: Store, paths: Iterable[str] | None, *, ids: bool, dry_run: bool) -> Tidied:
    """Format each note that this agent may read; one that cannot be parsed is named and left. Nothing is committed."""
    from mdmem.memory.change import new_id
    from mdmem.notes.frontmatter import edit
    from mdmem.notes.reform import reform
    from mdmem.recall.select import nameable

    out = Tidied()
    may_name = nameable(store)
    for path in filter(may_name, sorted(paths if paths is not None else [stat.path for stat in store.folder.scan()])):
        out.looked += 1
        try:
            note = store.folder.read(path)
        except MdmemError as error:
            out.skipped.append({"path": path, "reason": str(error)})
            continue
        if not note.ok:
            problem = note.doc.problem
            out.skipped.append({"path": path, "reason": problem.message if problem else "cannot be parsed"})
            continue
        try:
            data = reform(note.data)
            if ids and not note.get("id") and note.kind != "note" and note.doc.has_block:
                changes: dict[str, Any] = {"id": new_id(store, note)}
                data = edit(data, changes)
            if data == note.data:
                continue
            if not dry_run:
                store.folder.write(path, data, note.sha)
            out.changed.append(path)
        except (BadNote, ConflictFound) as error:
            out.skipped.append({"path": path, "reason": str(error)})
    return out
