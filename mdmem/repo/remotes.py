"""Remotes by name, and where a branch goes. No URL ever comes from a repository's content."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from mdmem.errors import MdmemError, NotFound, Refused, UsageError
from mdmem.repo.git import Git, safe_text

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_HELPER = re.compile(r"[A-Za-z0-9+.-]+::")
@dataclass(frozen=True)
class Remote:
    """A remote as it may be shown: credentials are cut out of the URL."""

    name: str
    url: str


def check_url(url: str) -> str:
    """Return the URL; raises UsageError for one that git would take for an option or that runs a program."""
    if not url.strip() or url != url.strip() or any(c < " " or c == "\x7f" for c in url):
        raise UsageError("not a URL", why="it is empty or has white space or control characters around or in it")
    if url.startswith("-"):
        raise UsageError("not a URL", why="it starts with '-'")
    if _HELPER.match(url):
        raise UsageError("this kind of URL is not allowed", why="it names a program that git would run")
    return url


def absolute_url(url: str, cwd: Path) -> str:
    """Return a local path as an absolute one, any other URL unchanged."""
    check_url(url)
    expanded = os.path.expanduser(url)
    if "://" not in url and (os.path.isabs(expanded) or ":" not in url.split("/")[0]):
        return os.path.abspath(cwd / expanded)
    return url


def check_branch(name: str) -> str:
    """Return a branch name; raises UsageError for one that git would not take."""
    if not name or name.startswith("-") or ".." in name or not re.fullmatch(r"[^\s~^:?*\[\\\x00-\x1f\x7f]+", name):
        raise UsageError(f"not a branch name: {name!r}")
    return name


def remotes(git: Git) -> list[Remote]:
    """Return the remotes by name."""
    found: dict[str, str] = {}
    done = git.run("config", "-z", "--get-regexp", r"^remote\..*\.url$", check=False, read=True)
    for line in done.fields():
        key, _, url = line.partition("\n")
        found.setdefault(key[len("remote.") : -len(".url")], safe_text(url))
    return [Remote(name, url) for name, url in sorted(found.items())]


def add_remote(git: Git, name: str, url: str, cwd: Path | None = None) -> Remote:
    """Name a remote. Raises UsageError, Refused when the name is taken."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"not a name for a remote: {name!r}")
    if any(remote.name == name for remote in remotes(git)):
        raise Refused(f"the remote {name} exists", hint=f"mdmem remote set {name} URL")
    git.run("remote", "add", "--", name, absolute_url(url, cwd or git.top))
    return Remote(name, safe_text(url))


def set_remote(git: Git, name: str, url: str, cwd: Path | None = None) -> Remote:
    """Give a remote another URL; a new name is added. Raises UsageError."""
    if not any(remote.name == name for remote in remotes(git)):
        return add_remote(git, name, url, cwd)
    git.run("remote", "set-url", "--", name, absolute_url(url, cwd or git.top))
    return Remote(name, safe_text(url))


def remove_remote(git: Git, name: str) -> None:
    """Forget a remote. Raises NotFound."""
    if not any(remote.name == name for remote in remotes(git)):
        raise NotFound(f"no remote is named {name}", hint="mdmem remote list")
    git.run("remote", "remove", "--", name)


@dataclass(frozen=True)
class Upstream:
    """Where a branch goes: remote name, branch there, and whether the configuration says so or it was guessed."""

    remote: str
    branch: str
    configured: bool


def upstream_of(git: Git, branch: str) -> Upstream | None:
    """Return the remote and remote branch for a branch: its own setting, else `origin` or the only remote; None if none."""
    values: dict[str, str] = {}
    names: list[str] = []
    for line in git.run("config", "-z", "--get-regexp", r"^(branch|remote)\.", check=False, read=True).fields():
        key, _, value = line.partition("\n")
        values[key] = value
        if key.startswith("remote.") and key.endswith(".url"):
            names.append(key[len("remote.") : -len(".url")])
    remote, merge = values.get(f"branch.{branch}.remote", ""), values.get(f"branch.{branch}.merge", "")
    if remote in names and merge.startswith("refs/heads/"):
        return Upstream(remote, merge.removeprefix("refs/heads/"), True)
    if remote not in names:
        remote = "origin" if "origin" in names else names[0] if len(set(names)) == 1 else ""
    return Upstream(remote, branch, False) if remote else None


def set_upstream(git: Git, branch: str, upstream: Upstream) -> None:
    """Write the branch's upstream into the clone's configuration. A locked configuration is left for next time."""
    try:
        git.run("config", f"branch.{branch}.remote", upstream.remote)
        git.run("config", f"branch.{branch}.merge", f"refs/heads/{upstream.branch}")
    except MdmemError:
        pass
