"""mdmem called from inside another git: nothing foreign enters either repository."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Sh, World
from .test_sync import note

ROOT = str(Path(__file__).resolve().parents[2])
SAVE = """
import sys
from pathlib import Path
from mdmem.repo.commit import commit_paths
from mdmem.repo.git import Git
top = Path(sys.argv[1])
(top / "from-hook.md").write_text("x" + sys.argv[2])
assert commit_paths(Git(top), ["from-hook.md"], "remember: hook", {}).done
"""


@pytest.mark.parametrize("how", [("-a",), ("--", "code.py"), ()])
def test_g26_a_hook_of_one_repository_that_saves_in_another(how: tuple[str, ...], repo: Path, tmp_path: Path, sh: Sh) -> None:
    sh(tmp_path, "init", "-q", "app")
    app = tmp_path / "app"
    (app / "code.py").write_text("1\n")
    sh(app, "add", ".")
    sh(app, "commit", "-qm", "code")
    sh(app, "worktree", "add", "-q", str(tmp_path / "wt"), "-b", "side")
    hook = app / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nPYTHONPATH='{ROOT}' '{sys.executable}' -c '{SAVE}' '{repo}' \"$$\"\n")
    hook.chmod(0o755)
    for top in (app, tmp_path / "wt"):
        (top / "code.py").write_text(f"2 {top.name}\n")
        if not how:
            sh(top, "add", "code.py")
        sh(top, "commit", "-qm", "more", *how)
        assert sh(top, "show", "--name-only", "--format=", "HEAD").split() == ["code.py"]
        assert sh(top, "status", "--porcelain") == ""
        assert sh(repo, "show", "--name-only", "--format=", "HEAD").split() == ["from-hook.md"]
        assert sh(repo, "status", "--porcelain") == ""
        sh(top, "fsck", "--strict")


def test_g15_six_thousand_notes_and_one_change(world: World, tmp_path: Path) -> None:
    one, two = world.pair({f"d{i % 60}/n{i}.md": note(f"mem-{i}") for i in range(6000)})
    one.save("d1/n1.md", note("mem-1", "changed\n"))
    spent = []
    for step in (one.sync, two.sync, one.sync):
        before = os.times()
        step()
        after = os.times()
        # The processor's time and not the clock's: other work on the machine does not count.
        spent.append(sum(after[:4]) - sum(before[:4]))
    assert max(spent) < 2.0, spent


def test_no_process_is_left_over(world: World) -> None:
    one, two = world.pair()
    one.save("b.md", note("mem-b"))
    one.sync()
    two.sync()
    for _ in range(40):
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        ours = [line for line in listed.splitlines() if str(world.folder) in line and "git" in line]
        if not ours:
            return
        time.sleep(0.05)
    raise AssertionError(ours)
