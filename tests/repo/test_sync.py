"""Two machines, one memory: whatever both did offline is there after sync, and what is not safe is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdmem.notes.redact import scan
from mdmem.repo import place
from mdmem.repo.merge import find_conflicts

from .conftest import Clone, World


def note(identity: str, body: str = "text\n", **fields: str) -> str:
    extra = "".join(f"{key}: {value}\n" for key, value in fields.items())
    return f"---\nid: {identity}\n{extra}---\n{body}"


def meet(*clones: Clone) -> None:
    """Sync until nothing is new, then check that all clones hold the same bytes."""
    for clone in (*clones, *clones):
        result = clone.sync()
        assert result.state not in ("refused", "offline"), result
    first = clones[0].files()
    for clone in clones:
        clone.healthy()
        assert clone.files() == first
        assert clone.sh("rev-parse", "HEAD") == clones[0].sh("rev-parse", "HEAD")
        assert clone.sync().state == "clean"


def test_g9_first_sync_to_an_empty_remote_sets_the_upstream(world: World) -> None:
    one = world.clone("laptop")
    one.write("a.md", note("mem-a"))
    result = one.sync()
    assert (result.state, result.pushed, result.waiting) == ("pushed", 1, 0)
    assert one.sh("rev-parse", "--abbrev-ref", "@{upstream}").strip() == "origin/main"
    assert one.sh("log", "-1", "--format=%s").strip() == "sync: 1 note (a.md) from laptop"
    assert one.sync().state == "clean"
    one.healthy()


def test_g10_diverged_clones_merge_and_end_equal(world: World) -> None:
    one, two = world.pair()
    one.save("b.md", note("mem-b"))
    two.save("c.md", note("mem-c"))
    two.save("a.md", two.read("a.md").replace("three", "THREE"))
    one.save("a.md", one.read("a.md").replace("one", "ONE"))
    assert one.sync().state == "pushed"
    result = two.sync()
    assert (result.state, result.pulled, result.conflicts) == ("merged", 2, [])
    meet(one, two)
    assert one.read("a.md").endswith("ONE\n\ntwo\n\nTHREE\n")
    assert one.sh("log", "-1", "--merges", "--format=%s").startswith("sync: 2 notes from ")


def test_a_fast_forward_only_brings_files_along(world: World) -> None:
    one, two = world.pair()
    one.save("d/b.md", note("mem-b"))
    one.save("a.md", None)
    one.sync()
    result = two.sync()
    assert (result.state, result.counts["written"], result.counts["removed"]) == ("merged", 1, 1)
    meet(one, two)
    two.save("d/b.md", None)
    two.sync()
    meet(one, two)
    assert not (one.top / "d").exists()


def test_g17_a_clash_keeps_both_and_the_rest_goes_on(world: World) -> None:
    one, two = world.pair()
    one.save("a.md", one.read("a.md").replace("two", "from the laptop"))
    two.save("a.md", two.read("a.md").replace("two", "from the desktop"))
    two.save("other.md", note("mem-o"))
    one.sync()
    result = two.sync()
    assert result.state == "conflict" and [c.path for c in result.conflicts] == ["a.md"] and result.pushed
    meet(one, two)
    data = (one.top / "a.md").read_bytes()
    assert b"from the laptop" in data and b"from the desktop" in data
    assert [c.kind for c in find_conflicts(data)] == ["body"]
    assert (one.top / "other.md").exists()


def test_an_edit_beats_a_deletion_and_says_so(world: World) -> None:
    one, two = world.pair()
    one.save("a.md", None, "forget: a")
    two.save("a.md", two.read("a.md").replace("two", "TWO"))
    one.sync()
    assert two.sync().state == "conflict"
    meet(one, two)
    data = (one.top / "a.md").read_bytes()
    (conflict,) = find_conflicts(data)
    assert conflict.kind == "deleted" and b"TWO" in data
    assert any(version.device == "laptop" and version.removed for version in conflict.versions)


def test_a_deletion_of_what_nobody_edited_stands(world: World) -> None:
    one, two = world.pair({"a.md": note("mem-a", "long text of the note\n" * 5), "b.md": note("mem-b")})
    one.save("a.md", None)
    (two.top / "a.md").rename(two.top / "moved.md")
    two.save("b.md", note("mem-b", "new\n"))
    two.sync()
    one.sync()
    meet(one, two)
    assert set(one.files()) == {".gitattributes", "b.md"}


def test_renames_are_followed_by_id_even_through_a_rewrite(world: World) -> None:
    one, two = world.pair({"a.md": note("mem-a", "first words\n")})
    (one.top / "a.md").rename(one.top / "new.md")
    one.write("new.md", note("mem-a", "entirely\nother\nwords\n\nand more\n\nfirst words\n", tags="[x]"))
    two.save("a.md", note("mem-a", "first words\n", importance="0.9"))
    two.sync()
    assert one.sync().state == "merged"
    meet(one, two)
    assert set(one.files()) == {".gitattributes", "new.md"}
    assert "importance: 0.9" in one.read("new.md") and "entirely" in one.read("new.md")


def test_two_renames_end_at_one_name(world: World) -> None:
    one, two = world.pair({"a.md": note("mem-a", "words\n")})
    (one.top / "a.md").rename(one.top / "one.md")
    (two.top / "a.md").rename(two.top / "two.md")
    two.write("two.md", note("mem-a", "words\nmore\n"))
    two.sync()
    result = one.sync()
    assert any("renamed to" in text for text in result.notices)
    meet(one, two)
    assert set(one.files()) == {".gitattributes", "one.md"} and "more" in one.read("one.md")


def test_two_files_with_one_id_made_on_two_machines_are_joined(world: World) -> None:
    one, two = world.pair()
    one.save("memories/we-use-pg-mem-1.md", note("mem-1", "we use pg\n"))
    two.save("memories/postgres-mem-1.md", note("mem-1", "we use pg\n\nsince 2020\n"))
    one.sync()
    two.sync()
    meet(one, two)
    assert [p for p in one.files() if p.startswith("memories/")] == ["memories/postgres-mem-1.md"]
    assert "since 2020" in one.read("memories/postgres-mem-1.md")


def test_ids_of_the_users_own_are_not_joined(world: World) -> None:
    one, two = world.pair()
    one.save("docs/v1/intro.md", note("intro", "old\n"))
    two.save("docs/v2/intro.md", note("intro", "new\n"))
    one.sync()
    two.sync()
    meet(one, two)
    assert {"docs/v1/intro.md", "docs/v2/intro.md"} <= set(one.files())


def test_two_ids_at_one_path_become_one_note_with_an_alias(world: World) -> None:
    one, two = world.pair()
    one.save("entities/project/atlas.md", note("project-b", "one\n"))
    two.save("entities/project/atlas.md", note("project-a", "two\n"))
    one.sync()
    two.sync()
    meet(one, two)
    text = one.read("entities/project/atlas.md")
    assert "id: project-a\n" in text and "project-b" in text and "one" in text and "two" in text


def test_swapped_names_are_two_notes_still(world: World) -> None:
    one, two = world.pair({"a.md": note("mem-a", "about a\n"), "b.md": note("mem-b", "about b\n")})
    (one.top / "a.md").rename(one.top / "t")
    (one.top / "b.md").rename(one.top / "a.md")
    (one.top / "t").rename(one.top / "b.md")
    two.save("a.md", note("mem-a", "about a\n\nmore of a\n"))
    two.sync()
    one.sync()
    meet(one, two)
    assert one.read("b.md") == note("mem-a", "about a\n\nmore of a\n") and one.read("a.md") == note("mem-b", "about b\n")


def test_a_file_and_a_folder_of_one_name_both_stay(world: World) -> None:
    one, two = world.pair()
    one.save("x.md", note("mem-x", "file\n"))
    two.save("x.md/y.md", note("mem-y", "inside\n"))
    one.sync()
    two.sync()
    meet(one, two)
    bodies = [data for path, data in one.files().items() if path.startswith("x")]
    assert len(bodies) == 2


def test_files_that_are_no_notes(world: World) -> None:
    one, two = world.pair()
    for clone, extra in ((one, "left"), (two, "right")):
        clone.write("picture.png", f"\0{extra}")
        clone.write("list.txt", "".join(f"{line}\n" for line in (extra if extra == "left" else "1", 2, 3, 4, 5)))
        clone.sh("add", ".")
        clone.sh("commit", "-qm", "files")
    one.sync()
    result = two.sync()
    assert {(c.path, c.kind) for c in result.conflicts} == {("picture.png", "two files"), ("list.txt", "two files")}
    meet(one, two)
    pictures = [data for path, data in one.files().items() if path.startswith("picture")]
    assert sorted(pictures) == [b"\0left", b"\0right"]


def test_an_editors_trash_and_old_versions_are_not_sent_to_anybody(world: World) -> None:
    """What the index does not look at, a person does not take for a note: a note thrown away in Obsidian, or taken out of all
    history, went on to the remote from `.trash/` and `.stversions/`."""
    one, two = world.pair()
    unseen = (".trash/old.md", "memories/.stversions/a.md", "memories/.#a.md", "x/node_modules/p/README.md", ".obsidian/w.md")
    for path in unseen:
        one.write(path, "thrown away\n")
    one.write("memories/new.md", note("mem-new"))
    one.write(".github/README.md", "added by hand\n")
    one.sh("add", "-f", ".github/README.md")
    one.sh("commit", "-qm", "by hand")
    one.write(".github/README.md", "changed\n")
    assert one.sync().counts["committed"] == 2 and two.sync().pulled == 2
    assert not [path for path in two.files() if path in unseen] and two.read(".github/README.md") == "changed\n"
    assert all((one.top / path).read_text() == "thrown away\n" for path in unseen)
    assert one.sync().state == "clean"


def test_settings_merge_as_text(world: World) -> None:
    one, two = world.pair({".mdmem.toml": "a = 1\n\n\n\nb = 1\n", "a.md": note("mem-a")})
    one.save(".mdmem.toml", "a = 2\n\n\n\nb = 1\n")
    two.save(".mdmem.toml", "a = 1\n\n\n\nb = 2\n")
    one.sync()
    two.sync()
    meet(one, two)
    assert one.read(".mdmem.toml") == "a = 2\n\n\n\nb = 2\n"


def test_g43_counter_files_take_the_larger_number(world: World) -> None:
    one, two = world.pair({"agents/c@x.json": '{"a": {"uses": 1}}\n', "a.md": note("mem-a")})
    one.save("agents/c@x.json", '{"a": {"uses": 5}, "b": {"uses": 1}}\n')
    two.save("agents/c@x.json", '{"a": {"uses": 3}, "c": {"uses": 2}}\n')
    one.sync()
    two.sync()
    meet(one, two)
    import json

    assert json.loads(one.read("agents/c@x.json")) == {"a": {"uses": 5}, "b": {"uses": 1}, "c": {"uses": 2}}


def test_g13_g39_nothing_new_makes_no_commit_and_touches_no_file(world: World) -> None:
    one, two = world.pair()
    before = (one.sh("rev-parse", "HEAD"), {p: p.stat().st_mtime_ns for p in one.top.glob("*.md")})
    for _ in range(3):
        assert one.sync().state == two.sync().state == "clean"
    assert (one.sh("rev-parse", "HEAD"), {p: p.stat().st_mtime_ns for p in one.top.glob("*.md")}) == before


def test_both_machines_make_the_same_merge_commit(world: World) -> None:
    one, two = world.pair()
    one.save("b.md", note("mem-b"))
    two.save("a.md", two.read("a.md").replace("two", "TWO"))
    for clone, other in ((one, two), (two, one)):
        clone.sh("fetch", "-q", str(other.top), "HEAD:refs/heads/other")
    from mdmem.repo.sync_merge import join
    from mdmem.repo.tree import Contents

    revs = set()
    for clone in (one, two):
        with Contents(clone.git) as contents:
            head, other = clone.git.rev("HEAD"), clone.git.rev("refs/heads/other")
            assert head and other
            revs.add(join(clone.git, head, other, contents, clone.clock.now()).rev)
    assert len(revs) == 1


def test_g44_a_criss_cross_ends(world: World) -> None:
    one, two = world.pair()
    one.save("a.md", one.read("a.md").replace("two", "from the laptop"))
    two.save("a.md", two.read("a.md").replace("two", "from the desktop"))
    for clone, other in ((one, two), (two, one)):
        clone.sh("fetch", "-q", str(other.top), "HEAD:refs/heads/other")
    for clone, ours in ((one, "ours"), (two, "ours")):
        clone.sh("merge", "-q", "-X", ours, "-m", "by hand", "refs/heads/other")
    one.save("a.md", one.read("a.md") + "\nmore one\n")
    two.save("a.md", two.read("a.md") + "\nmore two\n")
    one.sync()
    two.sync()
    meet(one, two)
    text = one.read("a.md")
    for words in ("from the laptop", "from the desktop", "more one", "more two"):
        assert words in text


def test_offline_is_a_state_and_commits_wait(world: World) -> None:
    one, two = world.pair()
    hidden = world.remote.rename(world.folder / "away")
    one.write("b.md", note("mem-b"))
    result = one.sync()
    assert (result.state, result.waiting, result.counts["committed"]) == ("offline", 1, 1)
    assert result.reason
    hidden.rename(world.remote)
    assert one.sync().state == "pushed"
    meet(one, two)


def test_without_a_remote_it_commits(repo_clone: Clone) -> None:
    repo_clone.write("b.md", note("mem-b"))
    result = repo_clone.sync()
    assert (result.state, result.reason) == ("committed", "no remote")
    assert repo_clone.sync().state == "clean"


def test_no_push_and_dry_run(world: World) -> None:
    one, two = world.pair()
    one.write("b.md", note("mem-b"))
    before = (one.files(), one.sh("rev-parse", "HEAD"), world.remote.joinpath("refs/heads/main").read_text())
    result = one.sync(dry_run=True)
    assert result.dry_run and result.counts["committed"] == 1
    assert (one.files(), one.sh("rev-parse", "HEAD"), world.remote.joinpath("refs/heads/main").read_text()) == before
    result = one.sync(push=False)
    assert (result.state, result.waiting) == ("committed", 1)
    two.save("c.md", note("mem-c"))
    two.sync()
    result = one.sync(push=False)
    assert result.state == "merged" and (one.top / "c.md").exists() and result.waiting == 2
    result = one.sync(dry_run=True)
    assert (result.state, result.pushed, result.waiting) == ("pushed", 0, 2) or result.waiting == 2
    meet(one, two)


def test_a_lost_race_is_run_again(world: World) -> None:
    one, two = world.pair()
    two.save("c.md", note("mem-c"))
    hook = world.remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    # The other machine's push arrives while ours is on its way.
    hook.write_text(
        f"#!/bin/sh\n[ -e {world.folder}/done ] && exit 0\ntouch {world.folder}/done\n"
        f"unset GIT_DIR GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n"
        f"git -C {two.top} push -q origin main\nexit 0\n"
    )
    hook.chmod(0o755)
    one.save("b.md", note("mem-b"))
    result = one.sync()
    assert result.state == "merged" and result.pushed == 2 and one.slept
    meet(one, two)


def test_a_protected_branch_is_a_status_and_no_error(world: World) -> None:
    one, two = world.pair()
    hook = world.remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'protected branch: ask s3cr3t token=s3cr3t' >&2\nexit 1\n")
    hook.chmod(0o755)
    one.save("b.md", note("mem-b"))
    result = one.sync()
    assert result.state == "committed" and "refused the push" in result.reason and result.waiting == 1
    assert "token=s3cr3t" not in result.reason
    hook.unlink()
    meet(one, two)


def test_secrets_hold_back_the_note_or_the_push(world: World) -> None:
    one, two = world.pair()
    key = "AKIA" + "Z7QX4MPL2VTRW9KD"
    one.write("bad.md", note("mem-bad", f"key {key}\n"))
    one.write("good.md", note("mem-good"))
    result = one.sync(scan=scan)
    assert [h.path for h in result.held] == ["bad.md"] and result.state == "pushed"
    assert "bad.md" not in one.sh("ls-tree", "--name-only", "HEAD")
    assert key not in str(result) + str(result.as_dict())
    one.save("bad.md", one.read("bad.md"))
    result = one.sync(scan=scan)
    assert result.state == "committed" and result.waiting == 1 and "secrets" in result.reason
    one.save("bad.md", note("mem-bad", "gone\n"))
    result = one.sync(scan=scan)
    assert result.state == "committed" and result.held[0].path == "bad.md"  # it is still in the history
    assert one.sync(scan=scan, allow=frozenset(["bad.md"])).state == "pushed"
    meet(one, two)


def test_p8_a_scan_that_fails_stops_the_push(world: World) -> None:
    one, _ = world.pair()
    one.save("b.md", note("mem-b"))

    def broken(text: str) -> list[object]:
        raise ValueError(text)

    result = one.sync(scan=broken)
    assert (result.state, result.waiting) == ("committed", 1) or result.reason
    assert result.state == "committed" and "scan" in result.reason
    assert "b.md" not in world.clone("fresh").files()


def test_g16_a_dirty_note_that_also_changed_upstream_is_merged(world: World) -> None:
    one, two = world.pair()
    one.save("a.md", one.read("a.md").replace("one", "ONE"))
    one.sync()
    two.write("a.md", two.read("a.md").replace("three", "THREE"))
    assert two.sync().state == "merged"
    meet(one, two)
    assert "ONE" in one.read("a.md") and "THREE" in one.read("a.md")


def test_g19_foreign_changes_are_kept_or_refused_by_name(world: World) -> None:
    one, two = world.pair({"a.md": note("mem-a"), "code.py": "1\n"})
    one.sh("add", "code.py")
    one.sh("commit", "-qm", "code")
    one.sync()
    two.sync()
    two.write("code.py", "2\n")
    two.write("staged.py", "new\n")
    two.sh("add", "staged.py")
    one.save("b.md", note("mem-b"))
    one.sync()
    assert two.sync().state == "merged"
    assert sorted(two.sh("status", "--porcelain").splitlines()) == [" M code.py", "A  staged.py"]
    one.write("code.py", "3\n")
    one.sh("commit", "-qam", "code 3")
    one.sync()
    before = two.files()
    result = two.sync()
    assert (result.state, "code.py" in result.reason) == ("refused", True) and two.files() == before
    two.sh("stash", "-q")
    assert two.sync().state == "merged" and two.read("code.py") == "3\n"


def test_an_untracked_file_in_the_way_is_refused_by_name(world: World) -> None:
    one, two = world.pair()
    one.write("x.png", "1")
    one.sh("add", "x.png")
    one.sh("commit", "-qm", "x")
    one.sync()
    two.write("x.png", "2")
    result = two.sync()
    assert result.state == "refused" and "x.png" in result.reason and two.read("x.png") == "2"
    # An untracked note is committed first and merged.
    one.save("n.md", note("mem-n", "one\n"))
    one.sync()
    two.write("n.md", note("mem-n", "two\n"))
    (two.top / "x.png").unlink()
    assert two.sync().state in ("merged", "conflict")
    assert "one" in two.read("n.md") and "two" in two.read("n.md")


def test_embedded_stores_are_left_alone_unless_named(world: World) -> None:
    one, two = world.pair({"memories/a.md": note("mem-a"), "README.md": "readme\n", "code.py": "1\n"})
    one.sh("add", ".")
    one.sh("commit", "-qm", "code")
    one.sync()
    two.sync()
    one.write("memories/a.md", note("mem-a", "edited\n"))
    one.write("README.md", "edited\n")
    result = one.sync("embedded", ("memories",), commit=False, push=False)
    assert result.state == "clean" and one.sh("status", "--porcelain").count(" M ") == 2
    result = one.sync("embedded", ("memories",), push=False)
    assert result.state == "committed" and one.sh("status", "--porcelain").strip() == "M README.md"
    result = one.sync("embedded", ("memories",))
    assert result.state == "pushed"
    # Code that changed on both sides is not ours to merge.
    one.write("code.py", "2\n")
    one.sh("commit", "-qam", "2")
    two.write("code.py", "3\n")
    two.sh("commit", "-qam", "3")
    two.sync(mode="embedded", roots=("memories",))
    result = one.sync("embedded", ("memories",))
    assert result.state == "refused" and "code.py" in result.reason


def test_an_editor_that_saves_while_sync_waits_for_the_disk_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = world.pair()
    one.save("a.md", one.read("a.md").replace("one", "ONE"))
    one.sync()
    wait = place._sync_all
    saved = []

    def save_and_wait(files: list[Path]) -> None:
        if files and not saved:
            saved.append(True)
            two.write("a.md", two.read("a.md").replace("three", "typed meanwhile"))
        wait(files)

    monkeypatch.setattr(place, "_sync_all", save_and_wait)
    two.sync()
    assert saved and "ONE" in two.read("a.md") and "typed meanwhile" in two.read("a.md")
    two.sync()
    meet(one, two)
    assert "ONE" in one.read("a.md") and "typed meanwhile" in one.read("a.md")


def test_a_file_that_is_no_note_and_was_deleted_here_and_changed_there_stays(world: World) -> None:
    one, two = world.pair({"a.md": note("mem-a"), "list.txt": "1\n"})
    one.sh("add", "list.txt")
    one.sh("commit", "-qm", "list", check=False)
    one.sync()
    two.sync()
    one.sh("rm", "-q", "list.txt")
    one.sh("commit", "-qm", "no list")
    two.write("list.txt", "2\n")
    two.sh("commit", "-qam", "longer")
    one.sync()
    result = two.sync()
    assert result.state == "merged" and "list.txt was deleted on one side and changed on the other: it stays" in result.notices
    meet(one, two)
    assert one.read("list.txt") == "2\n"


def test_two_notes_that_each_side_gave_one_name_are_joined_there(world: World) -> None:
    one, two = world.pair({"a.md": note("mem-a", "about a\n"), "b.md": note("mem-b", "about b\n")})
    for clone, name in ((one, "a.md"), (two, "b.md")):
        (clone.top / name).rename(clone.top / "c.md")
    one.sync()
    assert two.sync().state in ("merged", "conflict")
    meet(one, two)
    text = one.read("c.md")
    assert "about a" in text and "about b" in text and {"a.md", "b.md"} & set(one.files()) == set()
    assert "mem-a" in text and "mem-b" in text


def test_a_generated_block_that_both_sides_changed_is_named_to_be_made_anew(world: World) -> None:
    block = "<!-- mdmem:begin index -->\n{}<!-- mdmem:end index -->\n"
    one, two = world.pair({"a.md": note("mem-a", block.format("- x\n"))})
    one.save("a.md", note("mem-a", block.format("- x\n- one\n")))
    two.save("a.md", note("mem-a", block.format("- x\n- two\n")))
    one.sync()
    result = two.sync()
    assert (result.state, result.regenerate) == ("merged", ["a.md"])
    meet(one, two)
    assert "- one" in one.read("a.md") and "- two" in one.read("a.md")
