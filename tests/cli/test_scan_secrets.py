"""`mdmem scan-secrets`: kind and line of each secret, never its value; what cannot be looked at fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mdmem.store import Store
from tests.another_user import permissions_count

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


@permissions_count
def test_a_note_that_cannot_be_read_fails(store: Store) -> None:
    (store.root / "a.md").write_text("x")
    (store.root / "a.md").chmod(0)
    assert "could not look at a.md" in run(cwd=store.root, code=1)[1]


def test_a_note_by_its_id_the_start_of_one_or_its_title(store: Store) -> None:
    (store.root / "by hand.md").write_text(f"---\nid: mem-byhand42\ntitle: Written by hand\n---\n{KEY}\n")
    (store.root / "other.md").write_text("---\nid: mem-other\ntitle: Other\n---\nclean\n")
    for name in ("mem-byhand42", "mem-byh", "Written by hand"):
        assert run(name, cwd=store.root, code=1)[0] == "by hand.md:5: aws-key\n"
    assert run("mem-other", cwd=store.root, code=0)[0] == ""
    assert "nosuch" in run("nosuch", cwd=store.root, code=1)[1]


@pytest.mark.parametrize("command", ["check", "fmt"])
def test_check_and_fmt_take_a_note_by_id_and_title(command: str, store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    from mdmem.cli.main import run as cli

    (store.root / "a.md").write_text("---\nid: mem-aaaa1\ntitle: First\ntags: [x, y]\ncreated: someday\n---\ntext\n")
    (store.root / "b.md").write_text("---\nid: mem-bbbb1\ntitle: Second\ntags: [x, y]\ncreated: someday\n---\ntext\n")
    for name in ("mem-aaaa1", "mem-aaa", "First"):
        cli(["-C", str(store.root), command, name, "--json", *(["--check"] if command == "fmt" else [])])
        out = capfd.readouterr().out
        assert "a.md" in out and "b.md" not in out
        assert json.loads(out)["checked"] == 1
    assert cli(["-C", str(store.root), command, "nosuch"]) == 3
