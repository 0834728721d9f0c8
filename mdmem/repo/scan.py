"""Looks for secrets in what git holds: the index, commits not pushed yet, the whole history. Fails closed.

A finding names path, line and kind, never the value. An object that cannot be read stops the scan with an error: what
was not looked at must not be pushed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mdmem.errors import RefusedState
from mdmem.notes.redact import scan
from mdmem.repo.gate import Wanted, findings, in_commits
from mdmem.repo.git import BlobReader, Git

# Commits looked up by name for a report; the rest is named by path alone.
_NAMED = 50


@dataclass(frozen=True)
class Hit:
    """One secret: `path` ("" for a commit message), 1-based line, kind, the commit that brought it ("" for none)."""

    path: str
    line: int
    kind: str
    rev: str = ""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.path else f"commit message, line {self.line}"
        return f"{where}: {self.kind}" + (f" (commit {self.rev[:10]})" if self.rev else "")


def scan_bytes(path: str, data: bytes) -> list[Hit]:
    """Return the findings in one file that nobody allowed; none in a binary file."""
    return [Hit(path, found.line, found.kind) for found in findings(data, path, scan)]


def scan_staged(git: Git, wanted: Wanted | None = None) -> list[Hit]:
    """Return the findings in what `git commit` is about to record: inside a hook, the index that git names there."""
    env = _index_of_this_commit(git)
    changed = git.run(
        "diff", "--cached", "--name-only", "-z", "--no-renames", "--diff-filter=ACMT", env=env, read=True
    ).fields()
    paths = {path for path in changed if wanted is None or wanted(path)}
    if not paths:
        return []
    entries: dict[str, str] = {}
    for line in git.run("ls-files", "--stage", "-z", env=env, read=True).fields():
        info, _, path = line.partition("\t")
        mode, oid, _ = info.split()
        if path in paths and mode.startswith("100"):
            entries[path] = oid
    return [hit for path, _, data in _read(git, entries.items()) for hit in scan_bytes(path, data)]


def scan_unpushed(git: Git, rev: str = "HEAD", known: Iterable[str] = (), wanted: Wanted | None = None) -> list[Hit]:
    """Return the findings in commits of `rev` that no remote is known to have; `known` names more commits to leave out.

    Raises GitFailed or GateFailed when anything could not be looked at: then nothing may be pushed.
    """
    remote = git.run("for-each-ref", "--format=%(objectname)", "refs/remotes", read=True).text().split()
    return _scan_commits(git, [rev], [*remote, *known], wanted)


def scan_history(git: Git, wanted: Wanted | None = None) -> list[Hit]:
    """Return the findings in every commit of every ref, and of a detached HEAD. Raises as scan_unpushed does."""
    tips = git.run("for-each-ref", "--format=%(objectname)", read=True).text().split()
    head = git.rev("HEAD")
    return _scan_commits(git, list(dict.fromkeys([*tips, *([head] if head else [])])), [], wanted)


def _scan_commits(git: Git, new: list[str], known: list[str], wanted: Wanted | None) -> list[Hit]:
    if not new:
        return []
    span = "".join(f"{line}\n" for line in (*new, *(f"^{rev}" for rev in known))).encode()
    hits: list[Hit] = []
    for held, oid in in_commits(git, new, known, scan, wanted):
        rev = held.rev or (_brought_by(git, oid, span) if len(hits) < _NAMED else "")
        hits.append(Hit(held.path, held.line, held.kind, rev))
    return hits


def _brought_by(git: Git, oid: str, span: bytes) -> str:
    args = ("log", "--format=%H", "--reverse", "--no-show-signature", f"--find-object={oid}", "--stdin")
    done = git.run(*args, input=span, timeout=60.0, check=False, read=True)
    return done.text().partition("\n")[0] if done.code == 0 else ""


def _read(git: Git, entries: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, bytes]]:
    listed = list(entries)
    with BlobReader(git) as reader:
        for (path, oid), data in zip(listed, reader.many([oid for _, oid in listed])):
            if data is None:
                raise RefusedState(
                    "the scan for secrets could not run",
                    why=f"the object {oid[:10]} of {path} is not here",
                    hint="git fsck; in a partial clone: git fetch --refetch --no-filter",
                )
            yield path, oid, data


def _index_of_this_commit(git: Git) -> dict[str, str]:
    """Return the environment that makes git read the index of the commit in progress, when a hook of it runs us."""
    index, folder = os.environ.get("GIT_INDEX_FILE"), os.environ.get("GIT_DIR")
    if not index:
        return {}
    full = Path(index) if os.path.isabs(index) else Path.cwd() / index
    ours = (os.path.realpath(git.git_dir), os.path.realpath(git.common_dir))
    if folder is not None and os.path.realpath(folder) not in ours:
        return {}
    # The index of another repository (a hook there calls mdmem on this one) must not be read as ours.
    if os.path.realpath(full.parent) not in ours and folder is None:
        return {}
    return {"GIT_INDEX_FILE": str(full)}
