"""The store at a glance: counts, what waits, what needs a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sized
from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError, typed
from mdmem.memory import conflicts
from mdmem.recall.select import agent_scopes, hidden, may_read, nameable

if TYPE_CHECKING:
    from mdmem.store import Store


def overview(store: Store) -> dict[str, Any]:
    """Return the figures of `mdmem status`; a part that cannot be read says so instead of failing the rest."""
    needs: list[str] = []
    refreshed = store.index.refresh(embed_budget_s=0.0)
    counts = _counts(store)
    bad = _bad(store)
    conflicted = [note.path for note, _ in conflicts.conflicted(store, looked=True)]
    if bad:
        needs.append(f"{_counted(bad, 'note does', 'notes do')} not parse: mdmem check")
    if conflicted:
        needs.append(f"{_counted(conflicted, 'note holds', 'notes hold')} two versions: mdmem conflicts")
    if files := _beside(store):
        needs.append(f"{_counted(files, 'file stands', 'files stand')} beside another version: mdmem conflicts")
    if (hindrance := store.location.hindrance) is not None:
        needs.append(f"only read: {hindrance.why or hindrance.message}: {hindrance.hint}")
    elif not store.trusted:
        needs.append("not trusted on this machine: " + typed("mdmem", "-C", store.root, "trust"))
    return {
        "store": str(store.root),
        "id": store.location.store_id,
        "mode": store.mode,
        "trusted": store.trusted,
        "hindrance": "" if hindrance is None else str(hindrance),
        "identity": str(store.identity),
        "notes": dict(counts.most_common()),
        "index": store.index.status(hidden(store) if agent_scopes(store) is not None else None),
        "git": _git(store, needs),
        "bad": bad,
        "conflicted": conflicted,
        "needs": needs,
        "notices": refreshed.notices,
    }


def _counted(things: Sized, one: str, many: str) -> str:
    return f"{len(things)} {one if len(things) == 1 else many}"


def _counts(store: Store) -> Counter[str]:
    """Return how many notes of each kind are in the store, of those that this agent may read. Counted by the catalog: the
    rows of a large store take longer to fetch than all the rest."""
    patterns = agent_scopes(store)
    sql = "SELECT kind, scope, count(*) AS number FROM notes WHERE folder = '' GROUP BY kind, scope ORDER BY min(rowid)"
    counts: Counter[str] = Counter()
    for row in store.index.catalog.rows(sql):
        if may_read(row["scope"], patterns):
            counts[row["kind"]] += row["number"]
    return counts


def _bad(store: Store) -> list[str]:
    patterns = agent_scopes(store)
    found = store.index.catalog.rows("SELECT path, scope FROM notes WHERE state = 'bad' ORDER BY path")
    return [row["path"] for row in found if may_read(row["scope"], patterns)]


def _beside(store: Store) -> list[dict[str, str]]:
    try:
        return conflicts.files_in_two(store)
    except MdmemError:
        return []  # git's own trouble is told once, below


def _git(store: Store, needs: list[str]) -> dict[str, Any]:
    from mdmem.locate import remote_url
    from mdmem.memory.syncing import last_outcome
    from mdmem.repo.exchange import figures
    from mdmem.repo.git import safe_text
    from mdmem.repo.survey import survey

    remote = remote_url(store.location.git.common_dir)
    out: dict[str, Any] = {"state": "unknown", "uncommitted": 0, "unpushed": 0, "behind": 0, "remote": safe_text(remote)}
    out["last_sync"] = last_outcome(store)
    try:
        state = store.git.state()
        out["state"] = state.name
        may_name = nameable(store)
        seen = survey(store.git, tuple(store.to_git(p).rstrip("/") for p in store.owned), everything=False)
        out["uncommitted"] = sum(1 for found in seen.pending if may_name(store.from_git(found.path) or found.path))
        out["unmerged"] = [path for path in seen.unmerged if may_name(store.from_git(path) or path)]
        standing = figures(store.git)
        out["unpushed"], out["behind"] = standing.ahead, standing.behind
        named = f" ({', '.join(out['unmerged'][:3])})" if out["unmerged"] else ""
        if not state.safe:
            needs.append(f"git: {state.name}{named}. {state.hint}".strip())
        elif seen.unmerged:
            needs.append(f"git could not merge all{named}: mdmem conflicts, mdmem resolve, git stash list")
        elif out["unpushed"] and remote:
            waits = "1 commit waits" if out["unpushed"] == 1 else f"{out['unpushed']} commits wait"
            needs.append(f"{waits} to be pushed: mdmem sync")
        if out["last_sync"].get("reason") and out["last_sync"].get("state") in ("refused", "offline", "committed") and remote:
            needs.append(f"the last sync ({out['last_sync']['at']}): {out['last_sync']['reason']}")
    except MdmemError as error:
        out["error"] = str(error)
        needs.append(f"git: {error}")
    return out
