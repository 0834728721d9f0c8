"""What of a repository the shared index holds: the main branch, in the order of its commits, on git's word alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mdmem.errors import RefusedState
from mdmem.index.asof import path_in
from mdmem.locate import SETTINGS
from mdmem.repo.git import Git, GitFailed
from mdmem.repo.remotes import check_branch, upstream_of
from mdmem.repo.tree import changes
from mdmem.store import Store

ASKING = 30.0  # seconds for a look at the remote
FETCHING = 300.0  # seconds for what is missing of the history


@dataclass(frozen=True)
class Main:
    """The main branch: the name of its remote and its own; `tip`: its last commit at the remote now, empty when it could not
    be asked."""

    remote: str
    branch: str
    tip: str


def main_of(git: Git, branch: str = "") -> Main | None:
    """Return the main branch: `branch`, else the one that the remote's HEAD names, as the remote says or, when it cannot be
    reached, as the clone remembers; None: there is no remote, or it says nothing. Raises UsageError."""
    upstream = upstream_of(git, git.state().branch)
    if upstream is None:
        return None
    asked = [f"refs/heads/{check_branch(branch)}"] if branch else []
    try:
        done = git.run("ls-remote", "--symref", "--", upstream.remote, "HEAD", *asked, network=True, timeout=ASKING, read=True)
    except GitFailed:
        known = git.run("symbolic-ref", "--quiet", f"refs/remotes/{upstream.remote}/HEAD", check=False, read=True).text()
        name = branch or known.strip().removeprefix(f"refs/remotes/{upstream.remote}/")
        return Main(upstream.remote, name, "") if name else None
    name, tips = branch, {}
    for line in done.text().splitlines():
        said, _, ref = line.partition("\t")
        if said.startswith("ref: refs/heads/") and ref == "HEAD":
            name = name or said.removeprefix("ref: refs/heads/")
        elif not said.startswith("ref: "):
            tips[ref] = said
    if not name:
        return None
    return Main(upstream.remote, name, tips.get(f"refs/heads/{name}" if branch else "HEAD", ""))


def made_whole(git: Git) -> list[str]:
    """Get the history that a shallow clone lacks; returns notices. Dates of notes, and the order of commits, come from it.

    Raises RefusedState."""
    if "shallow" not in git.state().marks:
        return []
    upstream = upstream_of(git, git.state().branch)
    why = "there is no remote"
    if upstream is not None:
        try:
            args = ("fetch", "--quiet", "--unshallow", "--no-tags", "--no-recurse-submodules")
            git.run(*args, "--", upstream.remote, network=True, timeout=FETCHING)
            return ["this clone was shallow; the rest of its history was fetched"]
        except GitFailed as error:
            why = error.why or str(error)
    raise RefusedState(
        "this clone is shallow, and the rest of its history cannot be fetched",
        why=f"dates of notes and the order of commits come from it ({why})",
        hint="git fetch --unshallow; in a CI job: check out with fetch-depth: 0",
        code="shared_index_shallow",
    )


def on_main(git: Git, rev: str, main: Main | None) -> None:
    """Raise RefusedState unless the commit is one of the main branch, or the clone is on that branch."""
    if main is None or not main.branch:
        return
    on = git.state().branch
    upstream = upstream_of(git, on) if on else None
    if upstream is not None and upstream.branch == main.branch and upstream.remote == main.remote:
        return
    for place in (main.tip, f"refs/remotes/{main.remote}/{main.branch}"):
        if place and git.rev(place) is not None and _before(git, rev, place):
            return
    raise RefusedState(
        f"{on or rev[:10]} is not {main.branch}, the main branch of {main.remote}",
        why="the shared index holds what was merged",
        hint=f"git switch {main.branch}; if another branch is the main one: mdmem index push --branch NAME",
        code="shared_index_branch",
    )


def descends(git: Git, earlier: str, rev: str, main: Main | None) -> tuple[bool | None, str]:
    """Return whether `rev` is or comes after `earlier`, False when it comes before it, None when neither is known; and a word
    on it for the user.

    The remote's main branch has the last word: a commit that is its last one now replaces one that it does not hold, as after
    a rewritten history."""
    if earlier == rev:
        return True, ""
    if git.rev(earlier) is None and main is not None and main.tip:
        try:
            git.run("fetch", "--quiet", "--no-tags", "--", main.remote, network=True, timeout=FETCHING)
        except GitFailed:
            return None, ""
    known = git.rev(earlier) is not None
    if known and _before(git, earlier, rev):
        return True, ""
    if main is not None and main.tip == rev:
        return True, f"the shared index held commit {earlier[:10]}, which {main.branch} does not hold (any more)"
    return (False if known and _before(git, rev, earlier) else None), ""


def _before(git: Git, one: str, other: str) -> bool:
    """Return whether one commit is another or comes before it."""
    return git.run("merge-base", "--is-ancestor", one, other, check=False, read=True).code == 0


def differing(store: Store, earlier: str, rev: str) -> dict[str, str] | None:
    """Return {path: blob id, "" where it is gone} of the notes that differ between two commits; None when that is unknown."""
    if store.git.rev(earlier) is None:
        return None
    found = {}
    for path, delta in changes(store.git, earlier, rev).items():
        if path.rpartition("/")[2] == SETTINGS:
            return None  # which files are notes may be another matter then
        inner = path_in(store, path)
        if inner is not None:
            found[inner] = delta.new.oid if delta.new is not None and delta.new.mode.startswith("100") else ""
    return found


def clone_url(git: Git) -> str:
    """Return the address of the remote as others may use it, without a password; '' when there is none or it is a folder."""
    upstream = upstream_of(git, git.state().branch)
    url = (git.setting(f"remote.{upstream.remote}.url") or "").strip() if upstream is not None else ""
    if re.match(r"https?://", url, re.I):
        return re.sub(r"^(\w+://)[^/@]*@", r"\1", url)
    if re.match(r"(ssh|git)://", url, re.I):
        return re.sub(r"^(\w+://[^/@:]*):[^/@]*@", r"\1@", url)
    return url if re.match(r"[\w.-]+@[\w.-]+:", url) else ""
