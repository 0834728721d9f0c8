"""The local half of a sync: own changes go into a commit; secrets and mass deletions do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from mdmem.repo.commit import commit_paths
from mdmem.repo.gate import Held, Scan, findings
from mdmem.repo.git import Git
from mdmem.repo.ledger import names_of, note_count, too_many
from mdmem.repo.own import is_note
from mdmem.repo.state import LOCKED
from mdmem.repo.survey import Pending, survey
from mdmem.repo.sync_types import Refusal, SyncOptions
from mdmem.repo.tree import Contents, tree

LARGEST = 16 << 20  # bytes of a file that is looked through for secrets; a larger one is no note


@dataclass
class Local:
    """What was committed, what was held back, and which foreign files have changes."""

    committed: int = 0
    rev: str | None = None
    held: list[Held] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def commit_local(
    git: Git,
    roots: Sequence[str],
    scan: Scan | None,
    options: SyncOptions,
    trailers: Mapping[str, str],
    when: datetime,
) -> Local:
    """Commit what is ours and in no commit yet. Raises Refusal, GateFailed, GitFailed."""
    seen = survey(git, roots)
    if seen.unmerged:
        hint = "settle them, git add, git commit; if `git stash list` shows an autostash, your own work is there"
        raise Refusal("unmerged files", why=", ".join(seen.unmerged[:5]), hint=hint)
    local = Local(foreign=seen.foreign, leftovers=seen.leftovers, notices=list(seen.warnings))
    ready = [item for item in seen.pending if _passes(git, item, scan, options, local)]
    _valve(git, ready, options)
    if not options.commit:
        return local
    if options.dry_run:
        local.committed = len(ready)
        return local
    paths = [item.path for item in ready]
    done = commit_paths(git, paths, _subject(paths, trailers), trailers, when=when)
    local.rev = done.rev
    if done.failed:
        state = git.state()
        if state.name in LOCKED:
            raise Refusal(state.name, why=done.reason, hint=state.hint)
        local.notices.append(f"not committed: {done.reason}")
    local.committed = len(paths) - len(done.failed) - len(done.ignored) if done.rev else 0
    return local


def _subject(paths: Sequence[str], trailers: Mapping[str, str]) -> str:
    device = next((value for key, value in trailers.items() if key.lower() in ("device", "mdmem-device")), "")
    what = f"1 note ({paths[0]})" if len(paths) == 1 else f"{len(paths)} notes"
    return f"sync: {what}" + (f" from {device}" if device else "")


def _passes(git: Git, item: Pending, scan: Scan | None, options: SyncOptions, local: Local) -> bool:
    """Return whether a pending file may be committed; one with a secret is held back alone."""
    if scan is None or item.kind == "deleted" or item.path in options.allow:
        return True
    target = git.top / item.path
    try:
        if target.is_symlink() or not target.is_file():
            local.notices.append(f"{item.path} is not a regular file and was left out")
            return False
        if target.stat().st_size > LARGEST:
            size = f"{LARGEST >> 20} MB"
            local.notices.append(f"{item.path} is larger than {size} and was left out: it is not looked through for secrets")
            return False
        found = findings(target.read_bytes(), item.path, scan)
    except OSError as error:
        local.notices.append(f"{item.path} was left out: {error.strerror}")
        return False
    local.held += found
    return not found


def _valve(git: Git, ready: Sequence[Pending], options: SyncOptions) -> None:
    """Stop when too many notes went missing from the disk: an unmounted folder looks just like that."""
    gone = [item.path for item in ready if item.kind == "deleted" and is_note(item.path)]
    if options.allow_deletions or not too_many(len(gone), total := note_count(git, "HEAD") if gone else 0):
        return
    here: set[str | bytes] = set()
    for item in ready:
        if item.kind != "deleted" and is_note(item.path):
            data = (git.top / item.path).read_bytes()
            here |= {names_of(item.path, data).key, data}
    committed = tree(git, "HEAD")
    with Contents(git) as contents:
        contents.fetch([committed.get(path) for path in gone])
        # A note without an id that was moved is known by its text.
        keys = {
            names_of(path, contents.of(committed[path])).key
            for path in gone
            if path in committed and contents.of(committed[path]) not in here
        }
    lost = len(keys - here)
    if too_many(lost, total):
        raise closed(lost, total)


def closed(lost: int, total: int) -> Refusal:
    """Return the refusal of the valve."""
    return Refusal(
        "too many deletions",
        why=f"{lost} of {total} notes would be deleted",
        hint="look where they went; if it is meant: mdmem sync --allow-deletions",
    )
