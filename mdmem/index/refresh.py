"""Bringing the index up to the files: look, compare, fold in, write the words, settle the dates, embed.

Looking takes no lock. Only when there is work is the index lock taken, for a short while: when another process holds it,
that process is folding in the same files, and a read answers with what there is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.errors import Locked
from mdmem.index import changes as looking
from mdmem.index import last_look
from mdmem.index.catalog import Catalog, CatalogBusy
from mdmem.index.changes import Changes, Seen, Source
from mdmem.index.flush import OVERLAY, queued
from mdmem.locks import FileLock

if TYPE_CHECKING:
    from mdmem.index.changes import Tell
    from mdmem.index.fold_in import Folded
    from mdmem.index.home import Home
    from mdmem.index.parts import Parts


@dataclass
class Refreshed:
    """What a refresh did. `pending_notes` files and `pending_vectors` texts were not reached in the time given;
    `busy`: another process was at work, so that the answer may lack the newest changes."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    renamed: int = 0
    pending_notes: int = 0
    pending_vectors: int = 0
    busy: bool = False
    notices: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(self.__dict__)

    def line(self) -> str:
        """Return one line for a person."""
        parts = [f"{getattr(self, name)} {name}" for name in ("added", "changed", "removed", "renamed") if getattr(self, name)]
        text = ", ".join(parts) or "nothing changed"
        if self.pending_notes:
            text += f"; {self.pending_notes} files still to read"
        if self.pending_vectors:
            text += f"; {self.pending_vectors} passages still to embed"
        return text


def sources_of(store: Home) -> list[Source]:
    """Return the trees of notes of a store: its own, the device's local notes, and `[[folders]]` of the user."""
    from mdmem.notes.folder import Folder

    found = [Source("", "", store.folder)]
    local = store.data_dir / "local" / (store.location.store_id or "unnamed")
    if local.is_dir():
        found.append(Source("local", "local:", store.local_folder))
    for entry in store.config.user.get("folders", []):
        if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
            continue
        root = os.path.abspath(os.path.expanduser(entry["path"]))
        named = entry.get("types")
        types = {str(prefix): str(type) for prefix, type in named.items()} if isinstance(named, dict) else {}
        if entry.get("type"):
            types.setdefault("", str(entry["type"]))
        prefix = root.replace(os.sep, "/").rstrip("/") + "/"
        found.append(Source(root, prefix, Folder(Path(root), readonly=True), str(entry.get("kind") or "entity"), types))
    return found


def refresh(
    index: Parts,
    budget_s: float | None,
    embed_budget_s: float | None,
    tell: Tell | None,
    paths: Iterable[str] | None,
    wait_s: float,
) -> Refreshed:
    """Return what was done; see Parts.refresh."""
    deadline = None if budget_s is None else time.monotonic() + budget_s
    out = Refreshed()
    catalog = index.catalog
    seen, changes = _look(index, catalog, paths)
    remarks_differ = paths is None and not _same_remarks(catalog, seen)
    waiting = queued(catalog)
    if changes or remarks_differ or waiting[1] > OVERLAY or not index.text.exists():
        from mdmem.index.fold_in import fold_in

        try:
            with index_lock(index, wait_s):
                # Another process may have done it meanwhile.
                changes = _compare(index, catalog, seen, paths, changes)
                folded = fold_in(catalog, seen, changes, deadline, tell)
                index.known.take(catalog, [*(stat.path for stat in changes.read), *changes.gone])
                _after(index, catalog, seen, folded, paths is None, deadline, tell, out)
        except Locked:
            out.busy = True
            out.notices.append("another mdmem process is updating the index; the newest changes may be missing")
        except (CatalogBusy, OSError) as error:
            # A full or read-only disk: what is there can still be searched.
            out.busy = True
            out.notices.append(f"the index could not be updated, the newest changes may be missing: {_why(error)}")
    _embed(index, catalog, embed_budget_s, tell, out)
    return out


def unsettled(index: Parts) -> list[str] | None:
    """Return the paths that a refresh has to look at, of which none is read here, when the index lacks a file or a vector;
    None when it has them all. May name some for want of knowing. To be asked between two answers."""
    with index.mutex:
        catalog = index.catalog
        _, changes = _look(index, catalog, None, between=True)
        said = catalog.meta("pending") or ""
        complete = said.startswith(f"{catalog.meta('epoch')} {catalog.changed()} ") and said.endswith("=0")
        if complete and not changes and queued(catalog)[1] <= OVERLAY:
            return None
        return [*(stat.path for stat in changes.read), *changes.gone]


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else getattr(error, "why", "")) or str(error)


def _look(index: Parts, catalog: Catalog, paths: Iterable[str] | None, between: bool = False) -> tuple[Seen, Changes]:
    if paths is not None:
        seen, missing = looking.look_at(index.sources, paths)
        return seen, looking.compare_some(catalog, seen, missing)
    known = index.known
    seen, whole = index.lookout.look(index.sources, between)
    if not whole:
        return seen, index.lookout.some(catalog)
    # A process that looks for the first time, or is told of changes, can do without the rows.
    state = last_look.stamp(catalog) if not known.loaded and not seen.unread else None
    if state is not None and last_look.same(index.state_dir, state, seen.stats):
        return seen, Changes([], [])
    known.load(catalog)
    changes = looking.compare(known, seen)
    if state is not None and not changes:
        last_look.keep(index.state_dir, state, seen.stats)
    if index.lookout.watching:
        index.lookout.compared(changes)
        known.forget()
    return seen, changes


def _compare(index: Parts, catalog: Catalog, seen: Seen, paths: Iterable[str] | None, before: Changes) -> Changes:
    """Return the changes that are left when the lock is held: another process may have folded them in meanwhile."""
    if paths is not None:
        return before
    if index.lookout.watching:
        return index.lookout.some(catalog)
    return looking.compare(index.known, seen) if index.known.load(catalog) else before


def _same_remarks(catalog: Catalog, seen: Seen) -> bool:
    stored = catalog.rows(
        "SELECT folder, path, code, message FROM problems WHERE note IS NULL AND code NOT IN ('unread_file', 'twin')"
    )
    return {tuple(row) for row in stored} == set(seen.remarks)


def _after(
    index: Parts,
    catalog: Catalog,
    seen: Seen,
    folded: Folded,
    whole: bool,
    deadline: float | None,
    tell: Tell | None,
    out: Refreshed,
) -> None:
    from mdmem.index.dates import settle_dates
    from mdmem.index.fold_in import put_remarks, put_twins

    out.added, out.changed = len(folded.added), len(folded.changed)
    out.removed, out.renamed = len(folded.removed), len(folded.renamed)
    out.pending_notes = folded.left
    out.notices += [f"{path} could not be read; its last known text stays in the index" for path in folded.unreadable[:5]]
    if whole:
        out.notices += put_remarks(catalog, seen)[:20]
    out.notices += put_twins(catalog, [*folded.added, *(new for _, new in folded.renamed)], bool(folded.removed))[:5]
    if folded.any() and (deadline is None or time.monotonic() < deadline):
        settle_dates(catalog, index.store)
    waiting = queued(catalog)[1]
    hurry = deadline is not None and deadline - time.monotonic() < 2.0
    if not index.text.exists() and not hurry:
        index.start_text()
        waiting = OVERLAY + 1
    if waiting > OVERLAY and not hurry:
        index.flush(deadline, tell)


def _embed(index: Parts, catalog: Catalog, budget_s: float | None, tell: Tell | None, out: Refreshed) -> None:
    """Fill vectors; nothing that goes wrong here stops a search by words. With no time for it, nothing is loaded."""
    if budget_s is not None and budget_s <= 0:
        last = catalog.meta("pending") or ""
        out.pending_vectors = int(last.rpartition("=")[2] or 0)
        return
    from mdmem.index.vectors import VectorsDamaged

    deadline = None if budget_s is None else time.monotonic() + budget_s
    try:
        try:
            out.pending_vectors = index.dense.fill(catalog, lambda: index_lock(index, 10.0), deadline, tell)
        except VectorsDamaged as error:
            if error.code == "vectors_unreadable" or not index.rebuilds:
                out.notices.append(f"{error}; searching by words only")
                return
            out.notices.append(index.clear_vectors(error))
            out.pending_vectors = index.dense.fill(catalog, lambda: index_lock(index, 10.0), deadline, tell)
    except Locked:
        out.busy = True
    except OSError as error:
        out.notices.append(f"vectors could not be written: {error.strerror or error}")
    try:
        if not out.pending_vectors and (known := index.dense.newly_complete(catalog)):
            with index_lock(index, 0.0):
                catalog.put_meta("pending", known)
    except (Locked, CatalogBusy, OSError, VectorsDamaged):
        pass  # another process is at work; they are only counted again
    if index.dense.trouble:
        out.notices.append(index.dense.trouble)


@contextmanager
def index_lock(index: Parts, wait_s: float) -> Iterator[None]:
    """Hold the lock of all writers of the index; held already by this object, it is just kept. Raises Locked."""
    with index.mutex:
        if index.locked:
            yield
            return
        with FileLock(index.lock_path, wait_s):
            index.locked = True
            try:
                yield
            finally:
                index.locked = False
