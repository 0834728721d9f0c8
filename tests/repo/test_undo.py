"""Undo takes back mdmem's own last commit, and nothing else."""

from __future__ import annotations

import pytest

from mdmem.errors import ConflictFound, NotFound
from mdmem.repo.undo import UNDOES, last_of_ours, plan

from .conftest import Clone, Sh, World
from .test_sync import note


def steps(clone: Clone) -> dict[str, tuple[bool, bool]]:
    return {step.path: (step.before is not None, step.after is not None) for step in plan(clone.git).steps}


def test_the_last_commit_of_ours_is_found_past_merges_users_and_undos(world: World) -> None:
    one, two = world.pair()
    one.save("b.md", note("mem-b"), "remember: b")
    two.save("c.md", note("mem-c"), "remember: c")
    one.sync()
    two.sync()
    two.write("code.py", "1")
    two.sh("add", "code.py")
    two.sh("commit", "-qm", "a user's commit")
    assert last_of_ours(two.git, "desktop").subject == "remember: c"
    assert last_of_ours(two.git, "laptop").subject == "remember: b"
    rev = last_of_ours(two.git, "desktop").rev
    two.sh("commit", "-q", "--allow-empty", "-m", f"undo: c\n\nMdmem-Device: desktop\n{UNDOES}: {rev}")
    with pytest.raises(NotFound):
        last_of_ours(two.git, "desktop")


def test_an_empty_store_has_nothing_to_undo(world: World) -> None:
    with pytest.raises(NotFound):
        plan(world.clone("x").git)
    one, _ = world.pair()
    with pytest.raises(NotFound):
        plan(one.git, rev="nonsense")


def test_additions_go_deletions_come_back_and_foreign_files_stay(world: World, sh: Sh) -> None:
    one, _ = world.pair({"a.md": note("mem-a"), "b.md": note("mem-b")})
    one.save("c.md", note("mem-c"))
    assert steps(one) == {"c.md": (True, False)}
    one.save("a.md", None)
    assert steps(one) == {"a.md": (False, True)}
    one.write("code.py", "1")
    one.write("b.md", "changed")
    one.sh("add", ".")
    one.sh("commit", "-qm", "mixed\n\nMdmem-Device: laptop")
    assert steps(one) == {"b.md": (True, True)}


def test_what_changed_since_is_merged_or_named(world: World) -> None:
    one, _ = world.pair({"a.md": "---\nid: mem-a\n---\none\n\ntwo\n\nthree\n"})
    one.save("a.md", one.read("a.md").replace("one", "ONE"))
    rev = one.sh("rev-parse", "HEAD").strip()
    one.save("a.md", one.read("a.md").replace("three", "THREE"))
    (step,) = plan(one.git, rev=rev).steps
    assert step.after and step.after.endswith(b"one\n\ntwo\n\nTHREE\n")
    one.save("a.md", one.read("a.md").replace("ONE", "other"))
    with pytest.raises(ConflictFound) as caught:
        plan(one.git, rev=rev)
    assert "a.md" in str(caught.value)


def test_a_merge_is_not_undone_as_a_whole(world: World) -> None:
    one, two = world.pair()
    one.save("b.md", note("mem-b"))
    two.save("c.md", note("mem-c"))
    one.sync()
    two.sync()
    with pytest.raises(ConflictFound):
        plan(two.git, rev="HEAD")


def test_a_commit_that_may_not_be_shown_or_has_nothing_left_is_not_undone(world: World) -> None:
    one, _ = world.pair()
    one.save("b.md", note("mem-b"), "remember: b")
    rev = one.sh("rev-parse", "HEAD").strip()
    with pytest.raises(NotFound, match="no such revision"):
        plan(one.git, rev=rev, shows=lambda commit: False)
    with pytest.raises(NotFound, match="no such revision"):
        plan(one.git, rev="nonsense")
    one.save("b.md", None, "forget: b")
    with pytest.raises(NotFound, match="left to undo"):
        plan(one.git, rev=rev)


def test_a_note_that_was_deleted_since_its_change_is_named(world: World) -> None:
    one, _ = world.pair()
    one.save("a.md", note("mem-a", "changed\n"), "set: a")
    rev = one.sh("rev-parse", "HEAD").strip()
    one.save("a.md", None, "forget: a")
    with pytest.raises(ConflictFound, match=r"a\.md has changed since") as caught:
        plan(one.git, rev=rev)
    assert "mdmem restore a.md --at REV" in caught.value.hint
