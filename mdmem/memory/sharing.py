"""Pushing a store's commit to the shared index: the lease, the order of commits, the vectors that are still to be made."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from mdmem.config import data_home
from mdmem.errors import MdmemError, NotFound, Refused, UsageError
from mdmem.index.milvus import Engine, key_of, target_of
from mdmem.index.milvus_push import Pushed, push
from mdmem.locate import repository_name
from mdmem.locks import FileLock
from mdmem.memory.syncing import owned_roots
from mdmem.notes.redact import scan
from mdmem.repo.gate import unpushed_findings
from mdmem.repo.lease import acquire, release
from mdmem.store import Store

if TYPE_CHECKING:
    from mdmem.index.changes import Tell

TTL = 120.0  # seconds that a lease outlives a writer that was killed
FILL = 300.0  # seconds of cloning at most


def push_store(
    store: Store, everything: bool = False, tell: Tell | None = None, ttl: float = TTL, allow: Collection[str] = ()
) -> Pushed:
    """Make the shared index hold the notes of this store's current commit, and say what was done.

    One writer a repository: a lease at the remote, and a lock on this clone. Commits that no remote has yet pass the scan
    for secrets first, as before a push to the remote; `allow` names files that may pass. Raises SharedDown, LeaseHeld,
    Locked, RefusedState, Refused for a secret, GateFailed, UsageError when no shared index is configured."""
    target = target_of(store.config)
    if target is None:
        raise UsageError("no shared index is configured", hint="mdmem config set index.engine milvus")
    rev = store.git.rev("HEAD")
    if rev is None:
        raise NotFound("the store has no commit yet", hint="mdmem sync", code="no_revision")
    _gate(store, rev, allow)
    # What has no vector gets one first: no lease is held meanwhile.
    refreshed = store.index.refresh(embed_budget_s=None, progress=tell)
    repo = repository_name(store.location)
    lease = f"shared-index:{target.collection}:{key_of(repo)}"
    holder = f"{store.identity.device}:{key_of(str(store.common_state_dir))}"
    with FileLock(store.common_state_dir / "index-push.lock", 1.0):
        moment = store.clock.now()
        taken = acquire(store.git, lease, holder, ttl, store.clock)

        def keep() -> None:
            nonlocal moment
            if (store.clock.now() - moment).total_seconds() > ttl / 3:
                acquire(store.git, lease, holder, ttl, store.clock)
                moment = store.clock.now()

        try:
            engine = Engine(target)
            try:
                done = push(store.index, engine, repo, rev, lambda other: _descends(store, other, rev), everything, keep, tell)
            finally:
                engine.close()
        finally:
            release(store.git, lease, holder, store.clock)
    done.notices += [*refreshed.notices, *([taken.notice] if taken.notice else []), *store.index.take_notices()]
    return done


def _gate(store: Store, rev: str, allow: Collection[str]) -> None:
    """Raise Refused for a secret in what no remote has yet, GateFailed when the scan could not run."""
    known = store.git.run("for-each-ref", "--format=%(objectname)", "refs/remotes", read=True).text().split()
    passed = frozenset(store.to_git(path) for path in allow)
    held = unpushed_findings(store.git, rev, known, scan, owned_roots(store), passed)
    if held:
        raise Refused(
            f"{held[0].path}: what looks like a secret ({held[0].kind}) in line {held[0].line}",
            why="it is in no commit at the remote yet, and the shared index is read by others",
            hint="mend it, write mdmem:allow-secret on its line, or: mdmem index push --allow-secret PATH",
            code="secret_found",
        )


def _descends(store: Store, earlier: str, rev: str) -> bool | None:
    """Return whether `rev` is or comes after `earlier`; False: it comes before it; None: neither, or not known here."""
    if earlier == rev:
        return True
    git = store.git
    if git.rev(earlier) is None:
        return None
    if git.run("merge-base", "--is-ancestor", earlier, rev, check=False, read=True).code == 0:
        return True
    return False if git.run("merge-base", "--is-ancestor", rev, earlier, check=False, read=True).code == 0 else None


def store_of(url: str, tell: Tell | None = None) -> Store:
    """Return the store in a folder, or a clone of a URL that is kept for pushing and brought up to its remote.

    A kept clone is nobody's work: one that is damaged, or not behind its remote, is made anew. Raises NotFound, GitFailed,
    MdmemError."""
    if os.path.isdir(url):
        return Store.open(url)
    folder = data_home() / "shared" / key_of(url)
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(folder.with_name(folder.name + ".lock"), FILL):
        if not os.path.lexists(folder):
            _cloned(url, folder)
            return Store.open(folder)
        try:
            return _brought_up(url, folder)
        except (MdmemError, OSError) as error:
            _again(url, folder, error)
            return Store.open(folder)


def _brought_up(url: str, folder: Path) -> Store:
    """Bring a kept clone up to its remote and open it. Raises MdmemError, OSError."""
    from mdmem.repo.git import Git

    git = Git(folder)
    git.run("fetch", "--quiet", "--no-tags", "origin", network=True, timeout=FILL)
    done = git.run("merge", "--ff-only", "--quiet", "@{upstream}", check=False)
    if done.code:
        raise MdmemError(f"the kept clone of {url} is not behind its remote", why=done.err.strip(), hint=f"delete {folder}")
    if changed := git.run("status", "--porcelain", "-z", "--untracked-files=no", read=True).fields():
        raise MdmemError(f"the kept clone of {url} was changed", why=", ".join(changed[:3]), hint=f"delete {folder}")
    store = Store.open(folder, need="write")
    git.run("fsck", "--connectivity-only", "--no-dangling", "--no-progress", read=True, timeout=FILL)
    return store


def _again(url: str, folder: Path, error: Exception) -> None:
    """Put a fresh clone in the place of a kept one. Raises `error` when the remote cannot be cloned: nothing changed then."""
    fresh = folder.with_name(folder.name + ".new")
    _remove(fresh)
    try:
        _cloned(url, fresh)
    except (MdmemError, OSError):
        raise error from None
    _remove(folder)
    os.rename(fresh, folder)


def _cloned(url: str, folder: Path) -> None:
    from mdmem.memory.syncing import clone_store

    clone_store(url, folder, Path.cwd(), FILL)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
