"""Blockers, diff and timeline on three months of history whose answers are known."""

from __future__ import annotations

from typing import Any

import pytest

from graph.conftest import commit, git, put
from mdmem.errors import NotFound, UsageError
from mdmem.graph.blockers import blockers
from mdmem.graph.diff import diff
from mdmem.graph.timeline import timeline
from mdmem.store import Store


def names(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(row["id"] for row in rows)


def test_what_is_blocked_by_what_since_when_and_whom_it_holds_up(quarter: Store) -> None:
    (one,) = blockers(quarter)
    assert (one["id"], one["since"]) == ("project-apollo", "2026-10-10T12:00:00Z")
    assert [(by["target"], by["ended"]) for by in one["by"]] == [("decision-hosting", False)]
    assert [(other["id"], other["depth"]) for other in one["blocks"]] == [("task-deploy", 1)]
    assert not one["cycle"]
    assert blockers(quarter, stale_days=60) == []


def test_september(quarter: Store) -> None:
    found = diff(quarter, "2026-09-01", "2026-09-30")
    # The last commit of the month was made on 30 September in California, which is October in UTC.
    assert names(found.new) == ["person-ada", "project-apollo", "project-zeus"]
    assert not (found.gone or found.status or found.blocked or found.done or found.moved)
    assert found.counts["status"] == {"(none)": 1, "active": 1, "open": 1}


def test_october(quarter: Store) -> None:
    found = diff(quarter, "2026-10-01", "2026-10-31")
    assert names(found.new) == ["decision-hosting", "mem-old", "task-deploy"]
    assert [(row["id"], row["was"], row["status"]) for row in found.status] == [("project-apollo", "active", "blocked")]
    assert [(row["id"], row["blocked_by"]) for row in found.blocked] == [("project-apollo", ["decision-hosting"])]
    assert [(row["id"], row["was"]) for row in found.moved] == [("project-zeus", "entities/project/zeus.md")]
    assert found.gone == [] and found.done == []
    # The commit of the machine with the wrong clock lies where it was made, between its neighbours.
    assert "person-ada" in names(found.active)


def test_november(quarter: Store) -> None:
    found = diff(quarter, "2026-11")
    assert names(found.gone) == ["mem-old"] and names(found.done) == ["project-zeus"]
    assert found.new == [] and found.blocked == []
    assert names(found.stale) == ["decision-hosting", "project-apollo", "task-deploy"]


def test_a_window_in_which_nothing_happened_is_an_answer(quarter: Store) -> None:
    for start, end in (("2026-11-10", "2026-11-20"), ("2020-01-01", "2020-12-31"), ("HEAD", "HEAD"), ("now", "now")):
        found = diff(quarter, start, end)
        assert found.empty and found.as_dict()["empty"], (start, end)


def test_the_whole_time_and_revisions(quarter: Store) -> None:
    found = diff(quarter, "2020-01-01")
    assert names(found.new) == ["decision-hosting", "person-ada", "project-apollo", "project-zeus", "task-deploy"]
    assert found.gone == []
    assert found.active[0]["id"] == "project-zeus" and found.active[0]["commits"] == 3
    assert names(diff(quarter, "HEAD~1", "HEAD").done) == ["project-zeus"]
    with pytest.raises(NotFound):
        diff(quarter, "no-such-branch")
    with pytest.raises(UsageError, match="lies after"):
        diff(quarter, "2026-11-02", "2026-11-01")


def test_likeness_of_text_is_no_rename_when_the_ids_differ(quarter: Store) -> None:
    root = quarter.root
    body = "\n".join(f"line {n} of a long text" for n in range(30))
    put(root, "memories/one.md", body, id="mem-one", title="One")
    commit(root, "2026-11-20T09:00:00 +0000", "one")
    (root / "memories/one.md").unlink()
    put(root, "memories/two.md", body, id="mem-two", title="Two")
    commit(root, "2026-11-21T09:00:00 +0000", "two")
    found = diff(quarter, "HEAD~1", "HEAD")
    assert (names(found.new), names(found.gone), found.moved) == (["mem-two"], ["mem-one"], [])


def test_the_timeline_of_an_entity(quarter: Store) -> None:
    found = timeline(quarter, "Apollo")
    own = [event for event in found["events"] if event["event"] != "linked"]
    assert [event["date"] for event in own] == ["2026-10-10T12:00:00Z", "2026-09-01T01:00:00Z"]
    assert own[0]["who"] == "claude-code@laptop" and own[0]["session"] == "ses-1"
    changed = {change["field"]: (change["was"], change["now"]) for change in own[0]["changes"]}
    assert changed == {"status": ("active", "blocked"), "blocked_by": ("", "decision-hosting")}
    linked = {(event["from"], event["rel"]) for event in found["events"] if event["event"] == "linked"}
    assert linked == {("task-deploy", "blocked_by"), ("person-ada", "links_to"), ("project-zeus", "links_to")}
    moved = [event["event"] for event in timeline(quarter, "project-zeus")["events"]]
    assert moved == ["changed", "renamed", "created"]


def test_blocked_before_a_rename(quarter: Store) -> None:
    root = quarter.root
    git(root, "mv", "entities/project/apollo.md", "entities/project/apollo-eleven.md")
    commit(root, "2026-11-10T09:00:00 +0000", "another name")
    (one,) = blockers(quarter)
    assert one["path"].endswith("apollo-eleven.md") and one["since"] == "2026-10-10T12:00:00Z"


def test_a_date_that_a_person_left_as_it_was_is_not_believed(quarter: Store) -> None:
    fields = {"id": "decision-hosting", "type": "decision", "title": "Hosting", "updated": "2026-01-01T00:00:00Z"}
    put(quarter.root, "entities/decision/hosting.md", **fields, status="waiting")
    commit(quarter.root, "2026-11-12T09:00:00 +0000", "edited by hand")
    found = {one["id"]: one["since"] for one in blockers(quarter)}
    assert found["decision-hosting"] == "2026-11-12T09:00:00Z"
