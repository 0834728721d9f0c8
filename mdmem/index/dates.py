"""Dates of notes that do not say them: the commits of their path, or the file's time while it is not committed.

Git is asked once for all of them, and only when there are any; a note that mdmem wrote carries its dates.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mdmem.errors import MdmemError
from mdmem.index.catalog import Catalog
from mdmem.index.fold_in import COMMIT, FILE, PENDING, from_ns
from mdmem.index.rows import when

if TYPE_CHECKING:
    from mdmem.index.home import Home


NAMED = 50  # notes that git is asked for by name


def settle_dates(catalog: Catalog, store: Home) -> int:
    """Fill in the dates that wait for git; returns how many notes got theirs from a commit. The caller holds the lock."""
    # As the partial index says it, which knows these few among all notes.
    rows = catalog.rows(
        f"SELECT rowid, path, mtime_ns, fields, dated FROM notes WHERE folder = '' AND dated IN ('{PENDING}', '{FILE}')"
    )
    if not rows:
        return 0
    committed, dirty = _ask(store, {row["path"]: row["dated"] for row in rows})
    values = []
    for row in rows:
        fields = json.loads(row["fields"] or "{}")
        said = {name: when(fields.get(name)) if isinstance(fields.get(name), str) else None for name in ("created", "updated")}
        known = committed.get(row["path"])
        moment = from_ns(row["mtime_ns"])
        last = moment if known is None or row["path"] in dirty else known[1]
        updated = said["updated"] or last
        created = said["created"] or min(known[0] if known else moment, updated)
        values.append((created, updated, COMMIT if known and row["path"] not in dirty else FILE, row["rowid"]))
    with catalog.writing() as connection:
        connection.executemany("UPDATE notes SET created = ?, updated = ?, dated = ? WHERE rowid = ?", values)
    return sum(value[2] == COMMIT for value in values)


def _ask(store: Home, paths: dict[str, str]) -> tuple[dict[str, tuple[str, str]], set[str]]:
    """Return ({path: (first, last commit)}, paths with changes that are not committed); both empty without git.

    The log is read only for what is committed, and once for what was changed since: a vault full of notes that nobody
    commits does not pay for its history at each change."""
    try:
        from mdmem.repo.commit import pending
        from mdmem.repo.history import path_dates

        roots = [store.to_git(owned).rstrip("/") for owned in store.owned]
        # A note just written is asked for by name: in a large store git looks at every file otherwise.
        named = [store.to_git(path) for path in paths] if len(paths) <= NAMED else []
        dirty = {store.from_git(item.path): item.kind for item in pending(store.git, roots, named)}
        asked = [path for path, dated in paths.items() if path not in dirty or (dirty[path] != "new" and dated == PENDING)]
        found = path_dates(store.git, [store.to_git(path) for path in asked]) if asked else {}
    except (MdmemError, OSError):
        return {}, set()
    dates = {}
    for path, known in found.items():
        inner = store.from_git(path)
        if inner is not None:
            dates[inner] = (known.created, known.updated)
    return dates, {path for path in dirty if path is not None}
