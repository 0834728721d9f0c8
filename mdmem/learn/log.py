"""What was kept of each turn of a session, what was not, and why: a file of JSON lines a session, on this device only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mdmem.locate import write_private
from mdmem.memory import journal
from mdmem.memory.spool import safe

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.store import Store

# Sessions whose log is kept.
KEEP = 200


def _folder(store: Store) -> Path:
    return store.common_state_dir / "capture"


def write(store: Store, session: str, scope: str, rows: list[dict[str, Any]]) -> None:
    """Replace the log of a session; the oldest ones beyond KEEP go."""
    folder = _folder(store)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lines = [json.dumps({"session": session, "scope": scope, **row}, ensure_ascii=False) for row in rows]
    write_private(folder / f"{safe(session)}.jsonl", "".join(line + "\n" for line in lines).encode())
    kept = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    for path in kept[: max(0, len(kept) - KEEP)]:
        path.unlink(missing_ok=True)


def read(store: Store, session: str = "") -> list[dict[str, Any]]:
    """Return the rows of one session (the start of its id is enough), or of all, oldest session first; of scopes that this
    agent may read."""
    from mdmem.recall.select import agent_scopes, may_read

    patterns = agent_scopes(store)
    folder = _folder(store)
    paths = sorted(folder.glob("*.jsonl"), key=lambda path: (path.stat().st_mtime, path.name)) if folder.is_dir() else []
    found = [row for path in paths for row in journal.read(str(path))]
    found = [row for row in found if may_read(str(row.get("scope", "")), patterns)]
    return [row for row in found if str(row.get("session", "")).startswith(session)]
