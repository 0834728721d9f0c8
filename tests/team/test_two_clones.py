"""Two machines that work on the same tasks and messages, offline and meeting now and then: nothing is lost, losers are told."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from graph.conftest import git

from mdmem.clock import FixedClock
from mdmem.memory.syncing import clone_store, last_outcome, sync_store
from mdmem.repo.sync import SyncOptions
from mdmem.store import Store
from mdmem.team import claims, messages, tasks, work


@pytest.fixture
def pair(make_store: Callable[..., Store], tmp_path: Path) -> tuple[Store, Store]:
    """Two clones of one remote; each machine has its own clock, the second one five minutes ahead."""
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(remote)], check=True)
    one = make_store("one")
    git(one.root, "remote", "add", "origin", str(remote))
    assert sync_store(one).state == "pushed"
    clone_store(str(remote), tmp_path / "two", tmp_path, 60.0)
    clock = FixedClock(one.clock.now())
    clock.advance(minutes=5)
    options = {"agent": "rival", "device": "desk"}
    return one, Store.open(tmp_path / "two", need="write", cwd=tmp_path / "two", clock=clock, options=options)


def later(*stores: Store, minutes: float = 1) -> None:
    for store in stores:
        assert isinstance(store.clock, FixedClock)
        store.clock.advance(minutes=minutes)


def meet(*stores: Store) -> None:
    """Sync until all hold the same files."""
    for store in (*stores, *stores, *stores):
        later(*stores)
        result = sync_store(store)
        assert result.state not in ("refused", "offline", "conflict"), result
    trees = [git(store.root, "rev-parse", "HEAD^{tree}") for store in stores]
    assert len(set(trees)) == 1
    assert all(git(store.root, "status", "--porcelain") == "" for store in stores)


def test_a_push_that_takes_longer_than_the_limit_is_given_more_time_until_it_goes_through(
    pair: tuple[Store, Store], tmp_path: Path
) -> None:
    one, two = pair
    hook = tmp_path / "remote.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nsleep 3\n")
    hook.chmod(0o755)
    tasks.add(one, "Deploy")
    seen = [sync_store(one, SyncOptions(timeout=1.0)) for _ in range(3)]
    assert [result.state for result in seen] == ["offline", "offline", "pushed"], seen
    assert "within 1 s" in seen[0].reason and "within 2 s" in seen[1].reason
    hook.unlink()
    meet(one, two)
    # From then on the limit is what it was.
    assert "ended_after" not in last_outcome(one)
    outcome = one.common_state_dir / "sync.json"
    for odd in ('"x"', "-1", "1e999", "null", "[]", "true"):
        outcome.write_text('{"ended_after": ' + odd + "}")
        assert sync_store(one).state == "clean"


def lost(store: Store) -> list[str]:
    return [row["holder"] for row in claims.lost(store, work.all_of(store, "task"))]


def test_a_claim_race_ends_with_one_holder_and_the_loser_is_told(pair: tuple[Store, Store]) -> None:
    one, two = pair
    tasks.add(one, "Deploy", priority="urgent")
    tasks.add(one, "Rest")
    meet(one, two)
    tasks.step(one, "Deploy", "claim")
    tasks.step(two, "Deploy", "claim")
    meet(two, one)
    for store in pair:
        (deploy,) = [task for task in tasks.listed(store) if task.title == "Deploy"]
        assert claims.holder(deploy) == "tester@laptop" and deploy.status == "claimed"
    assert lost(one) == [] and lost(two) == ["tester@laptop"] and lost(two) == []
    assert tasks.next_task(two).title == "Rest"  # type: ignore[union-attr]
    assert tasks.next_task(one).title == "Deploy"  # type: ignore[union-attr]


def test_the_loser_is_told_after_a_plain_git_pull(pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = pair
    tasks.add(one, "Deploy")
    meet(one, two)
    tasks.step(one, "Deploy", "start")
    meet(one)
    tasks.step(two, "Deploy", "start")
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    git(two.root, "add", "-A")
    git(two.root, "-c", "user.name=x", "commit", "-q", "--allow-empty", "-m", "mine")
    git(two.root, "-c", "pull.rebase=false", "pull", "-q", "--no-edit", "origin", "main")
    assert claims.holder(work.find(two, "task", "Deploy")) == "tester@laptop"
    assert lost(two) == ["tester@laptop"]


def test_a_message_and_its_receipt_both_ways(pair: tuple[Store, Store]) -> None:
    one, two = pair
    messages.send(one, ["rival"], "Which port?", type_="question")
    messages.send(two, ["all"], "The build is frozen")
    meet(one, two)
    (question,) = messages.inbox(two, unread=True)
    (frozen,) = messages.inbox(one, unread=True)
    messages.reply(two, question.id or "", "8443")
    messages.ack(one, frozen.id or "")
    meet(two, one)
    assert [note.title for note in messages.inbox(one, unread=True)] == ["Re: Which port?"]
    assert work.find(one, "message", question.id or "").words("read_by") == ["rival@desk"]
    assert work.find(two, "message", frozen.id or "").words("read_by") == ["tester@laptop"]
    assert [note.body.strip() for note in messages.thread(one, question.id or "")] == ["", "8443"]
    messages.ack(one, "Re: Which port?")
    meet(one, two)
    assert messages.inbox(one, unread=True) == messages.inbox(two, unread=True) == []


def test_two_receipts_for_one_message(pair: tuple[Store, Store]) -> None:
    one, two = pair
    third = Store.open(two.root, need="write", cwd=two.root, clock=two.clock, options={"agent": "third", "device": "desk"})
    note, _, _ = messages.send(one, ["all"], "Frozen")
    meet(one, two)
    messages.ack(two, note.id or "")
    messages.ack(third, note.id or "")
    # Who sent it has a second agent on the same device.
    fourth = Store.open(one.root, need="write", cwd=one.root, clock=one.clock, options={"agent": "fourth", "device": "laptop"})
    messages.ack(fourth, note.id or "")
    meet(one, two)
    for store in pair:
        assert work.find(store, "message", note.id or "").words("read_by") == ["fourth@laptop", "rival@desk", "third@desk"]


def test_every_step_works_offline_and_arrives(pair: tuple[Store, Store], tmp_path: Path) -> None:
    one, two = pair
    shutil.move(tmp_path / "remote.git", tmp_path / "away.git")
    first, committed, _ = tasks.add(one, "Deploy")
    assert committed
    for name in ("claim", "start", "block", "release", "start", "done"):
        later(one)
        tasks.step(one, "Deploy", name)
    messages.send(one, ["rival"], "Done")
    assert sync_store(one).state in ("offline", "committed")
    other, _, _ = tasks.add(two, "Rest")
    tasks.step(two, "Rest", "fail", outcome="no time")
    assert sync_store(two).state in ("offline", "committed")
    shutil.move(tmp_path / "away.git", tmp_path / "remote.git")
    meet(one, two)
    for store in pair:
        states = {task.id: (task.status, task.outcome) for task in tasks.listed(store, everything=True)}
        assert states == {first.id: ("done", ""), other.id: ("failed", "no time")}
    assert [note.title for note in messages.inbox(two, unread=True)] == ["Done"]


def test_a_task_edited_on_both_sides_keeps_both(pair: tuple[Store, Store]) -> None:
    one, two = pair
    tasks.add(one, "Deploy", "first words", tags=["a"])
    meet(one, two)
    tasks.update(one, "Deploy", {}, "seen from the laptop")
    tasks.step(one, "Deploy", "block", by=["key-one"])
    later(two)
    tasks.update(two, "Deploy", {"priority": "urgent"})
    tasks.step(two, "Deploy", "block", by=["key-two"])
    tasks.update(two, "Deploy", {"due": "2026-12-24"})
    meet(one, two)
    for store in pair:
        task = work.find(store, "task", "Deploy")
        assert task.words("blocked_by") == ["key-one", "key-two"]
        assert (task.status, task.priority, task.due) == ("blocked", "urgent", "2026-12-24")
        assert "first words" in task.body and "seen from the laptop" in task.body


def test_the_later_status_stands_and_the_other_is_recorded(pair: tuple[Store, Store]) -> None:
    one, two = pair
    tasks.add(one, "Deploy")
    meet(one, two)
    tasks.step(one, "Deploy", "done", outcome="live")
    later(two, minutes=10)
    tasks.step(two, "Deploy", "block")
    # The second machine's clock runs ahead; once it is past for both, the later change stands.
    later(one, two, minutes=60)
    meet(one, two)
    for store in pair:
        task = work.find(store, "task", "Deploy")
        assert task.status == "blocked" and task.outcome == "live"
        assert b"done" in task.data


def test_the_losers_next_session_starts_with_the_lost_claim(
    pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a plain `git pull`, before any command of ours ran: the hook compares what was claimed here with the files."""
    from mdmem.hooks.session_start import session_start

    one, two = pair
    tasks.add(one, "部署网关 Deploy")
    tasks.add(one, "Rest")
    meet(one, two)
    tasks.step(one, "部署网关 Deploy", "start")
    meet(one)
    tasks.step(two, "部署网关 Deploy", "start")
    tasks.step(two, "Rest", "claim")
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    git(two.root, "add", "-A")
    git(two.root, "commit", "-q", "--allow-empty", "-m", "mine")
    git(two.root, "-c", "pull.rebase=false", "pull", "-q", "--no-edit", "origin", "main")
    monkeypatch.setattr("mdmem.hooks.queue.put", lambda *args, **kwargs: None)  # no worker beside this test
    for name, value in (("AGENT", "rival"), ("DEVICE", "desk"), ("NOW", "2026-11-30T10:00:00Z")):
        monkeypatch.setenv(f"MDMEM_{name}", value)

    def told(agent: str) -> str:
        monkeypatch.setenv("MDMEM_AGENT", agent)
        data = {"cwd": str(two.root), "session_id": agent, "source": "startup"}
        answer = session_start(data) or {}
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))

    text = told("rival")
    before, _, after = text.partition("## Claims that you lost")
    assert "部署网关" in after.split("##")[0] and "tester@laptop got it" in after
    assert "部署网关" not in before and "Rest" not in after.split("##")[0]
    # Another agent on this device had claimed nothing.
    assert "Claims that you lost" not in told("third")
    third = Store.open(two.root, cwd=two.root, clock=two.clock, options={"agent": "third", "device": "desk"})
    assert lost(third) == []
    # A task that is done is nobody's matter any more.
    tasks.step(one, "部署网关 Deploy", "done")
    meet(one, two)
    assert "Claims that you lost" not in told("rival")
