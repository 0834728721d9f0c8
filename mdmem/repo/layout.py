"""Where a repository keeps its things, read from files alone: hook paths ask here without starting git."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from mdmem.config import read_plain
from mdmem.errors import NotFound, typed

# What linked worktrees share; the rest is each worktree's own (`git rev-parse --git-path` says the same).
_SHARED = frozenset(
    ("branches", "common", "config", "hooks", "info", "lost-found", "logs", "modules", "objects", "packed-refs", "refs")
    + ("reftable", "remotes", "rr-cache", "shallow", "svn", "worktrees")
)
_OWN = (
    *("info/sparse-checkout", "logs/HEAD", "logs/refs/bisect", "logs/refs/rewritten", "logs/refs/worktree"),
    *("refs/bisect", "refs/rewritten", "refs/worktree"),
)


def read_small(path: Path, limit: int = 1 << 16) -> bytes | None:
    """Return the first bytes of a file, None when it is absent, unreadable or none (a pipe would never end)."""
    try:
        return read_plain(path, limit)
    except OSError:
        return None


# What git reads line by line before it does anything else.
_READ_FIRST: tuple[str, ...] = (".gitattributes", ".gitignore")
_READ_FIRST += tuple(f".git/{name}" for name in ("HEAD", "commondir", "config", "index", "packed-refs", "shallow"))
_READ_FIRST += tuple(f".git/info/{name}" for name in ("attributes", "exclude", "grafts", "sparse-checkout"))


def endless(top: Path) -> Path | None:
    """Return a pipe or a device that stands where git reads a file, which it would do without end; None where all is well."""
    for name in _READ_FIRST:
        path = top / name
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            return path
    return None


def git_dir_of(top: Path) -> Path | None:
    """Return the git directory of the work tree at `top`, None when it is none (`.git` may be a file)."""
    entry = top / ".git"
    if entry.is_dir():
        return entry if (entry / "HEAD").is_file() else None
    text = read_small(entry)
    if text is None or not text.startswith(b"gitdir:"):
        return None
    named = Path(os.fsdecode(text[7:].strip(b" \r\n")))
    found = named if named.is_absolute() else Path(os.path.normpath(top / named))
    return found if (found / "HEAD").is_file() else None


def common_dir_of(git_dir: Path) -> Path:
    """Return the directory that all worktrees of the repository share."""
    text = read_small(git_dir / "commondir")
    if not text:
        return git_dir
    named = Path(os.fsdecode(text.strip(b" \r\n")))
    return named if named.is_absolute() else Path(os.path.normpath(git_dir / named))


def path_in(git_dir: Path, common_dir: Path, name: str) -> Path:
    """Return what `git rev-parse --git-path NAME` returns, as an absolute path."""
    if git_dir != common_dir and name.split("/")[0] in _SHARED:
        own = any(name == prefix or name.startswith(prefix + "/") for prefix in _OWN)
        return (git_dir if own else common_dir) / name
    return git_dir / name


def find_top(path: Path) -> Path | None:
    """Return the top of the work tree that `path` is in, None outside any; GIT_DIR is not asked."""
    start = Path(os.path.abspath(path))
    for folder in (start, *start.parents):
        if folder.name == ".git":
            continue
        if os.path.lexists(folder / ".git") and git_dir_of(folder) is not None:
            return folder
    return None


class Layout:
    """The directories of one work tree. Raises NotFound when there is no repository."""

    def __init__(self, top: Path) -> None:
        self.top = Path(os.path.abspath(top))
        found = git_dir_of(self.top)
        if found is None:
            raise NotFound(f"{self.top} is not the top of a git work tree", hint=typed("git", "init", self.top))
        self.git_dir = found
        self.common_dir = common_dir_of(found)

    def path(self, name: str) -> Path:
        """Return the path of a file in the git directory, such as `index.lock` or `mdmem`."""
        return path_in(self.git_dir, self.common_dir, name)
