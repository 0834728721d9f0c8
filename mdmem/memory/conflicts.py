"""Conflicts that a merge has written into notes: listed, and settled one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.errors import ConflictFound, MdmemError, NotFound
from mdmem.memory.write import commit, subject
from mdmem.recall.select import agent_scopes, may_read, nameable

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.repo.merge_conflicts import Conflict
    from mdmem.store import Store

# Where a conflict can stand; each hit is then read and parsed, so a note that only talks of conflicts is not listed.
_SUSPECTS = """SELECT path, scope FROM notes WHERE folder = '' AND (state = 'conflicted' OR fields LIKE '%"conflicts"%'
  OR rowid IN (SELECT note FROM windows WHERE text LIKE '%<!-- mdmem:conflict%' OR text LIKE '%<<<<<<<%')) ORDER BY path"""


def conflicted(store: Store, looked: bool = False) -> list[tuple[Note, list[Conflict]]]:
    """Return every note that holds an open conflict, with its conflicts, by path. `looked`: the caller has just looked at
    every file."""
    from mdmem.repo.merge_conflicts import find_conflicts

    if not looked:
        store.index.refresh(embed_budget_s=0.0)
    patterns = agent_scopes(store)
    found = []
    for row in store.index.catalog.rows(_SUSPECTS):
        if not may_read(row["scope"], patterns):
            continue
        try:
            note = store.folder.read(row["path"])
        except MdmemError:
            continue
        conflicts = find_conflicts(note.data)
        if conflicts:
            found.append((note, conflicts))
    return found


def files_in_two(store: Store) -> list[dict[str, str]]:
    """Return {path, of} of every file, no note, whose two versions stand side by side since a sync; `of` is the other one."""
    from mdmem.repo.files_merge import siblings

    found = [(store.from_git(path), store.from_git(other)) for path, other in siblings(store.git)]
    may_name = nameable(store) if found else bool
    named = [(path, other) for path, other in found if path is not None and other is not None and may_name(path)]
    return [{"path": path, "of": other} for path, other in named]


def as_data(note: Note, conflicts: list[Conflict]) -> dict[str, Any]:
    """Return a note's conflicts as JSON data."""
    return {
        "id": note.id or "",
        "path": note.path,
        "title": note.title,
        "conflicts": [
            {
                "kind": conflict.kind,
                "field": conflict.name,
                "line": conflict.line or 1,
                "versions": [
                    {
                        "number": version.number,
                        "text": version.text,
                        "agent": version.agent,
                        "device": version.device,
                        "updated": version.updated,
                        "removed": version.removed,
                    }
                    for version in conflict.versions
                ],
            }
            for conflict in conflicts
        ],
    }


@dataclass(frozen=True)
class Resolved:
    """What is left after settling: `left` conflicts still open in the note; `deleted`: the note is gone."""

    path: str
    left: int
    deleted: bool
    committed: bool
    reason: str = ""
    notice: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        out = {"path": self.path, "left": self.left, "deleted": self.deleted, "committed": self.committed}
        more = {"reason": self.reason, "notice": self.notice}
        return {**out, **{key: value for key, value in more.items() if value}}


def resolve(store: Store, reference: str, keep: str, field: str = "") -> Resolved:
    """Settle the conflicts of a note (of one field): keep `1`, `2`, `both`, `deleted` or a value.

    Raises NotFound when there is no such conflict, UsageError for a version that does not exist."""
    from mdmem.memory.change import find
    from mdmem.repo.merge_conflicts import find_conflicts, settle

    folder, note = find(store, reference)
    for _ in range(5):
        if not find_conflicts(note.data):
            raise NotFound(f"{note.path} holds no conflict", hint="mdmem conflicts")
        data = settle(note.data, field or None, keep)
        try:
            if not data:
                folder.delete(note.path, note.sha)
                _settled(store, note.path)
                done = commit(store, [note.path], subject("resolve", f"{note.title} (deleted)"))
                return Resolved(note.path, 0, True, done.done, done.reason, done.notice)
            folder.write(note.path, _stamped(store, data), note.sha)
        except ConflictFound:
            note = folder.read(note.path)
            continue
        left = len(find_conflicts(folder.read(note.path).data))
        if not left:
            _settled(store, note.path)
        done = commit(store, [note.path], subject("resolve", note.title))
        return Resolved(note.path, left, False, done.done, done.reason, done.notice)
    raise ConflictFound(f"{note.path} keeps changing under this command", hint="try again")


def _settled(store: Store, path: str) -> None:
    """Mark a path that git's own merge or rebase left unmerged as settled, so that git's next command can end it."""
    name = store.to_git(path)
    if store.git.run("ls-files", "-u", "-z", "--", name, check=False, read=True).out:
        store.git.run("add", "-A", "--", name, check=False)


def _stamped(store: Store, data: bytes) -> bytes:
    """Return the settled text with its date of change, so that no other machine's older version wins over it."""
    from mdmem.errors import BadNote
    from mdmem.notes.frontmatter import edit, parse

    document = parse(data)
    if document.problem is not None or "updated" not in document.fields:
        return data
    try:
        return edit(data, {"updated": stamp(store.clock.now())})
    except BadNote:
        return data
