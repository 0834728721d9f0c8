"""The detached worker: empties one store's queue (index, commit, session notes, sync) and ends.

Started by `queue.wake` with the store's worker lock already held. An item that fails is logged and dropped: the files
are the truth, and the next refresh or sync finds what this one did not do.
"""

from __future__ import annotations

import os
import sys
import time

if __name__ == "__main__":
    # Run as a file: the package is found by its place on disk (see main.py).
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
    _top = os.path.dirname(os.path.dirname(_here))
    if _top not in sys.path:
        sys.path.insert(0, _top)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mdmem.store import Store

# Seconds without a new edit after which edits are taken as done, and the longest that they are waited for.
SETTLE = 1.0
SETTLE_AT_MOST = 8.0
# Seconds after which a worker ends whatever it is at.
LIFETIME = 900
# Seconds for each exchange with the remote.
EXCHANGE = 30.0


def main(argv: list[str]) -> int:
    """Work for the store in argv: root, state folder, descriptor of the held lock. Returns 0."""
    root, state = argv[0], argv[1]
    lock: int | None = int(argv[2])
    if lock is not None and lock < 0:
        from mdmem.hooks.queue import hold_lock

        lock = hold_lock(state)
    _end_in_time()
    os.chdir("/" if os.name != "nt" else root)
    try:
        work(root, state, lock)
    except Exception as error:
        _complain(error)
    return 0


def work(root: str, state: str, lock: int | None) -> None:
    """Empty the queue until nothing is left and the lock is given back."""
    from mdmem.hooks.queue import hold_lock
    from mdmem.memory import journal

    queue, taken = os.path.join(state, "queue.jsonl"), os.path.join(state, "queue.taken")
    while lock is not None:
        items = journal.take(queue, taken)
        while items:
            if all(item.get("do") == "note" for item in items):
                _settle(queue)
                items = journal.take(queue, taken)
            _run(root, items)
            os.unlink(taken)
            items = journal.take(queue, taken)
        os.close(lock)
        # A hook that put an item while we held the lock started nobody: look once more after giving it back.
        lock = hold_lock(state) if os.path.exists(queue) else None


def _settle(queue: str) -> None:
    pause = float(os.environ.get("MDMEM_WORKER_SETTLE", SETTLE))
    begin = quiet_since = time.monotonic()
    size = _size(queue)
    while time.monotonic() - quiet_since < pause and time.monotonic() - begin < SETTLE_AT_MOST:
        time.sleep(min(0.1, pause))
        if _size(queue) != size:
            size, quiet_since = _size(queue), time.monotonic()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _run(root: str, items: list[dict[str, Any]]) -> None:
    from mdmem.store import Store

    store = Store.open(root, need="write")
    wanted = {str(item.get("do")) for item in items}
    notes = [str(item["path"]) for item in items if item.get("do") == "note" and item.get("path")]
    session = next((str(i["session"]) for i in reversed(items) if i.get("do") == "note" and i.get("session")), "")
    steps: list[Callable[[], None]] = []
    if notes:
        steps.append(lambda: _commit(store, list(dict.fromkeys(notes)), session))
    if "session" in wanted or "orphans" in wanted:
        steps.append(lambda: _at_work(store))
        ended = [str(item.get("session", "")) for item in items if item.get("do") == "session"]
        steps.append(lambda: _close_sessions(store, ended))
    if "pull" in wanted or "push" in wanted:
        steps.append(lambda: _sync(store))
    steps.append(lambda: _index(store))
    for step in steps:
        try:
            step()
        except Exception as error:
            _complain(error)


def _commit(store: Store, paths: list[str], session: str) -> None:
    from mdmem.memory.edited import commit_edited

    _hold(commit_edited(store, paths, session).held)


def _index(store: Store) -> None:
    left = -1
    while True:
        pending = store.index.refresh(embed_budget_s=60.0).pending_vectors
        if not pending or pending == left:
            store.index.maintain()
            return
        left = pending


def _close_sessions(store: Store, ended: list[str]) -> None:
    from mdmem.hooks import seen
    from mdmem.memory.sessions import close_sessions

    _count_use(store, ended)
    written = close_sessions(store, ended)
    if ended:
        _tidy_up(store)
    if written and store.config.get("extract.auto"):
        _learn(store, written)
    seen.expire(str(store.common_state_dir), store.clock.now().timestamp())


def _count_use(store: Store, ended: list[str]) -> None:
    """Count which of the notes that they were given the sessions cited: those that ended and those that went silent."""
    from mdmem.memory import usage

    try:
        usage.settle(store, ended)
        if store.mode == "dedicated" and store.trusted:
            usage.share(store)
    except Exception as error:
        # A count that is lost must not keep the session's note from being written.
        _complain(error)


def _learn(store: Store, written: list[str]) -> None:
    """Draw what is worth keeping from the sessions whose notes were just written."""
    from mdmem.errors import NotFound
    from mdmem.learn.consolidate import consolidate
    from mdmem.learn.sources import one_session
    from mdmem.llm.configured import load_llm

    records = []
    for path in written:
        try:
            records.append(one_session(store, path))
        except NotFound:
            continue  # its spool is gone: another process was quicker
    llm = load_llm(store.config, store.data_dir, store.clock)
    done = consolidate(store, records, llm=llm, load=store.config.get("serve") != "off")
    if done.notices:
        from mdmem.hooks.failures import tell

        for text in done.notices:
            tell(text)


def _tidy_up(store: Store) -> None:
    """At a session's end: renew the generated lists of native memory, and commit what was written without any hook (Claude Code
    itself adds a line to MEMORY.md) and this agent's file."""
    from mdmem.memory.edited import commit_edited
    from mdmem.memory.memory_index import refresh_index
    from mdmem.repo.commit import pending

    try:
        folders = sorted(entry.name for entry in os.scandir(store.root / "claude") if entry.is_dir(follow_symlinks=False))
    except OSError:
        folders = []
    for name in folders:
        refresh_index(store, f"claude/{name}")
    if store.mode == "dedicated":
        waiting = [store.from_git(found.path) for found in pending(store.git)]
        ours = [path for path in waiting if path and (path.endswith(".md") or path.startswith("agents/"))]
        _hold(commit_edited(store, ours).held)


def _at_work(store: Store) -> None:
    """Renew this agent's file in the store (at most daily, and only when it says something new)."""
    from mdmem.team.agents import heartbeat

    heartbeat(store)


def _hold(held: dict[str, str]) -> None:
    if held:
        from mdmem.hooks.failures import tell

        for path, why in held.items():
            tell(f"{path} is not committed: {why}")


def _sync(store: Store) -> None:
    """Bring the clone and its remote together; what needs a person is told at the next session's start."""
    from mdmem.locate import remote_url

    # In a code project mdmem commits and pushes nothing by itself.
    if store.mode != "dedicated" or not remote_url(store.location.git.common_dir):
        return
    from mdmem.hooks.failures import tell
    from mdmem.memory.syncing import sync_store
    from mdmem.repo.sync_types import SyncOptions

    result = sync_store(store, SyncOptions(timeout=EXCHANGE))
    if result.conflicts:
        tell(f"{len(result.conflicts)} conflicts wait to be settled: mdmem conflicts")
    if result.state == "refused":
        tell(f"sync was refused: {result.reason}" + (f" (try: {result.hint})" if result.hint else ""))
    for held in result.held:
        tell(f"{held.path} is not pushed: {held.kind} in line {held.line}")


def _end_in_time() -> None:
    try:
        import signal

        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.alarm(LIFETIME)
    except (ImportError, AttributeError, ValueError):  # pragma: no cover - Windows
        pass


def _complain(error: BaseException) -> None:
    try:
        from mdmem.hooks.failures import record

        record("worker", error)
    except Exception:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
