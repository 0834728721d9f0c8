"""Where graph and files do not fit: reported, each with what to do; only an alias for a renamed note is set by itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mdmem.graph.nodes import Link, brief, links, ready
from mdmem.graph.renames import Renames, gone_from_disk, lost, renames
from mdmem.index.edges import AMBIGUOUS, DANGLING, OK, SELF, last_part, target_key
from mdmem.notes.names import fold
from mdmem.recall.query import Filters
from mdmem.recall.select import rows

if TYPE_CHECKING:
    import sqlite3

    from mdmem.store import Store

CANDIDATES = 3
# Least share of common letter groups (Dice, 0…1) for a name to be offered as the one that was meant.
LIKE = 0.4


@dataclass
class Report:
    """What was found; `fixed` holds the aliases that were set."""

    orphans: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    renamed: list[dict[str, Any]] = field(default_factory=list)
    twins: list[dict[str, Any]] = field(default_factory=list)
    gone: list[dict[str, Any]] = field(default_factory=list)
    fixed: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        out = {
            "orphans": self.orphans,
            "edges": self.edges,
            "renamed": self.renamed,
            "duplicate_ids": self.twins,
            "gone": self.gone,
            "fixed": self.fixed,
        }
        return {"findings": sum(map(len, (self.orphans, self.edges, self.renamed, self.twins, self.gone))), **out}


def reconcile(store: Store, *, fix: bool = False) -> Report:
    """Return entities without relations, edges that lead nowhere with the nearest names, renamed notes that are still
    called by an old name or id, ids that two files hold, and notes whose file is gone.

    `fix` gives each renamed note its old name as an alias, where git knows the rename and the name is free."""
    among = ready(store)
    found = {row["rowid"]: row for row in rows(store, Filters(retired=True), "ORDER BY n.path")}
    edges = links(store, among)
    out = Report()
    linked = {end for link in edges if link.dst is not None for end in (link.src, link.dst)}
    out.orphans = [brief(row) for row in found.values() if row["kind"] == "entity" and row["rowid"] not in linked]
    missing = lost(store)
    moved = renames(store, found, missing)
    broken = [link for link in edges if link.state != OK and link.src in found]
    near = _Names(found)
    for link in broken:
        out.edges.append(_edge(link, found, near, moved))
    out.renamed = _renamed(found, moved, broken)
    ids = Counter(row["id"] for row in found.values() if row["id"])
    for identity, count in sorted(ids.items()):
        if count > 1:
            paths = sorted(row["path"] for row in found.values() if row["id"] == identity)
            out.twins.append({"id": identity, "paths": paths, "do": "mdmem sync joins them"})
    out.gone = gone_from_disk(store, found, missing)
    if fix:
        _fix(store, out)
    return out


def _edge(link: Link, found: dict[int, sqlite3.Row], near: _Names, moved: Renames) -> dict[str, Any]:
    row = found[link.src]
    out: dict[str, Any] = {"path": row["path"], "line": link.line, "rel": link.rel, "target": link.target}
    out["state"] = link.state
    if link.state == DANGLING:
        path = moved.now(link.target)
        out["candidates"] = [path] if path else near.like(link.target)
        out["do"] = f"it is now {path}: mdmem graph reconcile --fix" if path else "mend the name, or write the note"
    elif link.state == AMBIGUOUS:
        out["candidates"] = near.called(link.target)
        out["do"] = "write the path or the id"
    elif link.state == SELF:
        out["candidates"] = []
        out["do"] = "take it out"
    return out


def _renamed(found: dict[int, sqlite3.Row], moved: Renames, broken: list[Link]) -> list[dict[str, Any]]:
    """Return renamed notes that some edge still calls by the old name, or whose id changed on the way."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for link in broken:
        path = moved.now(link.target) if link.state == DANGLING else None
        if path:
            wanted[path].add(link.target)
    for path, identity in moved.ids:
        wanted[path].add(identity)
    by_path = {row["path"]: row for row in found.values()}
    return [
        {**brief(by_path[path]), "was": sorted(moved.before(path)), "called": sorted(names)}
        for path, names in sorted(wanted.items())
        if path in by_path
    ]


def _fix(store: Store, out: Report) -> None:
    from mdmem.errors import MdmemError
    from mdmem.memory.change import set_fields

    for entry in out.renamed:
        try:
            done = set_fields(store, entry["path"], add={"aliases": entry["called"]}, stamp_id=False)
        except MdmemError as error:
            out.fixed.append({"path": entry["path"], "aliases": [], "reason": str(error)})
            continue
        out.fixed.append({"path": done.path, "aliases": entry["called"], "committed": done.committed, "reason": done.reason})


class _Names:
    """The names of all notes, to find the one that was probably meant."""

    def __init__(self, found: dict[int, sqlite3.Row]) -> None:
        self._paths: dict[str, list[str]] = defaultdict(list)
        for row in found.values():
            names = {last_part(fold(row["path"])), fold(row["title"] or ""), fold(row["id"] or "")}
            for name in names - {""}:
                self._paths[name].append(row["path"])
        self._grams: dict[str, list[str]] | None = None

    def called(self, target: str) -> list[str]:
        """Return the paths of the notes that share a name."""
        key = target_key(target)
        return sorted({*self._paths.get(key, ()), *self._paths.get(last_part(key), ())})

    def like(self, target: str) -> list[str]:
        """Return the paths of the nearest names, best first (Dice coefficient of three-letter groups)."""
        if self._grams is None:
            self._grams = defaultdict(list)
            for name in self._paths:
                for gram in _grams(name):
                    self._grams[gram].append(name)
        key = last_part(target_key(target))
        mine = _grams(key)
        shared: Counter[str] = Counter()
        for gram in mine:
            shared.update(self._grams.get(gram, ()))
        scored = [(2 * count / (len(mine) + len(_grams(name))), name) for name, count in shared.most_common(50)]
        out: list[str] = []
        for score, name in sorted(scored, key=lambda one: (-one[0], one[1])):
            if score >= LIKE:
                out += [path for path in self._paths[name] if path not in out]
        return out[:CANDIDATES]


def _grams(name: str) -> Collection[str]:
    padded = f"  {name.replace('-', ' ').replace('_', ' ')} "
    return {padded[place : place + 3] for place in range(len(padded) - 2)}
