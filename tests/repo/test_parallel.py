"""Machines that sync at the very same time: races are lost and run again, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .conftest import World
from .test_sync import meet, note

WORKER = """
import sys
from pathlib import Path
from mdmem.repo.git import Git
from mdmem.repo.sync import sync
top, me, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for i in range(rounds):
    (top / f"{me}-{i}.md").write_text(f"---\\nid: mem-{me}-{i}\\n---\\nfrom {me}\\n")
    shared = top / "a.md"
    shared.write_text(shared.read_text().rstrip("\\n") + f"\\n\\nline {me} {i}\\n")
    result = sync(Git(top), top / ".git/mdmem/write.lock", trailers={"Device": me})
    assert result.state not in ("refused", "offline"), result
    print(result.state, result.reason)
"""


def run(world: World, names: list[str], rounds: int) -> list[str]:
    root = str(Path(__file__).resolve().parents[2])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(world.folder / name), name, str(rounds)],
            env={**os.environ, "PYTHONPATH": root}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for name in names
    ]  # fmt: skip
    told = []
    for process in started:
        out, err = process.communicate(timeout=280)
        assert process.returncode == 0, err
        told.append(out)
    return told


def test_four_machines_that_sync_at_once(world: World) -> None:
    one, two = world.pair({"a.md": note("mem-a", "first\n")})
    clones = [one, two, world.clone("m3"), world.clone("m4")]
    run(world, [clone.name for clone in clones], 2)
    meet(*clones)
    text = one.read("a.md")
    for clone in clones:
        for number in range(2):
            assert f"line {clone.name} {number}\n" in text
            assert f"{clone.name}-{number}.md" in one.files()


def test_two_syncs_and_a_writer_in_one_clone(world: World) -> None:
    one, two = world.pair({"a.md": note("mem-a", "first\n")})
    two.save("b.md", note("mem-b"))
    two.sync()
    run(world, ["laptop", "laptop"], 2)
    meet(one, two)
    assert {"laptop-0.md", "laptop-1.md", "b.md"} <= set(one.files())
