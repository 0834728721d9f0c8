"""Conflicts are listed and settled with one command."""

from __future__ import annotations

import pytest

from mdmem.errors import NotFound, UsageError
from mdmem.memory.change import read_any
from mdmem.memory.conflicts import as_data, conflicted, resolve
from mdmem.memory.remember import Memory, remember
from mdmem.notes.frontmatter import edit
from mdmem.repo.merge import merge
from mdmem.repo.merge_conflicts import mark_deleted_conflict
from mdmem.store import Store


def clash(store: Store) -> str:
    """Keep a memory and merge two edits of it; returns its path."""
    kept = remember(store, Memory("decision", "We deploy on Thursdays.\n\nAlways before noon.", title="Deploy day"))
    base = store.folder.read(kept.path)
    ours = edit(base.data, {"priority": "high", "agent": "a"}).replace(b"Thursdays", b"Fridays")
    theirs = edit(base.data, {"priority": "low", "agent": "b"}).replace(b"Thursdays", b"Mondays")
    merged = merge(base.data, ours, theirs, kept.path)
    assert merged.conflicts
    store.folder.write(kept.path, merged.text, base.sha)
    return kept.path


def test_listed_with_both_versions_and_found_by_either(store: Store) -> None:
    path = clash(store)
    (note, conflicts), = conflicted(store)
    data = as_data(note, conflicts)
    assert data["path"] == path
    texts = {conflict["field"]: {v["text"] for v in conflict["versions"]} for conflict in data["conflicts"]}
    assert texts["priority"] == {"high", "low"}
    body = " ".join(texts["body"])
    assert "Fridays" in body and "Mondays" in body


def test_settled_field_by_field(store: Store) -> None:
    path = clash(store)
    left = len(as_data(*conflicted(store)[0])["conflicts"])
    assert resolve(store, path, "urgent", "priority").left == left - 1
    assert read_any(store, path).priority == "urgent"
    done = resolve(store, path, "1")
    assert (done.left, done.committed, done.deleted) == (0, True, False)
    assert conflicted(store) == []
    text = store.folder.read(path).data
    assert b"mdmem:" not in text and b"conflicts" not in text and text.count(b"days") == 1
    with pytest.raises(NotFound):
        resolve(store, path, "1")


def test_both_keeps_both_texts(store: Store) -> None:
    path = clash(store)
    resolve(store, path, "both", "body")
    body = store.folder.read(path).body
    assert "Fridays" in body and "Mondays" in body and "mdmem:" not in body


def test_a_version_that_is_not_there(store: Store) -> None:
    path = clash(store)
    with pytest.raises(UsageError):
        resolve(store, path, "7", "body")
    assert conflicted(store)


def test_deleted_there_edited_here(store: Store) -> None:
    kept = remember(store, Memory("fact", "Ports are open."))
    note = store.folder.read(kept.path)
    store.folder.write(kept.path, mark_deleted_conflict(note.data, "b", "desk", "2026-11-30T08:00:00Z"), note.sha)
    assert [c.kind for c in conflicted(store)[0][1]] == ["deleted"]
    assert resolve(store, kept.path, "deleted").deleted
    assert not store.folder.exists(kept.path) and conflicted(store) == []


def test_a_note_that_only_talks_of_conflicts_is_not_listed(store: Store) -> None:
    remember(store, Memory("fact", 'The fields `"conflicts"` and `<!-- mdmem:conflict` are described here.'))
    assert conflicted(store) == []


@pytest.mark.parametrize("keep", ["1", "deleted"])
def test_settling_in_the_middle_of_gits_own_merge_lets_git_commit_end_it(store: Store, keep: str) -> None:
    path = clash(store)
    git, text = store.git, store.folder.read(path).data
    store.folder.write(path, git.run("show", f"HEAD:{path}").out, None)
    git.run("switch", "-q", "-c", "other")
    store.folder.write(path, edit(store.folder.read(path).data, {"priority": "low"}), None)
    git.run("commit", "-qam", "theirs")
    git.run("switch", "-q", "-")
    store.folder.write(path, edit(store.folder.read(path).data, {"priority": "high"}), None)
    git.run("commit", "-qam", "ours")
    git.run("merge", "other", check=False)
    assert git.run("ls-files", "-u").out
    if keep == "deleted":
        text = mark_deleted_conflict(git.run("show", f"HEAD:{path}").out, "b", "desk", "2026-11-30T08:00:00Z")
    store.folder.write(path, text, None)
    staged = store.root / "staged.txt"
    staged.write_text("a person's own")
    git.run("add", "staged.txt")
    assert not resolve(store, path, keep).committed  # git's merge is the person's to end
    assert not git.run("ls-files", "-u").out
    git.run("commit", "-q", "--no-edit")
    assert conflicted(store) == [] and store.folder.exists(path) == (keep != "deleted")
