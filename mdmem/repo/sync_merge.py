"""The merge commit of a sync. It depends on its two parents alone, so that two machines that make it make the same one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from mdmem.clock import UTC
from mdmem.repo.git import Git
from mdmem.repo.ledger import unaccounted
from mdmem.repo.stream import NewCommit, Signature, message_text, write_commit
from mdmem.repo.sync_types import Refusal
from mdmem.repo.tree import Contents
from mdmem.repo.tree_merge import Base, TreeMerge, find_base, merge_trees

MERGED = "refs/mdmem/merged"


@dataclass
class Joined:
    """A merge commit that nothing but a ref of ours points to yet."""

    rev: str
    result: TreeMerge = field(default_factory=TreeMerge)


@dataclass(frozen=True)
class _Parent:
    rev: str
    commits: int
    signature: Signature
    devices: tuple[str, ...]


def _parents(git: Git, one: str, two: str) -> list[_Parent]:
    """Return both commits: the side with more history first, so that history by date follows the longer line."""
    form = "%m%x00%H%x00%ct%x00%cn%x00%ce%x00%(trailers:key=Mdmem-Device,valueonly,separator=%x2C)"
    listed = git.run("log", "-z", "--left-right", f"--format={form}", "--end-of-options", f"{one}...{two}", read=True)
    parts = listed.out.decode("utf-8", "replace").split("\0")
    rows = [parts[at : at + 6] for at in range(0, len(parts) - 5, 6)]
    found = []
    for side, rev in (("<", one), (">", two)):
        mine = [row for row in rows if row[0] == side]
        seconds, name, mail = next(row[2:5] for row in mine if row[1] == rev)
        devices = {word.strip() for row in mine for word in row[5].split(",") if word.strip()}
        found.append(_Parent(rev, len(mine), Signature(name, mail, int(seconds)), tuple(sorted(devices))))
    return sorted(found, key=lambda parent: (-parent.commits, -parent.signature.seconds, parent.rev))


def _subject(parents: list[_Parent], counts: tuple[int, int]) -> str:
    words = []
    for parent, count in zip(parents, counts):
        who = " and ".join(parent.devices[:3]) or parent.signature.name
        words.append(f"{count} note{'' if count == 1 else 's'} from {who}")
    return "sync: " + ", ".join(words)


def _deleter(git: Git, base: Base, parents: list[_Parent], path: str, side: int) -> tuple[str, str, str]:
    """Return (agent, device, date) of the commit that deleted a path on one side."""
    shown = git.run(
        "log", "-1", "--diff-filter=D", "--no-renames",
        "--format=%(trailers:key=Mdmem-Agent,valueonly,separator=%x2C)%x00%(trailers:key=Mdmem-Device,valueonly,separator=%x2C)"
        "%x00%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--end-of-options", parents[side].rev, "--", path,
        read=True, check=False, env={"TZ": "UTC"},
    )  # fmt: skip
    parts = shown.out.decode("utf-8", "replace").strip("\n").split("\0")
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else ("", "", "")


def join(
    git: Git,
    one: str,
    two: str,
    contents: Contents,
    now: datetime,
    *,
    bases: list[str] | None = None,
    merge_code: bool = True,
) -> Joined:
    """Return the merge commit of two commits, checked by the ledger. Raises Refusal, GitFailed."""
    parents = _parents(git, one, two)
    base = find_base(git, one, two, contents, bases)
    seconds = max(parent.signature.seconds for parent in parents)
    # The time of the later parent, so that both machines judge "in the future" alike; a wrong clock must not set it.
    moment = min(datetime.fromtimestamp(max(0, min(seconds, 253402300799)), UTC), now)
    result = merge_trees(
        git, base, parents[0].rev, parents[1].rev, contents,
        now=moment, deleter=lambda path, side: _deleter(git, base, parents, path, side), merge_code=merge_code,
    )  # fmt: skip
    if result.blocked:
        why = ", ".join(result.blocked[:5])
        raise Refusal("files that mdmem does not merge", why=why, hint="merge them with git, then: mdmem sync")
    who = parents[0].signature
    signature = Signature(who.name, who.email, seconds)
    entries = {
        path: None if item is None else (item.mode, item.oid if item.data is None else item.data)
        for path, item in result.entries.items()
    }
    message = message_text(_subject(parents, result.counts), {"Op": "sync"})
    commit = NewCommit(MERGED, signature, signature, message, [parent.rev for parent in parents], entries)
    rev = write_commit(git, commit, force=True)
    missing = unaccounted(contents, base.rev, (parents[0].rev, parents[1].rev), rev, result.moved)
    if missing:
        why = ", ".join(sorted(missing)[:5])
        raise Refusal("a merge that would lose notes", why=why, hint="report this; then: git merge by hand")
    return Joined(rev, result)
