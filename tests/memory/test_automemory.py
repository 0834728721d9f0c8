"""Claude Code's memory folder: two-way sync by hash, and the list in MEMORY.md."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mdmem.memory import memory_index
from mdmem.memory.automemory import adopt, claude_memory, claude_slug, sync_memories
from mdmem.memory.memory_index import BEGIN, END, index_text, union
from mdmem.store import Store
from tests.hooks.host import git, make_store

NOTE = "---\nname: {0}\ndescription: about {0}\nmetadata:\n  type: project\n---\n\n{1}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", "git@example.org:team/shop.git")
    return folder.resolve()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(make_store(tmp_path / "store"))


@pytest.fixture
def claude(project: Path) -> Path:
    folder = claude_memory(project)
    folder.mkdir(parents=True)
    return folder


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_slugs() -> None:
    assert claude_slug(Path("/home/dev/sub dir_x.y")) == "-home-dev-sub-dir-x-y"
    long = claude_slug(Path("/" + "a" * 300))
    assert len(long) > 201 and long.startswith("-" + "a" * 199 + "-")


def test_the_key_is_the_main_root_for_subfolders_and_worktrees(project: Path, tmp_path: Path) -> None:
    git(project, "commit", "-q", "--allow-empty", "-m", "x")
    git(project, "worktree", "add", "-q", "-b", "b", str(tmp_path / "wt"))
    (project / "src").mkdir()
    assert claude_memory(project / "src") == claude_memory(project) == claude_memory((tmp_path / "wt").resolve())


def test_both_ways_and_only_once(project: Path, store: Store, claude: Path) -> None:
    put(claude, "db.md", NOTE.format("db", "PostgreSQL 16"))
    put(claude, "deep/er.md", NOTE.format("er", "nested"))
    put(store.root / "claude" / "shop", "ci.md", NOTE.format("ci", "Run make ci"))
    done = sync_memories(store, project)
    assert (done.to_store, done.failed) == (["db.md", "deep/er.md"], [])
    assert "ci.md" in done.to_claude and done.committed
    assert (claude / "ci.md").read_text() == NOTE.format("ci", "Run make ci")
    assert (store.root / "claude/shop/db.md").read_text() == NOTE.format("db", "PostgreSQL 16")
    assert "[db](db.md) — about db" in (claude / "MEMORY.md").read_text()
    assert git(store.root, "status", "--porcelain") == ""
    head = git(store.root, "rev-parse", "HEAD")
    again = sync_memories(store, project)
    assert (again.to_store, again.to_claude, again.merged, again.removed) == ([], [], [], [])
    assert git(store.root, "rev-parse", "HEAD") == head


def test_the_older_state_of_one_side_never_overwrites(project: Path, store: Store, claude: Path) -> None:
    put(claude, "db.md", NOTE.format("db", "old"))
    sync_memories(store, project)
    there = store.root / "claude/shop/db.md"
    there.write_text(NOTE.format("db", "newer in the store"))
    # An older file with a newer time: the hash decides, not the clock.
    os.utime(claude / "db.md")
    assert sync_memories(store, project).to_claude == ["db.md"]
    assert "newer in the store" in (claude / "db.md").read_text()
    put(claude, "db.md", NOTE.format("db", "newer at Claude"))
    assert sync_memories(store, project).to_store == ["db.md"]
    assert "newer at Claude" in there.read_text()


def test_both_changed_is_merged(project: Path, store: Store, claude: Path) -> None:
    lines = "\n".join(f"line {n}" for n in range(9))
    put(claude, "db.md", NOTE.format("db", lines))
    sync_memories(store, project)
    put(claude, "db.md", NOTE.format("db", lines.replace("line 0", "line 0 by Claude")))
    there = store.root / "claude/shop/db.md"
    there.write_text(NOTE.format("db", lines.replace("line 8", "line 8 in the store")))
    done = sync_memories(store, project)
    assert (done.merged, done.conflicts) == (["db.md"], [])
    assert there.read_text() == (claude / "db.md").read_text()
    assert "line 0 by Claude" in there.read_text() and "line 8 in the store" in there.read_text()


def test_removal_is_real_but_an_edit_wins_over_it(project: Path, store: Store, claude: Path) -> None:
    for name in ("a.md", "b.md", "c.md"):
        put(claude, name, NOTE.format(name, "text"))
    sync_memories(store, project)
    ours = store.root / "claude/shop"
    (claude / "a.md").unlink()
    (ours / "b.md").unlink()
    (claude / "c.md").unlink()
    (ours / "c.md").write_text(NOTE.format("c", "edited"))
    done = sync_memories(store, project)
    assert done.removed == ["a.md", "b.md"]
    assert not (ours / "a.md").exists() and not (claude / "b.md").exists()
    assert "edited" in (claude / "c.md").read_text()


def test_a_folder_that_is_gone_says_nothing(project: Path, store: Store, claude: Path) -> None:
    put(claude, "a.md", NOTE.format("a", "text"))
    sync_memories(store, project)
    for path in claude.iterdir():
        path.unlink()
    claude.rmdir()
    assert sync_memories(store, project).removed == []
    assert (store.root / "claude/shop/a.md").exists() and (claude / "a.md").exists()


def test_secrets_stay_on_claudes_side(project: Path, store: Store, claude: Path) -> None:
    put(claude, "key.md", NOTE.format("key", "token ghp_" + "a1B2" * 9))
    done = sync_memories(store, project)
    assert done.redacted == 1
    assert "a1B2a1B2" not in (store.root / "claude/shop/key.md").read_text()
    assert "a1B2a1B2" in (claude / "key.md").read_text()
    again = sync_memories(store, project)
    assert (again.to_store, again.to_claude, again.merged) == ([], [], [])


def test_odd_files_stop_no_other(project: Path, store: Store, claude: Path, tmp_path: Path) -> None:
    put(claude, "good.md", NOTE.format("good", "x"))
    (claude / "big.md").write_text("x" * 200_000)
    (claude / "link.md").symlink_to(tmp_path / "elsewhere.md")
    (claude / "notes.txt").write_text("not markdown")
    done = sync_memories(store, project)
    assert done.to_store == ["good.md"]
    assert [f["path"] for f in done.failed] == ["big.md"]
    assert (claude / "big.md").exists()


def test_dry_run_writes_nothing(project: Path, store: Store, claude: Path) -> None:
    put(claude, "db.md", NOTE.format("db", "x"))
    assert sync_memories(store, project, dry_run=True).to_store == ["db.md"]
    assert not (store.root / "claude").exists()
    assert sync_memories(store, project).to_store == ["db.md"]


def test_adopt_makes_the_store_the_memory_folder(project: Path, store: Store, claude: Path) -> None:
    put(claude, "db.md", NOTE.format("db", "x"))
    adopt(store, project)
    ours = store.root / "claude/shop"
    assert (ours / "db.md").exists() and (ours / "MEMORY.md").exists()
    assert git(store.root, "status", "--porcelain") == ""


# --- MEMORY.md -----------------------------------------------------------------------------------


def test_own_lines_stay_and_are_not_listed_twice() -> None:
    own = "# My list\n- [Mine](db.md) — my words\n"
    notes = [("db.md", "db", "about db", ""), ("ci.md", "ci", "about ci", "")]
    text = index_text(own, notes)
    assert text.startswith(own)
    assert text == own + f"{BEGIN}\n- [ci](ci.md) — about ci\n{END}\n"
    assert index_text(text, notes) == text
    assert index_text(text + "more of mine\n", notes[:1]) == own + "more of mine\n"


def test_the_list_stays_below_claudes_limits() -> None:
    notes = [(f"n{number:04}.md", "t" * 60, "s" * 500, f"2026-01-01T00:{number % 60:02}:00Z") for number in range(900)]
    text = index_text("own\n" * 10, notes)
    assert len(text.splitlines()) <= 150 and len(text) <= 18_750
    assert index_text("own\n" * 300, notes) == "own\n" * 300


def test_union_of_two_lists() -> None:
    base = b"- a\n- b\n- c\n"
    assert union(base, b"- a\n- c\n- d\n", b"- a\n- b\n- e\n") == b"- a\n- d\n- e\n"
    assert union(None, b"x\n", b"x\ny\n") == b"x\ny\n"
    assert memory_index.own_text(f"a\n{BEGIN}\n- z\n{END}\nb\n") == "a\nb\n"
