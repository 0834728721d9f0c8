"""The hooks for the pre-commit framework, with the real framework, installed from this checkout. Run with --e2e."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
KEY = "AKIA" + "A1B2C3D4E5F6G7H8"
GOOD = "---\nid: mem-k3j5x7q2m4na\nkind: memory\ntype: decision\ntitle: We use tabs\n---\n\nTabs.\n"


def program() -> list[str]:
    if shutil.which("pre-commit"):
        return ["pre-commit"]
    found = subprocess.run([sys.executable, "-m", "pre_commit", "--version"], capture_output=True)
    if found.returncode:
        pytest.skip("pre-commit is not installed")
    return [sys.executable, "-m", "pre_commit"]


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of this checkout as it is now, committed, as a hook repository."""
    source = tmp_path_factory.mktemp("hooks") / "mdmem"
    names = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
    )
    for name in filter(None, os.fsdecode(names.stdout).split("\0")):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for args in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "hooks"]):
        subprocess.run(["git", "-C", str(source), *args], check=True, capture_output=True)
    return source


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The framework's cache: the environment is built once for the module."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def notes(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRE_COMMIT_HOME", str(home))
    top = tmp_path / "my notes"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "mdmem", "init", str(top)], env=env, check=True, capture_output=True)
    (top / "memories").mkdir(exist_ok=True)
    (top / "memories" / "we-use-tabs-mem-k3j5x7q2m4na.md").write_text(GOOD)
    git(top, "add", "-A")
    git(top, "commit", "-qm", "notes")
    return top


def git(top: Path, *args: str, code: int = 0) -> str:
    done = subprocess.run(["git", "-C", str(top), *args], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def configure(top: Path, hooks: Path, *ids: str) -> None:
    """Name the hooks in the repository's configuration; their environment is built once and shared."""
    rev = git(hooks, "rev-parse", "HEAD").strip()
    lines = "".join(f"  - id: {name}\n" for name in ids)
    (top / ".pre-commit-config.yaml").write_text(f"repos:\n- repo: {hooks}\n  rev: {rev}\n  hooks:\n{lines}")
    git(top, "add", ".pre-commit-config.yaml")


def run(top: Path, *args: str, code: int = 0) -> str:
    done = subprocess.run([*program(), *args], cwd=top, capture_output=True, text=True, timeout=900)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_the_manifest_is_valid() -> None:
    subprocess.run([*program(), "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")], check=True)


def test_try_repo(notes: Path, hooks: Path) -> None:
    out = run(notes, "try-repo", str(hooks), "--all-files", "--verbose")
    assert out.count("Passed") == 3
    assert git(notes, "status", "--porcelain") == ""


def test_the_index_is_refreshed_after_a_merge(notes: Path, hooks: Path) -> None:
    configure(notes, hooks, "mdmem-index")
    git(notes, "commit", "-qm", "configuration")
    run(notes, "install", "-t", "post-merge", "-t", "post-checkout")
    git(notes, "checkout", "-qb", "side")
    (notes / "new.md").write_text("# Zebra crossing\n")
    git(notes, "add", "-A")
    git(notes, "commit", "-qm", "new")
    git(notes, "checkout", "-q", "main")
    assert "mdmem index refresh" in git(notes, "merge", "--no-ff", "side", "-m", "merge")


def test_p14_each_hook_fails_by_name_on_notes_edited_by_hand(notes: Path, hooks: Path) -> None:
    configure(notes, hooks, "mdmem-check", "mdmem-fmt", "mdmem-secrets")
    (notes / "memories" / "bad 记录.md").write_text("---\nid: mem-k3j5x7q2m4na\nkind: memory\ntitle: 'don't'\n---\n\nx\n")
    (notes / "memories" / "list.md").write_text("---\nid: mem-aaaaaaaaaaaa\nkind: memory\ntags: [a, b]\n---\n\nx\n")
    (notes / "secret.md").write_text(f"# s\n\n{KEY}\n")
    git(notes, "add", "-A")
    assert "bad 记录.md" in run(notes, "run", "mdmem-check", code=1)
    assert "memories/list.md" in run(notes, "run", "mdmem-fmt", code=1)
    out = run(notes, "run", "mdmem-secrets", code=1)
    assert "secret.md:3: aws-key" in out and KEY not in out


def test_g41_a_real_commit_from_a_linked_worktree_keeps_unstaged_edits(notes: Path, hooks: Path, tmp_path: Path) -> None:
    """As the framework installs it: git sets GIT_DIR, GIT_INDEX_FILE and more, unstaged changes are put aside."""
    tree = tmp_path / "tree"
    git(notes, "worktree", "add", "-q", "-b", "linked", str(tree))
    configure(tree, hooks, "mdmem-check", "mdmem-secrets")
    subprocess.run([*program(), "install"], cwd=tree, check=True, capture_output=True)
    git(tree, "config", "core.autocrlf", "input")
    git(tree, "config", "submodule.recurse", "true")
    (tree / "a.md").write_text("one\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "clean")
    (tree / "a.md").write_text(f"two\n{KEY}\n")
    git(tree, "add", "a.md")
    (tree / "a.md").write_text("three, not staged\n")
    out = git(tree, "commit", "-qm", "x", code=1)
    assert "a.md:2: aws-key" in out and KEY not in out
    assert (tree / "a.md").read_text() == "three, not staged\n"
    git(tree, "add", "a.md")
    git(tree, "commit", "-qm", "clean again", "--", "a.md")
