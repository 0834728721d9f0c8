"""A disk that is really full: a store on a small tmpfs, with less and less room left for each command that writes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.injected import count

from .test_nth_call import CODES, SCENES, Bench, check, repaired

ROOM = (4000, 0, 8, 16, 40)  # KB that are left
ROOT = str(Path(__file__).resolve().parents[2])


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(folder: Path, room: int) -> Path:
    """Fill the disk until only `room` KB are left; returns the file that does it."""
    gc.collect()  # an index that an earlier command of this process still holds open would give its room back later
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as stream:
        while (left := os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize - room * 1024) > 0:
            stream.write(b"\0" * left)
    return filler


@pytest.mark.parametrize("scene", ["remember", "set", "sync"])
def test_a_command_on_a_full_disk_loses_nothing(scene: str, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # What lies outside the store has room: the store's disk is full, not the machine's.
    bench = Bench(small)
    (small / "world").mkdir()
    SCENES[scene](bench)
    before = bench.notes()
    bench.keep()
    bench.run(*bench.args)
    after = bench.notes()
    felt = []
    for room in ROOM:
        bench.reset()
        filler = fill(small, room)
        count("commands on a full disk")
        capsys.readouterr()
        words = [sys.executable, "-m", "mdmem", "-C", str(bench.store), *bench.args]
        done = subprocess.run(words, env={**os.environ, "PYTHONPATH": ROOT}, capture_output=True, text=True, check=False)
        where = f"{scene} with {room} KB left: exit {done.returncode}, {done.stderr}"
        assert done.returncode in CODES and "unexpected" not in done.stderr, where
        felt.append(done.returncode not in (0, 4) or "not committed" in done.stderr)
        check(bench, before, after, where)
        filler.unlink()
        repaired(bench, done.returncode, capsys, where)
    assert not felt[0] and any(felt[1:]), felt  # a disk that was not full, and some that were
