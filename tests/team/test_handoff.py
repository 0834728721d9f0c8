"""Handoff on three months of history whose answer is known; scopes of the readers; the language model and its absence."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from graph.conftest import commit, put, quarter  # noqa: F401

from mdmem.errors import UsageError
from mdmem.memory.context import Viewer, session_context
from mdmem.store import Store
from mdmem.team import handoff, messages, tasks
from mdmem.team.handoff_text import markdown
from mdmem.tokens import count_tokens


def test_the_last_month(quarter: Store) -> None:  # noqa: F811
    found = handoff.gather(quarter, since="2026-11-01")
    changed = {row["id"]: (row["change"], row.get("was")) for row in found.changed}
    assert changed == {"project-zeus": ("changed", "open"), "mem-old": ("gone", None)}
    assert [(row["id"], row["since"]) for row in found.blockers] == [("project-apollo", "2026-10-10T12:00:00Z")]
    assert [row["title"] for row in found.tasks] == ["Deploy"]
    assert found.decisions == [] and found.messages == [] and found.sessions == []
    assert "Zeus went from open to done." in found.summary
    assert "Apollo is blocked by Hosting since 2026-10-10." in found.summary


def test_a_quiet_window_still_says_what_is_open(quarter: Store) -> None:  # noqa: F811
    found = handoff.gather(quarter, hours=8)
    assert found.changed == [] and not found.empty and "no note came" in found.summary


def test_since_a_revision_with_sessions_decisions_and_next_steps(quarter: Store) -> None:  # noqa: F811
    root = quarter.root
    body = "## Outcome\n\nWe stay.\n\n## Decisions\n\n- Stay with the old host\n\n## Next\n\n- Renew it\n"
    fields = {"kind": "session", "session": "ses-9", "agent": "claude-code", "device": "laptop", "title": "Hosting talk"}
    put(root, "sessions/2026/11/s.md", body, id="ses-20261128-x", **fields, updated="2026-11-28T10:00:00Z")
    put(root, "memories/host.md", "We stay.", id="mem-host", type="decision", title="The host stays")
    commit(root, "2026-11-28T12:00:00 +0000", "a talk", "Mdmem-Session: ses-9", "Mdmem-Agent: claude-code")
    messages.send(quarter, ["tester"], "from nobody")
    found = handoff.gather(quarter, since="HEAD~2")
    assert {row["title"] for row in found.decisions} == {"The host stays", "Stay with the old host"}
    assert found.next_steps == [{"step": "Renew it", "from": "ses-20261128-x", "agent": "claude-code"}]
    (session,) = found.sessions
    assert session["notes"] == ["memories/host.md"] and session["outcome"] == "We stay."
    assert "Next: Renew it." in found.summary


def test_what_is_not_committed_counts(store: Store) -> None:
    put(store.root, "memories/a.md", id="mem-a", title="A", updated="2026-11-30T08:30:00Z")
    found = handoff.gather(store)
    assert [(row["title"], row.get("committed")) for row in found.changed] == [("A", False)]


def test_it_is_kept_and_shown_at_the_next_session_start(quarter: Store) -> None:  # noqa: F811
    found = handoff.gather(quarter, since="2026-11-01")
    note, committed, _ = handoff.keep(quarter, found)
    assert committed and note.type == "handoff" and note.path.startswith("sessions/2026/12/handoff-")
    viewer = Viewer(str(quarter.root), str(quarter.state_dir), "shared", "other", "desk")
    shown = session_context(viewer, 2000, quarter.clock.now()).text
    assert "Last handoff" in shown and "Apollo is blocked by Hosting" in shown
    # A handoff is no session of its own next time.
    assert handoff.gather(quarter, since="2026-11-01").sessions == []


def test_the_budget_holds_and_every_part_keeps_something(quarter: Store) -> None:  # noqa: F811
    for n in range(60):
        tasks.add(quarter, f"Task number {n} with some more words in its title")
    found = handoff.gather(quarter, since="2026-11-01")
    text = markdown(found, 600)
    assert count_tokens(text) <= 600
    assert "## Blocked" in text and "## Changed" in text and " more" in text
    assert len(found.tasks) == 61


def test_it_holds_only_what_its_readers_may_read(make_store: Callable[..., Store]) -> None:
    store = make_store()
    for scope in ("shared", "project:alpha", "project:beta", "agent:reviewer", "agent:tester", "local"):
        name = scope.replace(":", "-")
        put(store.root, f"entities/project/{name}.md", title=f"Of {name}", scope=scope, status="blocked")
    titles = lambda found: {row["title"] for row in found.blockers}  # noqa: E731
    assert titles(handoff.gather(store)) == {"Of shared", "Of project-alpha", "Of project-beta"}
    store.config.user["agents"] = {"reviewer": {"scopes": ["shared", "project:alpha", "agent:reviewer"]}}
    assert titles(handoff.gather(store)) == {"Of shared", "Of project-alpha"}
    found = handoff.gather(store, for_agent="reviewer")
    assert titles(found) == {"Of shared", "Of project-alpha", "Of agent-reviewer"}
    note, _, _ = handoff.keep(store, found)
    assert note.scope == "agent:reviewer" and "beta" not in note.body


def test_messages_for_whom_it_is_for(store: Store) -> None:
    messages.send(store, ["reviewer"], "To the reviewer")
    messages.send(store, ["somebody"], "To somebody")
    assert handoff.gather(store).messages == []
    assert [row["subject"] for row in handoff.gather(store, for_agent="reviewer").messages] == ["To the reviewer"]


def model(tmp_path: Path, answer: str) -> str:
    script = tmp_path / "model.py"
    script.write_text(f"import sys; sys.stdin.read(); print({answer!r})")
    return f"{sys.executable} {script}"


def test_synthesize_by_a_model_and_without_one(make_store: Callable[..., Store], tmp_path: Path) -> None:
    store = make_store("plain")
    tasks.add(store, "Deploy")
    found = handoff.gather(store)
    template = found.summary
    handoff.synthesize(store, found)
    assert found.summary == template and "no language model" in found.notices[0]
    answer = json.dumps({"paragraph": "Deploy is open. password=hunter2-and-more"})
    with_model = make_store("model", **{"llm.backend": "command", "llm.command": model(tmp_path, answer)})
    tasks.add(with_model, "Deploy")
    found = handoff.gather(with_model)
    handoff.synthesize(with_model, found)
    assert found.summary.startswith("Deploy is open.") and "hunter2" not in found.summary and found.synthesized == "command"


def test_a_model_that_talks_nonsense_leaves_the_template(make_store: Callable[..., Store], tmp_path: Path) -> None:
    store = make_store("model", **{"llm.backend": "command", "llm.command": model(tmp_path, "no idea")})
    tasks.add(store, "Deploy")
    found = handoff.gather(store)
    handoff.synthesize(store, found)
    assert "1 task open: Deploy" in found.summary and "by template" in found.notices[0]


@pytest.mark.parametrize(("text", "hours"), [("8", 8.0), ("36h", 36.0), ("2d", 48.0)])
def test_the_window(text: str, hours: float) -> None:
    assert handoff.window(text) == hours


def test_only_what_was_decided_is_a_decision(store: Store) -> None:
    """Not one that is open or gone; and what a log line says was decided is one."""
    put(store.root, "entities/decision/open.md", id="decision-open", type="decision", title="Open", status="open")
    put(store.root, "entities/decision/made.md", id="decision-made", type="decision", title="Made", status="active")
    put(store.root, "entities/decision/gone.md", id="decision-gone", type="decision", title="Gone")
    start = commit(store.root, "2026-11-28T12:00:00 +0000", "three")
    (store.root / "entities/decision/gone.md").unlink()
    put(store.root, "entities/decision/made.md", "x", id="decision-made", type="decision", title="Made", status="active")
    put(store.root, "entities/decision/open.md", "x", id="decision-open", type="decision", title="Open", status="open")
    line = "- 2026-11-29 10:00 **decided**: 用法兰克福机房\n- 2026-11-29 10:01 **fixed**: The proxy\n"
    put(store.root, "sessions/2026/11/l.md", line, id="log-1", kind="session", type="log", title="Log")
    commit(store.root, "2026-11-29T12:00:00 +0000", "later")
    found = handoff.gather(store, since=start)
    assert [row["title"] for row in found.decisions] == ["Made", "用法兰克福机房"]
    assert "Decided: Made, 用法兰克福机房." in found.summary
    assert "somebody, Log" in markdown(found, 2000)


def test_what_waits_waits_for_something_and_a_window_begins_in_the_past(store: Store) -> None:
    put(store.root, "entities/system/a.md", type="system", title="A", status="waiting", blocked_by="B", updated="2026-11-01")
    put(store.root, "entities/system/b.md", type="system", title="B", status="blocked", updated="2026-11-02")
    commit(store.root, "2026-11-02T12:00:00 +0000", "two")
    text = handoff.gather(store).summary
    assert "A waits for B since 2026-11-0" in text and "B is blocked since 2026-11-0" in text
    with pytest.raises(UsageError, match="lies in the future"):
        handoff.gather(store, since="2027-01-01")
