"""Sync, clone and leases of a store: the settings of the store given to the git room, and what must follow."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.errors import MdmemError, typed
from mdmem.memory.write import trailers

if TYPE_CHECKING:
    from mdmem.repo.sync_types import SyncOptions, SyncResult
    from mdmem.store import Store

# Seconds for one exchange at most, however often the time was too short.
LONGEST = 900.0


def owned_roots(store: Store) -> tuple[str, ...]:
    """Return the owned folders as git names them."""
    return ("",) if store.mode == "dedicated" else tuple(store.to_git(path) for path in store.owned)


def sync_store(store: Store, options: SyncOptions | None = None) -> SyncResult:
    """Sync a trusted store; returns what happened and keeps it for `status`. Raises Refused (untrusted) and Locked.

    Without options a code repository is left alone: there a commit or a push is asked for by name.
    """
    from mdmem.notes.redact import scan
    from mdmem.repo.maintenance import start_if_due
    from mdmem.repo.sync import sync
    from mdmem.repo.sync_types import SyncOptions

    store.writable()
    if options is None:
        options = SyncOptions() if store.mode == "dedicated" else SyncOptions(commit=False, push=False)
    options = replace(options, timeout=_patience(store, options.timeout))
    result = sync(
        store.git,
        store.lock_path,
        owned_roots(store),
        mode=store.mode,
        trailers=trailers(store),
        scan=scan,
        options=options,
        clock=store.clock,
    )
    if not options.dry_run:
        _follow(store, result, options.timeout)
        start_if_due(store.git, store.clock)
    _named_only(store, result)
    return result


def _named_only(store: Store, result: SyncResult) -> None:
    """Leave out of the answer the notes that this agent may not read; what was done with them is done."""
    from mdmem.recall.select import agent_scopes, nameable

    if agent_scopes(store) is not None and (result.conflicts or result.held):
        may_name = nameable(store)
        result.conflicts = [found for found in result.conflicts if may_name(store.from_git(found.path) or found.path)]
        result.held = [found for found in result.held if may_name(store.from_git(found.path) or found.path)]


def _patience(store: Store, seconds: float) -> float:
    """Return the seconds for each exchange: twice those that the last sync ended for, since what waits only grows.

    Git begins anew each time: a clone whose commits take longer than the limit would never be rid of them."""
    ended = last_outcome(store).get("ended_after")
    if not isinstance(ended, (int, float)) or not 0 < ended <= LONGEST:
        return seconds
    return max(seconds, min(LONGEST, 2.0 * ended))


def _follow(store: Store, result: SyncResult, timeout: float) -> None:
    """Do what a sync leaves to its caller: generated lists, trust of a store whose id was joined, the outcome on disk."""
    if result.state in ("merged", "conflict"):
        _still_trusted(store)
        for path in result.regenerate:
            ours = store.from_git(path)
            if ours is not None:
                _regenerate(store, ours, result)
    _write_outcome(store, result, timeout)


def _regenerate(store: Store, path: str, result: SyncResult) -> None:
    from mdmem.memory.memory_index import refresh_index

    try:
        refresh_index(store, path.rpartition("/")[0])
    except MdmemError as error:
        result.notices.append(f"{path} was not made anew: {error}")


def _still_trusted(store: Store) -> None:
    """Trust the store under the id that it has now: joining two stores kept one of two ids."""
    from mdmem.locate import at, trust

    now = at(store.root)
    if not now.trusted and now.store_id:
        trust(now.store_id, now.remote, now.git.top)


def _outcome_file(store: Store) -> Path:
    return store.common_state_dir / "sync.json"


def _write_outcome(store: Store, result: SyncResult, timeout: float) -> None:
    from mdmem.locate import write_private
    from mdmem.repo.git import NOT_IN_TIME

    entry: dict[str, Any] = {"at": stamp(store.clock.now()), "state": result.state, "reason": result.reason}
    entry["waiting"] = result.waiting
    if NOT_IN_TIME in result.reason:
        entry["ended_after"] = timeout
    try:
        write_private(_outcome_file(store), json.dumps(entry).encode())
    except OSError:
        pass  # a word for `status` only


def last_outcome(store: Store) -> dict[str, Any]:
    """Return {at, state, reason, waiting} of the last sync, {} when there was none; `ended_after`: seconds, where the time for
    an exchange was over."""
    try:
        entry = json.loads(_outcome_file(store).read_bytes())
        return entry if isinstance(entry, dict) else {}
    except (OSError, ValueError, RecursionError):
        return {}


# --- clone ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cloned:
    """A clone. `store`: whether it is one; `made`: whether it was made one because the remote was empty."""

    root: Path
    store: bool
    made: bool
    notices: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"root": str(self.root), "store": self.store, "made": self.made, "notices": list(self.notices)}


def clone_store(url: str, folder: Path, cwd: Path, timeout: float) -> Cloned:
    """Clone a store and trust it on this machine; of an empty remote, make a store there. Raises UsageError, Refused,
    GitFailed."""
    from mdmem.locate import SETTINGS, at, trust
    from mdmem.repo.init import clone
    from mdmem.repo.remotes import absolute_url
    from mdmem.setup import ensure_identity, init

    done = clone(absolute_url(url, cwd), folder, timeout=timeout)
    if done.empty:
        made = init(folder)
        return Cloned(made.root, True, True, tuple(made.notices))
    if not (folder / SETTINGS).exists():
        hint = f"no {SETTINGS} in it: it is no store yet ({typed('mdmem', 'init', folder)} makes it one)"
        return Cloned(folder, False, False, (hint,))
    location = at(folder.resolve())
    trust(ensure_identity(location), location.remote, location.git.top)
    made = init(folder)  # installs the merge driver and mends what is missing
    return Cloned(made.root, True, False, tuple(made.notices))


def folder_of(url: str) -> str:
    """Return the folder name that a clone of a URL gets: its last part without `.git`."""
    tail = url.rstrip("/").replace("\\", "/").rpartition("/")[2].rpartition(":")[2]
    return tail.removesuffix(".git") or "memory"


def embedded_options(options: SyncOptions, commit: bool, push: bool) -> SyncOptions:
    """Return the options for a store in a code repository: only what was asked for by name is done."""
    return replace(options, commit=commit or push, push=push)
