"""The ledger sees every note that a commit takes away, whatever the merge code believes."""

from __future__ import annotations

from mdmem.repo.ledger import lost_in, too_many, unaccounted
from mdmem.repo.sync_merge import join
from mdmem.repo.tree import Contents

from .conftest import Clone, World
from .test_sync import note


def commit_all(clone: Clone) -> str:
    clone.sh("add", "-A")
    clone.sh("commit", "-qm", "x")
    return clone.sh("rev-parse", "HEAD").strip()


def lost(clone: Clone, old: str, new: str) -> set[str]:
    with Contents(clone.git) as contents:
        return lost_in(contents.changes(old, new), contents)


def test_moves_and_aliases_are_no_loss_and_replacements_are(world: World) -> None:
    one, _ = world.pair({"a.md": note("mem-a"), "b.md": note("mem-b"), "plain.md": "text\n"})
    first = one.sh("rev-parse", "HEAD").strip()
    (one.top / "a.md").rename(one.top / "z.md")
    one.write("z.md", note("mem-a", "entirely new\n"))
    one.write("b.md", note("mem-a0", "x\n", aliases="[mem-b]"))
    second = commit_all(one)
    assert lost(one, first, second) == set()
    one.write("z.md", note("mem-other"))
    (one.top / "plain.md").unlink()
    third = commit_all(one)
    assert lost(one, second, third) == {"mem-a", "path:plain.md"}
    assert lost(one, third, second) == {"mem-other"}


def test_a_merge_that_drops_a_note_is_found(world: World) -> None:
    one, two = world.pair({"a.md": note("mem-a"), "b.md": note("mem-b")})
    base = one.sh("rev-parse", "HEAD").strip()
    one.save("c.md", note("mem-c"))
    two.save("d.md", note("mem-d"))
    two.save("b.md", None)
    one.sh("fetch", "-q", str(two.top), "HEAD:refs/heads/other")
    sides = (one.sh("rev-parse", "HEAD").strip(), one.sh("rev-parse", "refs/heads/other").strip())
    with Contents(one.git) as contents:
        good = join(one.git, *sides, contents, one.clock.now()).rev
        assert unaccounted(contents, base, sides, good, {}) == set()
        for path, key in (("c.md", "mem-c"), ("a.md", "mem-a"), ("d.md", "mem-d")):
            one.sh("switch", "-q", "--detach", good)
            one.sh("rm", "-q", path)
            assert unaccounted(contents, base, sides, commit_all(one), {}) == {key}


def test_the_valve_is_a_fifth_and_at_least_ten_or_all_and_at_least_three() -> None:
    assert not too_many(9, 10) and too_many(10, 49) and not too_many(10, 50) and too_many(10, 10)
    assert too_many(9, 9) and too_many(3, 3) and not too_many(2, 2) and not too_many(0, 0)
