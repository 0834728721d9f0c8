"""Every git state either works or is refused by name, with the next command to type, and nothing has changed then."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mdmem.errors import Locked
from mdmem.locks import FileLock
from mdmem.notes.redact import scan
from mdmem.repo import exchange
from mdmem.repo import place as placing
from mdmem.repo.git import Git
from mdmem.repo.ledger import lost_in
from mdmem.repo.survey import survey
from mdmem.repo.tree import Contents
from tests.another_user import permissions_count

from .conftest import Clone, World
from .test_sync import meet, note


def snapshot(clone: Clone) -> tuple[object, ...]:
    """Everything that a refusal must leave alone."""
    refs = clone.sh("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/mdmem/seen")
    return (
        clone.files(), refs, clone.sh("ls-files", "-s"), clone.sh("status", "--porcelain", check=False),
        clone.sh("rev-parse", "HEAD", check=False), clone.sh("stash", "list"),
    )  # fmt: skip


def both_ahead(world: World) -> tuple[Clone, Clone]:
    one, two = world.pair()
    two.save("theirs.md", note("mem-t"))
    two.sync()
    one.save("a.md", one.read("a.md").replace("two", "TWO"))
    return one, two


def stop_in(verb: str) -> Callable[[Clone], None]:
    def prepare(one: Clone) -> None:
        one.sh("switch", "-qc", "side", "HEAD~1")
        one.write("a.md", "side\n")
        one.sh("commit", "-qam", "side")
        one.sh("switch", "-q", "main")
        one.sh(verb, "side" if verb != "revert" else "HEAD~0", check=False)
        if verb == "revert":
            one.sh("revert", "--no-commit", "HEAD", check=False)

    return prepare


def autostash(one: Clone) -> None:
    one.sh("switch", "-qc", "up", "HEAD~1")
    one.write("a.md", "upstream\n")
    one.sh("commit", "-qam", "up")
    one.sh("switch", "-q", "main")
    one.sh("reset", "-q", "--hard", "HEAD~1")
    one.write("a.md", "mine\n")
    one.sh("pull", "-q", "--rebase", "--autostash", ".", "up", check=False)


REFUSED: dict[str, tuple[Callable[[Clone], object], str]] = {
    "g4-rebase": (stop_in("rebase"), "rebase in progress"),
    "g2-merge": (stop_in("merge"), "merge in progress"),
    "cherry-pick": (stop_in("cherry-pick"), "cherry-pick in progress"),
    "bisect": (lambda one: one.sh("bisect", "start"), "bisect in progress"),
    "detached": (lambda one: one.sh("switch", "-q", "--detach"), "detached head"),
    "index.lock": (lambda one: (one.top / ".git/index.lock").touch(), "index locked"),
    "config.lock": (lambda one: (one.top / ".git/config.lock").touch(), "config locked"),
    "bare": (lambda one: one.sh("config", "core.bare", "true"), "bare repository"),
    "g25-autostash": (autostash, "unmerged files"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name_with_nothing_changed(name: str, world: World) -> None:
    one, _ = both_ahead(world)
    prepare, expected = REFUSED[name]
    prepare(one)
    one.write("pending.md", note("mem-p"))
    if name == "bare":
        before = (one.files(), one.sh("rev-parse", "HEAD"))
        result = one.sync()
        assert (one.files(), one.sh("rev-parse", "HEAD")) == before
    else:
        before_all = snapshot(one)
        result = one.sync()
        assert snapshot(one) == before_all
    assert result.state == "refused" and result.reason.startswith(expected), result
    assert result.hint
    if name == "g25-autostash":
        assert "git stash list" in result.hint and one.sh("stash", "list")


def test_g5_the_notes_written_meanwhile_survive_the_abort(world: World) -> None:
    one, two = both_ahead(world)
    stop_in("rebase")(one)
    one.write("pending.md", note("mem-p"))
    assert one.sync().state == "refused"
    one.sh("rebase", "--abort")
    assert one.sync().state in ("merged", "conflict")
    meet(one, two)
    assert "pending.md" in two.files()


def test_g11_unrelated_histories_are_refused_until_joined(world: World, tmp_path: Path) -> None:
    one, two = world.pair()
    stranger = World(tmp_path / "other").clone("stranger")
    stranger.write("own.md", note("mem-own"))
    stranger.sync()
    stranger.sh("remote", "set-url", "origin", str(world.remote))
    for ref in ("refs/mdmem/seen/origin/main", "refs/remotes/origin/main"):
        stranger.sh("update-ref", "-d", ref)
    before = snapshot(stranger)
    result = stranger.sync()
    assert result.state == "refused" and "unrelated histories" in result.reason and "--join" in result.hint
    assert snapshot(stranger) == before and set(result.heads) == {"here", "remote"}
    assert stranger.sync(join=True).state == "merged"
    meet(stranger, one, two)
    assert {"own.md", "a.md"} <= set(two.files())


def test_g18_a_rewritten_remote_is_refused_and_both_heads_are_shown(world: World) -> None:
    one, two = world.pair({f"n{i}.md": note(f"mem-{i}") for i in range(79)})
    old = one.sh("rev-parse", "HEAD").strip()
    two.sh("switch", "-q", "--orphan", "new")
    two.write("only.md", note("mem-only"))
    two.sh("add", ".")
    two.sh("commit", "-qm", "new root")
    two.sh("push", "-qf", "origin", "new:main")
    before = snapshot(one)
    for _ in range(2):
        result = one.sync()
        assert result.state == "refused" and "rewritten remote" in result.reason
        assert result.heads["last seen"] == old and result.heads["remote"] == two.sh("rev-parse", "new").strip()
    assert snapshot(one) == before and len(list(one.top.glob("n*.md"))) == 79
    one.sh("update-ref", "refs/remotes/origin/main", two.sh("rev-parse", "new").strip())  # a `git fetch` by hand
    assert one.sync().state == "refused"
    # The user takes the new history over: that is no rewrite any more.
    one.sh("reset", "-q", "--hard", "refs/remotes/origin/main")
    assert one.sync().state == "clean"


def test_a_remote_set_back_is_not_pushed_to_again(world: World) -> None:
    one, two = world.pair()
    one.save("secret.md", note("mem-s"))
    one.sync()
    two.sync()
    two.sh("push", "-qf", "origin", "HEAD~1:main")
    assert one.sync().state == "refused"
    assert "secret.md" not in world.clone("fresh").files()
    assert one.sync(join=True).pushed == 1


def test_a_shallow_clone_works_or_is_named(world: World) -> None:
    one, two = world.pair()
    for n in range(3):
        one.save("a.md", one.read("a.md") + f"\nline {n}\n")
    one.sync()
    flat = Clone(world.folder / "flat", "flat", world.clock)
    one.sh("clone", "-q", "--depth=1", f"file://{world.remote}", str(flat.top))
    flat.save("flat.md", note("mem-f"))
    assert flat.sync().state == "pushed"
    two.save("two.md", note("mem-2"))  # two is behind what the shallow clone knows of
    two.sync()
    result = flat.sync()
    assert result.state == "merged" or (result.state == "refused" and "shallow" in result.reason)


def test_a_sparse_checkout_and_a_linked_worktree_work(world: World) -> None:
    one, two = world.pair({"a.md": note("mem-a"), "deep/b.md": note("mem-b"), "other/c.md": note("mem-c")})
    one.sh("sparse-checkout", "set", "deep")
    two.save("other/c.md", note("mem-c", "edited\n"))
    two.save("deep/b.md", note("mem-b", "edited\n"))
    two.sync()
    one.save("deep/d.md", note("mem-d"))
    assert one.sync().state == "merged"
    assert "edited" in one.read("deep/b.md") and not (one.top / "other").exists()
    assert one.sh("status", "--porcelain") == ""
    two.sync()
    assert "edited" in two.read("other/c.md") and (two.top / "deep/d.md").exists()
    linked = Clone(world.folder / "linked", "linked", world.clock)
    two.sh("worktree", "add", "-q", str(linked.top), "-b", "side")
    linked.save("side.md", note("mem-side"))
    result = linked.sync(join=True)
    assert result.state == "pushed", result
    linked.healthy()
    two.healthy()


def test_g33_a_submodule_is_neither_indexed_nor_committed(world: World, tmp_path: Path) -> None:
    one, two = world.pair()
    sub = World(tmp_path / "sub").clone("sub")
    sub.write("s.md", note("mem-s"))
    sub.sync()
    one.sh("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(sub.top), "sub")
    one.sh("commit", "-qm", "sub")
    assert one.sync().state == "pushed"
    one.write("sub/s.md", "changed")
    one.save("b.md", note("mem-b"))
    assert one.sync().state == "pushed"
    assert two.sync().state == "merged" and (two.top / "b.md").exists()


def test_a_branch_that_the_remote_does_not_have(world: World, tmp_path: Path) -> None:
    world.pair()
    other = World(tmp_path / "other").clone("x")
    other.write("x.md", note("mem-x"))
    other.sh("switch", "-qc", "trunk")
    other.sh("remote", "set-url", "origin", str(world.remote))
    other.sh("config", "--unset-all", "branch.main.remote", check=False)
    result = other.sync()
    assert result.state == "refused" and "no branch trunk" in result.reason and "git branch -m main" in result.hint


def test_an_unborn_branch_before_a_remote_with_commits(world: World, tmp_path: Path) -> None:
    world.pair()
    fresh = World(tmp_path / "other").clone("fresh")
    fresh.sh("remote", "set-url", "origin", str(world.remote))
    result = fresh.sync()
    assert result.state == "refused" and "git pull origin main" in result.hint


SETTINGS = {
    "autocrlf": ("core.autocrlf", "true"),
    "safecrlf": ("core.safecrlf", "true"),
    "quotePath": ("core.quotePath", "true"),
    "gpgsign": ("commit.gpgsign", "true"),
    "hooksPath": ("core.hooksPath", ".githooks"),
    "pull.rebase": ("pull.rebase", "true"),
    "merge.ff": ("merge.ff", "only"),
    "fetch.prune": ("fetch.prune", "true"),
    "push.default": ("push.default", "nothing"),
    "status": ("status.showUntrackedFiles", "no"),
    "diff": ("diff.noprefix", "true"),
    "color": ("color.ui", "always"),
    "submodule": ("submodule.recurse", "true"),
    "renames": ("diff.renames", "copies"),
    "no renames": ("diff.renames", "false"),
    "splitIndex": ("core.splitIndex", "true"),
    "untrackedCache": ("core.untrackedCache", "true"),
    "ignoreCase": ("core.ignoreCase", "true"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_users_settings_change_nothing(name: str, world: World, own_home: Path) -> None:
    one, two = world.pair({"a.md": note("mem-a", "one\r\ntwo\r\n"), "né ü.md": note("mem-b")})
    key, value = SETTINGS[name]
    flag = own_home / "PWNED"
    for clone in (one, two):
        clone.sh("config", key, value)
        clone.sh("config", "gpg.program", "/bin/false")
        clone.write(".githooks/post-merge", f"#!/bin/sh\ntouch {flag}\n")
        (clone.top / ".githooks/post-merge").chmod(0o755)
        clone.sh("config", "status.short", "true")
    one.save("né ü.md", note("mem-b", "edited\n"))
    two.save("new\nline.md", note("mem-n"))
    one.write("a.md", note("mem-a", "one\r\nTWO\r\n"))
    for clone in (one, two, one, two):
        assert clone.sync().state not in ("refused", "offline")
    assert (one.top / "a.md").read_bytes() == (two.top / "a.md").read_bytes()
    assert one.files() == two.files() and b"TWO\r\n" in one.files()["a.md"] and "new\nline.md" in one.files()
    assert not flag.exists()


def test_g31_no_identity_anywhere(world: World, own_home: Path) -> None:
    one, two = world.pair()
    (own_home / ".gitconfig").write_text("")
    one.write("b.md", note("mem-b"))
    two.write("c.md", note("mem-c"))
    one.sync()
    assert two.sync().state == "merged"
    meet(one, two)


@permissions_count
def test_a_read_only_disk_is_refused(world: World) -> None:
    """`Offline … mdmem sync, when the remote can be reached` was said of it: the remote had been reached."""
    one, _ = both_ahead(world)
    # Each folder: those of packs and branches are written to without their parents.
    folders = [one.top / ".git", *(path for path in (one.top / ".git").rglob("*") if path.is_dir())]
    before = one.sh("rev-parse", "HEAD")
    try:
        for folder in folders:
            folder.chmod(0o500)
        result = one.sync()
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert result.state == "refused" and "no permission to write" in result.reason and "chmod" in result.hint, result
    assert one.sh("rev-parse", "HEAD") == before
    assert one.sync().state == "merged"


def test_the_valve_stops_a_mass_deletion_here_and_there(world: World) -> None:
    one, two = world.pair({f"n{i}.md": note(f"mem-{i}") for i in range(40)})
    for i in range(12):
        (one.top / f"n{i}.md").unlink()
    before = snapshot(one)
    result = one.sync()
    assert result.state == "refused" and "too many deletions" in result.reason and "12 of 40" in result.reason
    assert snapshot(one) == before
    one.sh("commit", "-qam", "deleted by hand")
    assert one.sync().state == "refused"  # neither may it be pushed
    one.sh("push", "-q", "origin", "HEAD:main")
    before = snapshot(two)
    result = two.sync()
    assert result.state == "refused" and snapshot(two) == before
    assert two.sync(allow_deletions=True).state == "merged"
    assert len(list(two.top.glob("n*.md"))) == 28


def test_a_small_store_whose_folder_is_gone_for_a_moment_is_not_emptied_everywhere(world: World) -> None:
    """Below ten notes the valve stood open: another program took the folder away, and all notes were deleted everywhere."""
    one, two = world.pair({f"memories/n{i}.md": note(f"mem-{i}") for i in range(3)})
    (one.top / "memories").rename(one.top.parent / "elsewhere")
    result = one.sync()
    assert result.state == "refused" and "3 of 3 notes" in result.reason
    one.write("memories/new.md", note("mem-new"))  # as an agent does that goes on meanwhile
    assert one.sync().state == "refused" and two.sync().state == "clean"
    for path in (one.top.parent / "elsewhere").iterdir():
        path.rename(one.top / "memories" / path.name)
    assert one.sync().pushed == 1
    meet(one, two)
    assert len(list(two.top.glob("memories/*.md"))) == 4
    for path in one.top.glob("memories/*.md"):
        path.unlink()
    assert one.sync(allow_deletions=True).pushed == 1


def test_the_valve_counts_by_id_and_not_by_path(world: World) -> None:
    one, two = world.pair({f"n{i}.md": note(f"mem-{i}", f"text {i}\n") for i in range(30)})
    plain = {f"p{i}.md": f"text without an id {i}\n" * 4 for i in range(12)}
    for path, text in plain.items():
        one.write(path, text)
    one.sync()
    (one.top / "moved").mkdir()
    for path in [p for p in one.files() if p.endswith(".md")]:
        (one.top / path).rename(one.top / "moved" / path)
    assert one.sync().state == "pushed"
    assert two.sync().state == "merged"
    meet(one, two)
    assert len(list(two.top.glob("moved/*.md"))) == 42


def test_g14_an_error_in_one_step_leaves_no_lock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = both_ahead(world)
    monkeypatch.setattr("mdmem.repo.sync.join", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        one.sync()
    monkeypatch.undo()
    assert one.sync().state == "merged"


def test_a_second_sync_of_the_same_clone_waits_and_then_says_locked(world: World) -> None:
    one, _ = both_ahead(world)
    with FileLock(one.top / ".git" / "mdmem" / "sync.lock"):
        with pytest.raises(Locked):
            one.sync(wait=0.0)
    assert one.sync(wait=0.0).state == "merged"


def test_tracked_links_are_not_followed(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    one, two = world.pair()
    (one.top / "link").symlink_to(outside)
    one.sh("config", "core.symlinks", "true")
    one.sh("add", "link")
    one.sh("commit", "-qm", "link")
    one.sync()
    two.sh("config", "core.symlinks", "true")
    two.sync()
    one.sh("rm", "-q", "link")
    one.sh("commit", "-qm", "no link")
    (one.top / "link").mkdir()
    one.save("link/n.md", note("mem-n"))
    one.sync()
    two.sync()
    assert list(outside.iterdir()) == []
    assert (two.top / "link").is_symlink() is False and (two.top / "link/n.md").exists()


def test_a_tree_with_a_path_into_git_is_refused(world: World) -> None:
    one, two = world.pair()
    blob = subprocess.run(
        ["git", "-C", str(world.remote), "hash-object", "-w", "--stdin"], input=b"[core]\n", capture_output=True, check=True
    ).stdout.decode().strip()
    base = one.sh("rev-parse", "HEAD").strip()
    listed = one.sh("ls-tree", "HEAD")
    entry = listed + f"100644 blob {blob}\t.GIT\n"
    tree = subprocess.run(
        ["git", "-C", str(world.remote), "mktree"], input=entry.encode(), capture_output=True, check=True
    ).stdout.decode().strip()
    commit = one.sh("-C", str(world.remote), "commit-tree", tree, "-p", base, "-m", "bad").strip()
    one.sh("-C", str(world.remote), "update-ref", "refs/heads/main", commit)
    before = snapshot(two)
    result = two.sync()
    assert result.state in ("refused", "offline") and snapshot(two) == before
    assert Git(two.top).state().safe


def test_a_repository_of_sha_256_ids_works(tmp_path: Path) -> None:
    world = World(tmp_path / "w")
    subprocess.run(["rm", "-rf", str(world.remote)], check=True)
    subprocess.run(["git", "init", "-q", "--bare", "--object-format=sha256", str(world.remote)], check=True)
    # A clone of an empty repository takes the old hash before git 2.41: the first one is made by hand.
    one = Clone(world.folder / "laptop", "laptop", world.clock)
    subprocess.run(["git", "init", "-q", "--object-format=sha256", str(one.top)], check=True)
    one.sh("remote", "add", "origin", str(world.remote))
    one.save("a.md", note("mem-a", "one\n\ntwo\n"))
    one.save("b.md", note("mem-b"))
    one.sync()
    two = world.clone("desktop")
    assert len(two.sh("rev-parse", "HEAD").strip()) == 64
    one.save("a.md", note("mem-a", "ONE\n\ntwo\n"))
    two.save("a.md", note("mem-a", "one\n\nTWO\n"))
    two.save("b.md", None)
    one.sync()
    assert two.sync().state == "merged"
    meet(one, two)
    assert one.read("a.md").endswith("ONE\n\nTWO\n")


def test_nothing_on_either_side_is_clean(world: World) -> None:
    assert world.clone("laptop").sync().state == "clean"


def test_without_pushing_to_an_empty_remote_everything_waits(world: World) -> None:
    one = world.clone("laptop")
    one.write("a.md", note("mem-a"))
    result = one.sync(push=False)
    assert (result.state, result.waiting, result.pushed) == ("committed", 1, 0)
    assert one.sh("for-each-ref", "refs/mdmem/seen") == ""
    assert one.sync().state == "pushed"


def test_a_remote_that_refuses_each_time_is_a_status_when_the_attempts_are_over(world: World) -> None:
    one, _ = both_ahead(world)
    hook = world.remote / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncase "$1" in refs/heads/*) echo not today >&2; exit 1;; esac\n')
    hook.chmod(0o755)
    result = one.sync(attempts=1)
    assert result.reason.startswith("the remote did not take it") and result.hint == "mdmem sync" and result.waiting
    hook.unlink()
    assert one.sync().state == "merged"


def test_a_commit_that_is_made_while_a_sync_pushes_is_taken_along(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = both_ahead(world)
    original = exchange.push

    def meanwhile(*args: object, **kwargs: object) -> exchange.Pushed:
        monkeypatch.setattr(exchange, "push", original)
        one.save("meanwhile.md", note("mem-m"))
        return original(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(exchange, "push", meanwhile)
    assert one.sync().state == "merged"
    meet(one, two)
    assert "meanwhile.md" in two.files() and "theirs.md" in one.files()


def test_a_commit_that_comes_while_files_are_placed_is_not_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """git itself, which knows no lock of ours, moves the branch between the look at it and its move."""
    one, two = both_ahead(world)
    original = placing._index

    def meanwhile(*args: object, **kwargs: object) -> None:
        monkeypatch.setattr(placing, "_index", original)
        original(*args, **kwargs)  # type: ignore[arg-type]
        one.sh("commit", "-q", "--allow-empty", "--only", "-m", "by hand")

    monkeypatch.setattr(placing, "_index", meanwhile)
    assert one.sync().state == "merged"
    meet(one, two)
    assert "by hand" in two.sh("log", "--format=%s")


def test_a_remote_that_goes_between_fetch_and_push_is_offline_and_the_merge_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = both_ahead(world)
    original = exchange.push

    def gone(*args: object, **kwargs: object) -> exchange.Pushed:
        world.remote.rename(world.folder / "away")
        return original(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(exchange, "push", gone)
    result = one.sync()
    assert result.state == "merged" and "remote.git" in result.reason and result.waiting
    assert "theirs.md" in one.files() and "TWO" in one.read("a.md")
    one.save("b.md", note("mem-b"))
    (world.folder / "away").rename(world.remote)
    assert one.sync().state == "offline"
    monkeypatch.undo()
    (world.folder / "away").rename(world.remote)
    meet(one, two)


def test_a_rewritten_remote_that_the_user_has_merged_is_accepted(world: World) -> None:
    one, two = world.pair()
    one.save("b.md", note("mem-b"))
    one.sync()
    two.sync()
    two.sh("reset", "-q", "--hard", "HEAD~1")
    two.sh("commit", "-q", "--allow-empty", "-m", "another way")
    two.sh("push", "-qf", "origin", "main")
    assert one.sync().reason.startswith("rewritten remote")
    one.sh("fetch", "-q", "origin")
    one.sh("merge", "-q", "-m", "both", "origin/main")
    one.sh("update-ref", "refs/remotes/origin/main", "HEAD@{1}", check=False)
    assert one.sync().state in ("pushed", "merged", "clean")
    meet(one, two)
    assert "b.md" in two.files()


def test_an_unborn_branch_before_a_remote_with_another_name(world: World, tmp_path: Path) -> None:
    one, _ = world.pair()
    one.sh("push", "-q", "origin", "main:other")
    one.sh("-C", str(world.remote), "update-ref", "-d", "refs/heads/main")
    late = Clone(tmp_path / "late", "late", world.clock)
    late.top.mkdir()
    late.sh("init", "-q")
    late.sh("remote", "add", "origin", str(world.remote))
    result = late.sync()
    assert result.state == "refused" and result.hint == "git switch other"


def test_a_shallow_clone_that_does_not_reach_the_remotes_history_says_what_to_fetch(world: World, tmp_path: Path) -> None:
    one, _ = world.pair()
    for name in ("b", "c", "d"):
        one.save(f"{name}.md", note(f"mem-{name}"))
    one.sync()
    late = Clone(tmp_path / "late", "late", world.clock)
    late.top.mkdir()
    late.sh("init", "-q")
    late.sh("remote", "add", "origin", world.remote.as_uri())
    late.sh("fetch", "-q", "--update-head-ok", "--depth=1", "origin", "main:refs/heads/main")
    late.sh("reset", "-q", "--hard", "main")
    late.sh("update-ref", "-d", "refs/remotes/origin/main", check=False)
    one.sh("reset", "-q", "--hard", "HEAD~1")
    one.sh("push", "-qf", "origin", "HEAD:main")
    late.save("e.md", note("mem-e"))
    result = late.sync()
    assert result.state == "refused" and "shallow clone" in result.reason and result.hint == "git fetch --unshallow"
    assert "e.md" in late.files()


def test_an_object_that_is_missing_is_named_and_nothing_has_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = both_ahead(world)
    two.save("a.md", two.read("a.md").replace("one", "ONE"))
    two.sync()
    blob = one.sh("rev-parse", "HEAD~1:a.md").strip()
    original = exchange.fetch

    def damaged(*args: object, **kwargs: object) -> exchange.Fetched:
        fetched = original(*args, **kwargs)  # type: ignore[arg-type]
        (one.top / ".git/objects" / blob[:2] / blob[2:]).unlink()
        return fetched

    monkeypatch.setattr(exchange, "fetch", damaged)
    files, head = one.files(), one.sh("rev-parse", "HEAD")
    result = one.sync()
    assert result.state == "refused" and result.reason.startswith("a damaged or partial repository")
    assert "git fsck" in result.hint
    assert one.files() == files and one.sh("rev-parse", "HEAD") == head


def test_a_branch_that_another_git_holds_is_a_state_with_that_name(world: World) -> None:
    one, two = both_ahead(world)
    lock = one.top / ".git/refs/heads/main.lock"
    lock.touch()
    result = one.sync()
    assert (result.state, result.reason.partition(":")[0]) == ("refused", "index locked")
    lock.unlink()
    meet(one, two)


def test_what_a_killed_writer_left_is_swept_unless_it_is_only_looked(world: World) -> None:
    one, _ = world.pair()
    left = one.top / ".mdmem-0123456789abcdef.tmp"
    left.write_bytes(b"half")
    (one.top / "mine.tmp").write_bytes(b"x")
    one.sync(dry_run=True)
    assert left.exists()
    one.sync()
    assert not left.exists() and (one.top / "mine.tmp").exists()


def test_a_note_that_is_no_file_is_left_out_by_name_and_the_rest_goes_on(world: World, tmp_path: Path) -> None:
    one, _ = world.pair()
    (tmp_path / "secret.md").write_text("elsewhere\n")
    (one.top / "link.md").symlink_to(tmp_path / "secret.md")
    one.write("b.md", note("mem-b"))
    result = one.sync(scan=scan)
    assert result.state == "pushed" and result.notices == ["link.md is not a regular file and was left out"]
    assert "link.md" not in one.sh("ls-files") and "b.md" in one.sh("ls-files")
    result = one.sync()
    assert any("link.md" in text for text in result.notices) or "link.md" in result.reason


def test_files_of_a_merge_that_stopped_and_repositories_inside_are_listed(world: World) -> None:
    one, _ = world.pair({"memories/a.md": note("mem-a"), "code/x.txt": "1\n"})
    one.sh("add", "-A")
    one.sh("commit", "-qm", "code", check=False)
    stop_in_text(one)
    seen = survey(one.git, ("memories",))
    assert seen.unmerged == ["code/x.txt"]
    for place in ("code/inner", "memories/inner"):
        one.sh("init", "-q", place)
        (one.top / place / "n.md").write_text("x")
    one.sh("merge", "--abort")
    told = survey(one.git, ("memories",)).warnings
    assert told == ["memories/inner/ is a repository of its own: what lies in it is left alone"]


def stop_in_text(one: Clone) -> None:
    """Leave a merge that stopped at a file which is no note."""
    one.sh("switch", "-qc", "side")
    one.write("code/x.txt", "side\n")
    one.sh("commit", "-qam", "side")
    one.sh("switch", "-q", "main")
    one.write("code/x.txt", "main\n")
    one.sh("commit", "-qam", "main")
    one.sh("merge", "-q", "side", check=False)


def test_a_link_that_is_deleted_is_no_note_that_is_lost(world: World) -> None:
    one, two = world.pair()
    one.sh("config", "core.symlinks", "true")
    (one.top / "link.md").symlink_to("a.md")
    one.sh("add", "link.md")
    one.sh("commit", "-qm", "link")
    old = one.sh("rev-parse", "HEAD").strip()
    one.sh("rm", "-q", "link.md", "a.md")
    one.sh("commit", "-qm", "no link, no note")
    with Contents(one.git) as contents:
        assert lost_in(contents.changes(old, one.sh("rev-parse", "HEAD").strip()), contents) == {"mem-a"}
    assert two.sync().state == "clean"
