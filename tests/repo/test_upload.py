"""Many commits that wait are sent ahead in pieces: no race is lost by its length, and what is cut off is not lost."""

from __future__ import annotations

from typing import Any

import pytest

from mdmem.notes.redact import scan
from mdmem.repo import upload
from mdmem.repo.git import Git, GitFailed

from .conftest import Clone, World, plain_git
from .test_sync import meet, note

SECRET = "".join(("ghp_", "a1B2" * 9))


@pytest.fixture
def behind(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[Clone, Clone]:
    """Two clones, one with 35 commits that wait; the remote writes down how many commits each of its refs brought."""
    monkeypatch.setattr(upload, "PIECE", 10)
    one, two = world.pair()
    for number in range(35):
        one.save(f"memories/n{number}.md", note(f"mem-n{number}"))
    told(world)
    return one, two


def told(world: World, refuse: str = "none") -> None:
    hook = world.remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\nwhile read old new ref; do\n"
        f'case "$ref" in {refuse}) echo "too much" >&2; exit 1;; esac\n'
        'case "$new" in *[1-9a-f]*) echo "$(git rev-list --count "$new" --not --all) $ref" >> "$GIT_DIR/brought";; esac\ndone\n'
    )
    hook.chmod(0o755)


def brought(world: World) -> list[tuple[int, str]]:
    lines = (world.remote / "brought").read_text().splitlines() if (world.remote / "brought").exists() else []
    return [(int(line.split()[0]), line.split()[1].rsplit("/", 1)[0]) for line in lines]


def names(world: World, one: Clone) -> str:
    return plain_git(world.remote, "for-each-ref", "refs/mdmem") + one.sh("for-each-ref", "refs/mdmem/sent")


def test_what_waits_goes_in_pieces_and_leaves_no_name(world: World, behind: tuple[Clone, Clone]) -> None:
    one, two = behind
    result = one.sync(scan=scan)
    assert (result.state, result.pushed, result.waiting) == ("pushed", 35, 0), result
    ahead = "refs/mdmem/ahead"
    assert brought(world) == [(10, ahead), (10, ahead), (10, ahead), (5, ahead), (0, "refs/heads")]
    assert names(world, one) == ""
    meet(one, two)


def test_another_clone_that_pushes_all_the_time_holds_up_nobody(
    world: World, behind: tuple[Clone, Clone], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever had much to send lost each race, kept nothing of what was sent, and had more to send the next time."""
    one, two = behind
    real, rounds = upload._send, []

    def send(*args: Any) -> bool:
        done = real(*args)
        rounds.append(done)
        two.save(f"memories/t{len(rounds)}.md", note(f"mem-t{len(rounds)}"))
        assert two.sync().waiting == 0
        return done

    monkeypatch.setattr(upload, "_send", send)
    result = one.sync(scan=scan)
    assert rounds == [True] * 4
    assert (result.state, result.waiting) == ("merged", 0), result
    # The branch itself brought the merge alone.
    assert [count for count, ref in brought(world) if ref == "refs/heads"][-1] == 1
    assert names(world, one) == ""
    meet(one, two)


def test_a_sync_that_is_cut_off_goes_on_where_it_stopped(world: World, behind: tuple[Clone, Clone]) -> None:
    one, two = behind
    third = one.sh("rev-list", "--reverse", "HEAD", "-36").split()[30]
    told(world, f"refs/heads/*|refs/mdmem/ahead/{third}")
    result = one.sync(scan=scan)
    assert result.state == "committed" and result.waiting == 35, result
    assert len(brought(world)) == 2
    told(world)
    result = one.sync(scan=scan)
    assert (result.state, result.waiting) == ("pushed", 0), result
    assert [count for count, _ in brought(world)] == [10, 10, 10, 5, 0]
    assert names(world, one) == ""
    meet(one, two)


def test_p8_no_piece_with_a_secret_is_sent_ahead(world: World, behind: tuple[Clone, Clone]) -> None:
    one, _ = behind
    one.save("memories/key.md", note("mem-key") + f"\nkey {SECRET}\n")
    blob = one.sh("rev-parse", "HEAD:memories/key.md").strip()
    one.save("memories/key.md", note("mem-key"))
    result = one.sync(scan=scan)
    assert result.held and result.waiting == 37, result
    assert blob not in plain_git(world.remote, "cat-file", "--batch-check", "--batch-all-objects")
    assert len(brought(world)) == 3


def test_a_remote_that_takes_no_other_names_gets_one_push(world: World, behind: tuple[Clone, Clone]) -> None:
    one, two = behind
    told(world, "refs/mdmem/*")
    result = one.sync(scan=scan)
    assert (result.state, result.pushed) == ("pushed", 35), result
    assert brought(world) == [(35, "refs/heads")]
    meet(one, two)


def test_a_name_that_somebody_took_away_is_given_anew(world: World, behind: tuple[Clone, Clone]) -> None:
    one, two = behind
    told(world, "refs/heads/*")
    assert one.sync(scan=scan).waiting == 35
    for ref in plain_git(world.remote, "for-each-ref", "--format=%(refname)", "refs/mdmem").split():
        plain_git(world.remote, "update-ref", "-d", ref)
    for number in range(12):
        one.save(f"memories/m{number}.md", note(f"mem-m{number}"))
    told(world)
    assert one.sync(scan=scan).waiting == 0
    assert names(world, one) == ""
    meet(one, two)


def test_a_name_that_cannot_be_taken_away_is_taken_away_later(world: World, behind: tuple[Clone, Clone]) -> None:
    one, two = behind
    hook = world.remote / "hooks" / "update"
    hook.write_text('#!/bin/sh\ncase "$3" in *[1-9a-f]*) exit 0;; esac\nexit 1\n')
    hook.chmod(0o755)
    result = one.sync(scan=scan)
    assert (result.state, result.waiting) == ("pushed", 0), result
    assert "refs/mdmem/ahead" in names(world, one) and "refs/mdmem/sent" in names(world, one)
    hook.unlink()
    one.save("memories/last.md", note("mem-last"))
    assert one.sync(scan=scan).waiting == 0
    assert "refs/mdmem/sent" not in names(world, one)
    meet(one, two)


def test_a_remote_that_hangs_while_much_is_sent_stops_nothing_else(
    world: World, behind: tuple[Clone, Clone], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit ends the first piece; what the branch itself meets is told as ever."""
    one, two = behind
    real = Git.run

    def run(self: Git, *args: str, **kinds: Any) -> Any:
        if any(upload.THERE in word for word in args):
            raise GitFailed("git push did not end in time")
        return real(self, *args, **kinds)

    monkeypatch.setattr(Git, "run", run)
    result = one.sync(scan=scan)
    assert (result.state, result.waiting) == ("pushed", 0), result
    monkeypatch.undo()
    meet(one, two)
