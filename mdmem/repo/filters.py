"""Filters (`clean`, `smudge`) that a repository's .gitattributes may choose among those of the user's own git configuration.

The user wrote them for repositories of the user's choice: one that was pulled must not choose a program, also not one of
the user's own (git-lfs then asks a server that the repository names). What the clone's own configuration defines was set up
for this clone and is used, unless the clone itself came from elsewhere (an unpacked archive) and the user has not trusted it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

# Commands that may run a filter: they read the work tree as it would be committed, or write it.
RUNNING = frozenset(("add", "checkout", "clone", "diff", "ls-files", "merge", "read-tree", "stash", "status", "update-index"))
_OWN = (b"local", b"worktree")
# What filters are switched off with, by way of the environment: a name may hold an equals sign, which `-c` cannot say.
OFF = {"MDMEM_NO_FILTER": "", "MDMEM_NOT_REQUIRED": "false"}
_foreign: set[Path] = set()


def distrust(top: Path, foreign: bool) -> None:
    """Note whether the work tree at `top` is one whose own configuration names no program for us."""
    (_foreign.add if foreign else _foreign.discard)(top)


def flags(top: Path, args: Sequence[str]) -> tuple[str, ...]:
    """Return the options that switch off, for a call of git, the filters that it must not run; () for one that runs none."""
    if not any(word in RUNNING for word in args[:8]):
        return ()
    out: list[str] = []
    for name in general(top):
        for key in ("clean", "smudge", "process"):
            out.append(f"--config-env=filter.{name}.{key}=MDMEM_NO_FILTER")
        out.append(f"--config-env=filter.{name}.required=MDMEM_NOT_REQUIRED")
    return tuple(out)


def general(top: Path) -> frozenset[str]:
    """Return the names of the filters that are defined for the user or the machine and not for the clone at `top`; of one that
    is not trusted, all."""
    # What decides which files git reads: a process that changes it (a test, say) asks again.
    seen = tuple(os.environ.get(name, "") for name in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"))
    return _general(top, seen, top in _foreign, *_stamps(top, seen))


def _stamps(top: Path, seen: tuple[str, ...]) -> tuple[int, ...]:
    home, config, chosen, system = seen
    user = (f"{home}/.gitconfig", f"{config or home + '/.config'}/git/config")
    places = (chosen, system, *user, "/etc/gitconfig", f"{top}/.git/config")
    found = []
    for place in places:
        try:
            found.append(os.stat(place).st_mtime_ns if place else 0)
        except OSError:
            found.append(0)
    return tuple(found)


@cache
def _general(top: Path, seen: tuple[str, ...], foreign: bool, *_: object) -> frozenset[str]:
    from mdmem.repo.git import run_git

    args = ("config", "--null", "--show-scope", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process)$")
    parts = run_git(top, args, check=False, read=True).out.split(b"\0")
    elsewhere: set[str] = set()
    own: set[str] = set()
    for scope, key in zip(parts[::2], parts[1::2]):
        (own if scope in _OWN else elsewhere).add(os.fsdecode(key).split(".", 1)[1].rpartition(".")[0])
    return frozenset(elsewhere | own if foreign else elsewhere - own)


def chosen(top: Path, paths: Sequence[str]) -> dict[str, str]:
    """Return {path: filter} of the paths for which the repository chooses one of the general filters. Raises GitFailed."""
    from mdmem.repo.git import run_git

    names = general(top)
    if not names or not paths:
        return {}
    data = b"".join(os.fsencode(path) + b"\0" for path in paths)
    parts = run_git(top, ("check-attr", "-z", "--stdin", "filter"), input=data, read=True).out.split(b"\0")
    found = {os.fsdecode(path): os.fsdecode(value) for path, value in zip(parts[::3], parts[2::3])}
    return {path: name for path, name in found.items() if name in names}
