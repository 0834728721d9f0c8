"""Installing git hooks: a person's own hook still runs, and is byte-identical at the end."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mdmem.errors import RefusedState
from mdmem.install.git_hooks import HOOKS, hook_text, install_git_hooks, is_ours, uninstall_git_hooks
from mdmem.repo.git import Git
from mdmem.repo.hook_files import hooks_folder
from mdmem.store import Store

KEY = "AKIA" + "A1B2C3D4E5F6G7H8"


def git(top: Path, *args: str, code: int = 0) -> str:
    done = subprocess.run(["git", "-C", str(top), *args], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    top = tmp_path / "re po"
    top.mkdir()
    git(top, "init", "-q")
    return top


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store()


def own_hook(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(text.encode())
    path.chmod(0o755)
    return path


def test_g28_a_foreign_hook_runs_throughout_and_is_the_same_at_the_end(repo: Path) -> None:
    folder = hooks_folder(Git(repo))
    text = '#!/bin/sh\r\n# caf\xe9\necho ran >> "$(git rev-parse --show-toplevel)/log"\n# no newline'
    path = own_hook(folder, "pre-commit", text)
    mode = stat.S_IMODE(path.stat().st_mode)
    before = path.read_bytes()
    first = install_git_hooks(folder)
    assert first.chained == ["pre-commit"] and sorted(first.written) == sorted(HOOKS)
    again = install_git_hooks(folder)
    assert (again.written, again.chained) == ([], []) and sorted(again.present) == sorted(HOOKS)
    assert is_ours(path.read_bytes())
    own_hook(folder, "pre-commit.before-mdmem", text.replace("\r", ""))
    git(repo, "commit", "-q", "--allow-empty", "-m", "x", code=1 if not (repo / ".mdmem.toml").exists() else 0)
    assert (repo / "log").read_text() == "ran\n"
    (folder / "pre-commit.before-mdmem").write_bytes(before)
    done = uninstall_git_hooks(folder)
    assert sorted(done.removed) == sorted(HOOKS)
    assert path.read_bytes() == before and stat.S_IMODE(path.stat().st_mode) == mode
    assert not [name for name in os.listdir(folder) if "mdmem" in name or (name in HOOKS and name != "pre-commit")]
    assert uninstall_git_hooks(folder).removed == []


def test_a_failing_foreign_hook_still_stops_the_commit(store: Store) -> None:
    own_hook(hooks_folder(store.git), "pre-commit", "#!/bin/sh\necho no >&2\nexit 3\n")
    install_git_hooks(hooks_folder(store.git))
    (store.root / "memories").mkdir(exist_ok=True)
    assert "no" in git(store.root, "commit", "-q", "--allow-empty", "-m", "x", code=1)


def test_p14_a_secret_in_a_hand_written_note_stops_the_commit_by_name(store: Store) -> None:
    install_git_hooks(hooks_folder(store.git))
    note = store.root / "by hand.md"
    note.write_text(f"# Notes\n\nthe key is {KEY}\n")
    git(store.root, "add", "--", "by hand.md")
    out = git(store.root, "commit", "-m", "x", code=1)
    assert "by hand.md:3: aws-key" in out and KEY not in out
    # What counts is what is staged, not what lies in the work tree.
    note.write_text("# Notes\n")
    assert "by hand.md:3" in git(store.root, "commit", "-m", "x", code=1)
    note.write_text(f"# Notes\n\nthe key is {KEY} <!-- mdmem:allow-secret -->\n")
    git(store.root, "add", "--", "by hand.md")
    git(store.root, "commit", "-qm", "allowed")
    # `commit -- path` uses an index of its own.
    note.write_text(f"changed\n{KEY}\n")
    assert "by hand.md:2: aws-key" in git(store.root, "commit", "-qm", "x", "--", "by hand.md", code=1)


def test_p8_a_push_of_a_secret_is_stopped_and_both_hooks_see_the_refs(store: Store, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    git(store.root, "init", "-q", "--bare", str(remote))
    git(store.root, "remote", "add", "origin", str(remote))
    own_hook(hooks_folder(store.git), "pre-push", f'#!/bin/sh\ncat > "{tmp_path}/refs"\n')
    (store.root / "a.md").write_text("clean\n")
    git(store.root, "add", "-A")
    git(store.root, "commit", "-qm", "clean")
    install_git_hooks(hooks_folder(store.git))
    git(store.root, "push", "-q", "origin", "HEAD:main")
    assert (tmp_path / "refs").read_text().split()[0] == "HEAD"
    (store.root / "a.md").write_text(f"{KEY}\n")
    git(store.root, "commit", "-qam", "oops", "--no-verify")
    (store.root / "a.md").write_text("clean again\n")
    git(store.root, "commit", "-qam", "gone from the tip, not from history")
    out = git(store.root, "push", "-q", "origin", "HEAD:main", code=1)
    assert "a.md:1: aws-key (commit " in out and KEY not in out
    assert git(store.root, "ls-remote", "origin", "main").split()[0] != git(store.root, "rev-parse", "HEAD").strip()
    # Deleting a branch pushes no commit.
    git(store.root, "push", "-q", "origin", "HEAD~2:refs/heads/other")
    git(store.root, "push", "-q", "origin", ":refs/heads/other")


def test_refused_when_hooks_path_is_set_elsewhere(repo: Path, tmp_path: Path) -> None:
    git(repo, "config", "core.hooksPath", ".husky")
    with pytest.raises(RefusedState, match=r"hooksPath is set to \.husky"):
        hooks_folder(Git(repo))
    git(repo, "config", "core.hooksPath", ".git/hooks")
    assert hooks_folder(Git(repo)) == repo / ".git" / "hooks"
    git(repo, "config", "--unset", "core.hooksPath")
    git(repo, "config", "--global", "core.hooksPath", str(tmp_path / "mine"))
    with pytest.raises(RefusedState, match="global"):
        hooks_folder(Git(repo))


def test_a_linked_worktree_shares_the_hooks(store: Store, tmp_path: Path) -> None:
    tree = tmp_path / "linked tree"
    git(store.root, "worktree", "add", "-q", "-b", "linked", str(tree))
    folder = hooks_folder(Git(tree))
    assert os.path.realpath(folder) == os.path.realpath(store.root / ".git" / "hooks")
    install_git_hooks(folder)
    (tree / "n.md").write_text(f"{KEY}\n")
    git(tree, "add", "n.md")
    assert "n.md:1: aws-key" in git(tree, "commit", "-qm", "x", code=1)


def test_the_hooks_of_pre_commit_that_run_ours_as_legacy_are_left(repo: Path) -> None:
    folder = hooks_folder(Git(repo))
    install_git_hooks(folder)
    os.rename(folder / "pre-commit", folder / "pre-commit.legacy")
    own_hook(folder, "pre-commit", "#!/bin/sh\n# pre-commit's own\n")
    assert install_git_hooks(folder).written == []


def test_h14_the_script_is_plain_sh_with_absolute_paths(tmp_path: Path) -> None:
    python = tmp_path / "it's a $PATH" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    for name in HOOKS:
        text = hook_text(name, str(python))
        assert text.startswith("#!/bin/sh\n") and "@" not in text.replace('"$@"', "")
        script = own_hook(tmp_path / "hooks", name, text)
        assert subprocess.run(["sh", "-n", str(script)]).returncode == 0
    script = own_hook(tmp_path / "hooks", "pre-commit", hook_text("pre-commit", str(tmp_path / "gone")))
    done = subprocess.run([str(script)], capture_output=True, text=True)
    assert done.returncode == 0 and "mdmem is gone" in done.stderr


def test_dry_run_writes_nothing(repo: Path) -> None:
    folder = hooks_folder(Git(repo))
    before = sorted(os.listdir(folder)) if folder.exists() else None
    assert sorted(install_git_hooks(folder, dry_run=True).written) == sorted(HOOKS)
    assert (sorted(os.listdir(folder)) if folder.exists() else None) == before


def test_g26_the_index_of_another_repository_is_not_read_as_ours(
    store: Store, repo: Path, monkeypatch: pytest.MonkeyPatch, make_store: Callable[..., Store]
) -> None:
    """A hook of a code repository calls mdmem on the store, in an environment full of GIT_*."""
    from mdmem.repo.scan import scan_staged

    (store.root / "n.md").write_text(f"{KEY}\n")
    git(store.root, "add", "n.md")
    monkeypatch.setenv("GIT_DIR", str(repo / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(repo / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(repo))
    assert [hit.path for hit in scan_staged(store.git)] == ["n.md"]
    monkeypatch.delenv("GIT_DIR")
    assert [hit.path for hit in scan_staged(store.git)] == ["n.md"]
