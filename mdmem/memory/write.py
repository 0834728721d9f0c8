"""Putting notes into a commit, with who, where and in which session said in its trailers.

A note that reached the disk is saved. When its commit fails (a lock, a rebase, a full disk) repo/commit keeps its path
and the next commit takes it along.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mdmem.errors import MdmemError

if TYPE_CHECKING:
    from mdmem.notes.folder import Folder
    from mdmem.store import Store


@dataclass(frozen=True)
class Committed:
    """What became of a commit: `done`, its revision, or the reason why it waits. `notice` names who else has leased a note."""

    done: bool
    rev: str | None = None
    reason: str = ""
    notice: str = ""


def commit(
    store: Store, paths: Iterable[str], subject: str, *, by_name: bool = False, more: Mapping[str, str] | None = None
) -> Committed:
    """Commit these paths of the store and those that wait; never raises for a commit that failed.

    Inside a code repository nothing is committed unless asked for `by_name`. A live lease of somebody else on one of the notes
    is no hindrance: it is named among the store's notices.
    """
    from mdmem.memory.leasing import warnings
    from mdmem.repo.commit import commit_paths

    paths = list(paths)
    sweep(store, store.folder)
    leased = warnings(store, paths)
    store.notices += leased
    notice = "; ".join(leased)
    if store.mode == "embedded" and not by_name:
        _fold_in(store, paths)
        return Committed(False, reason="inside a code repository mdmem leaves the commit to you", notice=notice)
    result = commit_paths(store.git, [store.to_git(path) for path in paths], subject, {**trailers(store), **(more or {})})
    _fold_in(store, paths)
    return Committed(result.done, result.rev, "" if result.done else result.reason, notice)


def sweep(store: Store, folder: Folder) -> None:
    """Remove the temporary files of killed writers that the last look at the folder saw; local notes, which no index and no
    sync looks at, are few and looked at here."""
    if folder is not store.folder:
        folder.numbers()
    if folder.last_scan.leftovers:
        try:
            folder.sweep()
        except (MdmemError, OSError):
            return  # somebody else is writing, or the disk is read-only: the next one removes them


def _fold_in(store: Store, paths: Iterable[str]) -> None:
    """Bring the words of what was written into the index, so that a hook, which only reads it, sees them. Other files are not
    looked at where they were before by this process: who reads next does that."""
    try:
        store.index.brought_up()
        store.index.refresh(embed_budget_s=0.0, paths=paths)
    except MdmemError:
        return  # the index is derived: the next read mends it and says so


def trailers(store: Store) -> dict[str, str]:
    """Return the commit trailers that say who, where and in which session."""
    out = {"Mdmem-Agent": store.identity.agent, "Mdmem-Device": store.identity.device}
    session = os.environ.get("CLAUDE_CODE_SESSION_ID") or os.environ.get("MDMEM_SESSION")
    if session and session.isprintable() and len(session) <= 100:
        out["Mdmem-Session"] = session
    return out


def waits(store: Store, path: str) -> bool:
    """Return whether an earlier commit of this path failed."""
    from mdmem.repo.commit import remembered

    return store.to_git(path) in remembered(store.git)


def subject(verb: str, what: str, limit: int = 72) -> str:
    """Return a commit subject `verb: what` on one line, at most `limit` characters."""
    line = " ".join(what.split())
    text = f"{verb}: {line}"
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
