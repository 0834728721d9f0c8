"""Puts mdmem into a repository's own git hooks: before whatever stood there, and out again without a trace.

A hook that was there is kept under another name, byte for byte, and still runs, first. Ours are known by their id line.
"""

from __future__ import annotations

import os
import shlex
import stat
from dataclasses import dataclass, field
from pathlib import Path

from mdmem.errors import Refused, WriteFailed
from mdmem.install.command import program_argv
from mdmem.install.settings_file import read_settings
from mdmem.install.template import template

ID_LINE = "# mdmem git hook "
BEFORE = ".before-mdmem"

# What each hook runs: words of an mdmem command, and whether its failure stops git.
HOOKS: dict[str, tuple[str, bool]] = {
    "pre-commit": ("scan-secrets --staged", True),
    "pre-push": ("scan-secrets --pre-push", True),
    "post-merge": ("index refresh --no-vectors", False),
    "post-checkout": ("index refresh --no-vectors", False),
    "post-rewrite": ("index refresh --no-vectors", False),
}


@dataclass
class GitHooks:
    """What was done, by hook name: written, already there, chained before ours, taken out; why one was left."""

    folder: str
    written: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    chained: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    dry_run: bool = False


def hook_text(name: str, python: str = "") -> str:
    """Return the script of one hook, for this installation."""
    argv = program_argv(python)
    words, stops = HOOKS[name]
    run = " ".join(shlex.quote(word) for word in [*argv, *words.split()])
    if not stops:
        # In the background and silent: a checkout does not wait for the index.
        run = f"( {run} >/dev/null 2>&1 </dev/null & )\nexit 0"
    else:
        run = f'printf "%s" "$input" | {run}' if name == "pre-push" else f"exec {run} </dev/null"
    # Both hooks before a push read the list of refs.
    take = "input=$(cat; echo .)\ninput=${input%.}" if name == "pre-push" else ""
    give = 'printf "%s" "$input" | ' if name == "pre-push" else ""
    text = template("git-hook.sh")
    for mark, value in (("TAKE", take), ("GIVE", give), ("HOOK", name), ("PYTHON", shlex.quote(argv[0])), ("RUN", run)):
        text = text.replace(f"@{mark}@", value)
    return text


def is_ours(data: bytes) -> bool:
    """Return whether a hook's bytes are a script of ours."""
    return any(line.startswith(ID_LINE.encode()) for line in data[:400].splitlines())


def install_git_hooks(folder: Path, *, dry_run: bool = False, python: str = "") -> GitHooks:
    """Install each hook into `folder` (from `hooks_folder`). Doing it twice changes nothing; an old script of ours is
    renewed. Raises WriteFailed."""
    done = GitHooks(str(folder), dry_run=dry_run)
    for name in HOOKS:
        path, kept = folder / name, folder / (name + BEFORE)
        text = hook_text(name, python)
        data = _read(path)
        if data == text.encode():
            done.present.append(name)
            continue
        if _legacy_is_ours(folder, name):
            # pre-commit's own script took our place and runs ours as its "legacy" hook.
            done.present.append(name)
            continue
        if data is not None and not is_ours(data):
            if os.path.lexists(kept):
                done.left[name] = f"{kept.name} exists already; another program wrote {name} since"
                continue
            done.chained.append(name)
            if not dry_run:
                _rename(path, kept)
        done.written.append(name)
        if not dry_run:
            _write(path, text)
    return done


def uninstall_git_hooks(folder: Path, *, dry_run: bool = False) -> GitHooks:
    """Take our hooks out of `folder` and put back what stood there. Raises WriteFailed."""
    done = GitHooks(str(folder), dry_run=dry_run)
    for name in HOOKS:
        path, kept = folder / name, folder / (name + BEFORE)
        data = _read(path)
        if data is None or not is_ours(data):
            if os.path.lexists(kept):
                done.left[name] = f"{name} is not ours any more; the hook before it is {kept.name}"
            continue
        done.removed.append(name)
        if dry_run:
            continue
        if os.path.lexists(kept):
            _rename(kept, path)
        else:
            _delete(path)
    return done


def _legacy_is_ours(folder: Path, name: str) -> bool:
    legacy = _read(folder / f"{name}.legacy")
    return legacy is not None and is_ours(legacy)


def _read(path: Path) -> bytes | None:
    if not os.path.lexists(path):
        return None
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""  # a link to nowhere: somebody's hook all the same
    except OSError as error:
        raise Refused(f"cannot read {path}", why=error.strerror or str(error)) from error


def _write(path: Path, text: str) -> None:
    file = read_settings(path)
    file.write(text)
    try:
        os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) | 0o755)
    except OSError as error:
        raise WriteFailed(f"cannot make {path} executable", why=error.strerror or str(error)) from error


def _rename(old: Path, new: Path) -> None:
    try:
        os.rename(old, new)
    except OSError as error:
        raise WriteFailed(f"cannot rename {old}", why=error.strerror or str(error)) from error


def _delete(path: Path) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        raise WriteFailed(f"cannot remove {path}", why=error.strerror or str(error)) from error
