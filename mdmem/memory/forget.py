"""Forgetting: a note leaves recall and stays in history, or (purge) its file goes too."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mdmem.clock import read_stamp, seconds, stamp
from mdmem.errors import BadNote, ConflictFound, MdmemError
from mdmem.memory import shown, spool
from mdmem.memory.change import find
from mdmem.memory.write import commit, subject

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.store import Store


@dataclass
class Forgotten:
    """What was (or, in a dry run, would be) forgotten, and what could not be."""

    notes: list[dict[str, str]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    committed: bool = False
    reason: str = ""
    spooled: int = 0  # records of the spool that held a purged note's words and went with it
    notice: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        out: dict[str, Any] = {"forgotten": self.notes, "failed": self.failed, "committed": self.committed}
        if self.reason:
            out["reason"] = self.reason
        if self.spooled:
            out["spool_records_deleted"] = self.spooled
        if self.notice:
            out["notice"] = self.notice
        return out


def older(rows: list[Any], age: str, store: Store) -> list[Any]:
    """Return the catalog rows whose `updated` is at least `age` (such as 30d) back."""
    limit = store.clock.now() - timedelta(seconds=seconds(age))
    out = []
    for row in rows:
        moment = read_stamp(row["updated"] or row["created"] or "")
        if moment is not None and moment <= limit:
            out.append(row)
    return out


def forget(
    store: Store,
    references: list[str],
    *,
    superseded_by: str = "",
    purge: bool = False,
    dry_run: bool = False,
    subject_what: str = "",
) -> Forgotten:
    """Forget each note; one that fails is named and stops no other. Never rewrites history."""
    from mdmem.notes.frontmatter import edit

    successor = find(store, superseded_by)[1] if superseded_by else None
    out = Forgotten()
    paths: list[str] = []
    words: list[str] = []
    for reference in references:
        try:
            folder, note = find(store, reference)
            named = {"id": note.id or "", "path": note.path, "title": note.title}
            if purge:
                words += _own_words(note)
                if not dry_run:
                    folder.delete(note.path, note.sha)
            else:
                if not note.ok:
                    raise BadNote(f"{note.path} cannot be changed", why="it cannot be parsed", hint="mdmem check, or --purge")
                changes: dict[str, Any] = {"status": "superseded" if successor else "forgotten"}
                if successor:
                    changes["superseded_by"] = [successor.id or successor.path]
                if note.status == changes["status"] and not successor:
                    continue
                changes["updated"] = stamp(store.clock.now())
                if not dry_run:
                    folder.write(note.path, edit(note.data, changes), note.sha)
                    if successor:
                        paths += _link_back(store, superseded_by, note.id or note.path)
            out.notes.append(named)
            if folder is store.folder:
                paths.append(note.path)
        except MdmemError as error:
            # One name alone that fails is the command's own failure, with its exit code and hint.
            if len(references) == 1 and not isinstance(error, (BadNote, ConflictFound)):
                raise
            out.failed.append({"note": reference, "code": error.code, "message": str(error)})
    if paths and not dry_run:
        what = subject_what or (out.notes[0]["title"] if len(out.notes) == 1 else f"{len(out.notes)} notes")
        done = commit(store, paths, subject("purge" if purge else "forget", what))
        out.committed, out.reason, out.notice = done.done, done.reason, done.notice
    if purge and not dry_run:
        store.index.refresh()
        out.spooled = spool.purge(str(store.common_state_dir), words) if words else 0
        shown.purge(str(store.common_state_dir), words)
    return out


def _link_back(store: Store, successor: str, old: str) -> list[str]:
    """Name `old` under `supersedes` of the note that replaces it; returns the paths of the store that changed."""
    from mdmem.notes.frontmatter import edit

    folder, note = find(store, successor)
    before = note.words("supersedes")
    if not note.ok or old in before:
        return []
    changes: dict[str, Any] = {"supersedes": sorted([*before, old]), "updated": stamp(store.clock.now())}
    folder.write(note.path, edit(note.data, changes), note.sha)
    return [note.path] if folder is store.folder else []


def _own_words(note: Note) -> list[str]:
    """Return what tells this note in other text: its id, path and title, and the lines of its body that are long enough."""
    lines = [line.strip() for line in note.body.splitlines()]
    return [note.id or "", note.path, note.title, *(line for line in lines if len(line) >= (8 if not line.isascii() else 20))]


HISTORY_RECIPE = """The file is gone from the store, its history is not. To take it out of the history of every clone:
  git filter-repo --invert-paths --path PATH        (from https://pypi.org/project/git-filter-repo)
then push with --force from one machine and clone afresh on the others. What a sync that was cut off had sent is named by
  git ls-remote REMOTE 'refs/mdmem/ahead/*'         (git push REMOTE --delete NAME takes it away)"""
