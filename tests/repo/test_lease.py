"""Leases: one holder across machines, no clock that must agree, and no crash that locks a note for good."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from mdmem.clock import FixedClock
from mdmem.errors import NotFound
from mdmem.repo import lease
from mdmem.repo.git import GitFailed
from mdmem.repo.lease import LeaseHeld, acquire, lease_on, read_seen, release, renew

from .conftest import Clone, World


def own_clock(clone: Clone, year: int) -> FixedClock:
    clone.clock = FixedClock(datetime(year, 3, 1, tzinfo=timezone.utc))
    return clone.clock


def test_only_one_machine_holds_a_lease(world: World) -> None:
    one, two = world.pair()
    taken = acquire(one.git, "mem-a", "a@laptop", 30, one.clock)
    assert not taken.notice and not taken.lease.local
    with pytest.raises(LeaseHeld) as caught:
        acquire(two.git, "mem-a", "b@desktop", 30, two.clock)
    assert "a@laptop" in str(caught.value) and caught.value.exit_code == 5
    assert acquire(two.git, "mem-b", "b@desktop", 30, two.clock).lease.holder == "b@desktop"
    assert release(one.git, "mem-a", "a@laptop", one.clock)
    assert acquire(two.git, "mem-a", "b@desktop", 30, two.clock).lease.holder == "b@desktop"
    assert not release(one.git, "none", "a@laptop", one.clock)
    with pytest.raises(LeaseHeld):
        release(one.git, "mem-a", "a@laptop", one.clock)
    for clone in (one, two):
        clone.sync()
        clone.healthy()


def test_time_is_counted_on_the_observers_clock_from_first_sight(world: World) -> None:
    one, two = world.pair()
    own_clock(one, 1999)
    theirs = own_clock(two, 2077)
    acquire(one.git, "mem-a", "a@laptop", 30, one.clock)
    with pytest.raises(LeaseHeld):
        acquire(two.git, "mem-a", "b@desktop", 30, theirs)
    theirs.advance(seconds=29)
    with pytest.raises(LeaseHeld):
        acquire(two.git, "mem-a", "b@desktop", 30, theirs)
    theirs.advance(seconds=2)  # the holder crashed: it is waited for once
    assert acquire(two.git, "mem-a", "b@desktop", 30, theirs).lease.holder == "b@desktop"
    with pytest.raises(LeaseHeld):
        renew(one.git, "mem-a", "a@laptop", 30, one.clock)


def test_a_renewal_starts_the_time_anew_for_everyone(world: World) -> None:
    one, two = world.pair()
    acquire(one.git, "mem-a", "a@laptop", 30, one.clock)
    with pytest.raises(LeaseHeld):
        acquire(two.git, "mem-a", "b@desktop", 30, two.clock)
    two.clock.advance(seconds=25)
    renew(one.git, "mem-a", "a@laptop", 30, one.clock)
    two.clock.advance(seconds=10)
    with pytest.raises(LeaseHeld):
        acquire(two.git, "mem-a", "b@desktop", 30, two.clock)
    with pytest.raises(NotFound):
        renew(two.git, "mem-a", "b@desktop", 30, two.clock)


def test_a_lost_swap_is_held_by_the_winner(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = world.pair()
    original = lease._make

    def slow(*args: object, **kwargs: object) -> str:
        monkeypatch.setattr(lease, "_make", original)
        acquire(one.git, "mem-a", "a@laptop", 30, one.clock)
        return original(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(lease, "_make", slow)
    with pytest.raises(LeaseHeld):
        acquire(two.git, "mem-a", "b@desktop", 30, two.clock)


def test_other_writes_see_the_lease_of_the_last_fetch_without_git(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = world.pair()
    acquire(one.git, "mem-a", "a@laptop", 30, one.clock)
    assert lease_on(two.git.common_dir, "mem-a", "b@desktop", two.clock.now()) is None
    two.sync()
    common = two.git.common_dir
    monkeypatch.setenv("PATH", "")
    found = lease_on(common, "mem-a", "b@desktop", two.clock.now())
    assert found and found.holder == "a@laptop"
    assert lease_on(common, "mem-a", "a@laptop", two.clock.now()) is None
    two.clock.advance(seconds=31)
    assert lease_on(common, "mem-a", "b@desktop", two.clock.now()) is None


def test_offline_and_refusing_hosts_give_a_local_lock(world: World) -> None:
    one, _ = world.pair()
    away = world.remote.rename(world.folder / "away")
    taken = acquire(one.git, "mem-a", "a@laptop", 30, one.clock)
    assert taken.lease.local and "this machine only" in taken.notice
    with pytest.raises(LeaseHeld):
        acquire(one.git, "mem-a", "other@laptop", 30, one.clock)
    one.clock.advance(seconds=31)
    assert acquire(one.git, "mem-a", "other@laptop", 30, one.clock).lease.local
    assert release(one.git, "mem-a", "other@laptop", one.clock)
    away.rename(world.remote)
    hook = world.remote / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncase "$1" in refs/mdmem/*) exit 1;; esac\n')
    hook.chmod(0o755)
    taken = acquire(one.git, "mem-a", "a@laptop", 30, one.clock)
    assert taken.lease.local and "does not take leases" in taken.notice


def test_no_remote_at_all(repo_clone: Clone) -> None:
    assert acquire(repo_clone.git, "mem-a", "a@laptop", 30, repo_clone.clock).lease.local


@pytest.mark.parametrize("name", ["a b", "né", "a..b", ".x", "x.lock", "a/b", "a~^:?*[\\", "x" * 400, "@{", "-x", "100%"])
def test_any_id_makes_a_ref(name: str, world: World) -> None:
    one = world.clone("laptop")
    one.save("a.md", "x")
    one.sync()
    assert not acquire(one.git, name, "a@laptop", 30, one.clock).lease.local
    assert one.sh("check-ref-format", lease.ref_of(name)) == ""
    assert name in read_seen(one.git.common_dir)
    assert release(one.git, name, "a@laptop", one.clock)


def test_a_damaged_file_of_leases_is_no_lease(world: World) -> None:
    one, _ = world.pair()
    file = lease.seen_file(one.git.common_dir)
    for text in ("", "[]", '{"x": 1}', '{"x": {"seen": "no"}}'):
        file.write_text(text)
        assert read_seen(one.git.common_dir) == {}
    assert lease_on(Path("/nonexistent"), "x", "y", one.clock.now()) is None


@pytest.mark.parametrize("ttl", [float("nan"), float("inf"), -1.0, 1e308, "x", None, [], {}])
def test_a_duration_that_is_none_makes_no_lease_and_no_error(ttl: object, tmp_path: Path) -> None:
    """The file of seen leases may be damaged, and what lies at a remote is anybody's text."""
    entry = {"holder": "a@b", "ttl": ttl, "seen": "2026-03-01T12:00:00Z", "oid": "", "local": True}
    file = lease.seen_file(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"mem-a": entry}))
    for found in lease.read_seen(tmp_path).values():
        assert found.until >= found.seen
    now = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    subject = json.dumps({"id": "mem-a", "holder": "a@b", "ttl": ttl})
    parsed = lease._parse(f"oid\0{subject}\0", now)
    assert parsed is None or now <= parsed.until <= now + timedelta(days=1)


def test_a_lease_that_ran_out_is_not_called_held_where_the_remote_takes_none(world: World) -> None:
    """The remote stopped taking leases while an old one lay there: `held until` a time that is past helps nobody."""
    one, two = world.pair()
    acquire(one.git, "mem-a", "a@laptop", 30, one.clock)
    two.sync()
    two.clock.advance(seconds=31)
    refuse(world)
    taken = acquire(two.git, "mem-a", "b@desktop", 30, two.clock)
    assert taken.lease.local and "does not take leases" in taken.notice


def test_a_lease_that_the_remote_does_not_let_go_is_not_called_given_back(world: World) -> None:
    one, _ = world.pair()
    acquire(one.git, "mem-a", "a@laptop", 30, one.clock)
    refuse(world)
    with pytest.raises(GitFailed, match="not given back") as caught:
        release(one.git, "mem-a", "a@laptop", one.clock)
    assert "refuses" in caught.value.why and caught.value.hint == "it ends by itself"
    assert "mem-a" in read_seen(one.git.common_dir)
    world.remote.rename(world.folder / "away")
    with pytest.raises(GitFailed, match="not given back") as caught:
        release(one.git, "mem-a", "a@laptop", one.clock)
    assert "remote.git" in caught.value.why


def test_a_lease_that_went_meanwhile_was_not_held(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = world.pair()
    acquire(one.git, "mem-a", "a@laptop", 30, one.clock)
    original = lease._swap

    def late(*args: object, **kwargs: object) -> bool:
        monkeypatch.setattr(lease, "_swap", original)
        two.sh("push", "-q", "origin", f":{lease.ref_of('mem-a')}")
        return original(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(lease, "_swap", late)
    assert release(one.git, "mem-a", "a@laptop", one.clock) is False


def test_a_local_lease_is_its_holders_alone(repo_clone: Clone) -> None:
    acquire(repo_clone.git, "mem-a", "a@laptop", 30, repo_clone.clock)
    with pytest.raises(LeaseHeld):
        release(repo_clone.git, "mem-a", "b@laptop", repo_clone.clock)
    assert release(repo_clone.git, "mem-a", "a@laptop", repo_clone.clock)
    assert release(repo_clone.git, "mem-a", "a@laptop", repo_clone.clock) is False
    assert lease.observe(repo_clone.git, repo_clone.clock) == {}


def test_what_is_no_lease_at_the_remote_is_passed_over(world: World) -> None:
    one, two = world.pair()
    acquire(one.git, "mem-a", "a@laptop", 30, one.clock)
    one.sh("push", "-q", "origin", "HEAD:refs/mdmem/leases/odd")
    two.sync()
    assert set(lease.observe(two.git, two.clock)) == {"mem-a"}


def test_a_clock_at_the_end_of_time_ends_no_command(repo_clone: Clone) -> None:
    repo_clone.clock = FixedClock(datetime(9999, 12, 31, 23, 59, 50, tzinfo=timezone.utc))
    taken = acquire(repo_clone.git, "mem-a", "a@laptop", 3600, repo_clone.clock).lease
    assert taken.until == datetime.max.replace(tzinfo=timezone.utc)
    assert taken.as_dict(repo_clone.clock.now())["expired"] is False


def test_a_full_disk_leaves_the_old_table_of_leases_and_nothing_beside_it(
    repo_clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire(repo_clone.git, "mem-a", "a@laptop", 30, repo_clone.clock)
    folder = lease.seen_file(repo_clone.git.common_dir).parent
    before = sorted(os.listdir(folder))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lease.os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        acquire(repo_clone.git, "mem-b", "a@laptop", 30, repo_clone.clock)
    assert sorted(os.listdir(folder)) == before and set(read_seen(repo_clone.git.common_dir)) == {"mem-a"}


def refuse(world: World) -> None:
    """Let the remote refuse every change of a lease."""
    hook = world.remote / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncase "$1" in refs/mdmem/*) exit 1;; esac\n')
    hook.chmod(0o755)
