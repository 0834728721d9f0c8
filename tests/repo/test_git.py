"""The runner: hardened, quiet, bounded in time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mdmem.errors import NotFound
from mdmem.repo.git import BlobReader, Git, GitFailed, GitTimeout, find_top, safe_text
from tests.hooks.host import wait_until

from .conftest import Sh


def test_find_top_walks_up_through_files_and_folders(repo: Path, tmp_path: Path) -> None:
    (repo / "deep" / "er").mkdir(parents=True)
    assert find_top(repo / "deep" / "er") == repo
    assert find_top(repo / ".git" / "objects") == repo
    assert find_top(tmp_path) is None
    with pytest.raises(NotFound):
        Git(tmp_path)


def test_paths_match_gits_own_answer_in_a_linked_worktree(repo: Path, tmp_path: Path, sh: Sh) -> None:
    sh(repo, "worktree", "add", "-q", str(tmp_path / "wt"), "-b", "side")
    names = ["HEAD", "index", "mdmem", "refs/heads/x", "refs/bisect/a", "logs/HEAD", "logs/refs/heads/a", "hooks", "config"]
    names += ["info/attributes", "info/sparse-checkout", "MERGE_HEAD", "shallow", "packed-refs", "rebase-merge", "objects"]
    for top in (repo, tmp_path / "wt"):
        git = Git(top)
        for name in names:
            theirs = Path(os.path.abspath(top / sh(top, "rev-parse", "--git-path", name).strip()))
            assert git.path(name) == theirs, name
        assert git.common_dir == repo / ".git"


def test_g26_inherited_git_variables_are_stripped(repo: Path, tmp_path: Path, sh: Sh, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.mkdir()
    sh(other, "init", "-q")
    listed = sh(repo, "rev-parse", "--local-env-vars").split()
    for name in listed:
        monkeypatch.setenv(name, str(other / ".git"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    assert Path(Git(repo).run("rev-parse", "--show-toplevel").text()) == repo
    assert Git(repo).run("ls-files", "-z").fields() == ["a.md"]


def test_g46_g47_nothing_that_the_repository_names_is_run(repo: Path, tmp_path: Path, sh: Sh) -> None:
    flag = tmp_path / "PWNED"
    hooks = repo / ".githooks"
    hooks.mkdir()
    for name in ("post-commit", "pre-commit", "post-merge", "post-checkout", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{flag}'\n")
        (hooks / name).chmod(0o755)
    sh(repo, "config", "core.hooksPath", ".githooks")
    sh(repo, "config", "core.fsmonitor", f"touch '{flag}'; false")
    git = Git(repo)
    git.run("status", "--porcelain=v2", "-z", read=True)
    (repo / "b.md").write_text("x\n")
    git.run("add", "--", "b.md")
    git.run("commit", "-qm", "x")
    assert not flag.exists()
    sub = repo / "sub"
    (sub / "objects").mkdir(parents=True)
    (sub / "refs").mkdir()
    (sub / "HEAD").write_text("ref: refs/heads/main\n")
    (sub / "config").write_text(f'[core]\nbare = false\nworktree = .\nfsmonitor = "touch {flag}; false"\n')
    assert find_top(sub) == repo
    Git(repo).run("status", "--porcelain", read=True)
    assert not flag.exists()


def test_n19_a_file_named_like_the_branch_is_no_ambiguity(repo: Path) -> None:
    (repo / "main").write_text("x")
    git = Git(repo)
    assert git.rev("refs/heads/main") == git.rev("HEAD")
    assert git.rev("--all") is None
    assert git.rev("refs/heads/none") is None


def test_a_time_limit_ends_the_whole_process_group(repo: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    helper = tmp_path / "slow"
    helper.write_text(f"#!/bin/sh\necho $$ > '{pid}'\nsleep 60 & wait\n")
    helper.chmod(0o755)
    git = Git(repo)
    with pytest.raises(GitTimeout):
        git.run("-c", f"alias.slow=!{helper}", "slow", timeout=1.0)
    number = int(pid.read_text())
    assert not Path(f"/proc/{number}").exists() or "Z" in Path(f"/proc/{number}/stat").read_text().split()[2]


@pytest.mark.parametrize(
    ("raw", "secret"),
    [
        ("fatal: unable to access 'https://bob:s3cr3t@host/x.git/': 403", "s3cr3t"),
        ("https://s3cr3t@host/x", "s3cr3t"),
        ("Authorization: Basic s3cr3t", "s3cr3t"),
        ("http.extraHeader=AUTHORIZATION: bearer s3cr3t", "s3cr3t"),
        ("https://host/x?access_token=s3cr3t&y=1", "s3cr3t"),
    ],
)
def test_p10_credentials_are_cut_out_of_messages(raw: str, secret: str) -> None:
    assert secret not in safe_text(raw)
    assert safe_text("\x1b[31mred\x1b[0m ü") == "[31mred[0m ü"


def test_p10_a_failing_remote_shows_no_token(repo: Path) -> None:
    with pytest.raises(GitFailed) as caught:
        Git(repo).run("fetch", "https://bob:s3cr3t@127.0.0.1:9/x.git", network=True, timeout=20)
    assert "s3cr3t" not in str(caught.value) + caught.value.err


def test_g29_a_prompt_is_never_shown(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_ASKPASS", "/bin/echo")
    done = Git(repo).run("credential", "fill", input=b"protocol=https\nhost=example.invalid\n\n", check=False, timeout=10)
    assert done.code != 0 and b"password" not in done.out


def test_ssh_keeps_the_users_own_command(repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sh: Sh) -> None:
    seen = tmp_path / "seen"
    fake = tmp_path / "my ssh"
    fake.write_text(f"#!/bin/sh\necho \"$@\" > '{seen}'\nexit 255\n")
    fake.chmod(0o755)
    sh(repo, "config", "core.sshCommand", f"'{fake}' -i key")
    Git(repo).run("ls-remote", "ssh://host/x", network=True, check=False)
    words = seen.read_text()
    assert "-i key" in words and "BatchMode=yes" in words and "ConnectTimeout=10" in words


def test_blobs_are_read_in_bulk_and_absent_ones_are_none(repo: Path, sh: Sh) -> None:
    names = []
    for i in range(700):
        (repo / f"n{i}.md").write_text(f"text {i}\n" * 40)
    sh(repo, "add", ".")
    sh(repo, "commit", "-qm", "many")
    git = Git(repo)
    names = [f"HEAD:n{i}.md" for i in range(700)] + ["0" * 40, "HEAD:none", "HEAD:new\nline"]
    with BlobReader(git) as blobs:
        found = list(blobs.many(names))
        assert blobs.read("HEAD:a.md") == b"---\nid: mem-a\n---\none\n"
    assert found[:700] == [(f"text {i}\n" * 40).encode() for i in range(700)]
    assert found[700:] == [None, None, None]


def test_importing_the_runner_starts_nothing_heavy() -> None:
    code = "import sys, mdmem.repo.git; print([m for m in ('subprocess','git','click','numpy','tomllib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_a_failed_call_names_the_verb_and_gits_words(repo: Path) -> None:
    with pytest.raises(GitFailed) as caught:
        Git(repo).run("-c", "a.b=c", "merge-base", "nothing", "HEAD")
    assert "git merge-base failed" in str(caught.value) and caught.value.status == 128


def test_g29_git_is_told_not_to_ask_and_where_to_stop(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "1")
    monkeypatch.setenv("SSH_ASKPASS", "/bin/echo")
    shown = Git(repo).run("-c", "alias.env=!env", "env").text().splitlines()
    told = {"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "SSH_ASKPASS_REQUIRE=never", "GIT_NO_LAZY_FETCH=1"}
    assert told <= set(shown) and "LC_ALL=C" in shown
    assert f"GIT_CEILING_DIRECTORIES={repo.parent}" in shown


def test_a_time_limit_ends_what_git_started_when_git_itself_goes_first(repo: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    helper = tmp_path / "slow"
    helper.write_text(f"#!/bin/sh\ntrap '' TERM\necho $$ > '{pid}'\nwhile :; do sleep 1; done\n")
    helper.chmod(0o755)
    with pytest.raises(GitTimeout):
        Git(repo).run("-c", f"alias.slow=!{helper} >/dev/null 2>&1 & sleep 60", "slow", timeout=1.0)
    number = int(pid.read_text())
    wait_until(lambda: not Path(f"/proc/{number}").exists() or "Z" in Path(f"/proc/{number}/stat").read_text().split()[2])


def test_p10_what_git_says_shows_no_password(repo: Path) -> None:
    shown = "!echo 'fatal: https://bob:s3cr3t@host/x: 403' >&2; false"
    with pytest.raises(GitFailed) as failed:
        Git(repo).run("-c", f"alias.talk={shown}", "talk")
    assert "403" in f"{failed.value} {failed.value.err}" and "s3cr3t" not in f"{failed.value} {failed.value.err}"
