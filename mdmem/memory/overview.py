"""The store at a glance: counts, what waits, what needs a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError
from mdmem.memory import conflicts

if TYPE_CHECKING:
    from mdmem.store import Store


def overview(store: Store) -> dict[str, Any]:
    """Return the figures of `mdmem status`; a part that cannot be read says so instead of failing the rest."""
    needs: list[str] = []
    refreshed = store.index.refresh(embed_budget_s=0.0)
    rows = store.index.catalog.rows("SELECT kind, count(*) AS n FROM notes WHERE folder = '' GROUP BY kind ORDER BY n DESC")
    bad = _paths(store, "bad")
    conflicted = [note.path for note, _ in conflicts.conflicted(store)]
    if bad:
        needs.append(f"{len(bad)} notes do not parse: mdmem check")
    if conflicted:
        needs.append(f"{len(conflicted)} notes hold two versions: mdmem conflicts")
    if not store.trusted:
        needs.append(f"not trusted on this machine: mdmem -C {store.root} trust")
    return {
        "store": str(store.root),
        "id": store.location.store_id,
        "mode": store.mode,
        "trusted": store.trusted,
        "identity": str(store.identity),
        "notes": {row["kind"]: row["n"] for row in rows},
        "index": store.index.status(),
        "git": _git(store, needs),
        "bad": bad,
        "conflicted": conflicted,
        "needs": needs,
        "notices": refreshed.notices,
    }


def _paths(store: Store, state: str) -> list[str]:
    rows = store.index.catalog.rows("SELECT path FROM notes WHERE state = ? ORDER BY path", (state,))
    return [row["path"] for row in rows]


def _git(store: Store, needs: list[str]) -> dict[str, Any]:
    from mdmem.locate import remote_url
    from mdmem.repo.commit import pending
    from mdmem.repo.git import safe_text
    from mdmem.repo.history import unpushed_count

    remote = remote_url(store.location.git.common_dir)
    out: dict[str, Any] = {"state": "unknown", "uncommitted": 0, "unpushed": 0, "remote": safe_text(remote)}
    try:
        state = store.git.state()
        out["state"] = state.name
        out["uncommitted"] = len(pending(store.git, tuple(store.to_git(p).rstrip("/") for p in store.owned)))
        out["unpushed"] = unpushed_count(store.git) or 0
        if not state.safe:
            needs.append(f"git: {state.name}. {state.hint}".strip())
        elif out["unpushed"] and remote:
            needs.append(f"{out['unpushed']} commits wait to be pushed: mdmem sync")
    except MdmemError as error:
        out["error"] = str(error)
        needs.append(f"git: {error}")
    return out
