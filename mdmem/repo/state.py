"""The git state of a work tree, named by looking at files. What is not known to be safe is refused by name."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mdmem.repo.layout import read_small

if TYPE_CHECKING:
    from mdmem.repo.git import Git


@dataclass(frozen=True)
class GitState:
    """A state by name. `safe`: commits may be made; `hint`: what ends an unsafe one; `marks`: worth a word, no hindrance
    (`shallow`, `sparse`, `linked worktree`, `submodules`, `no commit yet`); `branch`: short name of the branch, if on one."""

    name: str
    safe: bool
    hint: str = ""
    marks: tuple[str, ...] = ()
    branch: str = ""


# File in the git directory -> (name, hint). Order matters: `am` and rebase share a folder.
_RUNNING = (
    ("rebase-apply/applying", "am in progress", "git am --continue, or git am --abort"),
    ("rebase-merge", "rebase in progress", "git rebase --continue, or git rebase --abort"),
    ("rebase-apply", "rebase in progress", "git rebase --continue, or git rebase --abort"),
    ("MERGE_HEAD", "merge in progress", "git commit to finish it, or git merge --abort"),
    ("CHERRY_PICK_HEAD", "cherry-pick in progress", "git cherry-pick --continue, or git cherry-pick --abort"),
    ("REVERT_HEAD", "revert in progress", "git revert --continue, or git revert --abort"),
    ("sequencer/todo", "sequence of picks in progress", "git cherry-pick --continue, or git cherry-pick --abort"),
    ("BISECT_START", "bisect in progress", "git bisect reset"),
    ("BISECT_LOG", "bisect in progress", "git bisect reset"),
)
# Locks of a running git process, or left by one that died. Never removed here.
_LOCKS = (("index.lock", "index locked"), ("HEAD.lock", "HEAD locked"), ("config.lock", "config locked"))
LOCKED = frozenset(name for _, name in _LOCKS)


def _core(config: bytes, key: str) -> bytes | None:
    section = re.search(rb"(?ims)^\s*\[core\](.*?)(?=^\s*\[|\Z)", config)
    match = re.search(rb"(?im)^\s*" + key.encode() + rb"\s*(?:=\s*(\S+))?", section[1]) if section else None
    return None if match is None else (match[1] or b"true").lower()


def _marks(git: Git) -> tuple[str, ...]:
    marks = []
    config = read_small(git.path("config")) or b""
    if git.git_dir != git.common_dir:
        marks.append("linked worktree")
    if git.path("shallow").exists():
        marks.append("shallow")
    if _core(config, "sparsecheckout") == b"true" or git.path("info/sparse-checkout").exists():
        marks.append("sparse")
    if (git.top / ".gitmodules").exists():
        marks.append("submodules")
    return tuple(marks)


def read_state(git: Git) -> GitState:
    """Return the state of the work tree. Starts git only where files cannot tell (owner differs, reftable)."""
    foreign = _owner_problem(git)
    if foreign is not None:
        return foreign
    config = read_small(git.path("config")) or b""
    # In a linked work tree git does not ask whether the repository that it belongs to is bare.
    if _core(config, "bare") == b"true" and git.git_dir == git.common_dir and not git.path("config.worktree").exists():
        return GitState("bare repository", False, "use a clone with a work tree: mdmem clone URL DIR")
    for file, name, hint in _RUNNING:
        if git.path(file).exists():
            return GitState(name, False, _unmerged(git) + hint)
    head = read_small(git.path("HEAD"))
    if head is None:
        return GitState("unknown state", False, "git status")
    branch = _branch(git, head)
    if not branch:
        return GitState("detached head", False, "git switch BRANCH")
    for file, name in _LOCKS:
        if git.path(file).exists():
            hint = f"if no git runs here, remove {git.path(file)}"
            return GitState(name, False, hint, branch=branch)
    return GitState("ok", True, marks=_marks(git), branch=branch)


def _unmerged(git: Git) -> str:
    """Return what comes first where git stopped at files that it could not merge, '' when there are none."""
    found = git.run("ls-files", "-u", "-z", check=False, read=True).fields()
    paths = sorted({line.partition("\t")[2] for line in found})
    if not paths:
        return ""
    what = "the unmerged file" if len(paths) == 1 else f"the {len(paths)} unmerged files"
    return f"settle {what} (git status; mdmem conflicts, mdmem resolve NOTE --keep 1|2|both; other files: git add), then "


def _branch(git: Git, head: bytes) -> str:
    text = head.strip()
    if text == b"ref: refs/heads/.invalid":  # reftable keeps HEAD elsewhere
        text = b"ref: " + git.run("symbolic-ref", "-q", "HEAD", check=False, read=True).out.strip()
    if text.startswith(b"ref:"):
        name = os.fsdecode(text[4:].strip())
        return name.removeprefix("refs/heads/")
    return ""


def _owner_problem(git: Git) -> GitState | None:
    """Return git's own refusal of a repository that another user owns; None when the owner is this user."""
    if not hasattr(os, "geteuid"):
        return None
    places: set[Path] = {git.top, git.top / ".git", git.git_dir}
    try:
        if all(os.lstat(place).st_uid == os.geteuid() for place in places):
            return None
    except OSError as error:
        return GitState("unreadable repository", False, error.strerror or "")
    done = git.run("rev-parse", "--git-dir", check=False, read=True)
    if done.code == 0:
        return None
    return GitState("dubious ownership", False, done.err.strip())
