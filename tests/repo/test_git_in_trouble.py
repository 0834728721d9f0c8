"""git that hangs, dies, is not there, is asked by ssh, or refuses: each is an error that says so, and nothing stays behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mdmem.errors import MdmemError
from mdmem.repo import exchange
from mdmem.repo.git import BlobReader, Git, GitFailed, GitTimeout, run_git
from mdmem.repo.remotes import Upstream, check_branch, set_upstream, upstream_of
from tests.patience import within

from .conftest import Sh, World

HANG = "!f() { echo $$ >{pid}; trap '' TERM; sleep 30 & wait; sleep 30; }; f"


def gone(pid: int) -> bool:
    began = time.monotonic()
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        within(began, 5, "a process is still there")
        time.sleep(0.05)


def read_pid(file: Path) -> int:
    began = time.monotonic()
    while not (file.exists() and file.read_text().strip()):
        within(began, 10, "git did not start")
        time.sleep(0.02)
    return int(file.read_text())


def test_a_git_that_ignores_the_polite_signal_is_killed_with_all_it_started(repo: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    for limit in (0.5, 5, 25):  # on a busy machine it may be stopped before it has begun
        with pytest.raises(GitTimeout, match="git hang did not end within"):
            Git(repo).run("-c", "alias.hang=" + HANG.replace("{pid}", str(pid)), "hang", timeout=limit)
        if pid.exists():
            break
    assert gone(read_pid(pid))


def test_an_interrupt_ends_git_too(repo: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    def interrupt() -> None:
        read_pid(pid)
        os.kill(os.getpid(), signal.SIGINT)

    # Whoever was started in the background by a shell ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            Git(repo).run("-c", "alias.hang=!echo $$ >" + str(pid) + "; exec sleep 300", "hang", timeout=250)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert gone(read_pid(pid))


def test_git_that_is_not_installed_is_said_so(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MdmemError, match="git is not installed") as caught:
        Git(repo).run("status")
    assert "install git" in caught.value.hint


def test_a_git_that_cannot_be_started_is_an_error_with_its_reason(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_bytes(b"\x7fELF and no program")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(GitFailed, match="could not be started") as caught:
        Git(repo).run("status")
    assert caught.value.why == "Exec format error"


def test_a_reader_whose_git_died_says_so_and_one_that_hangs_is_ended(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = Git(repo)
    with BlobReader(git) as blobs:
        assert blobs.read("HEAD:a.md")
        assert blobs._process
        blobs._process.kill()
        blobs._process.wait()
        with pytest.raises(GitFailed, match="ended early") as caught:
            blobs.read("HEAD:a.md")
        assert "git fsck" in caught.value.hint
    with BlobReader(git) as blobs:
        assert blobs.read("HEAD:a.md")
        process = blobs._process
        assert process
        os.kill(process.pid, signal.SIGSTOP)
    assert process.poll() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("program", "setting", "asked"),
    [
        ("ssh", "GIT_SSH", "-oBatchMode=yes"),
        ("plink", "GIT_SSH_COMMAND", "-batch"),
        ("ssh", "core.sshCommand", "-oBatchMode=yes"),
    ],
)
def test_the_users_own_ssh_is_used_and_never_asks(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, setting: str, asked: str
) -> None:
    tool = tmp_path / "own tools" / program
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"$(dirname "$0")/asked"\nexit 1\n')
    tool.chmod(0o755)
    if setting == "core.sshCommand":
        Git(repo).run("config", setting, f"'{tool}'")
    else:
        monkeypatch.setenv(setting, str(tool) if setting == "GIT_SSH" else f"'{tool}'")
    with pytest.raises(GitFailed):
        Git(repo).run("ls-remote", "ssh://nobody@example.invalid/x", network=True)
    assert asked in (tool.parent / "asked").read_text().splitlines()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_another_user_is_named_as_such(repo: Path) -> None:
    git = Git(repo)
    os.chown(repo, 12345, 12345)
    os.chown(repo / ".git", 12345, 12345)
    with pytest.raises(GitFailed) as caught:
        git.run("log")
    assert caught.value.code == "dubious_ownership"
    state = git.state()
    assert (state.name, state.safe) == ("dubious ownership", False) and "safe.directory" in state.hint
    git.run("config", "--global", "--add", "safe.directory", str(repo))  # the user vouches for it
    assert git.state().safe


def test_a_call_that_names_no_verb_and_settings_before_it_are_told_apart(repo: Path) -> None:
    with pytest.raises(GitFailed, match="git no-such-verb failed"):
        run_git(repo, ("-c", "a.b=c", "--no-pager", "no-such-verb"))


def test_a_remote_that_is_gone_is_offline_not_an_error(world: World) -> None:
    one, _ = world.pair()
    upstream = upstream_of(one.git, "main")
    assert upstream == Upstream("origin", "main", True)
    assert list(exchange.heads_there(one.git, upstream, 5.0)) == ["main"]
    world.remote.rename(world.folder / "away")
    assert exchange.heads_there(one.git, upstream, 5.0) == {}
    pushed = exchange.push(one.git, upstream, "HEAD", 5.0)
    assert pushed.outcome == "offline" and "remote.git" in pushed.reason
    assert "remote.git" in exchange.fetch(one.git, upstream, 5.0).error
    late = exchange.push(one.git, upstream, "HEAD", 0.0)
    assert late.outcome == "offline" and "did not end within" in late.reason


def test_a_fetch_whose_ref_is_locked_waits_and_then_says_so(world: World) -> None:
    one, two = world.pair()
    two.save("b.md", "two\n")
    two.sync()
    upstream = upstream_of(one.git, "main")
    assert upstream
    ref = one.git.path(exchange.fetched_ref(upstream))
    lock = ref.with_name(ref.name + ".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    slept: list[float] = []
    found = exchange.fetch(one.git, upstream, 10.0, slept.append)
    assert "lock" in found.error and slept == [0.1, 0.3, 1.0]

    def freed(_: float) -> None:
        lock.unlink()

    assert exchange.fetch(one.git, upstream, 10.0, freed).tip == two.sh("rev-parse", "HEAD").strip()


def test_a_clone_of_an_empty_remote_has_nothing_that_waits(world: World) -> None:
    assert exchange.figures(world.clone("laptop").git) == exchange.Figures(0, 0)


def test_a_branch_that_git_would_not_take_is_refused() -> None:
    for name in ("", "-x", "a..b", "a b", "a~1", "a\x07"):
        with pytest.raises(MdmemError, match="not a branch name"):
            check_branch(name)
    assert check_branch("topic/one") == "topic/one"


@pytest.mark.parametrize(
    ("remotes", "chosen"), [((), None), (("one",), "one"), (("one", "two"), None), (("one", "origin"), "origin")]
)
def test_where_a_branch_goes_is_guessed_only_where_there_is_one_answer(
    repo: Path, sh: Sh, remotes: tuple[str, ...], chosen: str | None
) -> None:
    for name in remotes:
        sh(repo, "remote", "add", name, str(repo))
    sh(repo, "config", "branch.main.remote", "gone")
    found = upstream_of(Git(repo), "main")
    assert (found.remote if found else None) == chosen


def test_a_remote_without_a_branch_of_its_own_gets_one_of_the_same_name(repo: Path, sh: Sh) -> None:
    sh(repo, "remote", "add", "one", str(repo))
    sh(repo, "remote", "add", "two", str(repo))
    sh(repo, "config", "branch.main.remote", "two")
    assert upstream_of(Git(repo), "main") == Upstream("two", "main", False)
    (repo / ".git" / "config.lock").touch()
    set_upstream(Git(repo), "main", Upstream("two", "main", False))  # next time
    (repo / ".git" / "config.lock").unlink()
    set_upstream(Git(repo), "main", Upstream("two", "main", False))
    assert upstream_of(Git(repo), "main") == Upstream("two", "main", True)


def test_what_git_left_running_with_its_pipes_is_not_waited_for(repo: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    started = time.monotonic()
    with pytest.raises(GitTimeout):
        Git(repo).run("-c", f"alias.leave=!setsid sh -c 'echo $$ >{pid}; exec sleep 60' & sleep 60", "leave", timeout=0.5)
    within(started, 30)
    os.kill(read_pid(pid), signal.SIGKILL)  # it had left the group: it is not ours to end


def test_any_number_of_objects_is_read(repo: Path) -> None:
    with BlobReader(Git(repo)) as blobs:
        assert list(blobs.many([])) == []
        for count in (255, 256, 257, 600):
            found = list(blobs.many(["HEAD:a.md", "HEAD:none"] * (count // 2) + ["HEAD:a.md"] * (count % 2)))
            assert len(found) == count and found.count(None) == count // 2


def test_a_setting_of_git_is_read(repo: Path, sh: Sh) -> None:
    sh(repo, "config", "x.y", "a\nb")
    assert Git(repo).setting("x.y") == "a\nb" and Git(repo).setting("x.none") is None


Break = Callable[[Path], object]


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (lambda top: (top / ".git/HEAD").write_bytes(b""), "detached head"),
        (lambda top: ((top / ".git/HEAD").unlink(), (top / ".git/HEAD").mkdir()), "unknown state"),
    ],
)
def test_a_damaged_head_is_a_state_with_a_name(repo: Path, broken: Break, name: str) -> None:
    git = Git(repo)
    broken(repo)
    state = git.state()
    assert (state.name, state.safe) == (name, False) and state.hint


def test_a_store_that_uses_reftable_is_read(tmp_path: Path, sh: Sh) -> None:
    try:
        sh(tmp_path, "init", "-q", "--ref-format=reftable", "store")
    except AssertionError:
        pytest.skip("this git has no reftable")
    state = Git(tmp_path / "store").state()
    assert (state.name, state.branch, state.safe) == ("ok", "main", True)


def test_a_folder_that_goes_away_is_unreadable_not_someone_elses(repo: Path) -> None:
    git = Git(repo)
    repo.rename(repo.with_name("moved"))
    state = git.state()
    assert (state.name, state.safe) == ("unreadable repository", False) and state.hint == "No such file or directory"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", [".git/info/attributes", ".gitignore", ".git/packed-refs"])
def test_a_pipe_that_git_would_read_without_end_is_named_and_git_not_started(repo: Path, name: str) -> None:
    file = repo / name
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    with pytest.raises(GitFailed, match="git was not started") as caught:
        Git(repo).run("status", timeout=5)
    assert str(file) in str(caught.value.why) and "rm" in caught.value.hint
