"""Committing mdmem's own paths and nothing else: what a person has staged stays staged.

The commit is built on the branch's tip by `git fast-import`, so its cost does not grow with the store, and neither hooks,
templates nor signing set-ups can stop it. A path that could not be committed is remembered and goes with the next commit.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from mdmem.clock import SystemClock
from mdmem.errors import Locked, MdmemError
from mdmem.locks import FileLock
from mdmem.repo import filters
from mdmem.repo.git import Git, GitFailed
from mdmem.repo.state import LOCKED
from mdmem.repo.stream import DURABLE, Moved, NewCommit, Signature, message_text, write_blobs, write_commit
from mdmem.repo.survey import Pending, pending

__all__ = ["Committed", "Pending", "commit_lock", "commit_paths", "pending", "remembered", "with_patience"]

Sleep = Callable[[float], None]
T = TypeVar("T")
FALLBACK = ("mdmem", "mdmem@localhost")
_TRIES = 5  # times that what another program's index undid is staged again
_MANY = 100  # from here on blobs go into a pack
_PATHS_ON_A_LINE = 200  # more than these are asked for without naming them: the command line has a limit


@dataclass(frozen=True)
class Committed:
    """`done`: everything asked for is in a commit (or was already); `rev`: the new commit, None if none was needed;
    `reason`: why not, or what was left out; `failed` and `ignored`: the paths that were left out."""

    done: bool
    rev: str | None = None
    reason: str = ""
    failed: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def commit_lock(git: Git, timeout: float = 30.0) -> FileLock:
    """Return the lock around every change of index and branch by mdmem, shared by all worktrees."""
    return FileLock(git.common_dir / "mdmem" / "commit.lock", timeout=timeout)


def commit_paths(
    git: Git,
    paths: Iterable[str],
    message: str,
    trailers: Mapping[str, str] | None = None,
    *,
    when: datetime | None = None,
    patience: float = 2.0,
    sleep: Sleep = time.sleep,
) -> Committed:
    """Commit these paths (relative to the git top; new, changed or deleted) and those that wait from before.

    `patience` is the time in seconds that a lock held by another git is waited for. Never raises for a lock, a failed commit
    or an unsafe state: then `done` is false, the files stay as they are, and the next call commits them.
    """
    wanted = list(dict.fromkeys(paths))
    remember(git, wanted)  # if this process is killed now, the next commit takes them along
    try:
        if git.path("mdmem").joinpath("placing.json").exists():
            from mdmem.repo.place import finish_first

            finish_first(git, when or SystemClock().now())
        with commit_lock(git):
            return _commit_locked(git, wanted, message, trailers or {}, when, patience, sleep)
    except (Locked, GitFailed, OSError) as error:
        remember(git, wanted)
        return Committed(False, reason=_why(error), failed=tuple(wanted))


def _why(error: Exception) -> str:
    if isinstance(error, MdmemError):
        return str(error)
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def _commit_locked(
    git: Git,
    wanted: list[str],
    message: str,
    trailers: Mapping[str, str],
    when: datetime | None,
    patience: float,
    sleep: Sleep,
) -> Committed:
    waiting = remembered(git)
    paths = list(dict.fromkeys([*wanted, *waiting]))
    if not paths:
        return Committed(True, reason="nothing to commit")
    state = git.state()
    if not state.safe and state.name not in LOCKED:
        remember(git, wanted)
        reason = f"{state.name}: saved, not committed" + (f" (first: {state.hint})" if state.hint else "")
        return Committed(False, reason=reason, failed=tuple(wanted))
    attempt = Attempt(git, state.branch, message_text(message, trailers), when)
    result = with_patience(lambda: attempt.run(paths), git, patience, sleep)
    _forget(git, set(paths) - set(result.failed))
    out = {*result.failed, *result.ignored}
    return replace(result, done=not out.intersection(wanted))


def with_patience(step: Callable[[], T], git: Git, patience: float = 2.0, sleep: Sleep = time.sleep) -> T:
    """Run a step again while another process's lock is what stops it; raises its error when patience ends."""
    pause, waited = 0.01, 0.0
    while True:
        try:
            return step()
        except Moved:
            if waited >= patience:
                raise
        except GitFailed as error:
            # A lock that is minutes old is not going away: its owner died. It is named, never removed.
            if ".lock" not in error.err or waited >= (0.1 if _old_lock(git) else patience):
                raise
        jitter = 0.5 + int.from_bytes(os.urandom(2), "big") / 65536
        sleep(pause * jitter)
        waited += pause
        pause = min(pause * 2, 0.25)


def _old_lock(git: Git) -> bool:
    try:
        return time.time() - git.path("index.lock").stat().st_mtime > 60
    except OSError:
        return False


@dataclass
class Attempt:
    """One try at a commit of some paths on one branch."""

    git: Git
    branch: str
    message: str
    when: datetime | None

    def run(self, paths: Sequence[str]) -> Committed:
        """Return what was committed. Raises GitFailed.

        `git commit` of somebody else reads the index before it locks it and then writes what it read: what was staged in
        between is gone, and our commit may lack it. So the index is looked at afterwards, and what it lost goes in again.
        """
        result = self._once(paths)
        out = {*result.failed, *result.ignored}
        left = self._lost([path for path in paths if path not in out])
        for _ in range(_TRIES):
            if not left:
                return result
            again = self._once(list(left))
            result = replace(result, rev=again.rev or result.rev, failed=result.failed + again.failed)
            left = self._lost([path for path in left if path not in again.failed])
            if again.rev is None and all(left.values()):
                return result  # git itself takes what is on disk for what is committed
        reason = "; ".join(filter(None, (result.reason, "another git program keeps writing an older index")))
        return replace(result, reason=reason, failed=(*result.failed, *left))

    def _lost(self, paths: Sequence[str]) -> dict[str, bool]:
        """Return {path: whether the index has it} of those whose entry in the index is not what is on disk."""
        if not paths:
            return {}
        named = ("--", *paths) if len(paths) <= _PATHS_ON_A_LINE else ()
        # Not `ls-files --modified`: it asks for the numbers of every file, whatever paths are named.
        there = set(self.git.run("ls-files", "-z", *named, read=True).fields())
        args = ("diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules")
        changed = set(self.git.run(*args, *named, read=True).fields())
        return {
            path: path in there
            for path in paths
            if path in changed or (path not in there and os.path.lexists(self.git.top / path))
        }

    def _once(self, paths: Sequence[str]) -> Committed:
        ignored = ignored_paths(self.git, paths)
        kept = [path for path in paths if path not in ignored]
        bad = self._stage(kept)
        entries, born = self._staged([path for path in kept if path not in bad])
        reasons = [f"git ignores {path}" for path in sorted(ignored)] + [f"{path}: {why}" for path, why in bad.items()]
        result = Committed(True, None, "; ".join(reasons), tuple(bad), tuple(sorted(ignored)))
        if not entries:
            return result if reasons else replace(result, reason="nothing to commit")
        author, committer = signatures(self.git, self.when)
        parents = [f"refs/heads/{self.branch}^0"] if born else []
        commit = NewCommit(f"refs/heads/{self.branch}", author, committer, self.message, parents, entries)
        return replace(result, rev=write_commit(self.git, commit))

    def _stage(self, paths: Sequence[str]) -> dict[str, str]:
        """Put the paths' content on disk into the index; returns {path: why not} for those that git refuses."""
        bad = {path: why for path in paths if (why := _unfit(self.git.top / path))}
        for path, name in filters.chosen(self.git.top, [path for path in paths if path not in bad]).items():
            # Its bytes as they are may be just what the filter is there to hide.
            bad[path] = f"git's filter {name} is chosen for it; to use it here: git config filter.{name}.clean …"
        good = [path for path in paths if path not in bad]
        if len(good) > _MANY:
            # The index finds these objects stored already; one by one, each would be a file with a wait for the disk.
            write_blobs(self.git, (data for path in good if (data := _content(self.git.top / path)) is not None))
        args = (*DURABLE, "update-index", "--add", "--remove", "-z", "--stdin")
        groups = [good] if good else []
        while groups:
            group = groups.pop()
            try:
                self.git.run(*args, input=b"".join(os.fsencode(path) + b"\0" for path in group), timeout=120)
            except GitFailed as error:
                if ".lock" in error.err or error.status != 128:
                    raise
                if len(group) == 1:
                    bad[group[0]] = error.why
                else:  # one bad file must not hold back the others
                    half = len(group) // 2
                    groups += [group[half:], group[:half]]
        return bad

    def _staged(self, paths: Sequence[str]) -> tuple[dict[str, tuple[str, str | bytes] | None], bool]:
        """Return the entries of these paths in which the index differs from the branch, and whether it has a commit."""
        if not paths:
            return {}, True
        named = ("--", *paths) if len(paths) <= _PATHS_ON_A_LINE else ()
        wanted = set(paths)
        args = ("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules")
        done = self.git.run(*args, "HEAD", *named, check=False, read=True)
        found: dict[str, tuple[str, str | bytes] | None] = {}
        if done.code == 0:
            fields = done.fields()
            for info, path in zip(fields[::2], fields[1::2]):
                _, mode, _, oid, status = info.split()
                if path in wanted:
                    found[path] = None if status.startswith("D") else (mode, oid)
        elif self.git.rev("HEAD") is None:
            listed = self.git.run("ls-files", "--stage", "-z", *named, read=True)
            for line in listed.fields():
                info, _, path = line.partition("\t")
                mode, oid, _ = info.split()
                if path in wanted:
                    found[path] = (mode, oid)
        else:
            raise GitFailed("git diff-index failed", why=done.err.strip(), status=done.code, err=done.err)
        return found, done.code == 0


def _content(path: Path) -> bytes | None:
    """Return a file's bytes, None where there are none to read; git will say why."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def _unfit(path: Path) -> str:
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""  # a deletion
    except OSError as error:
        return error.strerror or "unreadable"
    if stat.S_ISREG(mode):
        return ""
    return "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"


def ignored_paths(git: Git, paths: Sequence[str]) -> set[str]:
    """Return those of the paths that git ignores and does not track. Raises GitFailed."""
    if not paths:
        return set()
    # check-ignore refuses literal pathspecs; with `./` in front no name is taken for a pattern. It is not shown the index,
    # because it compares each path with each entry of it.
    data = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    args = ("check-ignore", "--no-index", "-z", "--stdin")
    done = git.run(*args, input=data, check=False, read=True, env={"GIT_LITERAL_PATHSPECS": "0"})
    if done.code > 1 and len(paths) > 1:  # one path that git refuses to look at (behind a link, say) hides the others
        half = len(paths) // 2
        return ignored_paths(git, paths[:half]) | ignored_paths(git, paths[half:])
    ignored = {path.removeprefix("./") for path in done.fields()}
    if not ignored:
        return ignored
    named = ("--", *ignored) if len(ignored) <= _PATHS_ON_A_LINE else ()
    return ignored - set(git.run("ls-files", "-z", *named, read=True).fields())


def signatures(git: Git, when: datetime | None = None) -> tuple[Signature, Signature]:
    """Return (author, committer): the user's own identity; mdmem's name only where none is set."""
    found: dict[str, str] = {}
    for line in git.run("var", "-l", check=False, read=True).out.decode("utf-8", "surrogateescape").splitlines():
        key, _, value = line.partition("=")
        found[key] = value
    moment = when or SystemClock().now()

    def one(role: str) -> Signature:
        env = f"GIT_{role.upper()}"
        name = os.environ.get(f"{env}_NAME") or found.get(f"{role}.name") or found.get("user.name") or FALLBACK[0]
        mail = os.environ.get(f"{env}_EMAIL") or found.get(f"{role}.email") or found.get("user.email")
        ident = found.get(f"{env}_IDENT", "").rsplit(" ", 2)
        dated = len(ident) == 3 and ident[1].isdigit()
        zone = ident[2] if dated else "+0000"
        seconds = int(ident[1]) if dated and os.environ.get(f"{env}_DATE") else int(moment.timestamp())
        return Signature(name, mail or os.environ.get("EMAIL") or FALLBACK[1], seconds, zone)

    return one("author"), one("committer")


# --- what waits ----------------------------------------------------------------------------------


def _waiting_file(git: Git) -> Path:
    return git.path("mdmem") / "uncommitted"


def remembered(git: Git) -> list[str]:
    """Return the paths whose commit failed before."""
    try:
        data = _waiting_file(git).read_bytes()
    except OSError:
        return []
    return list(dict.fromkeys(os.fsdecode(part) for part in data.split(b"\0") if part))


def remember(git: Git, paths: Iterable[str]) -> None:
    """Note paths for the next commit. A failure is ignored: sync looks at the work tree itself."""
    data = b"".join(os.fsencode(path) + b"\0" for path in paths)
    try:
        _waiting_file(git).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(_waiting_file(git), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError:
        pass


def _forget(git: Git, settled: set[str]) -> None:
    """Drop paths from the list of waiting ones; what another process added meanwhile stays."""
    file = _waiting_file(git)
    taken = file.with_name("uncommitted.taken")
    try:
        os.replace(file, taken)
        data = taken.read_bytes()
        left = [os.fsdecode(part) for part in data.split(b"\0") if part and os.fsdecode(part) not in settled]
        if left:
            remember(git, dict.fromkeys(left))
        taken.unlink()
    except OSError:
        pass
