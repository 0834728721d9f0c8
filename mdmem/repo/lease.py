"""Leases: exclusive edit rights on a note across machines, by compare-and-swap on a ref at the remote.

`refs/mdmem/leases/<id>` at the remote points to a small commit that names holder and duration. Whoever moves the ref first
has it; git itself makes that atomic. Each machine counts a lease's time on its own clock from when it first saw it, so no
two clocks need to agree and a crashed holder is waited for once. Without a remote that takes such refs, a lease is a lock
of this machine, and says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mdmem.clock import Clock, read_stamp, stamp
from mdmem.errors import Locked, NotFound, typed
from mdmem.locks import FileLock
from mdmem.repo.exchange import CHECKED, lease_prefix
from mdmem.repo.git import Git, GitFailed
from mdmem.repo.remotes import upstream_of
from mdmem.repo.stream import NewCommit, Signature, write_commit

REFS = "refs/mdmem/leases/"
_LONGEST = 180
_YEAR = 366 * 86400.0
_MAKING = "refs/mdmem/lease"


@dataclass(frozen=True)
class Lease:
    """A lease as this machine sees it. `seen` is when it was first seen here; `local`: it holds on this machine only."""

    id: str
    holder: str
    ttl: float
    seen: datetime
    oid: str = ""
    local: bool = False

    @property
    def until(self) -> datetime:
        """When it ends on this machine's clock."""
        try:
            return self.seen + timedelta(seconds=self.ttl)
        except OverflowError:
            return datetime.max.replace(tzinfo=self.seen.tzinfo)  # a clock at the end of time

    def as_dict(self, now: datetime) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "id": self.id,
            "holder": self.holder,
            "ttl": self.ttl,
            "until": stamp(self.until),
            "expired": self.until <= now,
            "local": self.local,
        }


@dataclass(frozen=True)
class Taken:
    """A lease that is held now, and a word on it for the user."""

    lease: Lease
    notice: str = ""


class LeaseHeld(Locked):
    """Somebody else holds the lease."""

    code = "lease_held"


def ref_of(note_id: str) -> str:
    """Return the ref of a lease: every character that a ref may not hold is written %XX, a long id as its hash."""
    name = quote(note_id, safe="").replace(".", "%2E").replace("~", "%7E")
    if len(name) > _LONGEST:
        name = "sha256-" + hashlib.sha256(note_id.encode("utf-8", "surrogateescape")).hexdigest()
    return REFS + name


# --- what this machine has seen ------------------------------------------------------------------


def seen_file(common_dir: Path) -> Path:
    """Return the file of the leases that this clone has seen: readable without starting git."""
    return common_dir / "mdmem" / "leases.json"


def read_seen(common_dir: Path) -> dict[str, Lease]:
    """Return {id: lease}; {} when there is no file or it is damaged."""
    try:
        data = json.loads(seen_file(common_dir).read_bytes())
        found = {}
        for key, entry in data.items():
            seen = read_stamp(entry["seen"])
            if seen is not None:
                ttl = _seconds(entry["ttl"], _YEAR)
                found[key] = Lease(key, str(entry["holder"]), ttl, seen, str(entry["oid"]), bool(entry["local"]))
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _seconds(value: Any, most: float) -> float:
    """Return a duration out of a file or a remote, at most `most`. Raises ValueError or TypeError for what is none."""
    seconds = float(value)
    if not seconds >= 0:  # not a number is not either
        raise ValueError("not a duration")
    return min(seconds, most)


def lease_on(common_dir: Path, note_id: str, holder: str, now: datetime) -> Lease | None:
    """Return somebody else's live lease on a note as of the last fetch, None when it may be written. Starts no process."""
    return held_by_others(common_dir, holder, now).get(note_id)


def held_by_others(common_dir: Path, holder: str, now: datetime) -> dict[str, Lease]:
    """Return {id: lease} of everybody else's live leases as of the last fetch. Starts no process."""
    return {key: lease for key, lease in read_seen(common_dir).items() if lease.holder != holder and lease.until > now}


def _write_seen(git: Git, leases: Mapping[str, Lease]) -> None:
    file = seen_file(git.common_dir)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = file.with_name(f"leases.{secrets.token_hex(4)}")
    entries = {
        key: {"holder": x.holder, "ttl": x.ttl, "seen": stamp(x.seen), "oid": x.oid, "local": x.local}
        for key, x in leases.items()
    }
    try:
        temporary.write_text(json.dumps(entries, indent=1), "utf-8")
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)  # a full disk leaves nothing behind


def _table(git: Git) -> FileLock:
    return FileLock(git.common_dir / "mdmem" / "leases.lock")


def observe(git: Git, clock: Clock) -> dict[str, Lease]:
    """Bring the file of seen leases up to what the last fetch brought; returns {id: lease}. Raises GitFailed."""
    upstream = upstream_of(git, git.state().branch)
    with _table(git):
        old = read_seen(git.common_dir)
        now = clock.now()
        new = {key: lease for key, lease in old.items() if lease.local and lease.until > now}
        if upstream is not None:
            prefix = lease_prefix(upstream.remote)
            form = "--format=%(objectname)%00%(contents:subject)%00%(contents:body)"
            for line in git.run("for-each-ref", form, prefix, read=True).text().splitlines():
                lease = _parse(line, now)
                if lease is not None:
                    known = old.get(lease.id)
                    new[lease.id] = known if known is not None and known.oid == lease.oid else lease
        if new != old:
            _write_seen(git, new)
        return new


def _parse(line: str, now: datetime) -> Lease | None:
    oid, _, rest = line.partition("\0")
    try:
        entry = json.loads(rest.partition("\0")[0])
        return Lease(unquote(str(entry["id"])), str(entry["holder"])[:200], _seconds(entry["ttl"], 86400.0), now, oid)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


# --- taking, keeping and giving back -------------------------------------------------------------


def acquire(git: Git, note_id: str, holder: str, ttl: float, clock: Clock, *, timeout: float = 15.0) -> Taken:
    """Take a lease for `ttl` seconds, or renew one's own. Raises LeaseHeld while somebody else has it."""
    with _lease_lock(git):
        remote = _remote(git)
        if remote is None:
            return _locally(git, note_id, holder, ttl, clock, "there is no remote")
        current, error = _look(git, remote, note_id, clock, timeout)
        if error:
            return _locally(git, note_id, holder, ttl, clock, f"the remote cannot be reached ({error})")
        if current is not None and current.holder != holder and current.until > clock.now():
            raise _held(current)
        oid = _make(git, note_id, holder, ttl, clock)
        if _swap(git, remote, note_id, current.oid if current else "", oid, timeout):
            return Taken(_note(git, Lease(note_id, holder, ttl, clock.now(), oid)))
        again, error = _look(git, remote, note_id, clock, timeout)
        if again is not None and again.holder != holder and again.until > clock.now():
            raise _held(again)
        why = f"the remote cannot be reached ({error})" if error else "the remote does not take leases"
        return _locally(git, note_id, holder, ttl, clock, why)


def renew(git: Git, note_id: str, holder: str, ttl: float, clock: Clock, *, timeout: float = 15.0) -> Taken:
    """Start the time of one's own lease anew. Raises NotFound when it is not held, LeaseHeld when another has it."""
    own = read_seen(git.common_dir).get(note_id)
    if own is None or own.holder != holder:
        raise NotFound(f"no lease on {note_id} is held by {holder}", hint=typed("mdmem", "lease", "acquire", note_id))
    return acquire(git, note_id, holder, ttl, clock, timeout=timeout)


def release(git: Git, note_id: str, holder: str, clock: Clock, *, timeout: float = 15.0) -> bool:
    """Give a lease back; returns False when it was not held (any more). Raises LeaseHeld when another has it."""
    with _lease_lock(git):
        own = read_seen(git.common_dir).get(note_id)
        remote = _remote(git)
        if own is not None and own.local:
            if own.holder != holder:
                raise _held(own)
            _note(git, own, gone=True)
            return True
        if remote is None:
            return False
        current, error = _look(git, remote, note_id, clock, timeout)
        if error:
            raise GitFailed("the lease was not given back", why=error, hint="it ends by itself")
        if current is None:
            return False
        if current.holder != holder:
            raise _held(current)
        if _swap(git, remote, note_id, current.oid, "", timeout):
            _note(git, current, gone=True)
            return True
        again, error = _look(git, remote, note_id, clock, timeout)
        if error or (again is not None and again.holder == holder):
            why = error or "the remote refuses to let it go"
            raise GitFailed("the lease was not given back", why=why, hint="it ends by itself")
        return False


def _lease_lock(git: Git) -> FileLock:
    return FileLock(git.common_dir / "mdmem" / "lease.lock", timeout=20.0)


def _held(lease: Lease) -> LeaseHeld:
    return LeaseHeld(f"{lease.id} is leased by {lease.holder}", why=f"until {stamp(lease.until)}", hint="try again then")


def _remote(git: Git) -> str | None:
    upstream = upstream_of(git, git.state().branch)
    return upstream.remote if upstream else None


def _look(git: Git, remote: str, note_id: str, clock: Clock, timeout: float) -> tuple[Lease | None, str]:
    """Return the lease at the remote now, or why it cannot be known."""
    ref = ref_of(note_id)
    try:
        # A pattern, so that an absent ref is no error; --prune forgets one that was given back.
        spec = f"+{ref}*:{lease_prefix(remote)}{ref.removeprefix(REFS)}*"
        args = ("fetch", "--quiet", "--no-tags", "--prune", "--no-recurse-submodules", "--no-auto-maintenance")
        git.run(*CHECKED, *args, "--no-write-fetch-head", "--", remote, spec, network=True, timeout=timeout)
    except GitFailed as error:
        return None, error.why or str(error)
    return observe(git, clock).get(note_id), ""


def _make(git: Git, note_id: str, holder: str, ttl: float, clock: Clock) -> str:
    """Return a new commit for a lease; never the same one twice, so that each renewal is seen as one."""
    entry = {"id": quote(note_id, safe=""), "holder": holder, "ttl": ttl, "nonce": secrets.token_hex(8)}
    who = Signature("mdmem", "mdmem@localhost", int(clock.now().timestamp()))
    ref = f"{_MAKING}-{secrets.token_hex(4)}"
    rev = write_commit(git, NewCommit(ref, who, who, json.dumps(entry)))
    git.run("update-ref", "-d", ref)
    return rev


def _swap(git: Git, remote: str, note_id: str, expected: str, new: str, timeout: float) -> bool:
    """Move the ref at the remote from one commit to another ('' for none); False when it was not there, or is refused."""
    ref = ref_of(note_id)
    args = ("push", "--porcelain", "--no-verify", f"--force-with-lease={ref}:{expected}", "--", remote, f"{new}:{ref}")
    try:
        done = git.run(*args, check=False, network=True, timeout=timeout).code == 0
        if done:  # what the remote has now, as a fetch would tell
            kept = lease_prefix(remote) + ref.removeprefix(REFS)
            git.run("update-ref", *(() if new else ("-d",)), kept, *((new,) if new else ()), check=False)
        return done
    except GitFailed:
        return False


def _note(git: Git, lease: Lease, gone: bool = False) -> Lease:
    """Keep, or forget, a lease in the file of seen ones."""
    with _table(git):
        leases = read_seen(git.common_dir)
        leases.pop(lease.id, None)
        if not gone:
            leases[lease.id] = lease
        _write_seen(git, leases)
    return lease


def _locally(git: Git, note_id: str, holder: str, ttl: float, clock: Clock, why: str) -> Taken:
    seen = read_seen(git.common_dir).get(note_id)
    if seen is not None and seen.holder != holder and seen.until > clock.now():
        raise _held(seen)
    lease = replace(Lease(note_id, holder, ttl, clock.now()), local=True)
    return Taken(_note(git, lease), f"this lease holds on this machine only: {why}")
