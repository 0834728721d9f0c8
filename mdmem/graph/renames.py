"""Which notes were called otherwise before: from the renames that git sees, committed or not."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError, typed
from mdmem.index.edges import last_part, target_key
from mdmem.notes.names import fold

if TYPE_CHECKING:
    import sqlite3

    from mdmem.repo.history import Commit
    from mdmem.store import Store

# Renames whose ids are compared.
_AT_MOST = 500


@dataclass
class Renames:
    """Old names of today's notes. `ids`: (path, id that the note had under its old name)."""

    paths: dict[str, str] = field(default_factory=dict)  # old path, folded → path today
    stems: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    ids: list[tuple[str, str]] = field(default_factory=list)

    def add(self, old: str, new: str) -> None:
        """Remember that a note of today was once at `old`."""
        self.paths.setdefault(fold(old), new)
        self.stems[last_part(fold(old))].add(new)

    def now(self, target: str) -> str | None:
        """Return the path today of the one note that a target named before, or None."""
        key = target_key(target)
        path = self.paths.get(key) or self.paths.get(key + ".md")
        if path:
            return path
        found = self.stems.get(last_part(key), set())
        return next(iter(found)) if len(found) == 1 else None

    def before(self, path: str) -> list[str]:
        """Return the paths that a note had, folded."""
        return [old for old, new in self.paths.items() if new == path]


def renames(store: Store, found: dict[int, sqlite3.Row], gone: list[tuple[str, str, str]]) -> Renames:
    """Return the old names of the notes in `found`; empty where git cannot tell. `gone`: what `lost` returned."""
    from mdmem.repo.history import commits

    out = Renames()
    here = {row["path"]: row for row in found.values() if not row["folder"]}
    try:
        if store.git.rev("HEAD") is None:
            return out
        log = commits(store.git, "--diff-filter=R", "--end-of-options", "HEAD")
        _committed(store, log, here, out)
        _pending(gone, here, out)
    except MdmemError:
        pass
    return out


def _committed(store: Store, log: list[Commit], here: dict[str, sqlite3.Row], out: Renames) -> None:
    from mdmem.notes.note import load
    from mdmem.repo.git import BlobReader

    today: dict[str, str] = {}  # name after a commit that is being read → name today
    steps: list[tuple[str, str, str, str]] = []
    for commit in log:
        for entry in commit.entries:
            old, new = store.from_git(entry.old), store.from_git(entry.path)
            if old is None or new is None:
                continue
            path = today.get(new, new)
            if path in here and old not in here:
                today[old] = path
                steps.append((path, old, f"{commit.rev}^:{entry.old}", f"{commit.rev}:{entry.path}"))
    with BlobReader(store.git) as blobs:
        read = list(blobs.many(name for step in steps[:_AT_MOST] for name in step[2:]))
    for place, (path, old, _, _) in enumerate(steps):
        before, after = read[2 * place : 2 * place + 2] if 2 * place < len(read) else (None, None)
        was = load(old, before).id if before is not None else ""
        now = load(path, after).id if after is not None else ""
        row = here[path]
        if was and now and was != now:
            # A likeness of text is no rename when the ids differ, unless the new id was given for the new name.
            if was in {other["id"] for other in here.values()} or row["id"] != now:
                continue
            if was not in _aliases(row):
                out.ids.append((path, was))
        out.add(old, path)


def _aliases(row: sqlite3.Row) -> list[str]:
    import json

    value = json.loads(row["fields"] or "{}").get("aliases", [])
    return [value] if isinstance(value, str) else [item for item in value if isinstance(item, str)]


def _pending(gone: list[tuple[str, str, str]], here: dict[str, sqlite3.Row], out: Renames) -> None:
    """Add what was renamed and is not committed: a note at HEAD that is now at another path, by its id or its bytes."""
    for path, identity, blob in gone:
        fits = [row["path"] for row in here.values() if (identity and row["id"] == identity) or row["blob"] == blob]
        if len(fits) == 1:
            out.add(path, fits[0])


def lost(store: Store) -> list[tuple[str, str, str]]:
    """Return (path, id, blob) of the notes of HEAD whose file is not there; [] where git cannot tell."""
    from mdmem.graph.states import tree
    from mdmem.notes.note import load
    from mdmem.repo.history import blobs

    try:
        missing = {path: blob for path, blob in tree(store, store.git.rev("HEAD")).items() if not store.folder.exists(path)}
        data = blobs(store.git, missing.values()) if missing else {}
    except MdmemError:
        return []
    return [(path, load(path, data[blob]).id or "", blob) for path, blob in missing.items() if blob in data]


def gone_from_disk(store: Store, found: dict[int, sqlite3.Row], gone: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """Return the notes of the last commit whose file is gone and that are nowhere else."""
    from mdmem.notes.note import load
    from mdmem.recall.select import agent_scopes, may_read
    from mdmem.repo.history import blobs

    patterns = agent_scopes(store)
    ids = {row["id"] for row in found.values() if row["id"]}
    same = {row["blob"] for row in found.values()}
    out: list[dict[str, Any]] = []
    try:
        left = [one for one in gone if one[1] not in ids and one[2] not in same]
        data = blobs(store.git, [blob for _, _, blob in left]) if left else {}
    except MdmemError:
        return out
    for path, identity, blob in left:
        note = load(path, data[blob])
        if may_read(note.scope, patterns):
            do = typed("git", "checkout", "--", store.to_git(path)) + ", or commit its end: mdmem sync"
            out.append({"id": identity, "path": path, "title": note.title, "do": do})
    return out
