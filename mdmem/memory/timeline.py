"""A note's past: its history, bringing back an old version, and taking back the last commit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mdmem.errors import ConflictFound, NotFound, typed
from mdmem.memory.syncing import owned_roots
from mdmem.memory.write import commit, subject

if TYPE_CHECKING:
    from mdmem.repo.history import Change
    from mdmem.store import Store


def path_of(store: Store, reference: str) -> str:
    """Return the path of a note of this store, also of one that is gone from it. Raises NotFound, Ambiguous."""
    from mdmem.recall.select import note_by

    try:
        row = note_by(store, reference)
        if row["folder"] == "":
            return str(row["path"])
    except NotFound:
        pass
    else:
        raise outside(str(row["path"]))
    return _gone(store, reference)


def outside(path: str) -> NotFound:
    """Return the error for a local note, or one of a folder that is only read: this store's git never had it."""
    return NotFound(f"{path} has no history here", why="it lies outside this store's repository", hint="mdmem show NOTE")


def _gone(store: Store, reference: str) -> str:
    from mdmem.repo.history import commits

    if store.git.rev("HEAD") is not None:
        for entry in (e for c in commits(store.git, "--diff-filter=D", "HEAD") for e in c.entries):
            path = store.from_git(entry.path)
            name = (path or "").rpartition("/")[2].removesuffix(".md")
            fits = path == reference or name == reference or name.endswith(f"-{reference}")
            if path is not None and fits and _was_readable(store, path):
                return path
    raise NotFound(f"no note, now or earlier, is {reference!r}", hint="mdmem list; mdmem recall WORDS")


def _was_readable(store: Store, path: str) -> bool:
    """Return whether this agent may read a note that is gone: by the scope that it had last."""
    from mdmem.notes.note import load
    from mdmem.recall.select import agent_scopes, may_read, unreadable
    from mdmem.repo.history import log_of, read_at

    patterns = agent_scopes(store)
    if patterns is None:
        return True
    if store.folder.exists(path):
        return False  # it is there, and not for this agent
    versions = (read_at(store.git, change.rev, change.path) for change in log_of(store.git, store.to_git(path)))
    last = next((data for data in versions if data is not None), None)
    if last is None:
        return False
    note = load(path, last)
    # It may live on under another name, in a scope that is not for this agent.
    return may_read(note.scope, patterns) and note.id not in unreadable(store)


def history(store: Store, reference: str, limit: int = 0) -> tuple[str, list[Change]]:
    """Return (path, what happened to the note, newest first). Raises NotFound.

    The subject of a commit that also touched a note of a hidden scope is left out: it may name that note."""
    from mdmem.recall.select import showable_revs
    from mdmem.repo.history import log_of

    path = path_of(store, reference)
    found = log_of(store.git, store.to_git(path), limit=limit)
    shown = showable_revs(store, [change.rev for change in found])
    return path, [change if change.rev in shown else replace(change, subject="") for change in found]


def moment(store: Store, text: str) -> str:
    """Return the commit that a date or revision names; the empty tree for a date before the first commit, '' in a store
    without any. Raises NotFound."""
    from mdmem.repo.history import resolve
    from mdmem.repo.tree import empty_tree

    head = store.git.rev("HEAD")
    if head is None:
        return ""
    try:
        return resolve(store.git, text, store.clock.now())
    except NotFound:
        if store.git.rev(text) is None and not _is_date(store, text):
            raise
        return empty_tree(head)


def _is_date(store: Store, text: str) -> bool:
    from mdmem.clock import parse_time
    from mdmem.errors import UsageError

    try:
        parse_time(text, store.clock.now())
        return True
    except UsageError:
        return False


@dataclass
class Restored:
    """A note that has the bytes of an older version again."""

    path: str
    rev: str
    changed: bool
    committed: bool
    reason: str = ""
    notice: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(vars(self))


def restore(store: Store, reference: str, when: str) -> Restored:
    """Give a note the bytes that it had at a date or revision; one that is gone comes back. Raises NotFound, Locked."""
    from mdmem.notes.folder import sha
    from mdmem.repo.history import path_at, read_at, resolve

    rev = resolve(store.git, when, store.clock.now())
    path = path_of(store, reference)
    then = path_at(store.git, store.to_git(path), rev)
    data = read_at(store.git, rev, then) if then else None
    if data is None:
        raise NotFound(f"{path} was not there at {when}", hint=typed("mdmem", "history", path))
    with store.folder.locked():
        before = store.folder.read_bytes(path) if store.folder.exists(path) else None
        if before == data:
            return Restored(path, rev, False, True)
        if before is None:
            store.folder.create(path, data)
        else:
            store.folder.write(path, data, sha(before))
    done = commit(store, [path], subject("restore", f"{path} from {rev[:10]}"))
    store.index.refresh()
    return Restored(path, rev, True, done.done, done.reason, done.notice)


@dataclass
class Undone:
    """A commit that was taken back, and the paths that changed."""

    rev: str
    subject: str
    paths: list[str] = field(default_factory=list)
    committed: bool = False
    reason: str = ""
    notice: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(vars(self))


def undo(store: Store, rev: str = "", *, dry_run: bool = False) -> Undone:
    """Take back the last commit that mdmem made on this device (or `rev`), as a new commit of its own paths. Raises
    NotFound, ConflictFound when a file has changed since, Locked."""
    from mdmem.notes.folder import sha
    from mdmem.recall.select import showable
    from mdmem.repo.undo import UNDOES, plan

    found = plan(store.git, owned_roots(store), rev, store.identity.device, showable(store))
    steps = [(store.from_git(step.path), step) for step in found.steps]
    out = Undone(found.commit.rev, found.commit.subject, [path for path, _ in steps if path is not None])
    if dry_run:
        return out
    with store.folder.locked():
        for path, step in steps:
            here = store.folder.read_bytes(path) if path is not None and store.folder.exists(path) else None
            if here != step.before:
                raise ConflictFound(f"{path} has changes in no commit yet", hint="mdmem sync, then again")
        for path, step in steps:
            if path is None:
                continue
            if step.after is None:
                store.folder.delete(path, sha(step.before or b""))
            elif step.before is None:
                store.folder.create(path, step.after)
            else:
                store.folder.write(path, step.after, sha(step.before))
    what = subject("undo", found.commit.subject)
    done = commit(store, out.paths, what, by_name=True, more={UNDOES: found.commit.rev})
    out.committed, out.reason, out.notice = done.done, done.reason, done.notice
    return out
