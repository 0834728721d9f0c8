"""What the pre-commit hooks run, in the environment that git gives to hooks: variables that name another repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mdmem.store import Store

ROOT = Path(__file__).resolve().parents[2]
KEY = "AKIA" + "A1B2C3D4E5F6G7H8"


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A repository of somebody else's, with staged work."""
    top = tmp_path / "code"
    top.mkdir()
    (top / "main.c").write_text("int main;\n")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(top), *words], check=True)
    return top


def state(top: Path) -> str:
    argv = ["git", "-C", str(top), "status", "--porcelain=v2"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["check"], 1, "bad.md"),
        (["fmt", "--check"], 1, "list.md"),
        (["scan-secrets"], 1, "secret.md:3: aws-key"),
        (["scan-secrets", "secret.md"], 1, "secret.md:3: aws-key"),
        (["index", "refresh", "--no-vectors"], 0, ""),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_g26_the_hooks_see_their_own_store(words: list[str], code: int, said: str, store: Store, foreign: Path) -> None:
    (store.root / "bad.md").write_text("---\ntitle: 'don't'\n---\n")
    (store.root / "list.md").write_text("---\nid: mem-list\nkind: memory\ntags: [a, b]\n---\nx\n")
    (store.root / "secret.md").write_text(f"# s\n\n{KEY}\n")
    git_dir = foreign / ".git"
    before = state(foreign)
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "GIT_DIR": str(git_dir),
        "GIT_WORK_TREE": str(foreign),
        "GIT_COMMON_DIR": str(git_dir),
        "GIT_INDEX_FILE": str(git_dir / "index"),
        "GIT_OBJECT_DIRECTORY": str(git_dir / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(git_dir / "objects"),
        "GIT_PREFIX": "sub/",
        "GIT_CONFIG_PARAMETERS": "'core.fsmonitor=false'",
        "GIT_NAMESPACE": "other",
        "GIT_EXEC_PATH": os.environ.get("GIT_EXEC_PATH", ""),
        "GIT_AUTHOR_NAME": "Somebody Else",
        "GIT_EDITOR": ":",
        "GIT_REFLOG_ACTION": "commit",
    }
    env = {name: value for name, value in env.items() if value}
    argv = [sys.executable, "-m", "mdmem", *words]
    done = subprocess.run(argv, cwd=store.root, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout and "main.c" not in done.stdout + done.stderr and KEY not in done.stdout + done.stderr
    assert state(foreign) == before
