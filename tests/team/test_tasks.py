"""Tasks: their life, what comes next, and two agents that claim the same one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mdmem.cli.main import run
from mdmem.errors import Ambiguous, ConflictFound, NotFound, UsageError
from mdmem.identity import Identity
from mdmem.notes.frontmatter import edit
from mdmem.store import Store
from mdmem.team import claims, tasks, work


def as_agent(store: Store, name: str) -> Store:
    other = Store(store.location, store.config, store.clock, store.cwd)
    other.__dict__["identity"] = Identity(name, "other")
    return other


def test_the_life_of_a_task(store: Store) -> None:
    task, committed, _ = tasks.add(store, "Upgrade the database", "to 16", priority="high", tags=["db"])
    assert committed and task.path.startswith("tasks/upgrade-the-database-task-")
    started, _, _ = tasks.step(store, "Upgrade the database", "start")
    assert (started.status, claims.holder(started)) == ("active", "tester@laptop")
    blocked, _, _ = tasks.step(store, task.id or "", "block", by=["entity-x"], outcome="needs a window")
    assert blocked.status == "blocked" and blocked.words("blocked_by") == ["entity-x"]
    done, committed, _ = tasks.step(store, task.id or "", "done", outcome="live")
    assert (done.status, done.outcome, committed) == ("done", "live", True)
    assert done.body == "to 16\n"
    with pytest.raises(UsageError, match="is done"):
        tasks.step(store, task.id or "", "start")
    reopened, _, _ = tasks.update(store, task.id or "", {"status": "open"}, "again")
    assert reopened.status == "open" and "tester@laptop: again" in reopened.body


def test_next_is_mine_first_then_the_most_urgent_that_nothing_blocks(store: Store) -> None:
    low, _, _ = tasks.add(store, "Low", priority="low")
    first, _, _ = tasks.add(store, "First", priority="normal")
    tasks.add(store, "Deploy", priority="urgent", blocked_by=["First"])
    assert tasks.next_task(store).title == "First"  # type: ignore[union-attr]
    tasks.step(store, "Low", "claim")
    assert tasks.next_task(store).id == low.id  # type: ignore[union-attr]
    tasks.step(store, "Low", "release")
    tasks.step(store, "First", "done")
    assert tasks.next_task(store).title == "Deploy"  # type: ignore[union-attr]
    assert tasks.blocked(work.find(store, "task", "Deploy"), {first.id or "": first}) == [first.id]
    for name in ("Deploy", "Low"):
        tasks.step(store, name, "cancel")
    assert tasks.next_task(store) is None


def test_another_agents_claim_stands(store: Store) -> None:
    task, _, _ = tasks.add(store, "Deploy")
    tasks.step(store, "Deploy", "claim")
    other = as_agent(store, "rival")
    with pytest.raises(ConflictFound, match="tester@laptop"):
        tasks.step(other, "Deploy", "start")
    taken, _, _ = tasks.step(other, "Deploy", "start", force=True)
    assert claims.holder(taken) == "rival@other"
    assert tasks.next_task(store) is None and tasks.next_task(other).id == task.id  # type: ignore[union-attr]


def test_who_lost_a_claim_is_told_once(store: Store) -> None:
    task, _, _ = tasks.add(store, "Deploy")
    claimed, _, _ = tasks.step(store, "Deploy", "claim")
    assert claims.lost(store, work.all_of(store, "task")) == []
    merged = edit(claimed.data, {"claim": "2026-11-30T08:00:00Z rival@far"})
    store.folder.write(task.path, merged, claimed.sha)
    notes = work.all_of(store, "task")
    assert claims.lost(store, notes) == [{"id": task.id, "title": "Deploy", "holder": "rival@far"}]
    assert claims.lost(store, notes) == []


def test_references(store: Store) -> None:
    tasks.add(store, "Deploy one")
    tasks.add(store, "Deploy two")
    with pytest.raises(NotFound):
        work.find(store, "task", "nothing")
    with pytest.raises(Ambiguous):
        work.find(store, "task", "task-2026")
    assert work.find(store, "task", "deploy ONE").title == "Deploy one"


def test_bad_words(store: Store) -> None:
    for words in ({"title": "  "}, {"title": "x", "priority": "soon"}):
        with pytest.raises(UsageError):
            tasks.add(store, **words)  # type: ignore[arg-type]
    tasks.add(store, "x")
    with pytest.raises(UsageError, match="no status"):
        tasks.update(store, "x", {"status": "nearly"})


def test_a_secret_in_a_task_does_not_reach_the_disk(store: Store) -> None:
    task, _, _ = tasks.add(store, "Log in", "password=hunter2-and-more")
    assert b"hunter2" not in task.data


def test_a_hand_written_task_counts(store: Store) -> None:
    (store.root / "tasks").mkdir()
    (store.root / "tasks" / "by hand.md").write_text("---\ntitle: By hand\npriority: urgent\n---\n")
    assert [t.title for t in tasks.listed(store)] == ["By hand"]
    written, _, _ = tasks.step(store, "By hand", "claim")
    assert written.status == "claimed"


def test_offline_and_in_a_code_repository_every_step_works(make_store: Callable[..., Store]) -> None:
    store = make_store("code")
    store.__dict__["location"] = replace(store.location, mode="embedded")
    store.mode = "embedded"
    _, committed, reason = tasks.add(store, "Deploy")
    assert not committed and "code repository" in reason
    assert tasks.step(store, "Deploy", "start")[0].status == "active"


def test_a_dated_line_by_its_own_command(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    tasks.add(store, "Deploy", "first words")
    assert run(["-C", str(store.root), "task", "note", "Deploy", "The window is Thursday"]) == 0
    body = work.find(store, "task", "Deploy").body
    assert body.startswith("first words\n\n- ") and body.endswith(": The window is Thursday\n")
    assert run(["-C", str(store.root), "task", "note", "Deploy", " "]) == 2


def test_what_a_task_waits_for_is_said_to_be_unknown_when_it_is(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    gateway = store.root / "entities/system/gateway.md"
    gateway.parent.mkdir(parents=True)
    gateway.write_text("---\ntype: system\ntitle: 支付网关\n---\n")

    def said(*args: str) -> tuple[str, str]:
        assert run(["-C", str(store.root), "task", *args]) == 0
        out, err = capsys.readouterr()
        return out, err

    err = said("add", "Deploy", "--blocked-by", "支付网关", "--parent", "Big")[1]
    assert err == "note: no note is named 'Big' yet; it is written down all the same\n"
    out, err = said("block", "Deploy", "--by", "支付", "--by", "[[支付网关]]")
    assert "waits for" in out and err == "note: no note is named '支付' yet; it is written down all the same\n"
    # What is over waits for nothing.
    assert "waits for" not in said("done", "Deploy")[0]
