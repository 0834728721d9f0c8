"""Own paths are committed, nothing else is touched, and nothing that was saved is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from mdmem.repo import stream
from mdmem.repo.commit import Committed, commit_paths, pending, remembered, with_patience
from mdmem.repo.git import Git
from mdmem.repo.stream import Moved
from tests.another_user import permissions_count

from .conftest import Sh, plain_git
from .test_state import clash


def no_sleep(_: float) -> None:
    return None


def commit(top: Path, *paths: str, message: str = "remember: x", **trailers: str) -> Committed:
    return commit_paths(Git(top), paths, message, trailers, patience=0.3, sleep=no_sleep)


def head_files(top: Path, sh: Sh) -> list[str]:
    return [name for name in sh(top, "ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0") if name]


def test_new_changed_and_deleted_paths_make_one_commit(repo: Path, sh: Sh) -> None:
    (repo / "gone.md").write_text("x")
    assert commit(repo, "gone.md").done
    (repo / "a.md").write_text("two\n")
    (repo / "deep").mkdir()
    (repo / "deep" / "né\nw\".md").write_text("n\n")
    (repo / "gone.md").unlink()
    done = commit(repo, "a.md", "deep/né\nw\".md", "gone.md", message="set: three", agent="claude", device="laptop")
    assert done.done and done.rev == sh(repo, "rev-parse", "HEAD").strip()
    assert sh(repo, "show", "--name-status", "-z", "--format=", "HEAD").split("\0")[:6] == [
        "M", "a.md", "A", "deep/né\nw\".md", "D", "gone.md",
    ]  # fmt: skip
    assert sh(repo, "log", "-1", "--format=%s|%(trailers:key=Mdmem-Agent,valueonly,separator=)").strip() == "set: three|claude"
    assert sh(repo, "status", "--porcelain") == ""
    assert sh(repo, "reflog", "-1", "HEAD").startswith(done.rev[:7])
    sh(repo, "fsck", "--strict")


def test_g39_no_change_makes_no_commit(repo: Path, sh: Sh) -> None:
    before = sh(repo, "rev-parse", "HEAD")
    done = commit(repo, "a.md")
    assert done.done and done.rev is None and done.reason == "nothing to commit"
    os.utime(repo / "a.md")
    assert commit(repo, "a.md").rev is None
    assert sh(repo, "rev-parse", "HEAD") == before


def test_g19_staged_work_of_the_user_stays_staged(repo: Path, sh: Sh) -> None:
    (repo / "code.py").write_text("1\n")
    sh(repo, "add", "code.py")
    sh(repo, "commit", "-qm", "code")
    (repo / "code.py").write_text("2\n")
    sh(repo, "add", "code.py")
    (repo / "code.py").write_text("3\n")
    (repo / "other.py").write_text("new\n")
    sh(repo, "add", "other.py")
    (repo / "a.md").write_text("staged part\n")
    sh(repo, "add", "a.md")
    (repo / "a.md").write_text("staged part\nand more\n")
    assert commit(repo, "a.md").done
    assert sh(repo, "show", "HEAD:a.md") == "staged part\nand more\n"
    assert sh(repo, "show", "--name-only", "--format=", "HEAD").split() == ["a.md"]
    assert sh(repo, "status", "--porcelain").splitlines() == ["MM code.py", "A  other.py"]
    assert sh(repo, "show", ":code.py") == "2\n"


def test_first_commit_on_an_unborn_branch(tmp_path: Path, sh: Sh) -> None:
    sh(tmp_path, "init", "-q", "new")
    top = tmp_path / "new"
    (top / "a.md").write_text("x")
    assert commit(top, "a.md").done
    assert sh(top, "log", "--format=%s").strip() == "remember: x"


def test_g1_a_stale_index_lock_is_left_alone_and_the_next_commit_takes_the_rest(repo: Path, sh: Sh) -> None:
    lock = repo / ".git" / "index.lock"
    lock.touch()
    (repo / "b.md").write_text("b")
    done = commit(repo, "b.md")
    assert not done.done and "index.lock" in done.reason
    assert lock.exists()
    lock.unlink()
    (repo / "c.md").write_text("c")
    assert commit(repo, "c.md").done
    assert head_files(repo, sh) == ["a.md", "b.md", "c.md"]
    assert remembered(Git(repo)) == []


def test_g1_an_old_lock_is_not_waited_for(repo: Path) -> None:
    lock = repo / ".git" / "index.lock"
    lock.touch()
    os.utime(lock, (time.time() - 600, time.time() - 600))
    slept: list[float] = []
    (repo / "b.md").write_text("b")
    assert not commit_paths(Git(repo), ["b.md"], "x", {}, patience=30, sleep=slept.append).done
    assert sum(slept) < 0.5


@pytest.mark.parametrize("kind", ["rebase", "merge", "cherry-pick"])
def test_g2_g4_nothing_is_committed_in_the_middle_of_someone_elses_operation(kind: str, repo: Path, sh: Sh) -> None:
    clash(repo, sh)
    sh(repo, kind, "side", check=False)
    before = (sh(repo, "rev-parse", "HEAD"), sh(repo, "ls-files", "-s"))
    (repo / "new.md").write_text("n")
    done = commit(repo, "new.md")
    assert not done.done and kind in done.reason and "--abort" in done.reason
    assert (sh(repo, "rev-parse", "HEAD"), sh(repo, "ls-files", "-s")) == before
    sh(repo, kind, "--abort")
    assert (repo / "new.md").read_text() == "n"  # G-5
    assert commit(repo).done
    assert "new.md" in head_files(repo, sh)


def test_g2_a_merge_stopped_by_a_lock_loses_no_file(repo: Path, sh: Sh) -> None:
    sh(repo, "switch", "-qc", "side")
    (repo / "s.md").write_text("s")
    sh(repo, "add", "s.md")
    sh(repo, "commit", "-qm", "s")
    sh(repo, "switch", "-q", "main")
    (repo / "m.md").write_text("m")
    sh(repo, "add", "m.md")
    sh(repo, "commit", "-qm", "m")
    (repo / ".git" / "index.lock").touch()
    sh(repo, "merge", "side", check=False)
    (repo / ".git" / "index.lock").unlink()
    assert (repo / ".git" / "MERGE_HEAD").exists()
    (repo / "n.md").write_text("n")
    assert not commit(repo, "n.md").done
    assert sh(repo, "log", "-1", "--format=%P").split() == [sh(repo, "rev-parse", "HEAD~1").strip()]


def test_detached_head_is_never_committed_to(repo: Path, sh: Sh) -> None:
    sh(repo, "switch", "-q", "--detach")
    (repo / "b.md").write_text("b")
    done = commit(repo, "b.md")
    assert not done.done and "detached head" in done.reason
    sh(repo, "switch", "-q", "main")
    assert commit(repo).rev is not None


def test_g30_a_broken_signer_does_not_stop_a_commit(repo: Path, sh: Sh) -> None:
    sh(repo, "config", "commit.gpgsign", "true")
    sh(repo, "config", "gpg.program", "/bin/false")
    (repo / "b.md").write_text("b")
    assert commit(repo, "b.md").done


def test_g31_the_fallback_identity_is_used_only_when_none_is_set(
    repo: Path, sh: Sh, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / "b.md").write_text("b")
    commit(repo, "b.md")
    assert sh(repo, "log", "-1", "--format=%an <%ae> %cn").strip() == "Test <test@example.org> Test"
    (own_home / ".gitconfig").write_text("")
    (repo / "b.md").write_text("c")
    assert commit(repo, "b.md").done
    assert sh(repo, "log", "-1", "--format=%an <%ae>").strip() == "mdmem <mdmem@localhost>"
    assert "mdmem" not in (repo / ".git" / "config").read_text()
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ann <x>")
    (repo / "b.md").write_text("d")
    assert commit(repo, "b.md").done
    assert sh(repo, "log", "-1", "--format=%an").strip() == "Ann x"
    sh(repo, "fsck", "--strict")


def test_the_users_hooks_and_templates_do_not_run(repo: Path, sh: Sh) -> None:
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    sh(repo, "config", "commit.template", "/nonexistent")
    (repo / "b.md").write_text("b")
    assert commit(repo, "b.md").done


def test_g35_a_new_path_that_git_ignores_is_left_out_and_named(repo: Path, sh: Sh, own_home: Path) -> None:
    ignore = own_home / "ignore"
    ignore.write_text("build/\n")
    sh(repo, "config", "core.excludesFile", str(ignore))
    (repo / "build").mkdir()
    (repo / "build" / "n.md").write_text("n")
    (repo / "b.md").write_text("b")
    done = commit(repo, "build/n.md", "b.md")
    assert not done.done and done.ignored == ("build/n.md",) and "git ignores build/n.md" in done.reason
    assert done.rev and head_files(repo, sh) == ["a.md", "b.md"]
    # What is tracked already is committed, whatever the rules say.
    sh(repo, "add", "-f", "build/n.md")
    sh(repo, "commit", "-qm", "by force")
    (repo / "build" / "n.md").write_text("changed")
    assert commit(repo, "build/n.md").done and sh(repo, "show", "HEAD:build/n.md") == "changed"


@permissions_count
def test_an_unreadable_file_does_not_hold_back_others(repo: Path, sh: Sh) -> None:
    for name in "bcd":
        (repo / f"{name}.md").write_text(name)
    (repo / "c.md").chmod(0)
    done = commit(repo, "b.md", "c.md", "d.md")
    assert done.failed == ("c.md",) and head_files(repo, sh) == ["a.md", "b.md", "d.md"]


def test_many_paths_become_one_pack(repo: Path, sh: Sh) -> None:
    names = [f"d/{number}.md" for number in range(150)]
    (repo / "d").mkdir()
    for name in names:
        (repo / name).write_text(f"note {name}\n")
    (repo / "a.md").unlink()
    loose = int(sh(repo, "count-objects").split()[0])
    assert commit(repo, *names, "a.md").done
    assert head_files(repo, sh) == sorted(names) and sh(repo, "status", "--porcelain") == ""
    assert int(sh(repo, "count-objects").split()[0]) - loose < 10
    sh(repo, "fsck", "--strict")


def test_links_and_folders_are_left_out(repo: Path, sh: Sh, tmp_path: Path) -> None:
    (repo / "link.md").symlink_to(tmp_path / "secret")
    (repo / "2026-01-01.md").mkdir()
    (repo / "b.md").write_text("b")
    done = commit(repo, "link.md", "2026-01-01.md", "b.md")
    assert not done.done and set(done.failed) == {"link.md", "2026-01-01.md"}
    assert head_files(repo, sh) == ["a.md", "b.md"]


def test_g33_a_path_inside_a_submodule_is_left_out(repo: Path, sh: Sh, tmp_path: Path) -> None:
    sh(tmp_path, "init", "-q", "sub")
    (tmp_path / "sub" / "s.md").write_text("s")
    sh(tmp_path / "sub", "add", ".")
    sh(tmp_path / "sub", "commit", "-qm", "s")
    sh(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "sub"), "sub")
    sh(repo, "commit", "-qm", "sub")
    (repo / "sub" / "s.md").write_text("changed")
    (repo / "b.md").write_text("b")
    assert [p.path for p in pending(Git(repo))] == ["b.md"]
    done = commit(repo, "sub/s.md", "b.md")
    assert not done.done and done.failed == ("sub/s.md",)
    assert sh(repo, "show", "--name-only", "--format=", "HEAD").split() == ["b.md"]


def test_pending_lists_own_paths_by_kind(repo: Path, sh: Sh) -> None:
    (repo / "sub").mkdir()
    (repo / "sub" / "new\nname.md").write_text("x")
    (repo / "code.py").write_text("x")
    (repo / "gone.md").write_text("x")
    (repo / "kept.md").write_text("x")
    sh(repo, "add", "gone.md", "kept.md")
    sh(repo, "commit", "-qm", "x")
    (repo / "gone.md").unlink()
    sh(repo, "rm", "-q", "--cached", "kept.md")
    (repo / "a.md").write_text("changed")
    found = [(p.path, p.kind) for p in pending(Git(repo))]
    assert found == [("a.md", "changed"), ("gone.md", "deleted"), ("kept.md", "changed"), ("sub/new\nname.md", "new")]
    assert [p.path for p in pending(Git(repo), ("sub",))] == ["sub/new\nname.md"]
    assert pending(Git(repo), ("absent",)) == []
    named = pending(Git(repo), ("",), ["a.md", "sub/new\nname.md", "absent.md", "code.py", "*.md"])
    assert [p.path for p in named] == ["a.md", "sub/new\nname.md"]


def test_g40_a_note_taken_out_of_the_index_by_an_agent_is_committed_again(repo: Path, sh: Sh) -> None:
    sh(repo, "rm", "-q", "--cached", "a.md")
    sh(repo, "commit", "-qm", "oops")
    assert commit(repo, *[p.path for p in pending(Git(repo))]).done
    assert head_files(repo, sh) == ["a.md"]


def test_dates_come_from_the_clock(repo: Path, sh: Sh) -> None:
    (repo / "b.md").write_text("b")
    commit_paths(Git(repo), ["b.md"], "x", {}, when=datetime(2026, 3, 1, 12, tzinfo=timezone.utc))
    assert sh(repo, "log", "-1", "--format=%at %ct").split() == ["1772366400", "1772366400"]


def test_commit_in_a_linked_worktree(repo: Path, sh: Sh, tmp_path: Path) -> None:
    sh(repo, "worktree", "add", "-q", str(tmp_path / "wt"), "-b", "side")
    (tmp_path / "wt" / "b.md").write_text("b")
    assert commit(tmp_path / "wt", "b.md").done
    assert sh(tmp_path / "wt", "status", "--porcelain") == "" == sh(repo, "status", "--porcelain")
    assert "b.md" in sh(repo, "ls-tree", "--name-only", "side")


WRITER = """
import sys
from pathlib import Path
from mdmem.repo.commit import commit_paths
from mdmem.repo.git import Git
from mdmem.repo.stream import Moved
top, me, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for i in range(count):
    (top / f"{me}-{i}.md").write_text(f"note {me} {i}")
    done = commit_paths(Git(top), [f"{me}-{i}.md"], "remember: n", {}); assert done.done, done
"""


def test_g1_eight_parallel_writers_lose_nothing(repo: Path, sh: Sh, request: pytest.FixtureRequest) -> None:
    count = 50 if request.config.getoption("--nightly") else 6
    root = str(Path(__file__).resolve().parents[2])
    env = {**os.environ, "PYTHONPATH": root}
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(repo), str(n), str(count)], env=env) for n in range(8)]
    assert [process.wait(timeout=240) for process in running] == [0] * 8
    assert len(head_files(repo, sh)) == 8 * count + 1
    assert sh(repo, "status", "--porcelain") == ""
    assert len(sh(repo, "log", "--format=%H").split()) <= 8 * count + 1
    sh(repo, "fsck", "--strict")


def test_g1_a_user_who_commits_at_the_same_time_loses_nothing(repo: Path, sh: Sh) -> None:
    root = str(Path(__file__).resolve().parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(repo), "w", "15"], env={**os.environ, "PYTHONPATH": root}, stderr=subprocess.PIPE
    )
    made = 0
    for i in range(200):
        if process.poll() is not None:
            break
        (repo / f"user-{i}.txt").write_text("u")
        added = subprocess.run(["git", "-C", str(repo), "add", f"user-{i}.txt"], capture_output=True, check=False)
        done = subprocess.run(["git", "-C", str(repo), "commit", "-qm", "u"], capture_output=True, check=False)
        made += added.returncode == 0 and done.returncode == 0
    assert process.wait(timeout=60) == 0, process.stderr and process.stderr.read()
    # What the user's last commits took out again, with an index read before ours was written, the next sync commits.
    commit(repo, *[found.path for found in pending(Git(repo))])
    files = head_files(repo, sh)
    assert {f"w-{i}.md" for i in range(15)} <= set(files)
    sh(repo, "fsck", "--strict")
    assert made > 0


class Overwritten(Git):
    """A git whose index another program, which had read it before, writes back after one of our commands."""

    def __init__(self, top: Path, after: str, times: int = 1) -> None:
        super().__init__(top)
        self.after, self.times, self.old = after, times, (top / ".git" / "index").read_bytes()

    def run(self, *args: str, **options: Any) -> Any:
        done = super().run(*args, **options)
        if self.after in args and self.times:
            self.times -= 1
            (self.top / ".git" / "index").write_bytes(self.old)
        return done


@pytest.mark.parametrize("after", ["update-index", "fast-import"])
def test_g1_an_older_index_that_another_git_writes_back_loses_no_note(repo: Path, sh: Sh, after: str) -> None:
    sh(repo, "rm", "-q", "--cached", "a.md")
    sh(repo, "commit", "-qm", "out")
    (repo / "b.md").write_text("old\n")
    assert commit(repo, "b.md").done
    git = Overwritten(repo, after)
    (repo / "new.md").write_text("n\n")
    (repo / "b.md").write_text("changed\n")
    done = commit_paths(git, ["new.md", "b.md"], "x", {}, patience=0.3, sleep=no_sleep)
    assert git.times == 0 and done.done and done.rev == sh(repo, "rev-parse", "HEAD").strip()
    assert head_files(repo, sh) == ["b.md", "new.md"] and sh(repo, "show", "HEAD:b.md") == "changed\n"
    assert sh(repo, "status", "--porcelain") == "?? a.md\n" and not remembered(Git(repo))


def test_g1_an_index_that_is_written_back_again_and_again_is_said_and_waits(repo: Path, sh: Sh) -> None:
    git = Overwritten(repo, "update-index", times=100)
    (repo / "new.md").write_text("n\n")
    done = commit_paths(git, ["new.md"], "x", {}, patience=0.3, sleep=no_sleep)
    assert not done.done and "older index" in done.reason and done.failed == ("new.md",)
    assert commit(repo).done and "new.md" in head_files(repo, sh)


def test_paths_that_cannot_be_committed_are_named_and_hold_back_no_other(repo: Path, sh: Sh) -> None:
    (repo / "folder").mkdir()
    os.mkfifo(repo / "pipe.md")
    (repo / "real").mkdir()
    (repo / "real" / "x.md").write_text("x\n")
    (repo / "link").symlink_to("real")
    long = "a" * 300 + ".md"
    done = commit(repo, "folder", "pipe.md", long)
    assert not done.done and done.rev is None and set(done.failed) == {"folder", "pipe.md", long}
    assert "folder: is a folder" in done.reason and "pipe.md: is not a regular file" in done.reason
    assert "File name too long" in done.reason
    (repo / "good.md").write_text("g\n")
    done = commit(repo, "good.md", "link/x.md")
    assert done.rev and "good.md" in head_files(repo, sh) and "link/x.md" in done.failed
    assert "beyond a symbolic link" in done.reason


@pytest.mark.parametrize("born", [True, False])
def test_many_notes_at_once_leave_what_a_person_staged_alone(tmp_path: Path, sh: Sh, born: bool) -> None:
    """More paths than a command line takes: git then lists everything, and the rest must not slip into the commit."""
    top = tmp_path / "store"
    sh(tmp_path, "init", "-q", "store")
    if born:
        sh(top, "commit", "-q", "--allow-empty", "-m", "first")
    (top / "mine.txt").write_text("staged by hand\n")
    sh(top, "add", "mine.txt")
    names = [f"n{number}.md" for number in range(205)]
    for name in names:
        (top / name).write_text(name)
    done = commit(top, *names)
    assert done.done and sorted(head_files(top, sh)) == sorted(names)
    assert sh(top, "diff", "--cached", "--name-only").split() == ["mine.txt"] or not born
    assert "mine.txt" in sh(top, "ls-files").split()


def test_a_branch_that_another_git_has_locked_is_waited_for_and_then_committed_later(repo: Path, sh: Sh) -> None:
    lock = repo / ".git" / "refs" / "heads" / "main.lock"
    lock.touch()
    (repo / "b.md").write_text("b\n")
    slept: list[float] = []
    done = commit_paths(Git(repo), ["b.md"], "remember: b", {}, patience=0.1, sleep=slept.append)
    assert not done.done and ".lock" in done.reason and slept
    assert "b.md" in remembered(Git(repo)) and (repo / "b.md").exists()
    lock.unlink()
    (repo / "c.md").write_text("c\n")
    assert commit(repo, "c.md").done
    assert {"b.md", "c.md"} <= set(head_files(repo, sh)) and remembered(Git(repo)) == []


def test_a_branch_that_keeps_moving_ends_the_patience(repo: Path) -> None:
    slept: list[float] = []

    def step() -> None:
        raise Moved("the branch moved meanwhile")

    with pytest.raises(Moved):
        with_patience(step, Git(repo), 0.1, slept.append)
    assert len(slept) >= 3


def test_a_commit_that_git_can_no_longer_read_is_an_error_and_the_note_stays(repo: Path, sh: Sh) -> None:
    tree = sh(repo, "rev-parse", "HEAD^{tree}").strip()
    (repo / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    (repo / "b.md").write_text("b\n")
    done = commit(repo, "b.md")
    assert not done.done and done.failed == ("b.md",) and done.reason
    assert (repo / "b.md").read_text() == "b\n" and "b.md" in remembered(Git(repo))


def test_what_waits_is_still_committed_where_the_list_of_it_cannot_be_kept(repo: Path, sh: Sh) -> None:
    (repo / ".git" / "mdmem").mkdir(exist_ok=True)
    (repo / ".git" / "mdmem" / "uncommitted").mkdir()
    (repo / "b.md").write_text("b\n")
    assert commit(repo, "b.md").done and "b.md" in head_files(repo, sh)


def test_large_contents_go_into_packs(repo: Path, sh: Sh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_PACK_BYTES", 400)
    names = [f"n{number}.md" for number in range(102)]
    for name in names:
        (repo / name).write_text(name * 20)
    assert commit(repo, *names).done
    assert len(list((repo / ".git/objects/pack").glob("*.pack"))) > 20
    sh(repo, "fsck", "--strict")


def test_a_message_may_have_a_body(repo: Path, sh: Sh) -> None:
    text = stream.message_text("set:  two\nlines", {"Agent": ""}, " why\n")
    assert text == "set: two lines\n\nwhy\n\nMdmem-Op: set\n"


def test_a_note_is_saved_where_there_is_no_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import json

    from mdmem.cli.main import run

    top = tmp_path / "store"
    assert run(["init", str(top)]) == 0
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        assert run(["-C", str(top), "remember", "fact", "Kept without git.", "--json"]) == 0
        saved = json.loads(capsys.readouterr().out)
        assert not saved["committed"] and "git is not installed" in saved["reason"] and (top / saved["path"]).is_file()
        assert run(["-C", str(top), "sync"]) in (1, 6)
        assert "git is not installed" in capsys.readouterr().err
    assert run(["-C", str(top), "remember", "fact", "Kept with git."]) == 0
    assert plain_git(top, "status", "--porcelain") == ""


def test_a_users_check_of_line_ends_stops_no_commit(tmp_path: Path) -> None:
    from mdmem.cli.main import run

    for name, value in (("core.autocrlf", "true"), ("core.safecrlf", "true")):
        plain_git(tmp_path, "config", "--global", name, value)
    top = tmp_path / "store"
    assert run(["init", str(top)]) == 0
    (top / "memories").mkdir(exist_ok=True)
    (top / "memories" / "crlf.md").write_bytes(b"\xef\xbb\xbf---\r\ntitle: a\r\n---\r\nmixed\nends\r\n")
    assert run(["-C", str(top), "sync"]) == 0
    assert plain_git(top, "ls-files").split() == [".gitattributes", ".mdmem.toml", "memories/crlf.md"]
    assert plain_git(top, "status", "--porcelain") == ""


def test_a_file_too_large_to_be_looked_through_is_left_out_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mdmem.cli.main import run

    top = tmp_path / "store"
    assert run(["init", str(top)]) == 0
    assert run(["-C", str(top), "remember", "fact", "The harbor opens at nine."]) == 0
    (top / "memories" / "huge.md").write_bytes(b"x" * (17 << 20))
    (top / "memories" / "small.md").write_bytes(b"small\n")
    capsys.readouterr()
    assert run(["-C", str(top), "sync"]) == 0
    assert "huge.md is larger than 16 MB" in capsys.readouterr().err
    assert plain_git(top, "status", "--porcelain") == "?? memories/huge.md\n"
