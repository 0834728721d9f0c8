"""One look at the work tree: what is ours and in no commit yet, what is unmerged, what else has changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from mdmem.repo.git import Git
from mdmem.repo.own import is_own, out_of_sight


@dataclass(frozen=True)
class Pending:
    """An own path whose content on disk is in no commit. `kind`: new, changed or deleted."""

    path: str
    kind: str


@dataclass
class Survey:
    """`pending`: own paths; `unmerged`: paths of a merge that stopped; `foreign`: other tracked or staged paths with changes;
    `leftovers`: temporary files of writers that were killed; `warnings`: what git could not read, and
    repositories inside this one."""

    pending: list[Pending] = field(default_factory=list)
    unmerged: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def survey(git: Git, roots: Sequence[str] = ("",), *, everything: bool = True, paths: Sequence[str] = ()) -> Survey:
    """Return the state of the work tree from one `git status`; without `everything` only below `roots`; `paths`: of these
    files alone, without a look at all the others. Raises GitFailed."""
    args = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
    named: tuple[str, ...] = ()
    if not everything and "" not in roots:
        named = ("--", *(root for root in roots if (git.top / root).is_dir()))
        if len(named) == 1:
            return Survey()
    if paths:
        named = ("--", *paths)
    done = git.run(*args, *named, read=True, timeout=60)
    found = Survey(warnings=[line for line in done.err.splitlines() if line.startswith("warning: could not open")])
    seen: dict[str, Pending] = {}
    for line in done.fields():
        if line.startswith("1 "):
            parts = line.split(" ", 8)
            path, known = parts[8], parts[6].strip("0") != ""
            kind = "new" if not known else "changed" if os.path.lexists(git.top / path) else "deleted"
        elif line.startswith("? "):
            path, kind = line[2:], "new"
            if is_own(path, roots) and out_of_sight(path, roots):
                continue  # what a person added to git is kept up; nothing hidden is added
        elif line.startswith("u "):
            found.unmerged.append(line.split(" ", 10)[10])
            continue
        else:
            continue
        if is_own(path, roots) and not path.endswith("/"):
            # `git rm --cached` gives two lines for a path: it is still there, so it is not deleted.
            seen.setdefault(path, Pending(path, kind))
        elif path.endswith("/"):  # git names a folder, not its files, only where another repository lies
            if is_own(path + "x.md", roots):
                found.warnings.append(f"{path} is a repository of its own: what lies in it is left alone")
        elif not line.startswith("? "):
            found.foreign.append(path)
        elif path.endswith(".tmp") and _is_leftover(path):
            found.leftovers.append(path)
    found.pending = sorted(seen.values(), key=lambda item: item.path)
    return found


def _is_leftover(path: str) -> bool:
    from mdmem.notes.scan import TEMP_PREFIX, TEMP_SUFFIX

    name = path.rpartition("/")[2]
    return name.startswith(TEMP_PREFIX) and name.endswith(TEMP_SUFFIX)


def pending(git: Git, roots: Sequence[str] = ("",), paths: Sequence[str] = ()) -> list[Pending]:
    """Return the own paths (`paths`: those of them) that differ from the branch or from the index, sorted; see own.is_own.
    Raises GitFailed."""
    return survey(git, roots, everything=False, paths=paths).pending
