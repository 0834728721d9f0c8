"""Pushing a store's commit to the shared index: the lease, the vectors that are still to be made, the scan for secrets."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.config import data_home
from mdmem.errors import MdmemError, NotFound, Refused, UsageError
from mdmem.index import milvus_down
from mdmem.index.milvus import Engine, SharedDown, Target, key_of, target_of
from mdmem.index.milvus_push import Commit, Pushed, push
from mdmem.index.milvus_record import state_of, untouched
from mdmem.locate import SETTINGS, repository_name
from mdmem.locks import FileLock
from mdmem.memory.sharing_branch import Main, clone_url, descends, differing, made_whole, main_of, on_main
from mdmem.memory.syncing import owned_roots
from mdmem.notes.redact import scan
from mdmem.repo.gate import unpushed_findings
from mdmem.repo.git import GitFailed
from mdmem.repo.lease import LeaseHeld, Taken, acquire, release
from mdmem.repo.remotes import upstream_of
from mdmem.store import Store

if TYPE_CHECKING:
    from mdmem.index.changes import Tell

TTL = 120.0  # seconds that a lease outlives a writer that was killed
WRITING = 60.0  # seconds that one call of a writer may take
FILL = 300.0  # seconds of cloning at most
AGAIN = 2.0  # seconds between two looks at another's lease
WRITER = "index-push.id"


def push_store(
    store: Store,
    everything: bool = False,
    tell: Tell | None = None,
    ttl: float = TTL,
    allow: Collection[str] = (),
    branch: str = "",
    wait: float = 0.0,
    pause: Callable[[float], None] = time.sleep,
) -> Pushed:
    """Make the shared index hold the notes of this store's current commit, and say what was done.

    Only a commit of the main branch is pushed: the one that the remote's HEAD names, or `branch`. One writer a repository: a
    lease at the remote, and a lock on this clone; `wait`: seconds to wait for another writer. Commits that no remote has yet
    pass the scan for secrets first, as before a push to the remote; `allow` names files that may pass. Raises SharedDown,
    LeaseHeld, Locked, RefusedState, Refused for a secret or a store that is not trusted, GateFailed, UsageError when no
    shared index is configured."""
    target = target_of(store.config)
    if target is None:
        raise UsageError("no shared index is configured", hint="mdmem config set index.engine milvus")
    store.writable()
    rev = store.git.rev("HEAD")
    if rev is None:
        raise NotFound("the store has no commit yet", hint="mdmem sync", code="no_revision")
    notices = made_whole(store.git)
    on_main(store.git, rev, main_of(store.git, branch))
    repo = repository_name(store.location)
    try:
        known, whole = _known(store, target, repo, rev)
    except SharedDown:
        _gate(store, rev, allow, "")  # what must be mended is told, whether or not the engine is there
        raise
    if whole and not everything:
        milvus_down.clear(store.common_state_dir, target)
        return Pushed(repo, rev, unchanged=known["notes"], notices=notices)
    _gate(store, rev, allow, known.get("rev", ""))
    # What has no vector gets one first: no lease is held meanwhile.
    refreshed = store.index.refresh(embed_budget_s=None, progress=tell)
    lease = f"shared-index:{target.collection}:{key_of(repo)}"
    holder = f"{store.identity.device}:{_writer(store)}"
    with FileLock(store.common_state_dir / "index-push.lock", max(1.0, wait)):
        taken = _acquired(store, lease, holder, ttl, wait, pause)
        moment = store.clock.now()

        def keep() -> None:
            nonlocal moment
            if (store.clock.now() - moment).total_seconds() > ttl / 3:
                acquire(store.git, lease, holder, ttl, store.clock)
                moment = store.clock.now()

        try:
            # Looked at under the lease: what was the main branch's last commit before may not be it any more.
            main = main_of(store.git, branch)
            engine = Engine(target, WRITING, writes=True)
            try:
                told: list[str] = []
                differs = partial(differing, store, rev=rev)
                commit = Commit(repo, rev, _order(store, rev, main, told), differs, clone_url(store.git))
                # Without a remote nobody else has this repository.
                sole = not taken.lease.local or upstream_of(store.git, store.git.state().branch) is None
                done = push(store.index, engine, commit, store.clock, everything, sole, keep, tell)
            finally:
                engine.close()
        finally:
            _give_back(store, lease, holder, notices)
    milvus_down.clear(store.common_state_dir, target)
    notices += [*refreshed.notices, *([taken.notice] if taken.notice else []), *told, *store.index.take_notices()]
    done.notices += notices
    return done


def _known(store: Store, target: Target, repo: str, rev: str) -> tuple[dict[str, Any], bool]:
    """Return what was recorded of a repository, and whether this is the commit and the engine holds exactly that. Raises
    SharedDown."""
    engine = Engine(target, WRITING, writes=True)
    try:
        known = state_of(engine, repo) if engine.there() else {}
        if known.get("rev") != rev:
            return known, False
        stored = store.index.dense.vectors()
        return known, bool(untouched(engine, repo, stored.fingerprint if stored is not None else ""))
    finally:
        engine.close()


def _writer(store: Store) -> str:
    """Return the name of this clone among writers: machines made from one image have one name and one folder."""
    file = store.common_state_dir / WRITER
    try:
        found = file.read_text("ascii").strip()
        if found.isalnum() and len(found) <= 32:
            return found
    except (OSError, ValueError):
        pass
    made = secrets.token_hex(8)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_text(made, "ascii")
    except OSError:
        pass  # then this run alone has it
    return made


def _acquired(store: Store, lease: str, holder: str, ttl: float, wait: float, pause: Callable[[float], None]) -> Taken:
    """Return the lease, after at most `wait` seconds. Raises LeaseHeld."""
    until = store.clock.now().timestamp() + wait
    while True:
        try:
            return acquire(store.git, lease, holder, ttl, store.clock)
        except LeaseHeld as error:
            if store.clock.now().timestamp() >= until:
                hint = "run it again, or wait for the other writer: mdmem index push --wait 10m"
                raise LeaseHeld("another writer pushes this repository", why=error.why, hint=hint) from error
            pause(AGAIN)


def _give_back(store: Store, lease: str, holder: str, notices: list[str]) -> None:
    """Give the lease back; one that cannot be given back ends by itself, and is no failure of what was done."""
    try:
        release(store.git, lease, holder, store.clock)
    except (GitFailed, LeaseHeld) as error:
        notices.append(f"{error}; it ends by itself")


def _order(store: Store, rev: str, main: Main | None, told: list[str]) -> Callable[[str], bool | None]:
    def after(earlier: str) -> bool | None:
        found, word = descends(store.git, earlier, rev, main)
        if word:
            told.append(word)
        return found

    return after


def _gate(store: Store, rev: str, allow: Collection[str], pushed: str) -> None:
    """Raise Refused for a secret in what no remote has yet and is not of the commit that was `pushed` before, GateFailed when
    the scan could not run."""
    known = store.git.run("for-each-ref", "--format=%(objectname)", "refs/remotes", read=True).text().split()
    known += [pushed] if pushed and store.git.rev(pushed) is not None else []
    passed = frozenset(store.to_git(path) for path in allow)
    held = unpushed_findings(store.git, rev, known, scan, owned_roots(store), passed)
    if held:
        raise Refused(
            f"{held[0].path}: what looks like a secret ({held[0].kind}) in line {held[0].line}",
            why="it is in no commit at the remote yet, and the shared index is read by others",
            hint="mend it, write mdmem:allow-secret on its line, or: mdmem index push --allow-secret PATH",
            code="secret_found",
        )


def store_of(url: str) -> Store:
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
            return _opened(url, folder)
        try:
            return _brought_up(url, folder)
        except (MdmemError, OSError) as error:
            _again(url, folder, error)
            return _opened(url, folder)


def _opened(url: str, folder: Path) -> Store:
    """Open a kept clone; one that is no store is not kept. Raises NotFound."""
    try:
        return Store.open(folder)
    except NotFound as error:
        _remove(folder)
        why = f"there is no {SETTINGS} in it"
        raise NotFound(f"{url} is no store of notes", why=why, hint="mdmem init makes one in a clone of it") from error


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

    if clone_store(url, folder, Path.cwd(), FILL).made:
        # Cloning has made a store there, whose first commit nobody else has.
        _remove(folder)
        raise NotFound(f"{url} has no commit yet", hint="mdmem sync in a clone of it", code="no_revision")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
