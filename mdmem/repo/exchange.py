"""Fetch and push with explicit refs: what the remote has, and whether it took what we gave. Nothing is forced."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mdmem.repo.git import Git, GitFailed, safe_text, telling
from mdmem.repo.not_network import Trouble, trouble
from mdmem.repo.remotes import Upstream, upstream_of

CHECKED = ("-c", "transfer.fsckObjects=true", "-c", "fetch.fsckObjects=true")


@dataclass(frozen=True)
class Fetched:
    """`tip`: the branch at the remote (None: it has no such branch); `error`: why nothing was fetched; `trouble`: its name
    where it is not the network."""

    tip: str | None = None
    error: str = ""
    trouble: Trouble | None = None


@dataclass(frozen=True)
class Pushed:
    """`outcome`: ok, rejected (the remote refused: moved, protected, a hook), offline, or trouble (neither; with a `hint`)."""

    outcome: str
    reason: str = ""
    hint: str = ""


def fetched_ref(upstream: Upstream) -> str:
    """Return the ref that holds the remote's branch as last fetched."""
    return f"refs/mdmem/remote/{upstream.remote}/heads/{upstream.branch}"


def seen_ref(upstream: Upstream) -> str:
    """Return the ref that holds the remote's branch as last accepted; its commits are never lost to a rewritten remote."""
    return f"refs/mdmem/seen/{upstream.remote}/{upstream.branch}"


def sent_ref(upstream: Upstream) -> str:
    """Return the ref that holds the last commit that was sent ahead of the branch (upload.py)."""
    return f"refs/mdmem/sent/{upstream.remote}/{upstream.branch}"


def lease_prefix(remote: str) -> str:
    """Return the prefix of the refs that hold the remote's leases as last fetched."""
    return f"refs/mdmem/remote/{remote}/leases/"


def fetch(git: Git, upstream: Upstream, timeout: float, sleep: Callable[[float], None] = time.sleep) -> Fetched:
    """Fetch the branch and the leases, and no other branch: what is wrong with one beside it is not ours. A remote without
    the branch is no error. Never raises for the network."""
    heads = f"+refs/heads/{upstream.branch}:{fetched_ref(upstream)}"
    leases = f"+refs/mdmem/leases/*:{lease_prefix(upstream.remote)}*"
    args = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance", "--no-write-fetch-head")
    pauses, wanted = [0.1, 0.3, 1.0], [heads, leases]
    while True:
        try:
            git.run(*CHECKED, *args, "--prune", "--", upstream.remote, *wanted, network=True, timeout=timeout)
            break
        except GitFailed as error:
            if heads in wanted and "couldn't find remote ref" in error.err:
                wanted.remove(heads)
            # 1: the remote was reached and a ref could not be moved, as when the fetch of a killed sync still runs.
            elif error.status != 1 or not pauses:
                return Fetched(error=error.why or str(error), trouble=trouble(error.err, upstream.remote))
            else:
                sleep(pauses.pop(0))
    if heads not in wanted:
        git.run("update-ref", "-d", fetched_ref(upstream))
        return Fetched()
    tip = git.rev(fetched_ref(upstream))
    if tip is not None and (lacking := _complete(git, upstream, tip, timeout)):
        return Fetched(error=lacking)
    return Fetched(tip)


def _complete(git: Git, upstream: Upstream, tip: str, timeout: float) -> str:
    """In a partial clone, get the texts that `tip` brings: no later step goes to the network. Returns why it could not."""
    try:
        if b"promisor" not in (git.common_dir / "config").read_bytes():
            return ""
        span = f"{tip}\n".encode() + (b"^HEAD\n" if git.rev("HEAD") else b"")
        args = ("rev-list", "--objects", "--no-object-names", "--missing=print", "--stdin")
        listed = git.run(*args, input=span, read=True, timeout=timeout).out.split()
        lost = b"".join(name[1:] + b"\n" for name in listed if name.startswith(b"?"))
        if lost:
            filling = ("fetch", "--quiet", "--no-tags", "--no-filter", "--no-auto-maintenance", "--no-write-fetch-head")
            git.run(*filling, "--stdin", upstream.remote, input=lost, network=True, timeout=timeout)
    except GitFailed as error:
        return error.why or str(error)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def heads_there(git: Git, upstream: Upstream, timeout: float) -> dict[str, str]:
    """Return {branch: commit} as the remote has them; {} also when it cannot be asked."""
    done = git.run("ls-remote", "--heads", "--", upstream.remote, check=False, network=True, timeout=timeout)
    if done.code != 0:
        return {}
    pairs = (line.split("\t") for line in done.text().splitlines() if "\t" in line)
    return {ref.removeprefix("refs/heads/"): rev for rev, ref in pairs}


def to_new_name(upstream: Upstream, there: dict[str, str], seen: str) -> str:
    """Return what to type where the remote's branch, last at `seen`, goes by another name now."""
    new = next((name for name, rev in there.items() if rev == seen), next(iter(there)) if len(there) == 1 else "BRANCH")
    remote = upstream.remote
    return f"git fetch {remote} && git branch -m {new} && git branch -u {remote}/{new}, then mdmem sync"


def push(git: Git, upstream: Upstream, rev: str, timeout: float) -> Pushed:
    """Give a commit to the remote's branch, only as a step forward. Never raises for the network."""
    spec = f"{rev}:refs/heads/{upstream.branch}"
    args = ("push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no", "--", upstream.remote)
    try:
        done = git.run(*args, spec, check=False, network=True, timeout=timeout)
        if done.code != 0 and "matches more than one" in done.err:
            # A branch or tag there is called `refs/heads/…`, as after a slip of the keyboard. A pattern is taken to the letter.
            out = f"refs/mdmem/out/{rev}/"
            set_refs(git, {f"{out}{upstream.branch}": rev})
            try:
                done = git.run(*args, f"{out}*:refs/heads/*", check=False, network=True, timeout=timeout)
            finally:
                git.run("update-ref", "-d", f"{out}{upstream.branch}")
    except GitFailed as error:
        return Pushed("offline", str(error))
    if done.code == 0:
        return Pushed("ok")
    refused = [line for line in done.out.decode("utf-8", "replace").splitlines() if line.startswith("!")]
    told = [line.removeprefix("remote:").strip() for line in done.err.splitlines() if line.startswith("remote:")]
    if refused:
        summary = refused[0].split("\t")[-1]
        return Pushed("rejected", safe_text("; ".join([summary, *[line for line in told if line][:2]])))
    if (known := trouble(done.err, upstream.remote)) is not None:
        return Pushed("trouble", f"{known.name}: {telling(done.err)}", known.hint)
    return Pushed("offline", telling(done.err) or f"git push ended with {done.code}")


_LOCKED_OUT = ("Permission denied", "Host key verification failed", "Authentication failed", "could not read Username")


def way_out(upstream: Upstream, reason: str) -> str:
    """Return what to type where a remote could not be reached: by hand, git may ask what mdmem never asks."""
    if any(sign in reason for sign in _LOCKED_OUT):
        return f"git ls-remote {upstream.remote} (there git may ask you), then mdmem sync"
    return "mdmem sync, when the remote can be reached"


@dataclass(frozen=True)
class Known:
    """What the refs say: the branch, the remote's branch as last accepted, git's own remote-tracking ref, what was sent ahead
    of the branch, any lease."""

    head: str | None
    seen: str | None
    tracking: str | None
    sent: str | None = None
    leases: bool = False


def tracking_ref(upstream: Upstream) -> str:
    """Return git's own ref for the remote's branch."""
    return f"refs/remotes/{upstream.remote}/{upstream.branch}"


def known(git: Git, branch: str, upstream: Upstream) -> Known:
    """Return the refs that a sync compares, from one process."""
    names = (f"refs/heads/{branch}", seen_ref(upstream), tracking_ref(upstream), sent_ref(upstream))
    prefix = lease_prefix(upstream.remote)
    listed = git.run("for-each-ref", "--format=%(refname)%00%(objectname)", *names, prefix, read=True)
    found = dict(line.split("\0", 1) for line in listed.out.decode("utf-8", "surrogateescape").splitlines() if "\0" in line)
    head, seen, tracking, sent = (found.get(name) for name in names)
    return Known(head, seen, tracking, sent, any(name.startswith(prefix) for name in found))


@dataclass(frozen=True)
class Figures:
    """How the branch stands to the remote as last fetched: commits that wait to be pushed, and to be merged."""

    ahead: int = 0
    behind: int = 0


def figures(git: Git) -> Figures:
    """Return the figures for `status`; nothing is fetched. Without a remote nothing waits. Raises GitFailed."""
    branch = git.state().branch
    upstream = upstream_of(git, branch) if branch else None
    if upstream is None:
        return Figures()
    refs = known(git, branch, upstream)
    if refs.head is None:
        return Figures()
    # What was fetched last, and what was pushed since, by a sync or by the user's own git.
    there = [rev for rev in dict.fromkeys((git.rev(fetched_ref(upstream)), refs.tracking)) if rev is not None]

    def count(span: list[str]) -> int:
        lines = "".join(f"{line}\n" for line in span).encode()
        return int(git.run("rev-list", "--count", "--stdin", input=lines, read=True).text())

    ahead = count([refs.head, *(f"^{rev}" for rev in there)])
    return Figures(ahead, count([*there, f"^{refs.head}"]) if there else 0)


def set_refs(git: Git, refs: dict[str, str]) -> None:
    """Move refs of ours, all or none. Raises GitFailed."""
    lines = "".join(f"update {ref}\0{rev}\0\0" for ref, rev in refs.items())
    git.run("update-ref", "-m", "mdmem sync", "-z", "--stdin", input=lines.encode("utf-8", "surrogateescape"))
