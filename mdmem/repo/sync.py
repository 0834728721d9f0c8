"""Sync: commit what is ours, fetch, merge without touching a file, check, push, and only then bring the work tree along.

A state machine with a typed result. What is not known to be safe is refused by name, and nothing has changed then.
Being offline, or refused by the remote, is a state and no error: commits wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mdmem.clock import Clock, SystemClock
from mdmem.locks import FileLock
from mdmem.repo import exchange, upload
from mdmem.repo.commit import commit_lock
from mdmem.repo.gate import GateFailed, Scan, unpushed_findings
from mdmem.repo.git import Git, GitFailed
from mdmem.repo.lease import observe, seen_file
from mdmem.repo.ledger import lost_in, note_count, too_many
from mdmem.repo.not_network import named
from mdmem.repo.place import finish, in_the_way, journal_path, place
from mdmem.repo.remotes import Upstream, set_upstream, upstream_of
from mdmem.repo.state import LOCKED, GitState
from mdmem.repo.sync_local import Local, closed, commit_local
from mdmem.repo.sync_merge import join
from mdmem.repo.sync_types import Refusal, SyncOptions, SyncResult
from mdmem.repo.tree import Contents, ObjectMissing, similar
from mdmem.repo.tree_merge import merge_bases

__all__ = ["Refusal", "SyncOptions", "SyncResult", "check_state", "sync"]


# Not refused, but worth a word.
_MARKS = {
    "shallow": "this clone is shallow: what lies before its first commit is not known here",
    "sparse": "this checkout is sparse: notes outside of it are merged but not on this disk",
    "submodules": "what lies in submodules is not this store's, and is left alone",
}


def default_rng() -> float:
    """Return a random number from 0 to 1."""
    import os

    return int.from_bytes(os.urandom(4), "big") / 2**32


def check_state(git: Git) -> GitState:
    """Return the state of a repository that a sync may touch. Raises Refusal for every other one."""
    state = git.state()
    if not state.safe:
        raise Refusal(state.name, why="nothing was changed", hint=state.hint)
    return state


def sync(
    git: Git,
    lock_path: Path,
    roots: Sequence[str] = ("",),
    *,
    mode: str = "dedicated",
    trailers: Mapping[str, str] | None = None,
    scan: Scan | None = None,
    options: SyncOptions | None = None,
    clock: Clock | None = None,
    sleep: Callable[[float], None] = time.sleep,
    rng: Callable[[], float] = default_rng,
) -> SyncResult:
    """Bring this clone and its remote together; returns what happened.

    `lock_path` is the write lock of the notes, `roots` the owned folders as git names them. Raises Locked when another sync
    does not end in time, and nothing else that a user could meet: those are states of the result.
    """
    options = options or SyncOptions()
    run = _Run(git, lock_path, tuple(roots), mode, dict(trailers or {}), scan, options, clock or SystemClock(), sleep, rng)
    with FileLock(git.common_dir / "mdmem" / "sync.lock", timeout=options.wait):
        return run.all()


@dataclass
class _Run:
    git: Git
    lock_path: Path
    roots: tuple[str, ...]
    mode: str
    trailers: dict[str, str]
    scan: Scan | None
    options: SyncOptions
    clock: Clock
    sleep: Callable[[float], None]
    rng: Callable[[], float]
    result: SyncResult = field(default_factory=SyncResult)
    local: Local = field(default_factory=Local)
    branch: str = ""
    passed: list[str] = field(default_factory=list)  # commits that this sync has scanned, with all before them

    def all(self) -> SyncResult:
        """Run every step; a refusal and a stopped push become states."""
        self.result.dry_run = self.options.dry_run
        try:
            self._steps()
        except Refusal as refusal:
            self._refused(refusal)
        except GateFailed as error:
            self._stopped(str(error), error.hint)
        except ObjectMissing as error:
            self._refused(Refusal(error.message, why=error.why, hint=error.hint))
        except GitFailed as error:
            self._refused(Refusal(named(error), why=error.why or error.message, hint=error.hint or "git status"))
        except OSError as error:
            self._refused(Refusal("the disk refused a write", why=error.strerror or str(error), hint="free space, then again"))
        return self.result

    def _refused(self, refusal: Refusal) -> None:
        self.result.state, self.result.reason, self.result.hint = "refused", str(refusal), refusal.hint

    def _stopped(self, reason: str, hint: str = "") -> None:
        """Nothing is pushed, what was done stays."""
        self.result.reason, self.result.hint = reason, hint
        if self.result.state in ("clean", "pushed"):
            self.result.state = "committed"

    # --- the steps

    def _steps(self) -> None:
        self._finish_old()
        state = self._settled_state()
        self.branch = state.branch
        self.result.notices += [_MARKS[mark] for mark in state.marks if mark in _MARKS]
        self.local = commit_local(self.git, self.roots, self.scan, self.options, self.trailers, self.clock.now())
        self._sweep(self.local.leftovers)
        self.result.held = list(self.local.held)
        self.result.notices += self.local.notices
        self.result.counts["committed"] = self.local.committed
        if self.local.committed:
            self.result.state = "committed"
        if self.mode == "embedded" and not self.options.push:
            self.result.reason = "inside a code repository mdmem leaves the rest to you"
            self.result.hint = "mdmem sync --commit, or mdmem sync --push"
            return
        upstream = upstream_of(self.git, self.branch)
        if upstream is None:
            self.result.reason = "no remote"
            self.result.hint = "mdmem remote add origin URL"
            return
        self._rounds(upstream)

    def _finish_old(self) -> None:
        if not journal_path(self.git).exists():
            return
        with FileLock(self.lock_path), commit_lock(self.git):
            try:
                done = finish(self.git, self.clock.now())
            except (GitFailed, OSError) as error:
                done = f"an interrupted sync could not be finished ({error}); its notes are committed now"
        if done:
            self.result.notices.append(done)

    def _sweep(self, leftovers: Sequence[str]) -> None:
        """Remove temporary files of writers that were killed; who holds the write lock knows that none is at work."""
        if not leftovers or self.options.dry_run:
            return
        with FileLock(self.lock_path):
            for path in leftovers:
                try:
                    (self.git.top / path).unlink()
                except OSError:
                    continue

    def _settled_state(self) -> GitState:
        """Return the state; a lock of another git is waited for a little. Raises Refusal."""
        for pause in (0.05, 0.1, 0.2, 0.4):
            if self.git.state().name not in LOCKED:
                break
            self.sleep(pause)
        return check_state(self.git)

    def _rounds(self, upstream: Upstream) -> None:
        refused = exchange.Pushed("ok")
        tip: str | None = None
        for attempt in range(self.options.attempts):
            fetched = exchange.fetch(self.git, upstream, self.options.timeout, self.sleep)
            if fetched.trouble is not None:
                raise Refusal(fetched.trouble.name, why=fetched.error, hint=fetched.trouble.hint)
            if fetched.error:
                self._offline(upstream, fetched.error)
                return
            # Refused twice with the same tip there: it is no race, the remote does not want it.
            steady = refused.outcome == "rejected" and fetched.tip == tip
            tip = fetched.tip
            refused = self._round(upstream, tip, refused if steady else None)
            if refused.outcome not in ("rejected", "again"):
                return
            self.sleep(min(0.05 * 2**attempt, 2.0) * (0.5 + self.rng()))
        self._stopped(f"the remote did not take it: {refused.reason}", "mdmem sync")
        self._count_waiting(tip)

    def _round(self, upstream: Upstream, tip: str | None, denied: exchange.Pushed | None) -> exchange.Pushed:
        """Merge with `tip`, push unless that was `denied` before, and bring the work tree along."""
        refs = exchange.known(self.git, self.branch, upstream)
        head = refs.head
        self._not_rewritten(upstream, tip, refs)
        if tip is None:
            self._first_push(upstream, head)
        if head is None:
            if tip is not None:
                hint = f"git pull {upstream.remote} {upstream.branch}"
                raise Refusal("no commit here, but a remote with commits", why=upstream.branch, hint=hint)
            return exchange.Pushed("ok")
        with Contents(self.git) as contents:
            target = self._target(head, tip, contents)
            self._valves(head, tip, target, contents)
            delta = contents.changes(head, target)
        if delta and (blocked := in_the_way(self.git, delta, self.local.foreign)):
            why = ", ".join(blocked[:5])
            raise Refusal("files with changes of your own are in the way", why=why, hint="git commit or git stash them")
        self.result.pulled = self._count(head, tip) if tip and tip != head and target != head else 0
        if self.options.dry_run:
            self._settle(head, tip, target, pushed=False)
            self._count_waiting(tip, target)
            return exchange.Pushed("ok")
        answer = exchange.Pushed("ok") if target == tip else denied or self._push(upstream, head, target, tip, refs.sent)
        if answer.outcome == "rejected" and denied is None:
            return answer
        pushed = answer.outcome == "ok" and self._may_push(target, tip)
        if not self._bring_along(head, target):
            return exchange.Pushed("again", "a commit was made meanwhile")
        self._settle(head, tip, target, pushed=pushed)
        self._remember(upstream, target if pushed else tip, refs)
        if refs.leases or seen_file(self.git.common_dir).exists():
            observe(self.git, self.clock)
        self._count_waiting(target if pushed else tip, target)
        if answer.outcome == "offline":
            self.result.state = "offline" if self.result.state in ("clean", "committed") else self.result.state
            self.result.reason = answer.reason
        elif answer.outcome == "trouble":
            self._stopped(f"nothing was pushed: {answer.reason}", answer.hint)
        elif answer.outcome == "rejected":
            self._stopped(f"the remote refused the push: {answer.reason}", "ask who owns the remote, or push to another branch")
        elif answer.outcome == "held":
            self._stopped("secrets in commits that are not pushed yet", "mdmem sync --help tells how to let one pass")
        return exchange.Pushed("ok")

    def _not_rewritten(self, upstream: Upstream, tip: str | None, refs: exchange.Known) -> None:
        """Refuse a remote that no longer holds what it held. Its old commits stay in a ref of ours."""
        seen, head = refs.seen or refs.tracking, refs.head
        if seen is None or seen == tip or self.options.join:
            return
        if tip is not None and (self._within(seen, tip) or head == tip):
            return
        if tip is not None and head is not None and not self._within(tip, seen) and self._within(tip, head):
            return  # the user has merged the new history already
        if tip is None and (there := exchange.heads_there(self.git, upstream, self.options.timeout)):
            # Pushed anew under the old name it would be two stores.
            why, hint = "it has " + ", ".join(sorted(there)[:5]), exchange.to_new_name(upstream, there, seen)
            raise Refusal(f"the remote has no branch {upstream.branch} any more", why=why, hint=hint)
        self.result.heads = {"here": head or "", "last seen": seen, "remote": tip or ""}
        raise Refusal(
            "rewritten remote",
            why=f"{upstream.remote} had {seen[:10]}, now it has {tip[:10] if tip else 'no such branch'}",
            hint=f"git log {exchange.seen_ref(upstream)} shows the old history; mdmem sync --join keeps both",
        )

    def _first_push(self, upstream: Upstream, head: str | None) -> None:
        if self.mode != "dedicated" or (upstream.configured and head is not None) or self.options.join:
            return
        others = sorted(exchange.heads_there(self.git, upstream, self.options.timeout))
        if others:
            hint = f"git branch -m {others[0]}, then mdmem sync; or mdmem sync --join for a branch of its own"
            if head is None:
                hint = f"git switch {others[0]}"
            raise Refusal(f"the remote has no branch {upstream.branch}", why="it has " + ", ".join(others[:5]), hint=hint)

    def _target(self, head: str, tip: str | None, contents: Contents) -> str:
        """Return the commit that both sides are to have."""
        if tip is None or tip == head:
            return head
        bases = merge_bases(self.git, head, tip)
        if tip in bases:
            return head
        if head in bases:
            return tip
        if not bases and not self.options.join:
            self.result.heads = {"here": head, "remote": tip}
            if "shallow" in self.git.state().marks:
                raise Refusal("shallow clone", why="its history does not reach the remote's", hint="git fetch --unshallow")
            why = "this store and the remote began apart; both are intact"
            raise Refusal("unrelated histories", why=why, hint="mdmem sync --join")
        joined = join(self.git, head, tip, contents, self.clock.now(), bases=bases, merge_code=self.mode == "dedicated")
        self.result.conflicts = joined.result.conflicts
        self.result.regenerate = joined.result.regenerate
        self.result.notices += [text for text in joined.result.notices if text not in self.result.notices]
        self.result.counts["merged"] = sum(1 for item in joined.result.entries.values() if item is not None)
        return joined.rev

    def _valves(self, head: str, tip: str | None, target: str, contents: Contents) -> None:
        if self.options.allow_deletions:
            return
        for old in dict.fromkeys(rev for rev in (head, tip) if rev is not None and rev != target):
            delta = contents.changes(old, target)
            lost = lost_in(delta, contents)
            if not too_many(len(lost), total := note_count(self.git, old) if lost else 0):
                continue
            lost = lost_in(delta, contents, similar(self.git, old, target))
            if too_many(len(lost), total):
                raise closed(len(lost), total)

    def _may_push(self, target: str, tip: str | None) -> bool:
        return target == tip or self.options.push

    def _push(self, upstream: Upstream, head: str, target: str, tip: str | None, sent: str | None) -> exchange.Pushed:
        if not self.options.push:
            return exchange.Pushed("ok")
        timeout = self.options.timeout
        sent = upload.send_ahead(self.git, upstream, head, tip, sent, self._clean, timeout)
        if not self._clean(target, [] if tip is None else [tip], tell=True):
            return exchange.Pushed("held")
        answer = exchange.push(self.git, upstream, target, timeout)
        if sent is not None and answer.outcome == "ok":
            upload.take_away(self.git, upstream, sent, timeout)
        return answer

    def _clean(self, new: str, known: Sequence[str], *, tell: bool = False) -> bool:
        """Tell whether no commit of `new` that is neither in `known` nor scanned before holds a secret."""
        if self.scan is None or new in self.passed:
            return True
        held = unpushed_findings(self.git, new, [*known, *self.passed], self.scan, self.roots, self.options.allow)
        if held and tell:
            self.result.held += held
        if not held:
            self.passed.append(new)
        return not held

    def _bring_along(self, head: str, target: str) -> bool:
        """Move work tree, index and branch; False when somebody committed meanwhile."""
        if target == head:
            return True
        with FileLock(self.lock_path), commit_lock(self.git):
            check_state(self.git)
            if self.git.rev("HEAD") != head:
                return False
            try:
                placed = place(self.git, head, target, self.branch, self.lock_path, self.clock.now())
            except GitFailed:
                if self.git.rev("HEAD") not in (head, target):
                    journal_path(self.git).unlink(missing_ok=True)
                    return False
                raise
        self.result.counts.update(written=placed.written, removed=placed.removed)
        for path in placed.merged:
            self.result.notices.append(f"{path} was changed meanwhile: both changes are in it, and the next sync commits it")
        return True

    # --- what is remembered and told

    def _settle(self, head: str, tip: str | None, target: str, *, pushed: bool) -> None:
        self.result.pushed = self._count(tip, target) if pushed and target != tip else 0
        if self.result.conflicts:
            self.result.state = "conflict"
        elif target != head:
            self.result.state = "merged"
        elif self.result.pushed:
            self.result.state = "pushed"

    def _remember(self, upstream: Upstream, tip: str | None, refs: exchange.Known) -> None:
        if tip is None:
            return
        if tip not in (refs.seen, refs.tracking) or refs.seen != refs.tracking:
            exchange.set_refs(self.git, {exchange.seen_ref(upstream): tip, exchange.tracking_ref(upstream): tip})
        if not upstream.configured:
            set_upstream(self.git, self.branch, upstream)

    def _offline(self, upstream: Upstream, reason: str) -> None:
        self.result.state, self.result.reason = "offline", reason
        self.result.hint = exchange.way_out(upstream, reason)
        self._count_waiting(self.git.rev(exchange.seen_ref(upstream)))

    def _count(self, old: str | None, new: str) -> int:
        span = (new,) if old is None else (f"{old}..{new}",)
        return int(self.git.run("rev-list", "--count", "--end-of-options", *span, read=True).text())

    def _count_waiting(self, tip: str | None, target: str = "") -> None:
        target = target or self.git.rev("HEAD") or ""
        self.result.waiting = self._count(tip, target) if target and target != tip else 0
        if self.result.waiting and self.result.state == "clean":
            self.result.state = "committed"

    def _within(self, old: str, new: str) -> bool:
        return self.git.run("merge-base", "--is-ancestor", old, new, check=False, read=True).code == 0
