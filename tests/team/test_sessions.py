"""Log, sessions with their commits, agents and heartbeats."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from graph.conftest import commit, git, put

from mdmem.clock import FixedClock
from mdmem.errors import NotFound, UsageError
from mdmem.identity import Identity
from mdmem.memory.remember import Memory, remember
from mdmem.store import Store
from mdmem.team import agents, logbook, sessions, tasks


def test_a_line_in_the_log_of_the_session(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "1b9f2c4e")
    note, line = logbook.log(store, "fixed", "The proxy\nleaks", files=["a.go", " "], tags=["bug", "#net work"])
    assert line == "- 2026-11-30 09:00 **fixed**: The proxy leaks (`a.go`) #bug #net-work"
    assert (note.kind, note.type, note.session) == ("session", "log", "1b9f2c4e")
    again, _ = logbook.log(store, "next", "Measure it; password=hunter2-and-more")
    assert again.path == note.path and len(again.body.splitlines()) == 2 and "hunter2" not in again.body
    assert again.tags == ["bug", "net-work"]
    # Nothing is committed for a line.
    assert git(store.root, "status", "--porcelain").startswith("??")
    assert sessions.told(again)["next"] == [again.body.splitlines()[1].partition("**: ")[2]]
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "other")
    assert logbook.log(store, "fixed", "x")[0].path != note.path
    with pytest.raises(UsageError):
        logbook.log(store, "two words", "x")
    with pytest.raises(UsageError):
        logbook.log(store, "fixed", "  ")


def test_session_show_lists_its_commits(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "ses.1")
    kept = remember(store, Memory("fact", "Port 8443 is the proxy's"))
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "ses.12")
    remember(store, Memory("fact", "Another session's"))
    monkeypatch.delenv("CLAUDE_CODE_SESSION_ID")
    put(
        store.root,
        "sessions/2026/11/s.md",
        "## Asked\n\n- Which port?\n",
        id="ses-a",
        kind="session",
        session="ses.1",
        title="Ports",
    )
    for name in ("ses.1", "ses-a", "Ports"):
        found = sessions.show(store, name)
        assert found["title"] == "Ports"
        assert [c["paths"] for c in found["commits"]] == [[kept.path]]
    with pytest.raises(NotFound, match="no session"):
        sessions.show(store, kept.id)


def test_sessions_by_agent_and_age(store: Store) -> None:
    for name, agent, day in (("a", "one", "2026-11-29"), ("b", "two", "2026-11-01")):
        stamp = f"{day}T00:00:00Z"
        fields = {"kind": "session", "agent": agent, "device": "desk", "updated": stamp, "created": stamp}
        put(store.root, f"sessions/2026/11/{name}.md", title=name, **fields)
    assert [row["title"] for row in sessions.sessions(store)] == ["a", "b"]
    assert [row["title"] for row in sessions.sessions(store, agent="two@desk")] == ["b"]
    assert sessions.sessions(store, agent="two@sofa") == []
    assert [row["title"] for row in sessions.sessions(store, since=store.clock.now().replace(day=20))] == ["a"]


def test_agents_from_commits_files_and_claims(store: Store) -> None:
    root = store.root
    put(root, "memories/a.md", title="A")
    commit(root, "2026-11-20T23:00:00 -0500", "by the reviewer", "Mdmem-Agent: reviewer", "Mdmem-Device: desk")
    put(root, "memories/b.md", title="B")
    commit(root, "2031-01-01T00:00:00 +0000", "from tomorrow", "Mdmem-Agent: early", "Mdmem-Device: sofa")
    (root / "agents").mkdir()
    (root / "agents" / "quiet@shed.json").write_text(json.dumps({"written": "2026-10-01T00:00:00Z", "doing": "resting"}))
    (root / "agents" / "broken@shed.json").write_text("{")
    tasks.add(store, "Deploy")
    tasks.step(store, "Deploy", "claim")
    found = {row["agent"]: row for row in agents.agents(store)}
    assert found["reviewer"]["seen"] == "2026-11-21T04:00:00Z" and found["reviewer"]["subject"] == "by the reviewer"
    assert found["early"]["seen"] == "2026-11-30T09:00:00Z"
    assert (found["quiet"]["by"], found["quiet"]["doing"]) == ("file", "resting")
    assert [task["title"] for task in found["tester"]["tasks"]] == ["Deploy"]
    assert "broken" not in found
    recent = agents.agents(store, store.clock.now().replace(day=20))
    assert "quiet" not in {row["agent"] for row in recent}


def test_a_heartbeat_is_throttled_and_its_file_is_daily(make_store: Callable[..., Store]) -> None:
    store = make_store()
    assert isinstance(store.clock, FixedClock)
    first = agents.heartbeat(store, "Upgrading")
    assert first["kept"] and first["written"]
    assert not agents.heartbeat(store)["kept"]
    store.clock.advance(minutes=2)
    second = agents.heartbeat(store, "Testing")
    assert second["kept"] and not second["written"]
    assert json.loads((store.root / agents.own_path(store)).read_text())["doing"] == "Upgrading"
    (one,) = [row for row in agents.agents(store) if row["agent"] == "tester"]
    assert (one["seen"], one["doing"]) == ("2026-11-30T09:02:00Z", "Testing")
    store.clock.advance(days=2)
    assert agents.heartbeat(store)["written"]
    store.clock.advance(days=2)
    assert not agents.heartbeat(store)["written"]  # nothing differs


def test_what_hooks_saw_is_when_an_agent_was_last_seen(make_store: Callable[..., Store]) -> None:
    from mdmem.memory.beats import THROTTLE, beat, beats

    store = make_store()
    common, now = str(store.common_state_dir), store.clock.now().timestamp()
    assert beat(common, "claude-code@laptop", "s1", now)
    assert not beat(common, "claude-code@laptop", "s2", now + THROTTLE - 1)
    assert beats(common) == {"claude-code@laptop": (now, "s1")}
    assert beat(common, "claude-code@laptop", "s2", now + THROTTLE)
    (one,) = [row for row in agents.agents(store) if row["agent"] == "claude-code"]
    assert (one["seen"], one["by"], one["session"]) == ("2026-11-30T09:01:00Z", "hook", "s2")



def test_only_its_own_device_writes_the_file(store: Store) -> None:
    agents.update_own(store, {"recalls": 3})
    other = Store(store.location, store.config, store.clock, store.cwd)
    other.__dict__["identity"] = Identity("tester", "desk")
    agents.update_own(other, {"recalls": 1})
    assert sorted(p.name for p in (store.root / "agents").iterdir()) == ["tester@desk.json", "tester@laptop.json"]
    assert agents.read_own(store)["recalls"] == 3 and not agents.update_own(store, {"recalls": 3})
