"""Letting go: what expired, what faded, what a newer note contradicts becomes `archived`. Nothing is deleted; pinned and core
notes stay; what was archived comes back with `mdmem set NOTE status=active`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mdmem.clock import read_stamp, seconds, stamp
from mdmem.errors import MdmemError
from mdmem.memory import lifecycle
from mdmem.memory.change import find
from mdmem.memory.usage import use_of
from mdmem.memory.write import commit, subject
from mdmem.recall.query import Filters
from mdmem.recall.select import rows

if TYPE_CHECKING:
    from datetime import datetime

    from mdmem.store import Store

DAY = 86400.0
FADED = 0.15  # score below which a note is let go
DOUBTED = 0.4  # score below which a newer note that contradicts it is believed
_COLUMNS = ("id", "path", "title", "kind", "type")


@dataclass
class Pruned:
    """What was (in a dry run: would be) archived and moved to another tier, and what could not be."""

    archived: list[dict[str, Any]] = field(default_factory=list)
    tiers: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    looked_at: int = 0
    committed: bool = False
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        counts = Counter(row["reason"] for row in self.archived)
        out: dict[str, Any] = {"archived": self.archived, "reasons": dict(sorted(counts.items())), "tiers": self.tiers}
        out |= {"failed": self.failed, "looked_at": self.looked_at, "committed": self.committed}
        return out | ({"reason": self.reason} if self.reason else {})


def prune(store: Store, tier: str = "", older_than: str = "", dry_run: bool = False, retier: bool = False) -> Pruned:
    """Archive what is to be let go: expired first, then faded, then contradicted. `tier`: only notes of it; `older_than`:
    only notes not changed for so long (such as 90d); `retier`: also write the tiers that use and score call for.

    One note that fails is named and stops no other. Raises UsageError for an age that cannot be read."""
    now = store.clock.now()
    limit = now - timedelta(seconds=seconds(older_than)) if older_than else None
    store.index.refresh(embed_budget_s=0.0)
    found = [row for row in rows(store, Filters(kinds=("memory",), statuses=("active",), retired=True)) if row["folder"] == ""]
    use = use_of(store)
    curve = lifecycle.Curve(
        str(store.config.get("lifecycle.decay")), seconds(str(store.config.get("lifecycle.half_life"))) / DAY
    )
    known = {row["path"]: _facts(store, row, use, now) for row in found}
    out = Pruned(looked_at=len(found))
    contradicted = _contradicted(store, {row["path"]: row for row in found}, known, curve)
    changes: dict[str, dict[str, Any]] = {}
    for row in found:
        facts = known[row["path"]]
        changed = read_stamp(row["updated"] or row["created"] or "")
        if facts.pinned or facts.tier == lifecycle.CORE or (tier and facts.tier != tier):
            continue
        if limit is not None and (changed is None or changed > limit):
            continue
        why = _why(row, facts, contradicted, now, curve)
        if why:
            one = {name: row[name] or "" for name in _COLUMNS}
            out.archived.append(one | {"tier": facts.tier, "score": round(lifecycle.score(facts, curve), 4)} | why)
            changes[row["path"]] = {"status": "archived"}
    order = {"expired": 0, "faded": 1, "contradicted": 2}
    out.archived.sort(key=lambda row: (order[row["reason"]], row["score"], row["path"]))
    if retier:
        staying = [(path, facts) for path, facts in known.items() if path not in changes]
        for path, new in sorted(lifecycle.retier(staying, curve=curve).items()):
            out.tiers.append(
                {"path": path, "from": known[path].tier, "to": new, "score": round(lifecycle.score(known[path], curve), 4)}
            )
            changes[path] = {"tier": new}
    if changes and not dry_run:
        _write(store, changes, out)
    return out


def _why(
    row: Any, facts: lifecycle.Facts, contradicted: dict[str, str], now: datetime, curve: lifecycle.Curve
) -> dict[str, str]:
    expires = read_stamp(row["expires"] or "")
    if expires is not None and expires <= now:
        return {"reason": "expired", "why": f"expired {row['expires'][:10]}"}
    worth = lifecycle.score(facts, curve)
    if not facts.lasting and worth < FADED:
        return {"reason": "faded", "why": f"score {worth:.2f}, {facts.age:.0f} days old, used {facts.used} times"}
    other = contradicted.get(row["path"])
    if other and worth < DOUBTED:
        return {"reason": "contradicted", "why": f"{other} says otherwise and is newer"}
    return {}


def _facts(store: Store, row: Any, use: dict[str, dict[str, Any]], now: datetime) -> lifecycle.Facts:
    entry = use.get(str(row["id"] or "")) or use.get(row["path"]) or {}
    changed, last = read_stamp(row["updated"] or row["created"] or ""), read_stamp(str(entry.get("last", "")))
    importance = row["importance"] if row["importance"] is not None else lifecycle.DEFAULT_IMPORTANCE
    return lifecycle.Facts(
        age=(now - changed).total_seconds() / DAY if changed else 0.0,
        kind=row["kind"] or "",
        type=row["type"] or "",
        tier=row["tier"] if row["tier"] in lifecycle.BETA else lifecycle.WORKING,
        importance=min(1.0, max(0.0, float(importance))),
        confidence=_confidence(row),
        used=int(entry.get("used", 0)),
        rested=(now - last).total_seconds() / DAY if last else 0.0,
        pinned=bool(row["pinned"]),
    )


def _confidence(row: Any) -> float:
    import json

    try:
        value = json.loads(row["fields"] or "{}").get("confidence")
        return min(1.0, max(0.0, float(value)))
    except (TypeError, ValueError, AttributeError):
        return lifecycle.DEFAULT_CONFIDENCE


def _contradicted(
    store: Store, found: dict[str, Any], known: dict[str, lifecycle.Facts], curve: lifecycle.Curve
) -> dict[str, str]:
    """Return {path: the newer active note that contradicts it and scores more}."""
    edges = store.index.catalog.rows(
        "SELECT a.path AS src, b.path AS dst FROM edges e JOIN notes a ON a.rowid = e.src JOIN notes b ON b.rowid = e.dst "
        "WHERE e.rel = 'contradicts' ORDER BY a.path, b.path"
    )
    out: dict[str, str] = {}
    for edge in edges:
        for old, new in ((edge["dst"], edge["src"]), (edge["src"], edge["dst"])):
            if old not in found or new not in found:
                continue
            later = (found[new]["updated"] or "") > (found[old]["updated"] or "")
            if later and lifecycle.score(known[new], curve) > lifecycle.score(known[old], curve):
                out[old] = found[new]["id"] or new
    return out


def _write(store: Store, changes: dict[str, dict[str, Any]], out: Pruned) -> None:
    from mdmem.notes.frontmatter import edit

    paths: list[str] = []
    failed: set[str] = set()
    for path, fields in sorted(changes.items()):
        try:
            folder, note = find(store, path)
            # A tier is no change of what the note says: its date stays, so that it does not look fresh.
            stamped = {"updated": stamp(store.clock.now())} if "status" in fields else {}
            folder.write(note.path, edit(note.data, {**fields, **stamped}), note.sha)
            if folder is store.folder:
                paths.append(note.path)
        except MdmemError as error:
            failed.add(path)
            out.failed.append({"note": path, "code": error.code, "message": str(error)})
    out.archived = [row for row in out.archived if row["path"] not in failed]
    out.tiers = [row for row in out.tiers if row["path"] not in failed]
    if paths:
        done = commit(store, paths, subject("prune", f"{len(out.archived)} archived, {len(out.tiers)} moved to another tier"))
        out.committed, out.reason = done.done, done.reason
