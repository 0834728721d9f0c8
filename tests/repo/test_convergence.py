"""Convergence: three to five machines edit at random, sync in any order, and are killed between any two steps.

In the end every clone holds the same bytes, and every id, sentence and tag that was written and not taken away is there.
The long form: `pytest tests/repo/test_convergence.py --nightly` (2,000 sequences, or
MDMEM_SEQUENCES of them, from the seed MDMEM_FIRST_SEQUENCE); it prints how many went through.
"""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mdmem.notes import disk
from mdmem.notes.frontmatter import edit
from mdmem.notes.note import load
from mdmem.repo import git as runner
from mdmem.repo.merge import find_conflicts, settle

from .conftest import Clone, World

# Read here: the fixtures take MDMEM_ variables away.
SHORT, LONG = (int(os.environ.get("MDMEM_SEQUENCES", default)) for default in (25, 2000))
FIRST = int(os.environ.get("MDMEM_FIRST_SEQUENCE", 1000))
WORDS = re.compile(rb"\b(?:s|tag)-\d+\b")


def crash_after(count: int) -> None:
    """Make this process die, as by SIGKILL, after `count` steps: a step is a git call or a change of the disk."""
    left = [count]

    def tick() -> None:
        left[0] -= 1
        if left[0] < 0:
            os._exit(137)

    call = runner.run_git

    def run_git(*args: object, **options: object) -> object:
        tick()
        done = call(*args, **options)  # type: ignore[arg-type]
        tick()
        return done

    runner.run_git = run_git  # type: ignore[assignment]
    disk.step = lambda name, path: tick()


def in_child(action: Callable[[], object], steps: int) -> bool:
    """Run an action in a forked process that dies after `steps`; returns whether it lived."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            crash_after(steps)
            action()
            os._exit(0)
        except BaseException as error:
            sys.stderr.write(f"child: {type(error).__name__}: {error}\n")
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 137), code
    return code == 0


class Sequence:
    """One random history, replayable from its seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World(folder)
        self.count = 0
        self.written: set[bytes] = set()
        self.gone: set[bytes] = set()
        self.ids: set[str] = set()
        first = self.world.clone("m0")
        first.write(".gitattributes", "*.md -text merge=mdmem\n")
        self.clones = [first]
        for number in range(3):
            self.create(first, f"mem-base{number}")
        first.sync()
        self.clones += [self.world.clone(f"m{n}") for n in range(1, self.rng.randint(3, 5))]

    def fresh(self, kind: str = "s") -> str:
        self.count += 1
        return f"{kind}-{self.count}"

    def put(self, clone: Clone, path: str, data: bytes | None) -> None:
        """Write a note as an editor does, and keep the ledger: what went out of the text was taken away."""
        target = clone.top / path
        before = set(WORDS.findall(target.read_bytes())) if target.exists() else set()
        after = set(WORDS.findall(data or b""))
        self.gone |= before - after
        self.written |= after
        if data is None:
            identity = load(path, target.read_bytes()).id
            self.ids.discard(identity or "")
            target.unlink()
        else:
            clone.write(path, data)

    def notes(self, clone: Clone) -> list[str]:
        return [path for path in clone.files() if path.endswith(".md")]

    def create(self, clone: Clone, identity: str = "") -> None:
        identity = identity or self.rng.choice([f"mem-{self.fresh()}", "mem-shared1", "mem-shared2"])
        name = self.rng.choice(["alpha", "beta", "gamma"])
        path = f"memories/{name}-{identity}.md"
        if (clone.top / path).exists():
            return
        body = "".join(f"A sentence {self.fresh()}.\n\n" for _ in range(self.rng.randint(1, 4)))
        text = f"---\nid: {identity}\ntitle: {name}\ntags:\n  - {self.fresh('tag')}\n---\n{body}"
        self.ids.add(identity)
        self.put(clone, path, text.encode())

    def edit_body(self, clone: Clone, path: str) -> None:
        lines = (clone.top / path).read_text().split("\n")
        places = [n for n, line in enumerate(lines) if line.startswith("A sentence ")]
        what = self.rng.choice(["append", "replace", "remove", "insert"])
        if what == "append" or not places:
            lines += [f"A sentence {self.fresh()}.", ""]
        else:
            place = self.rng.choice(places)
            if what == "replace":
                lines[place] = f"A sentence {self.fresh()}."
            elif what == "remove":
                del lines[place]
            else:
                lines[place:place] = [f"A sentence {self.fresh()}.", ""]
        self.put(clone, path, "\n".join(lines).encode())

    def edit_field(self, clone: Clone, path: str) -> None:
        data = (clone.top / path).read_bytes()
        note = load(path, data)
        what = self.rng.choice(["tag", "untag", "scalar", "unknown"])
        if what == "tag":
            changed = edit(data, {"tags": [*note.tags, self.fresh("tag")]})
        elif what == "untag" and note.tags:
            changed = edit(data, {"tags": list(note.tags[1:])})
        elif what == "scalar":
            changed = edit(data, {"importance": f"0.{self.rng.randint(1, 9)}"})
        else:
            changed = edit(data, {"my-own": self.fresh("x")})
        self.put(clone, path, changed)

    def rename(self, clone: Clone, path: str) -> None:
        target = f"memories/{self.rng.choice('xyz')}-{self.fresh('n')}.md"
        (clone.top / path).rename(clone.top / target)

    def resolve(self, clone: Clone, path: str) -> None:
        data = (clone.top / path).read_bytes()
        for conflict in find_conflicts(data)[:1]:
            settled = settle(data, conflict.name, self.rng.choice(["1", "2"]))
            self.put(clone, path, settled or None)

    def act(self, clone: Clone) -> None:
        paths = self.notes(clone)
        what = self.rng.choices(["create", "body", "field", "rename", "delete", "resolve"], [3, 6, 4, 2, 1, 2])[0]
        if what == "create" or not paths:
            self.create(clone)
            return
        path = self.rng.choice(paths)
        if what == "delete":
            self.put(clone, path, None)
        else:
            steps = {"body": self.edit_body, "field": self.edit_field, "rename": self.rename, "resolve": self.resolve}
            steps[what](clone, path)

    def run(self) -> None:
        for _ in range(self.rng.randint(6, 14)):
            clone = self.rng.choice(self.clones)
            clone.clock.advance(seconds=self.rng.randint(0, 5000))
            for _ in range(self.rng.randint(1, 3)):
                self.act(clone)
            if self.rng.random() < 0.4:
                in_child(clone.sync, self.rng.randint(0, 70))
            elif self.rng.random() < 0.7:
                assert clone.sync().state not in ("refused", "offline")
        self.settle_all()
        self.check()

    def settle_all(self) -> None:
        for _ in range(5):
            for clone in self.clones:
                result = clone.sync()
                assert result.state not in ("refused", "offline"), result
            if len({clone.sh("rev-parse", "HEAD") for clone in self.clones}) == 1:
                return
        raise AssertionError("the clones do not come to rest")

    def check(self) -> None:
        files = self.clones[0].files()
        for clone in self.clones:
            assert clone.files() == files
            clone.healthy()
        plain = b"\n".join(files.values())
        missing = self.written - self.gone - set(WORDS.findall(plain))
        assert not missing, missing
        names: set[str] = set()
        for path, data in files.items():
            if path.endswith(".md"):
                note = load(path, data)
                assert note.ok, (path, note.doc.problem)
                names |= {note.id or "", *note.aliases}
        assert self.ids <= names, self.ids - names


def sequences() -> list[int]:
    return list(range(SHORT))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked process")
@pytest.mark.parametrize("seed", sequences())
def test_all_clones_end_equal_and_nothing_is_lost(seed: int, tmp_path: Path) -> None:
    Sequence(tmp_path / "w", seed).run()


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked process")
def test_two_thousand_sequences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    for done, seed in enumerate(range(FIRST, FIRST + LONG)):
        folder = tmp_path / str(seed)
        try:
            Sequence(folder, seed).run()
        except BaseException as error:
            raise AssertionError(f"seed {seed} after {done} good ones, kept in {folder}") from error
        shutil.rmtree(folder)
    with capsys.disabled():
        print(f"\n{LONG} sequences: all clones ended equal, and nothing was lost", end=" ")
