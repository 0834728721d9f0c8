"""Memories that came together by sync: each was compared with its neighbours where it was written, not with those of the other
device. Here they are, once, with results that depend on the notes alone, so that both devices make the same of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdmem.clock import read_stamp
from mdmem.learn.apply import change, retire, with_item
from mdmem.learn.compare import compare
from mdmem.learn.decide import HAPPENED, candidates, statement_of
from mdmem.learn.nearness import nearest
from mdmem.locate import write_private
from mdmem.recall.select import agent_scopes, may_read

if TYPE_CHECKING:
    from mdmem.learn.consolidate import Consolidated
    from mdmem.notes.note import Note
    from mdmem.store import Store

# Notes compared in one run, the newest first; the rest is for the next run.
AT_ONCE = 200


def reconcile(store: Store, out: Consolidated, load: bool = False, everything: bool = False) -> None:
    """Compare every active memory that was not compared on this device yet; changed paths go into `out`.

    The first time, what is there counts as compared: a store that somebody has kept for years is not gone through and changed
    because a session ended. `everything`: do that, a part at a time."""
    store.index.refresh(embed_budget_s=0.0)
    sql = (
        "SELECT id, path, scope, type FROM notes WHERE kind = 'memory' AND folder = '' AND state = 'ok' AND id IS NOT NULL "
        "AND id != '' AND COALESCE(status, '') IN ('', 'active') AND substr(path, 1, 7) != 'claude/' ORDER BY created DESC, id"
    )
    patterns = agent_scopes(store)
    rows = [row for row in store.index.catalog.rows(sql) if may_read(row["scope"], patterns)]
    seen = _seen(store) or Seen(set(), {row["id"] for row in rows} - {one.id for one in out.drawn})
    known = seen.compared if everything else seen.compared | seen.before
    fresh = [row for row in rows if row["id"] not in known][:AT_ONCE]
    for row in reversed(fresh):
        note = store.folder.read(row["path"])
        if note.ok and note.status in ("", "active"):
            _beside(store, note, out, load)
    _keep_seen(store, Seen(seen.compared | {row["id"] for row in fresh}, seen.before))


def compare_paths(store: Store, paths: list[str]) -> tuple[list[dict[str, str]], list[str]]:
    """Compare these new notes with their neighbours, the first AT_ONCE of them (the rest waits for `mdmem consolidate`).

    Returns (what became of pairs, paths changed)."""
    from mdmem.learn.consolidate import Consolidated

    out = Consolidated()
    if not paths:
        return [], []
    store.index.refresh(embed_budget_s=0.0)
    present = {str(row["id"]) for row in store.index.catalog.rows("SELECT id FROM notes WHERE kind = 'memory' AND id != ''")}
    done = set()
    for path in paths[:AT_ONCE]:
        note = store.folder.read(path)
        if note.ok and note.id and note.status in ("", "active"):
            _beside(store, note, out, load=False)
            done.add(note.id)
    seen = _seen(store) or Seen(set(), present)
    _keep_seen(store, Seen(seen.compared | done, seen.before))
    return out.reconciled, list(dict.fromkeys(out.paths))


@dataclass(frozen=True)
class Seen:
    """Ids of memories that were compared on this device, and of those that were there before the first comparison."""

    compared: set[str]
    before: set[str]


def _seen(store: Store) -> Seen | None:
    """Return what was compared, None when there was no comparison yet."""
    try:
        data = json.loads((store.common_state_dir / "compared.json").read_text("utf-8"))
        return Seen({str(item) for item in data["compared"]}, {str(item) for item in data["before"]})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep_seen(store: Store, seen: Seen) -> None:
    data = {"compared": sorted(seen.compared), "before": sorted(seen.before - seen.compared)}
    write_private(store.common_state_dir / "compared.json", json.dumps(data).encode())


def _beside(store: Store, note: Note, out: Consolidated, load: bool) -> None:
    hits = store.index.text_hits(f"{note.title} {note.body[:2000]}", None, 40)
    near = nearest(store, note.title, note.body, load) if load else None
    found = candidates(store, note.scope or "shared", note.type, note.fact_key, [hit.note for hit in hits.hits], near)
    for other, cosine in found:
        if other.id == note.id:
            continue
        newer, older = (note, other) if _order(note) > _order(other) else (other, note)
        newer, older = store.folder.read(newer.path), store.folder.read(older.path)
        if any(one.status not in ("", "active") or one.pinned for one in (newer, older)):
            continue
        changed = _settled(store, newer, older, cosine, near[1] if near else 1.0)
        if changed:
            out.paths += changed[1]
            out.reconciled.append({"note": newer.id, "other": older.id, "outcome": changed[0]})
        if store.folder.read(note.path).status == "superseded":
            return


def _order(note: Note) -> tuple[str, str]:
    moment = read_stamp(note.valid_from or note.created or "")
    return (moment.isoformat() if moment else "", note.id)


def _settled(store: Store, newer: Note, older: Note, cosine: float | None, limit: float) -> tuple[str, list[str]] | None:
    linked = {word for key in ("contradicts", "relates_to", "reviewed", "review") for word in newer.words(key)}
    linked |= {newer.id for key in ("contradicts", "relates_to", "reviewed") if newer.id in older.words(key)}
    if older.id in linked or newer.id in linked:
        return None
    verdict = compare(statement_of(newer), statement_of(older), cosine, limit)
    when = read_stamp(newer.created or "")
    same_key = newer.fact_key and newer.fact_key == older.fact_key
    kind = "update" if same_key and verdict.kind not in ("same", "narrower", "wider") else verdict.kind
    if newer.type in HAPPENED and kind not in ("same", "narrower"):
        return None
    if kind in ("update", "wider"):
        paths = retire(store, older, newer.id, when)
        return kind, paths + change(store, newer, {"supersedes": with_item(newer, "supersedes", older.id)}, when)
    if kind in ("same", "narrower"):
        paths = retire(store, newer, older.id, when)
        return kind, paths + change(store, older, {"supersedes": with_item(older, "supersedes", newer.id)}, when)
    if kind in ("opposes", "perhaps"):
        key = "contradicts" if kind == "opposes" else "relates_to"
        fields: dict[str, Any] = {key: with_item(newer, key, older.id), "review": with_item(newer, "review", older.id)}
        return kind, change(store, newer, fields, when)
    return None
