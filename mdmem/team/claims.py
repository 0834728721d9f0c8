"""Claims on tasks: who works on what. One field, one rule, so that two offline claims merge into one.

A claim is `<moment> <agent@device>`; of two claims the smaller text stands, which is the earlier moment and then the
smaller name. What this device claimed is kept below the common state folder, so that the loser of a merge (by sync or by
a plain `git pull`) is told the next time it looks.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.locate import write_private
from mdmem.locks import FileLock

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.store import Store


def claim_text(store: Store) -> str:
    """Return the value of the claim field for this agent, now."""
    return f"{stamp(store.clock.now())} {store.identity}"


def holder(note: Note) -> str:
    """Return the agent@device that holds a task, '' for none."""
    return note.text("claim").partition(" ")[2]


def _path(store: Store) -> Any:
    return store.common_state_dir / "claims.json"


def mine(store: Store) -> dict[str, str]:
    """Return {task id: claim} of what this device claimed and has not given back."""
    try:
        data = json.loads(_path(store).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in data.items()} if isinstance(data, dict) else {}


def record(store: Store, task: str, claim: str | None) -> None:
    """Remember a claim of this device, or (None) that it was given back."""
    with FileLock(store.common_state_dir / "claims.lock"):
        kept = mine(store)
        if claim is None:
            kept.pop(task, None)
        else:
            kept[task] = claim
        write_private(_path(store), json.dumps(kept, indent=1).encode())


def lost(store: Store, notes: list[Note]) -> list[dict[str, str]]:
    """Return the claims of this agent on this device that a merge gave to somebody else; each is told once."""
    known = {task: claim for task, claim in mine(store).items() if claim.partition(" ")[2] == str(store.identity)}
    if not known:
        return []
    by_id = {note.id: note for note in notes}
    out = []
    for task, claim in known.items():
        note = by_id.get(task)
        if note is None:
            continue
        stands = note.text("claim")
        if stands and stands != claim and holder(note) != claim.partition(" ")[2]:
            out.append({"id": task, "title": note.title, "holder": holder(note)})
            record(store, task, None)
    return out
