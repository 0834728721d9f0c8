"""History answered from git: what happened to a note, and how everything stood at a date. Reads only."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from mdmem.clock import UTC, parse_time, stamp
from mdmem.errors import NotFound, UsageError
from mdmem.repo.git import BlobReader, Git, GitFailed

_HEX = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_FORMAT = "%H%x00%P%x00%ct%x00%an%x00%s%x00%(trailers:only,unfold)"


@dataclass(frozen=True)
class Entry:
    """One path in one commit: status A, M, D, R, C or T; `old` is the former path of a rename."""

    status: str
    path: str
    old: str = ""


@dataclass(frozen=True)
class Commit:
    """One commit of the log: `date` is RFC 3339 UTC (when it was committed), `trailers` by name (`Mdmem-Agent`)."""

    rev: str
    parents: tuple[str, ...]
    date: str
    author: str
    subject: str
    trailers: Mapping[str, str] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()

    @property
    def ours(self) -> bool:
        """Whether mdmem made it."""
        return any(name.startswith("Mdmem-") for name in self.trailers)


@dataclass(frozen=True)
class Change:
    """What one commit did to one note; `path` is its name in that commit."""

    rev: str
    date: str
    author: str
    subject: str
    trailers: Mapping[str, str]
    status: str
    path: str


def _date(seconds: str) -> str:
    try:
        return stamp(datetime.fromtimestamp(int(seconds), UTC))
    except (ValueError, OverflowError, OSError):
        return "1970-01-01T00:00:00Z"


def _trailers(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def commits(git: Git, *args: str, timeout: float = 60.0, paths: bool = True) -> list[Commit]:
    """Return the commits that `git log ARGS` lists, newest first, with their paths (unless told). Raises GitFailed."""
    named = ("--name-status", "-M", "--no-ext-diff", "--no-textconv") if paths else ("-s",)
    done = git.run("log", "-z", *named, f"--format={_FORMAT}", *args, read=True, timeout=timeout)
    return list(_parsed(done.out.decode("utf-8", "surrogateescape")))


def _parsed(text: str) -> Iterator[Commit]:
    # A commit is six fields, an empty one, then status and paths; only a status can stand where a commit id may begin.
    parts = text.split("\0")
    place = 0
    while place + 5 < len(parts):
        head = parts[place].lstrip("\n")
        if not _HEX.fullmatch(head):
            place += 1
            continue
        parents, seconds, author, subject, trailers = parts[place + 1 : place + 6]
        place += 6
        entries = []
        while place < len(parts):
            status = parts[place].lstrip("\n")
            if _HEX.fullmatch(status):
                break
            if not re.fullmatch(r"[ACDMRTUX]\d*", status):
                place += 1
            elif status[0] in "RC" and place + 2 < len(parts):
                entries.append(Entry(status[0], parts[place + 2], parts[place + 1]))
                place += 3
            elif place + 1 < len(parts):
                entries.append(Entry(status[0], parts[place + 1]))
                place += 2
            else:
                place += 1
        yield Commit(head, tuple(parents.split()), _date(seconds), author, subject, _trailers(trailers), tuple(entries))


def log_of(git: Git, path: str, rev: str = "HEAD", limit: int = 0) -> list[Change]:
    """Return what happened to a note, newest first, through its renames; [] for a path that was never committed."""
    if git.rev(rev) is None:
        return []
    count = (f"--max-count={limit}",) if limit else ()
    found = []
    for commit in commits(git, "--follow", *count, "--end-of-options", rev, "--", path):
        for entry in commit.entries[:1]:
            found.append(
                Change(commit.rev, commit.date, commit.author, commit.subject, commit.trailers, entry.status, entry.path)
            )
    return found


# --- a moment ------------------------------------------------------------------------------------


def _rising(dates: list[int]) -> list[int]:
    """Return the dates of a chain (oldest first) with those of wrong clocks evened out.

    A date that does not belong to the longest run that never falls takes the date before it in that run.
    """
    if all(a <= b for a, b in pairwise(dates)):
        return dates
    tails: list[int] = []
    where: list[int] = []
    before: list[int] = []
    for place, value in enumerate(dates):
        spot = bisect_right(tails, value)
        before.append(where[spot - 1] if spot else -1)
        if spot == len(tails):
            tails.append(value)
            where.append(place)
        else:
            tails[spot], where[spot] = value, place
    kept = set()
    place = where[-1]
    while place >= 0:
        kept.add(place)
        place = before[place]
    first = dates[min(kept)]
    out: list[int] = []
    for place, value in enumerate(dates):
        out.append(value if place in kept else out[-1] if out else first)
    return out


def rev_at(git: Git, moment: datetime | str, ref: str = "HEAD") -> str | None:
    """Return the commit that was the newest at a moment, or the one that a revision names; None if there was none.

    Goes along first parents by committer date, so that of two moments the later one never has less history.
    """
    if isinstance(moment, str):
        return git.rev(moment)
    if git.rev(ref) is None:
        return None
    # `rev-list --timestamp` is the one form that needs no date formatting for each of many commits.
    done = git.run("rev-list", "--first-parent", "--timestamp", "--end-of-options", ref, read=True, timeout=60)
    lines = [line.split() for line in done.out.decode("ascii").splitlines()]
    lines.reverse()
    dates = _rising([int(seconds) for seconds, _ in lines])
    spot = bisect_right(dates, int(moment.timestamp()))
    return lines[spot - 1][1] if spot else None


def resolve(git: Git, text: str, now: datetime | None = None) -> str:
    """Return the commit id that a person's date (a bare day means its end) or revision names. Raises NotFound."""
    try:
        moment = parse_time(text, now, end=True)
    except UsageError:
        found = git.rev(text)
        if found is None:
            raise NotFound(f"no such date or revision: {text!r}", hint="write 2026-11-30, 7d, or a commit id") from None
        return found
    found = rev_at(git, moment)
    if found is None:
        raise NotFound(f"nothing was recorded by {stamp(moment)}", hint="mdmem history shows the first date")
    return found


def read_at(git: Git, rev: str, path: str) -> bytes | None:
    """Return a file's bytes in a commit, None when it is not there."""
    commit = git.rev(rev)
    if commit is None:
        return None
    listed = git.run("ls-tree", "-z", commit, "--", path, read=True).fields()
    for line in listed:
        info, _, name = line.partition("\t")
        mode, kind, oid = info.split()
        if name == path and kind == "blob" and mode.startswith("100"):
            with BlobReader(git) as blobs:
                return blobs.read(oid)
    return None


def tree_at(git: Git, rev: str, under: str = "") -> dict[str, str]:
    """Return {path: blob id} of the regular files in a commit, below `under`. Raises GitFailed."""
    named = ("--", under + "/") if under else ()
    found = {}
    for line in git.run("ls-tree", "-r", "-z", "--full-tree", "--end-of-options", rev, *named, read=True).fields():
        info, _, path = line.partition("\t")
        mode, _, oid = info.split()
        if mode.startswith("100"):
            found[path] = oid
    return found


def blobs(git: Git, oids: Iterable[str]) -> dict[str, bytes]:
    """Return {blob id: bytes}; absent ones are left out."""
    wanted = list(dict.fromkeys(oids))
    with BlobReader(git) as reader:
        return {oid: data for oid, data in zip(wanted, reader.many(wanted)) if data is not None}


def diff_trees(git: Git, old: str, new: str) -> list[Entry]:
    """Return what changed between two commits or trees, renames detected. Raises GitFailed."""
    args = ("diff-tree", "-r", "-z", "-M", "--name-status", "--no-ext-diff", "--end-of-options", old, new)
    parts = git.run(*args, read=True, timeout=60).out.decode("utf-8", "surrogateescape").split("\0")
    found = []
    place = 0
    while place + 1 < len(parts):
        status = parts[place][:1]
        if status in "RC" and place + 2 < len(parts):
            found.append(Entry(status, parts[place + 2], parts[place + 1]))
            place += 3
        else:
            found.append(Entry(status, parts[place + 1]))
            place += 2
    return found


def path_at(git: Git, path: str, rev: str) -> str | None:
    """Return the name that today's `path` had in a commit, None when it was not there."""
    if read_at(git, rev, path) is not None:
        return path
    names = dict.fromkeys(change.path for change in log_of(git, path))
    return next((name for name in names if name != path and read_at(git, rev, name) is not None), None)


# --- dates of notes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dates:
    """When a path was first and last committed (RFC 3339 UTC)."""

    created: str
    updated: str


def path_dates(git: Git, paths: Iterable[str], since: str = "") -> dict[str, Dates]:
    """Return the dates of paths from one pass over the log, through renames; paths without a commit are left out.

    With `since` (a commit) only what came after it is looked at; `created` is then the first change in that span.
    """
    wanted = set(paths)
    if not wanted or git.rev("HEAD") is None:
        return {}
    span = f"{since}..HEAD" if since else "HEAD"
    now_named = {path: path for path in wanted}  # name at the commit being read -> name today
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    born: set[str] = set()
    try:
        listed = commits(git, "--end-of-options", span, timeout=120)
    except GitFailed:
        if not since:
            raise
        return path_dates(git, wanted)
    for commit in listed:
        came: dict[str, str] = {}  # former name -> name today, of what this commit renamed
        for entry in commit.entries:
            today = now_named.get(entry.path)
            if today is None:
                continue
            if entry.status == "D":
                if today in born:  # an earlier life of the name is another note's
                    now_named.pop(entry.path)
                continue
            if entry.status == "A":
                born.add(today)
            last.setdefault(today, commit.date)
            first[today] = commit.date
            if entry.status == "R":
                now_named.pop(entry.path)
                came[entry.old] = today
        for old, today in came.items():
            # Whoever has the name today, and was made after the rename, has no part in what the name was before.
            if now_named.get(old, today) in (today, *born):
                now_named[old] = today
    return {path: Dates(first[path], last[path]) for path in wanted if path in last}


def unpushed_count(git: Git, upstream: str = "@{upstream}") -> int | None:
    """Return how many commits the upstream (as last fetched) lacks; None when there is no upstream."""
    done = git.run("rev-list", "--count", "--end-of-options", f"{upstream}..HEAD", check=False, read=True)
    return int(done.text()) if done.code == 0 else None
