"""With the real Claude Code program: what a memory says reaches the model, and what the agent writes is remembered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.claude import Box
from tests.e2e.messages_api import MessagesApi, text, use
from tests.hooks.host import wait_until, workers_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
TOP = Path(__file__).resolve().parents[2]


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with MessagesApi() as running:
        yield running


@pytest.fixture
def box(tmp_path: Path, api: MessagesApi) -> Iterator[Box]:
    made = Box(tmp_path / "a", api)
    made.extra = {"MDMEM_SERVE": "off", "MDMEM_WORKER_SETTLE": "0.05", "MDMEM_EMBEDDING_BACKEND": "off"}
    git(made.home, "config", "--file", str(made.home / ".gitconfig"), "user.name", "Test")
    git(made.home, "config", "--file", str(made.home / ".gitconfig"), "user.email", "test@example.org")
    git(made.project, "init", "-q")
    git(made.project, "remote", "add", "origin", "https://example.org/team/shop.git")
    yield made
    rest(tmp_path)


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True).stdout


def mdmem(box: Box, *words: str, store: Path | None = None) -> dict[str, object]:
    """Run an mdmem command in a box; returns its JSON."""
    env = {**box.environment(), "PYTHONPATH": str(TOP)}
    where = ["-C", str(store)] if store else []
    done = subprocess.run(
        [sys.executable, "-m", "mdmem", *where, *words, "--json"], cwd=box.project, env=env, capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return dict(json.loads(done.stdout))


def rest(folder: Path, seconds: float = 60) -> None:
    """Wait until no worker of ours is at work below a folder."""
    end = time.monotonic() + seconds
    while workers_of(folder):
        if time.monotonic() > end:
            for process in workers_of(folder):
                os.kill(process, signal.SIGKILL)
            raise AssertionError("a worker did not end")
        time.sleep(0.05)


def ready(box: Box) -> Path:
    """Make a default store in the box and put the hooks in; returns the store."""
    store = box.root / "memory"
    mdmem(box, "init", str(store))
    mdmem(box, "config", "set", "default_store", str(store))
    mdmem(box, "install", "claude-code", "--user")
    return store


def test_what_a_memory_says_reaches_the_model(box: Box, api: MessagesApi) -> None:
    store = ready(box)
    mdmem(box, "remember", "decision", "Billing stays on PostgreSQL 16, not Aurora.", "--scope", "project:shop", store=store)
    mdmem(box, "remember", "fact", "The label printer in Lyon needs darkness 15.", "--scope", "shared", store=store)
    box.claude("why does the label printer in Lyon cut the barcode?")
    said = api.said()
    assert "Billing stays on PostgreSQL 16, not Aurora." in said
    assert "darkness 15" in said
    # Clean text, framed as quoted data; not our raw JSON.
    assert "Quoted data" in said and "hookSpecificOutput" not in said
    kinds = {record.get("type") for record in box.hook_output()}
    assert "hook_error" not in str(kinds) and "hook_non_blocking_error" not in str(kinds)


def test_a_note_written_by_the_agent_is_recalled_in_the_next_session(box: Box, api: MessagesApi, tmp_path: Path) -> None:
    store = ready(box)
    note = store / "memories" / "cache.md"
    head = "---\nkind: memory\ntype: decision\ntitle: Cache lifetime\nscope: project:shop\n---\n"
    body = head + "The catalogue cache lives 17 minutes.\n"
    api.turns[:] = [[use("Write", file_path=str(note), content=body)], [text("Saved.")]]
    box.claude("please write down how long the catalogue cache lives", "--add-dir", str(store))
    rest(tmp_path)
    assert note.exists()
    assert "cache.md" in git(store, "log", "--name-only", "--format=%s")
    api.requests.clear()
    box.claude("how long does the catalogue cache live?")
    assert "The catalogue cache lives 17 minutes." in api.said()
    # The last hook of a session runs on after the program has ended.
    wait_until(lambda: len(list((store / "sessions").rglob("*.md"))) == 2)
    rest(tmp_path)
    sessions = list((store / "sessions").rglob("*.md"))
    assert any("how long does the catalogue cache live?" in path.read_text() for path in sessions)


def test_auto_memory_lands_in_the_store_and_keeps_id_tags_and_dates(box: Box, api: MessagesApi, tmp_path: Path) -> None:
    store = ready(box)
    mdmem(box, "install", "claude-code", "--user", "--auto-memory")
    folder = store / "claude" / "shop"
    note = folder / "db.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(
        "---\nid: mem-keepme\ntags:\n  - billing\n  - database\ncreated: 2026-01-02T03:04:05Z\nname: db\n"
        "description: which database\n---\nPostgreSQL 16.\n"
    )
    api.turns[:] = [
        [use("Read", file_path=str(note))],
        [use("Edit", file_path=str(note), old_string="PostgreSQL 16.", new_string="PostgreSQL 17.")],
        [text("Updated.")],
    ]
    box.claude("billing moved to PostgreSQL 17, update your memory")
    rest(tmp_path)
    assert "PostgreSQL 17." in note.read_text()
    found = mdmem(box, "show", "mem-keepme", store=store)
    fields = json.dumps(found)
    for part in ("mem-keepme", "billing", "database", "2026-01-02T03:04:05Z"):
        assert part in fields
    assert len([p for p in folder.glob("*.md") if p.name != "MEMORY.md"]) == 1
    wait_until(lambda: git(store, "status", "--porcelain") == "")


def test_two_machines(box: Box, api: MessagesApi, tmp_path: Path) -> None:
    store = ready(box)
    bare = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    git(store, "remote", "add", "origin", str(bare))
    body = "---\nkind: memory\ntype: decision\ntitle: Queue\nscope: project:shop\n---\nWe use NATS JetStream for events.\n"
    api.turns[:] = [[use("Write", file_path=str(store / "memories" / "queue.md"), content=body)], [text("Saved.")]]
    box.claude("we decided on NATS JetStream, write it down", "--add-dir", str(store))
    rest(tmp_path)
    mdmem(box, "sync", store=store)

    other = Box(tmp_path / "b", api)
    other.extra = dict(box.extra)
    git(other.home, "config", "--file", str(other.home / ".gitconfig"), "user.name", "Test")
    git(other.home, "config", "--file", str(other.home / ".gitconfig"), "user.email", "test@example.org")
    git(other.project, "init", "-q")
    git(other.project, "remote", "add", "origin", "git@example.org:team/shop.git")
    copy = other.root / "memory"
    mdmem(other, "clone", str(bare), str(copy))
    mdmem(other, "config", "set", "default_store", str(copy))
    mdmem(other, "install", "claude-code", "--user")
    api.requests.clear()
    other.claude("hello")
    first = json.dumps(api.main_requests()[0], ensure_ascii=False)
    assert "We use NATS JetStream for events." in first
    rest(tmp_path)


def test_the_import_of_its_transcripts(box: Box, api: MessagesApi, tmp_path: Path) -> None:
    store = box.root / "memory"
    mdmem(box, "init", str(store))
    api.turns[:] = [[use("Write", file_path=str(box.project / "a.txt"), content="x")], [text("We decided to use a.txt.")]]
    box.claude("create a file called a.txt for me")
    done = mdmem(box, "import", "transcripts", str(box.config / "projects"), store=store)
    assert done["created"] == 1 and done["failed"] == []
    (note,) = (store / "sessions").rglob("*.md")
    assert "create a file called a.txt for me" in note.read_text() and "a.txt" in note.read_text()
    assert mdmem(box, "import", "transcripts", str(box.config / "projects"), store=store)["created"] == 0


def test_a_note_that_an_editor_changes_during_a_session_is_seen(box: Box, api: MessagesApi, tmp_path: Path) -> None:
    store = ready(box)
    mdmem(box, "remember", "fact", "The first fact.", "--scope", "shared", store=store)
    body = "---\ntype: fact\ntitle: Second\n---\nWritten by an editor.\n"
    late = store / "memories" / "late.md"
    shell = f"sleep 2; printf '{body.encode('unicode_escape').decode()}' > '{late}'; sleep 3"
    api.turns[:] = [[use("Bash", command=shell, description="Wait")], [text("Done.")]]
    box.claude("wait a little for me please", "--allowedTools", "Bash")
    wait_until(lambda: "late.md" in git(store, "log", "--name-only", "--format=%s"))
