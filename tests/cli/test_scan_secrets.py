"""`mdmem scan-secrets`: kind and line of each secret, never its value; what cannot be looked at fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mdmem.store import Store

KEY = "AKIA" + "A1B2C3D4E5F6G7H8"


def run(*args: str, cwd: Path, code: int) -> tuple[str, str]:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    command = [sys.executable, "-m", "mdmem", "scan-secrets", *args]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    assert KEY not in done.stdout + done.stderr
    return done.stdout, done.stderr


def test_the_notes_of_the_store(store: Store) -> None:
    assert run(cwd=store.root, code=0) == ("", "")
    (store.root / "by hand.md").write_text(f"# x\n\n{KEY}\n密码：hunter2\n{KEY} mdmem:allow-secret\n")
    out, err = run(cwd=store.root, code=1)
    assert out == "by hand.md:3: aws-key\nby hand.md:4: password\n" and "2 secrets" in err
    data = json.loads(run("--json", cwd=store.root, code=1)[0])
    assert data["findings"][0] == {"path": "by hand.md", "line": 3, "kind": "aws-key", "commit": ""}


def test_files_outside_any_store(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.md").write_text(f"{KEY}\n")
    (tmp_path / "b.md").write_text("clean\n")
    assert run("b.md", cwd=tmp_path, code=0)[0] == ""
    assert run("b.md", "d", cwd=tmp_path, code=1)[0] == "d/a.md:1: aws-key\n"
    assert "could not look at missing.md" in run("missing.md", cwd=tmp_path, code=1)[1]


def test_history(store: Store) -> None:
    def git(*args: str) -> None:
        subprocess.run(["git", "-C", str(store.root), *args], check=True, capture_output=True)

    (store.root / "a.md").write_text(f"{KEY}\n")
    git("add", "-A")
    git("commit", "-qm", "oops")
    (store.root / "a.md").write_text("clean\n")
    git("commit", "-qam", "clean")
    assert run(cwd=store.root, code=0)[0] == ""
    out = run("--history", cwd=store.root, code=1)[0]
    assert out.startswith("a.md:1: aws-key (commit ")
    assert run("--unpushed", cwd=store.root, code=1)[0] == out
    assert run("--history", "--staged", cwd=store.root, code=2)[0] == ""


def test_inside_another_repository_only_our_folders_count(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=code, check=True)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    (code / "app.py").write_text(f'KEY = "{KEY}"\n')
    subprocess.run(["git", "add", "app.py"], cwd=code, check=True)
    subprocess.run([sys.executable, "-m", "mdmem", "init", "."], cwd=code, env=env, check=True, capture_output=True)
    (code / "memories").mkdir(exist_ok=True)
    (code / "memories" / "m.md").write_text(f"{KEY}\n")
    subprocess.run(["git", "add", "-A"], cwd=code, check=True)
    assert run("--staged", cwd=code, code=1)[0] == "memories/m.md:1: aws-key\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_note_that_cannot_be_read_fails(store: Store) -> None:
    (store.root / "a.md").write_text("x")
    (store.root / "a.md").chmod(0)
    assert "could not look at a.md" in run(cwd=store.root, code=1)[1]
