"""Committing notes that were edited as files, by an agent's tools or in an editor: one with a secret in it is held back."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mdmem.errors import MdmemError
from mdmem.memory.write import commit

if TYPE_CHECKING:
    from mdmem.store import Store


@dataclass
class Edited:
    """What was committed, and why each other path was not."""

    committed: list[str] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)
    reason: str = ""


def commit_edited(store: Store, paths: list[str], session: str = "") -> Edited:
    """Commit these notes as they stand on disk (a deleted one as deleted). Never raises for one bad note."""
    out = Edited()
    for path in dict.fromkeys(paths):
        why = _finding(store, path)
        if why:
            out.held[path] = why
        else:
            out.committed.append(path)
    if not out.committed:
        return out
    if session:
        os.environ["MDMEM_SESSION"] = session
    what = os.path.basename(out.committed[0]) if len(out.committed) == 1 else f"{len(out.committed)} notes"
    done = commit(store, out.committed, f"edit: {what}")
    if not done.done:
        out.reason = done.reason
        out.committed = []
    return out


def _finding(store: Store, path: str) -> str:
    """Return the kind and line of the first secret in a note, '' when there is none or no file. Fails closed."""
    from mdmem.notes.redact import scan

    try:
        if not store.folder.exists(path):
            return ""
        found = scan(store.folder.read_bytes(path).decode("utf-8", "replace"))
    except MdmemError as error:
        return str(error)
    except Exception as error:
        return f"it could not be scanned for secrets ({type(error).__name__})"
    return f"{found[0].kind} in line {found[0].line}" if found else ""
