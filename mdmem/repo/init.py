"""Making and cloning repositories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mdmem.errors import Refused
from mdmem.repo.git import Git, GitFailed, run_git, safe_text
from mdmem.repo.remotes import check_branch, check_url

# Kept in the clone's own configuration, so that a `git pull` by hand is as careful as ours.
_CAREFUL = ("core.symlinks=false", "transfer.fsckObjects=true")


def init_repo(path: Path, branch: str = "") -> Git:
    """Make `path` a git repository, or return the one that it is the top of. Raises GitFailed, OSError.

    The branch is `branch`, else the user's init.defaultBranch, else main.
    """
    path.mkdir(parents=True, exist_ok=True)
    if (path / ".git").exists():
        return Git(path)
    if not branch:
        found = run_git(path, ("config", "--get", "init.defaultBranch"), check=False, read=True)
        branch = found.text() if found.code == 0 else "main"
    run_git(path, ("init", "--quiet", f"--initial-branch={check_branch(branch)}"))
    git = Git(path)
    for setting in _CAREFUL:
        key, _, value = setting.partition("=")
        git.run("config", key, value)
    return git


@dataclass(frozen=True)
class Cloned:
    """A fresh clone. `empty`: the remote has no commit yet."""

    git: Git
    empty: bool


def clone(url: str, folder: Path, *, timeout: float = 600.0) -> Cloned:
    """Clone `url` into `folder` (absent or empty). Raises UsageError, Refused, GitFailed, GitTimeout."""
    check_url(url)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(f"{folder} is not empty", hint="name a folder that does not exist yet")
    folder.parent.mkdir(parents=True, exist_ok=True)
    settings = [part for setting in _CAREFUL for part in ("--config", setting)]
    args = ("clone", "--quiet", "--no-recurse-submodules", "--origin", "origin", *settings, "--", url, str(folder))
    try:
        run_git(folder.parent, args, timeout=timeout, network=True)
    except GitFailed as error:
        error.message = f"{safe_text(url)} could not be cloned"
        raise
    git = Git(folder)
    if git.rev("HEAD") is None:
        _check_out_something(git)
    return Cloned(git, git.rev("HEAD") is None)


def _check_out_something(git: Git) -> None:
    """Check out the remote's branch where its HEAD names one that is not there (a bare repository made with another
    default branch than ours)."""
    listed = git.run("for-each-ref", "--format=%(refname)", "refs/remotes/origin/", read=True).text().splitlines()
    names = [ref.removeprefix("refs/remotes/origin/") for ref in listed if not ref.endswith("/HEAD")]
    wanted = next((name for name in ("main", "master") if name in names), names[0] if names else "")
    if wanted:
        git.run("checkout", "--quiet", "-B", wanted, "--track", f"refs/remotes/origin/{wanted}", timeout=300)
