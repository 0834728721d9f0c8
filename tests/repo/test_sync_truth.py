"""What a sync says of a remote is true: what is not the network is not called offline, and a hint leads where it says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from mdmem.repo.not_network import trouble

from .conftest import Clone, World, plain_git
from .test_sync import meet, note


def fed(world: World, data: bytes, *args: str) -> str:
    """Run git in the remote with `data` on its standard input; returns the one word that it prints."""
    return (
        subprocess.run(["git", "-C", str(world.remote), *args], input=data, capture_output=True, check=True)
        .stdout.decode()
        .strip()
    )


@pytest.mark.parametrize("name", ["refs/heads/refs/heads/main", "refs/tags/refs/heads/main"])
def test_a_branch_or_tag_called_like_the_whole_name_of_ours_hinders_no_push(name: str, world: World) -> None:
    """After `git push origin HEAD:refs/heads/refs/heads/main`, a slip: git cannot tell where `refs/heads/main` goes."""
    one, two = world.pair()
    plain_git(world.remote, "update-ref", name, "refs/heads/main")
    stray = plain_git(world.remote, "rev-parse", name)
    one.save("b.md", note("mem-b"))
    result = one.sync()
    assert (result.state, result.pushed, result.waiting) == ("pushed", 1, 0), result
    assert plain_git(world.remote, "rev-parse", name) == stray
    assert "mdmem/out" not in one.sh("for-each-ref")
    meet(one, two)


def test_a_damaged_branch_beside_ours_hinders_nobody(world: World) -> None:
    """Only the branch of the store is fetched: one whose name begins alike may hold what git refuses."""
    one, two = world.pair()
    tree = plain_git(world.remote, "rev-parse", "main^{tree}").strip()
    commit = f"tree {tree}\nauthor A <a@e> 1 +0000\ncommitter broken> 1 +0000\n\nx\n"
    rev = fed(world, commit.encode(), "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
    plain_git(world.remote, "update-ref", "refs/heads/main-old", rev)
    one.save("b.md", note("mem-b"))
    assert one.sync().state == "pushed"
    meet(one, two)
    # In the branch itself it stands in the way, and that is no lack of a network.
    plain_git(world.remote, "update-ref", "refs/heads/main", rev)
    two.save("c.md", note("mem-c"))
    result = two.sync()
    assert result.state == "refused" and "git refuses what the remote holds" in result.reason and "fsck" in result.hint


def foreign_owner(world: World) -> None:
    for folder, _, files in os.walk(world.remote):
        for path in (folder, *(os.path.join(folder, name) for name in files)):
            os.chown(path, 4321, 4321)


def other_ids(world: World) -> None:
    world.remote.rename(world.folder / "old.git")
    plain_git(world.folder, "init", "-q", "--bare", "--object-format=sha256", str(world.remote))
    empty = fed(world, b"", "hash-object", "-t", "tree", "-w", "--stdin")
    rev = fed(world, b"x", "-c", "user.name=n", "-c", "user.email=e", "commit-tree", empty)
    plain_git(world.remote, "update-ref", "refs/heads/main", rev)


def lacking(world: World) -> None:
    tree = plain_git(world.remote, "rev-parse", "main^{tree}").strip()
    for pack in (world.remote / "objects" / "pack").glob("*.pack"):
        moved = world.folder / pack.name
        pack.rename(moved)
        fed(world, moved.read_bytes(), "unpack-objects", "-q")
    (world.remote / "objects" / tree[:2] / tree[2:]).unlink()


TROUBLES: list[tuple[str, Callable[[World], None], str, str]] = [
    ("owner", foreign_owner, "belongs to another user", "safe.directory"),
    ("object ids", other_ids, "another kind of object ids", "mdmem clone"),
    ("damaged", lacking, "the remote is damaged", "git fsck"),
]


@pytest.mark.parametrize(("prepare", "name", "hint"), [case[1:] for case in TROUBLES], ids=[case[0] for case in TROUBLES])
def test_a_remote_that_answers_is_not_called_offline(
    prepare: Callable[[World], None], name: str, hint: str, world: World
) -> None:
    """`Offline … mdmem sync, when the remote can be reached` was said of each of these; waiting would have mended none."""
    if prepare is foreign_owner and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    world.pair()
    third = Clone(world.folder / "third", "third", world.clock)
    third.top.mkdir()
    third.sh("init", "-q", "-b", "main")
    third.sh("remote", "add", "origin", str(world.remote))
    third.save("own.md", note("mem-own"))
    prepare(world)
    result = third.sync()
    assert result.state == "refused" and name in result.reason and hint in result.hint, result
    assert set(third.files()) == {"own.md"}


@pytest.mark.parametrize(
    ("setting", "value", "name"),
    [("protocol.file.allow", "never", "do not allow this kind of remote"), ("remote.origin.mirror", "true", "hinder it")],
)
def test_a_setting_of_git_that_hinders_the_exchange_is_named(setting: str, value: str, name: str, world: World) -> None:
    one, _ = world.pair()
    one.save("b.md", note("mem-b"))
    one.sh("config", setting, value)
    result = one.sync()
    assert result.state in ("refused", "committed") and name in result.reason, result
    one.sh("config", "--unset", setting)
    assert one.sync().pushed == 1


@pytest.mark.parametrize(
    ("url", "name"), [("htps://example.org/x.git", "kind of URL"), ("https:///no host/x", "the URL of the remote")]
)
def test_a_url_with_a_slip_in_it_is_named(url: str, name: str, world: World) -> None:
    one, _ = world.pair()
    one.sh("remote", "set-url", "origin", url)
    result = one.sync()
    assert result.state == "refused" and name in result.reason and "mdmem remote set origin URL" in result.hint, result


def test_a_repository_that_the_server_does_not_know_is_no_lack_of_a_network() -> None:
    for told in (
        "remote: Repository not found.\nfatal: repository 'https://example.org/x/' not found",
        "ERROR: Repository not found.\nfatal: Could not read from remote repository.",
    ):
        known = trouble(told, "origin")
        assert known is not None and "no such repository" in known.name and "git ls-remote origin" in known.hint


def test_a_server_that_denies_permission_is_not_taken_for_files_of_this_side() -> None:
    assert trouble("git@example.org: Permission denied (publickey).", "origin") is None
    for told in (
        "fatal: Unable to create temporary file '/x/.git/objects/pack/tmp_pack_XXXXXX': Permission denied",
        "error: insufficient permission for adding an object to repository database .git/objects",
    ):
        known = trouble(told, "origin")
        assert known is not None and "no permission to write" in known.name


def test_what_a_remote_says_of_its_own_disk_is_not_said_of_this_side() -> None:
    for told in (
        "remote: error: insufficient permission for adding an object to repository database ./objects",
        "remote: fatal: write error: No space left on device",
        "remote: error: unable to create temporary file: Read-only file system",
    ):
        assert trouble(told, "origin") is None


def test_a_damaged_branch_of_this_clone_is_not_laid_on_the_remote(world: World) -> None:
    """As after a loss of power: git then says that the remote did not send all objects."""
    one, _ = world.pair()
    (one.top / ".git" / "refs" / "heads" / "main").write_bytes(b"")
    result = one.sync()
    assert result.state == "refused" and "the remote" not in result.reason.split(":")[0] and "fsck" in result.hint, result


def test_a_connection_that_breaks_is_the_network(world: World) -> None:
    """git then also complains of what came in part."""
    told = (
        "fetch-pack: unexpected disconnect while reading sideband packet\nfatal: early EOF\nfatal: 3 unresolved deltas left\n"
    )
    assert trouble(told, "origin") is None and trouble("fatal: 3 unresolved deltas left", "origin") is not None


def test_a_branch_that_has_another_name_at_the_remote_is_followed_by_what_the_hint_says(world: World) -> None:
    """The default branch was renamed there. The hint was to join, which pushed the old name anew: two stores."""
    one, two = world.pair()
    one.sync()
    plain_git(world.remote, "branch", "-m", "main", "trunk")
    one.save("b.md", note("mem-b"))
    result = one.sync()
    assert result.state == "refused" and "has no branch main any more" in result.reason and "it has trunk" in result.reason
    commands = result.hint.removesuffix(", then mdmem sync")
    for words in commands.split(" && "):
        one.sh(*words.split()[1:])
    assert one.sync().pushed == 1
    for words in two.sync().hint.removesuffix(", then mdmem sync").split(" && "):
        two.sh(*words.split()[1:])
    meet(one, two)
    assert plain_git(world.remote, "for-each-ref", "--format=%(refname)", "refs/heads").split() == ["refs/heads/trunk"]
