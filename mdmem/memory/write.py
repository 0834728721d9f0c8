"""Putting notes on disk and into a commit, with the list of what still waits for one.

A note that reached the disk is saved. When its commit fails (a lock, a rebase, a full disk) its path
is kept in `pending` below the common state folder and goes into the next commit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mdmem.locks import FileLock

if TYPE_CHECKING:
    from mdmem.store import Store


@dataclass(frozen=True)
class Committed:
    """What became of a commit: `done`, its revision, or the reason why it waits."""

    done: bool
    rev: str | None = None
    reason: str = ""
    notices: list[str] = field(default_factory=list)


def commit(store: Store, paths: Iterable[str], subject: str, *, by_name: bool = False) -> Committed:
    """Commit these paths of the store and those that wait; never raises for a commit that failed.

    Inside a code repository nothing is committed unless asked for `by_name`.
    """
    from mdmem.repo.commit import commit_paths

    wanted = list(paths)
    if store.mode == "embedded" and not by_name:
        return Committed(False, reason="inside a code repository mdmem leaves the commit to you")
    waiting = pending(store)
    both = [store.to_git(path) for path in dict.fromkeys([*wanted, *waiting])]
    result = commit_paths(store.git, both, subject, trailers(store))
    # "Nothing to commit" leaves nothing waiting either.
    if result.done or result.reason == "":
        _forget(store, both)
        return Committed(True, result.rev)
    # What git ignores is named once; it must not make every later commit look incomplete.
    settled = {*both} - set(result.failed)
    _forget(store, [*settled])
    _remember(store, [path for path in wanted if store.to_git(path) not in settled])
    return Committed(False, result.rev, reason=result.reason)


def trailers(store: Store) -> dict[str, str]:
    """Return the commit trailers that say who, where and in which session."""
    out = {"Mdmem-Agent": store.identity.agent, "Mdmem-Device": store.identity.device}
    session = os.environ.get("CLAUDE_CODE_SESSION_ID") or os.environ.get("MDMEM_SESSION")
    if session and session.isprintable() and len(session) <= 100:
        out["Mdmem-Session"] = session
    return out


def pending(store: Store) -> list[str]:
    """Return the paths whose commit failed earlier."""
    try:
        text = (store.common_state_dir / "pending").read_text("utf-8", "surrogateescape")
    except OSError:
        return []
    return list(dict.fromkeys(line for line in text.split("\0") if line))


def _remember(store: Store, paths: list[str]) -> None:
    _rewrite(store, lambda kept: [*kept, *paths])


def _forget(store: Store, git_paths: list[str]) -> None:
    gone = set(git_paths)
    if pending(store):
        _rewrite(store, lambda kept: [path for path in kept if store.to_git(path) not in gone])


def _rewrite(store: Store, change: object) -> None:
    from mdmem.locate import write_private

    assert callable(change)
    path = store.common_state_dir / "pending"
    try:
        with FileLock(path.with_name("pending.lock"), timeout=5):
            kept = list(dict.fromkeys(change(pending(store))))
            if kept:
                write_private(path, "\0".join(kept).encode("utf-8", "surrogateescape"))
            else:
                path.unlink(missing_ok=True)
    except OSError:
        # The list is a convenience: git status finds the same paths at the next sync.
        return


def subject(verb: str, what: str, limit: int = 72) -> str:
    """Return a commit subject `verb: what` on one line, at most `limit` characters."""
    line = " ".join(what.split())
    text = f"{verb}: {line}"
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
