"""Taking back the last commit that mdmem made, as a new commit that touches its own paths only. Plans; writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mdmem.errors import ConflictFound, NotFound, typed
from mdmem.repo.git import Git
from mdmem.repo.history import Commit, commits
from mdmem.repo.own import is_note, is_own
from mdmem.repo.tree import Contents, tree

UNDOES = "Mdmem-Undoes"
_LOOK_BACK = 500

# Which commits there are for whoever asks.
Shows = Callable[[Commit], bool]


@dataclass(frozen=True)
class Step:
    """One path: the bytes that it must have in the last commit, and those that it gets (None: no such file)."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass
class Plan:
    """What taking back `commit` means for the files."""

    commit: Commit
    steps: list[Step] = field(default_factory=list)


def last_of_ours(git: Git, device: str = "", shows: Shows = lambda commit: True) -> Commit:
    """Return the newest commit by mdmem (on `device`, if named) that is no merge, no undo, and not undone yet.

    Raises NotFound.
    """
    undone: set[str] = set()
    if git.rev("HEAD") is not None:
        for commit in commits(git, "--no-merges", f"--max-count={_LOOK_BACK}", "HEAD"):
            target = commit.trailers.get(UNDOES)
            here = not device or commit.trailers.get("Mdmem-Device", device) == device
            if target:
                undone.add(target)
            elif commit.ours and here and len(commit.parents) == 1 and commit.rev not in undone and shows(commit):
                return commit
    raise NotFound("there is no commit of mdmem's to undo", hint="git log; mdmem restore NOTE --at REV")


def plan(
    git: Git,
    roots: Sequence[str] = ("",),
    rev: str = "",
    device: str = "",
    shows: Shows = lambda commit: True,
) -> Plan:
    """Return what it takes to undo a commit (else the last of ours on `device`): its own paths' bytes as they were before.

    A file that changed again since is merged; raises ConflictFound, naming it, when that clashes, and NotFound.
    """
    if rev and git.rev(rev) is None:
        raise NotFound(f"no such revision: {rev!r}", hint="mdmem history NOTE")
    found = commits(git, "--max-count=1", "--end-of-options", rev)[0] if rev else last_of_ours(git, device, shows)
    if not shows(found):
        raise NotFound(f"no such revision: {rev!r}", hint="mdmem history NOTE")
    if len(found.parents) != 1:
        raise ConflictFound("a merge cannot be undone as a whole", hint="mdmem restore NOTE --at REV for single notes")
    out = Plan(found)
    now = tree(git, "HEAD")
    with Contents(git) as contents:
        for path, change in contents.changes(found.parents[0], found.rev).items():
            if not is_own(path, roots) or any(item is not None and not item.regular for item in (change.old, change.new)):
                continue
            old, new, here = (None if item is None else contents.of(item) for item in (change.old, change.new, now.get(path)))
            if here == old:
                continue
            out.steps.append(Step(path, here, old if here == new else _merged(path, new, here, old)))
    if not out.steps:
        raise NotFound(f"nothing of {found.rev[:10]} ({found.subject}) is left to undo", hint="mdmem history NOTE")
    return out


def _merged(path: str, base: bytes | None, here: bytes | None, wanted: bytes | None) -> bytes:
    """Return today's file without what the commit did to it."""
    from mdmem.repo.merge import merge

    back = typed("mdmem", "restore", path, "--at", "REV")
    if here is None or wanted is None or base is None or not is_note(path):
        raise ConflictFound(f"{path} has changed since", hint=f"{typed('mdmem', 'history', path)}; {back}")
    merged = merge(base, here, wanted, path)
    if merged.conflicts:
        raise ConflictFound(f"{path} has changed since, in the same place", hint=back)
    return merged.text
