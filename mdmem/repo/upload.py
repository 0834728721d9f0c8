"""Many commits that wait go to the remote ahead of the branch, piece by piece, under a name of their own.

A push of thousands of commits takes minutes. Whatever another clone pushes meanwhile refuses it at its end, a time limit cuts
it off, and each time all that was sent is thrown away: whoever is behind falls further behind. What was sent ahead stays, so
that the push of the branch itself has little to send, and a sync that is cut off goes on where it stopped. The name is taken
away again once the branch holds its commits. A remote that takes no such names gets one push, as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mdmem.repo.exchange import sent_ref, set_refs
from mdmem.repo.git import Git, GitFailed
from mdmem.repo.remotes import Upstream

PIECE = 100  # commits of one push
THERE = "refs/mdmem/ahead/"  # at the remote; the name ends with the commit, so that no two clones share one
Clean = Callable[[str, Sequence[str]], bool]


def send_ahead(
    git: Git, upstream: Upstream, head: str, tip: str | None, sent: str | None, clean: Clean, timeout: float
) -> str | None:
    """Send what the remote's branch `tip` (None: there is none) lacks of `head` when it is much; returns the last commit that
    was sent ahead, now or earlier (`sent`).

    `clean(new, known)` tells whether the commits between hold no secret: nothing else is sent. Stops without a word at what
    the remote refuses or does not answer: the push of the branch will tell."""
    known = [rev for rev in (tip, sent) if rev is not None]
    span = "".join(f"{line}\n" for line in (head, *(f"^{rev}" for rev in known))).encode()
    waiting = git.run("rev-list", "--first-parent", "--reverse", "--stdin", input=span, read=True).out.decode("ascii").split()
    if len(waiting) <= PIECE:
        return sent
    for end in range(PIECE, len(waiting) + PIECE, PIECE):
        piece = waiting[min(end, len(waiting)) - 1]
        if not clean(piece, known) or not _send(git, upstream, piece, sent, timeout):
            break
        sent, known = piece, [*([] if tip is None else [tip]), piece]
    return sent


def take_away(git: Git, upstream: Upstream, sent: str, timeout: float) -> None:
    """Take the name of what was sent ahead away, there and here. Where the remote does not answer the next sync does it."""
    if _push(git, upstream, [f":{THERE}{sent}"], timeout):
        git.run("update-ref", "-d", sent_ref(upstream))


def _send(git: Git, upstream: Upstream, rev: str, before: str | None, timeout: float) -> bool:
    if not _push(git, upstream, [f"{rev}:{THERE}{rev}"], timeout):
        return False
    set_refs(git, {sent_ref(upstream): rev})
    if before is not None:
        _push(git, upstream, [f":{THERE}{before}"], timeout)
    return True


def _push(git: Git, upstream: Upstream, specs: Sequence[str], timeout: float) -> bool:
    """Tell whether the remote took it."""
    args = ("push", "--quiet", "--no-verify", "--no-follow-tags", "--recurse-submodules=no", "--", upstream.remote)
    try:
        return git.run(*args, *specs, check=False, network=True, timeout=timeout).code == 0
    except GitFailed:
        return False
