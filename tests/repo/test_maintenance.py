"""Packing happens off the hot path, when there is something to pack."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mdmem.locks import try_lock
from mdmem.repo import maintenance
from mdmem.repo.git import Git

from .conftest import World
from .test_sync import note


def test_g42_many_small_commits_are_packed(world: World) -> None:
    one, _ = world.pair()
    assert not maintenance.due(one.git, one.clock)
    sample = one.top / ".git" / "objects" / maintenance._SAMPLE
    for number in range(3):
        one.save(f"n{number}.md", note(f"mem-{number}"))
    sample.mkdir(exist_ok=True)
    for number in range(8):
        (sample / f"{number:038x}").touch()
    assert maintenance.due(one.git, one.clock)
    for number in range(8):
        (sample / f"{number:038x}").unlink()
    loose = int(one.sh("count-objects").split()[0])
    assert loose > 9
    assert maintenance.maintain(one.git)
    assert int(one.sh("count-objects").split()[0]) == 0
    one.healthy()


def test_it_is_started_once_an_hour_in_a_process_of_its_own(world: World) -> None:
    one, _ = world.pair()
    sample = one.top / ".git" / "objects" / maintenance._SAMPLE
    sample.mkdir(exist_ok=True)
    names = [sample / f"{number:038x}" for number in range(8)]
    for name in names:
        name.touch()
    assert maintenance.start_if_due(one.git, one.clock)
    assert not maintenance.start_if_due(one.git, one.clock)
    one.clock.advance(minutes=61)
    assert maintenance.due(one.git, one.clock)
    for name in names:
        name.unlink()
    for _ in range(200):  # the process is nobody's child: its work is what can be seen
        if not (one.top / ".git" / "mdmem" / "maintenance.lock").exists():
            time.sleep(0.05)
    assert (one.top / ".git" / "mdmem" / "maintenance.lock").exists()


def test_few_objects_of_many_bytes_are_packed_after_ten_minutes(world: World) -> None:
    one, _ = world.pair()
    for name in maintenance._WEIGHED:
        folder = one.top / ".git" / "objects" / name
        folder.mkdir(exist_ok=True)
        with open(folder / ("0" * 38), "wb") as file:  # a large list of files, as sparse as the test likes
            file.truncate(maintenance._HEAVY // 4)
    assert maintenance.due(one.git, one.clock)
    maintenance._mark(one.git).touch()
    os.utime(maintenance._mark(one.git), (one.clock.now().timestamp(), one.clock.now().timestamp()))
    assert not maintenance.due(one.git, one.clock)
    one.clock.advance(minutes=11)
    assert maintenance.due(one.git, one.clock)
    (folder / ("0" * 38)).unlink()
    assert not maintenance.due(one.git, one.clock)


def test_as_a_program_it_finds_its_package(world: World) -> None:
    one, _ = world.pair()
    done = subprocess.run(
        [sys.executable, "-I", maintenance.__file__, str(one.top)], capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    assert (Path(one.top) / ".git" / "objects" / "info" / "commit-graphs").exists()


def test_one_process_packs_at_a_time_and_nothing_that_fails_is_told(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = Git(repo)
    with try_lock(git.common_dir / "mdmem" / "maintenance.lock") as free:
        assert free and maintenance.maintain(git) is False
    assert maintenance.main([str(tmp_path / "nowhere")]) == 1 and maintenance.main([str(repo)]) == 0
    monkeypatch.setattr(maintenance, "due", lambda *_: True)
    shutil.rmtree(repo / ".git" / "mdmem")
    (repo / ".git" / "mdmem").write_text("a file where a folder belongs")
    assert maintenance.start_if_due(git) is False
