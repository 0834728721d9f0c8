"""Where imported notes go: one set of rules for a real run and a dry one, so that the dry run counts what the real one does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.errors import ConflictFound

if TYPE_CHECKING:
    from mdmem.notes.folder import Folder
    from mdmem.notes.note import Note
    from mdmem.store import Store


@dataclass
class Imported:
    """What an import did. `failed` names each thing that could not be taken, with the reason; `left_out` each that was not
    meant to be. `decided`: what became of texts that came without an id of ours, beside the memories that are there."""

    created: int = 0
    unchanged: int = 0
    paths: list[str] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    redacted: int = 0
    decided: list[dict[str, str]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    committed: bool = False
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(self.__dict__)


class Placing:
    """The notes that are there and, in a dry run, those that would be by now. `local` is this user's own folder beside it."""

    def __init__(self, store: Store, dry_run: bool) -> None:
        self.store, self.dry_run, self.out = store, dry_run, Imported()
        self._planned: dict[tuple[bool, str], bytes] = {}
        self._folders: set[tuple[bool, str]] = set()
        self._ids: dict[tuple[bool, str], str] = {}
        self._told: list[str] = []

    @contextmanager
    def going_on(self) -> Iterator[Placing]:
        """Hold the lock while notes are placed, so that each folder is listed once and what is there does not change."""
        self.store.index.refresh(embed_budget_s=0.0)
        rows = self.store.index.catalog.rows("SELECT id, path FROM notes WHERE folder = '' AND id != '' ORDER BY path DESC")
        self._ids = {(False, str(row["id"])): str(row["path"]) for row in rows}
        with self.store.folder.bulk():
            yield self

    def by_id(self, identity: str, local: bool = False) -> Note | None:
        """Return the note with an id, None when there is none."""
        path = self._ids.get((local, identity))
        if path is None and local and not self._known_local:
            self._known_local = True
            for note in self.store.local_folder.notes():
                if note.ok and note.id:
                    self._ids.setdefault((True, note.id), note.path)
            path = self._ids.get((True, identity))
        return None if path is None else self._note(path, local)

    _known_local = False

    def by_path(self, path: str, local: bool = False) -> bytes | None:
        """Return the bytes at a path, None when nothing is there."""
        if (local, path) in self._planned:
            return self._planned[local, path]
        folder = self._folder(local)
        return folder.read_bytes(path) if folder.exists(path) else None

    def put(self, path: str, data: bytes, identity: str = "", local: bool = False, told: bool = False) -> None:
        """Write a new note, or plan it; `told`: it is a text of elsewhere, not a note of ours. Raises MdmemError."""
        if not local and self.store.shared:
            from mdmem.notes.note import load

            self.store.keep_private(load(path, data).scope)
        folder = self._folder(local)
        above = [path[:place] for place, letter in enumerate(path) if letter == "/"]
        files = any((local, one) in self._planned or _other(folder, one, Path.is_dir) for one in above)
        if files or (local, path) in self._folders or _other(folder, path, Path.is_file):
            raise ConflictFound(f"a file and a folder would share a name: {path}")
        if self.dry_run:
            folder.plan(path)
            self._planned[local, path] = data
            self._folders |= {(local, one) for one in above}
        else:
            folder.create(path, data)
            if not local:
                self.out.paths.append(path)
                self._told += [path] if told else []
        if identity:
            self._ids.setdefault((local, identity), path)
        self.out.created += 1

    def done(self) -> Imported:
        """Commit what was placed, and return the counts."""
        from mdmem.memory.write import commit, subject

        if self.out.paths:
            made = commit(self.store, self.out.paths, subject("import", f"{len(self.out.paths)} notes"))
            self.out.committed, self.out.reason = made.done, made.reason
            self._compare()
        return self.out

    def _compare(self) -> None:
        """Compare the texts of elsewhere with their neighbours, as `remember` does; a note of ours was decided on once."""
        from mdmem.learn.reconcile import compare_paths
        from mdmem.memory.write import commit, subject

        self.out.decided, paths = compare_paths(self.store, self._told)
        if paths:
            made = commit(self.store, paths, subject("import", f"{len(self.out.decided)} pairs compared"))
            self.out.committed, self.out.reason = made.done, made.reason

    def _folder(self, local: bool) -> Folder:
        return self.store.local_folder if local else self.store.folder

    def _note(self, path: str, local: bool) -> Note:
        from mdmem.notes.note import load

        planned = self._planned.get((local, path))
        return self._folder(local).read(path) if planned is None else load(path, planned)


def _other(folder: Folder, path: str, wanted: Callable[[Path], bool]) -> bool:
    """Return whether something is at a path that is not what is wanted there. A name that no file can have is not there."""
    try:
        return os.path.lexists(folder.root / path) and not wanted(folder.root / path)
    except ValueError:
        return False
