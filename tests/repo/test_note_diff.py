"""The difference of two moments, note by note."""

from __future__ import annotations

from mdmem.repo.note_diff import diff_notes

from .conftest import World
from .test_sync import note


def test_notes_are_followed_and_compared_by_field_and_line(world: World) -> None:
    one, _ = world.pair(
        {
            "a.md": note("mem-a", "one\n\ntwo\n", status="active"),
            "gone.md": note("mem-g"),
            "moved.md": note("mem-m", "words\n"),
            "notes.txt": "x",
        }
    )
    first = one.sh("rev-parse", "HEAD").strip()
    assert diff_notes(one.git, first, first) == []
    (one.top / "moved.md").rename(one.top / "elsewhere.md")
    one.write("a.md", note("mem-a", "one\n\nTWO\n\n-- not a head\n++ nor this\n", status="superseded", extra="[1, 2]"))
    (one.top / "gone.md").unlink()
    one.write("new.md", note("mem-n", "fresh\n"))
    one.sync()
    found = {change.path: change for change in diff_notes(one.git, first, one.sh("rev-parse", "HEAD").strip())}
    assert {path: change.status for path, change in found.items()} == {
        "a.md": "changed",
        "elsewhere.md": "moved",
        "gone.md": "removed",
        "new.md": "added",
    }
    changed = found["a.md"]
    assert changed.fields == {"status": ("active", "superseded"), "extra": (None, ["1", "2"])}
    assert (changed.added, changed.removed) == (["TWO", "", "-- not a head", "++ nor this"], ["two"])
    assert found["elsewhere.md"].old_path == "moved.md" and found["new.md"].added == ["fresh"]
    assert found["gone.md"].as_dict()["id"] == "mem-g"


def test_a_swap_of_two_names_is_two_moves(world: World) -> None:
    one, _ = world.pair({"a.md": note("mem-a", "about a\n"), "b.md": note("mem-b", "about b\n")})
    first = one.sh("rev-parse", "HEAD").strip()
    one.write("a.md", note("mem-b", "about b\n"))
    one.write("b.md", note("mem-a", "about a\n"))
    one.sync()
    found = diff_notes(one.git, first, one.sh("rev-parse", "HEAD").strip())
    assert [(c.status, c.id, c.old_path, c.path) for c in found] == [
        ("moved", "mem-b", "b.md", "a.md"),
        ("moved", "mem-a", "a.md", "b.md"),
    ]


def test_a_note_that_may_not_be_seen_is_as_if_it_were_not_there(world: World) -> None:
    one, _ = world.pair({"a.md": note("mem-a", scope="shared"), "b.md": note("mem-b", scope="agent:x")})
    first = one.sh("rev-parse", "HEAD").strip()
    one.write("a.md", note("mem-a", "new\n", scope="agent:x"))
    one.write("b.md", note("mem-b", "new\n", scope="agent:x"))
    one.write("c.md", note("mem-c", scope="agent:x"))
    one.sync()
    last = one.sh("rev-parse", "HEAD").strip()
    found = diff_notes(one.git, first, last, see=lambda seen: seen.scope != "agent:x")
    assert [(change.path, change.status) for change in found] == [("a.md", "removed")]


def test_a_note_whose_id_became_another_new_one_is_the_file_it_was(world: World) -> None:
    one, _ = world.pair({"a.md": note("mem-a", "one\n")})
    first = one.sh("rev-parse", "HEAD").strip()
    one.write("a.md", note("mem-z", "one\n"))
    one.write("b.md", note("mem-b", "two\n"))
    one.sync()
    found = diff_notes(one.git, first, one.sh("rev-parse", "HEAD").strip())
    assert [(c.path, c.status, c.id) for c in found] == [("a.md", "changed", "mem-z"), ("b.md", "added", "mem-b")]


def test_a_text_that_moved_under_another_id_is_another_note(world: World) -> None:
    text = "a long text that both of them share\n" * 10
    one, _ = world.pair({"a.md": note("mem-a", text)})
    first = one.sh("rev-parse", "HEAD").strip()
    (one.top / "a.md").unlink()
    one.write("b.md", note("mem-b", text))
    one.sync()
    found = diff_notes(one.git, first, one.sh("rev-parse", "HEAD").strip())
    assert [(c.path, c.status, c.id) for c in found] == [("a.md", "removed", "mem-a"), ("b.md", "added", "mem-b")]


def test_a_text_without_an_id_is_followed_by_its_likeness(world: World) -> None:
    text = "a long text that is known by its words alone\n" * 10
    one, _ = world.pair({"a.md": text})
    first = one.sh("rev-parse", "HEAD").strip()
    (one.top / "a.md").unlink()
    one.write("b.md", text + "and one more line\n")
    one.sync()
    (found,) = diff_notes(one.git, first, one.sh("rev-parse", "HEAD").strip())
    assert (found.path, found.old_path, found.status, found.added) == ("b.md", "a.md", "changed", ["and one more line"])
