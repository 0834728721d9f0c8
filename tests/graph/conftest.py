"""A store with three months of scripted git history: known dates, other time zones, one machine whose clock is wrong."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path

import pytest

from mdmem.clock import FixedClock
from mdmem.store import Store

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=timezone.utc)


def put(root: Path, path: str, body: str = "", **fields: str) -> Path:
    """Write a note by hand, one line a field."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{key}: {value}" for key, value in fields.items()]
    target.write_text("---\n" + "\n".join(lines) + "\n---\n" + (body + "\n" if body else ""), "utf-8")
    return target


def git(root: Path, *args: str, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *args], env={**os.environ, **(env or {})}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(root: Path, when: str, subject: str, *trailers: str) -> str:
    """Commit everything at a date with a zone, such as `2026-09-01T10:00:00 +0900`; returns the commit id."""
    git(root, "add", "-A")
    env = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    message = subject + ("\n\n" + "\n".join(trailers) if trailers else "")
    git(root, "commit", "-q", "-m", message, env=env)
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def quarter(make_store: Callable[..., Store]) -> Store:
    """September to November 2026: two projects, a decision that holds one of them up, tasks, a rename, a deletion."""
    store = make_store("quarter", FixedClock(NOW))
    root = store.root
    env = {"GIT_AUTHOR_DATE": "2026-08-20T08:00:00 +0000", "GIT_COMMITTER_DATE": "2026-08-20T08:00:00 +0000"}
    git(root, "commit", "-q", "--amend", "--no-edit", "--allow-empty", "--reset-author", env=env)
    project = {"id": "project-apollo", "type": "project", "title": "Apollo"}
    put(root, "entities/project/apollo.md", "The lander.", **project, status="active", updated="2026-09-01T01:00:00Z")
    put(
        root,
        "entities/project/zeus.md",
        "Belongs with [[Apollo]].",
        id="project-zeus",
        type="project",
        title="Zeus",
        status="open",
    )
    put(root, "entities/person/ada.md", "Leads [[Apollo]].", id="person-ada", type="person", title="Ada")
    # 10:00 in Tokyo is 01:00 UTC.
    commit(root, "2026-09-01T10:00:00 +0900", "first entities")
    put(root, "entities/decision/hosting.md", id="decision-hosting", type="decision", title="Hosting", status="open")
    task = {"id": "task-deploy", "title": "Deploy", "blocked_by": "project-apollo"}
    put(root, "tasks/deploy.md", **task, status="open", priority="high")
    # Late evening in California is the next day in UTC.
    commit(root, "2026-09-30T20:00:00 -0700", "hosting is open", "Mdmem-Agent: reviewer", "Mdmem-Device: desk")
    blocked = {"status": "blocked", "blocked_by": "decision-hosting", "updated": "2026-10-10T12:00:00Z"}
    put(root, "entities/project/apollo.md", "The lander.", **project, **blocked)
    trailers = ("Mdmem-Agent: claude-code", "Mdmem-Device: laptop", "Mdmem-Session: ses-1")
    commit(root, "2026-10-10T12:00:00 +0000", "apollo waits", *trailers)
    # This machine's clock says 2031; what follows says 2026 again.
    put(root, "entities/person/ada.md", "Leads [[Apollo]], and is on leave.", id="person-ada", type="person", title="Ada")
    commit(root, "2031-01-01T00:00:00 +0000", "from a machine with a wrong clock")
    git(root, "mv", "entities/project/zeus.md", "entities/project/zeus-two.md")
    commit(root, "2026-10-20T09:00:00 +0200", "zeus gets another name")
    put(root, "memories/old.md", id="mem-old", type="fact", title="An old fact")
    commit(root, "2026-10-25T09:00:00 +0000", "a fact")
    (root / "memories/old.md").unlink()
    put(
        root,
        "entities/project/zeus-two.md",
        "Belongs with [[Apollo]].",
        id="project-zeus",
        type="project",
        title="Zeus",
        status="done",
    )
    commit(root, "2026-11-05T23:30:00 -0500", "zeus is done")  # 6 November, 04:30 UTC
    return Store.open(root, need="write", cwd=root, clock=FixedClock(NOW), options={"agent": "tester", "device": "laptop"})
