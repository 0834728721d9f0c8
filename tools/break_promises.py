"""Break the code of each promise on purpose, one place at a time, and see that a test fails for every one.

    python tools/break_promises.py                 all of them; exit code 1 when a break goes unnoticed
    python tools/break_promises.py lock redaction  those whose name holds one of the words
    python tools/break_promises.py --jobs 2        two at a time, each in a copy of its own
    python tools/break_promises.py --record FILE   keep what came out in FILE (JSON), and use what in it still holds
    python tools/break_promises.py --list

Each break (they stand in breaks.py) replaces one piece of text, which must stand exactly once in its file, in a copy of the
working tree, and runs the tests that ought to notice, file by file until one fails. These are run once on the unbroken copy
first: a red test proves nothing. Exit code 2: a text is not where it should be, or a test is red without a break.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from breaks import BREAKS, Break

ROOT = Path(__file__).resolve().parent.parent
# Seconds for one run of the tests of a break; a break may well make them hang, which counts as noticed.
LIMIT = 420
PROMISES = {
    1: "nothing is lost", 2: "one bad file", 3: "no side picked", 4: "the index is disposable", 5: "offline is normal",
    6: "a hook never hurts", 7: "a pulled repository is data", 8: "secrets stop", 9: "without a model",
    10: "machines can read it",
}  # fmt: skip


@dataclass
class Outcome:
    """What came of a break: the test file that failed ('': none did), seconds, and what it was found for."""

    by: str
    seconds: float
    of: str


@dataclass
class Trees:
    """Copies of the working tree, one a worker; which tests pass in an unbroken one."""

    top: Path
    free: list[Path] = field(default_factory=list)
    green: dict[str, bool] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> Path:
        """Return a copy that nobody uses."""
        with self.lock:
            if self.free:
                return self.free.pop()
            tree = Path(tempfile.mkdtemp(dir=self.top))
            copy(tree)
            return tree

    def give(self, tree: Path) -> None:
        with self.lock:
            self.free.append(tree)


def places(breaks: Sequence[Break] = BREAKS) -> list[str]:
    """Return a line for every break whose text does not stand exactly once in its file, or whose tests are not there."""
    names = Counter(one.name for one in breaks)
    wrong = [f"{name}: two breaks have this name" for name in names if names[name] > 1]
    for one in breaks:
        found = (ROOT / one.file).read_text("utf-8").count(one.old)
        if found != 1:
            wrong.append(f"{one.name}: its text stands {found} times in {one.file}")
        wrong += [f"{one.name}: no {test}" for test in one.tests.split() if not (ROOT / test).exists()]
    return wrong


def copy(to: Path) -> None:
    """Copy what the tests need, as it is in the working tree."""
    for name in ("mdmem", "tests", "templates", "hooks", "docs", "tools", "benchmarks", "skills", ".claude-plugin"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy2(file, to / file.name)


def run(tree: Path, tests: str) -> bool:
    """Return whether the tests pass in a tree; running out of time is a failure."""
    env = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests.split()]
    process = subprocess.Popen(
        command, cwd=tree, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        process.communicate(timeout=LIMIT)
        # 1 is a failed test; an interrupted or an empty run (2 to 5) tells nothing and counts as passed.
        return process.returncode != 1
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return False


def noticed(one: Break, tree: Path) -> str:
    """Apply a break in the copy, run its tests file by file, put the code back; returns the test file that failed, or ''."""
    file = tree / one.file
    whole = file.read_text("utf-8")
    file.write_text(whole.replace(one.old, one.new), "utf-8")
    try:
        return next((test for test in one.tests.split() if not run(tree, test)), "")
    finally:
        file.write_text(whole, "utf-8")


def mark(one: Break) -> str:
    """Return what an outcome is good for: this break of this text by these tests."""
    data = repr(one).encode()
    for name in (one.file, *one.tests.split()):
        place = ROOT / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            data += file.read_bytes()
    return hashlib.sha256(data).hexdigest()[:16]


def try_one(one: Break, trees: Trees) -> Outcome:
    """Return what comes of a break. Raises RuntimeError when a test is red without it."""
    start = time.monotonic()
    tree = trees.take()
    try:
        by = noticed(one, tree)
        seconds = time.monotonic() - start
        # A test that failed proves something only if it passes without the break; one that did not need not be asked.
        if by and by not in trees.green:
            trees.green[by] = run(tree, by)
        if by and not trees.green[by]:
            raise RuntimeError(f"{by} is red without any break")
        return Outcome(by, round(seconds, 1), mark(one))
    finally:
        trees.give(tree)


def kept(record: Path | None) -> dict[str, Outcome]:
    """Return the outcomes of an earlier run."""
    if record is None or not record.exists():
        return {}
    return {name: Outcome(**found) for name, found in json.loads(record.read_text("utf-8")).items()}


def table(breaks: Sequence[Break], found: dict[str, Outcome]) -> list[str]:
    """Return the outcomes in figures, a line a promise (a markdown table)."""
    lines = ["| promise | breaks | noticed | seconds |", "|---|---|---|---|"]
    for number, title in PROMISES.items():
        mine = [found[one.name] for one in breaks if one.promise == number and one.name in found]
        if mine:
            seen = sum(bool(outcome.by) for outcome in mine)
            lines.append(f"| {number}: {title} | {len(mine)} | {seen} | {sum(outcome.seconds for outcome in mine):.0f} |")
    every = [found[one.name] for one in breaks if one.name in found]
    seen = sum(bool(outcome.by) for outcome in every)
    return [*lines, f"| all | {len(every)} | {seen} | {sum(outcome.seconds for outcome in every):.0f} |"]


def try_all(breaks: Sequence[Break], jobs: int, record: Path | None) -> dict[str, Outcome]:
    """Try breaks, tell of each, keep the outcomes. Raises RuntimeError as try_one."""
    found = dict(kept(record))
    known = [one for one in breaks if one.name in found and found[one.name].of == mark(one) and found[one.name].by]
    # What went unnoticed before comes last: the others are news.
    todo = sorted((one for one in breaks if one not in known), key=lambda one: one.name in found)
    done = len(known)
    if known:
        print(f"{done} known from {record}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mdmem-break-") as top, ThreadPoolExecutor(jobs) as pool:
        trees = Trees(Path(top))
        for one, outcome in zip(todo, pool.map(lambda one: try_one(one, trees), todo)):
            done += 1
            found[one.name] = outcome
            by = f"noticed by {outcome.by}" if outcome.by else "NOT NOTICED"
            print(f"[{done}/{len(breaks)}] {one.promise:2} {one.name:42} {by} ({outcome.seconds:.0f} s)", flush=True)
            if record is not None:
                now = {**kept(record), one.name: outcome}
                record.write_text(json.dumps({name: vars(value) for name, value in now.items()}, indent=1), "utf-8")
    return found


def main() -> int:
    """Break what the command line names; returns 0 when every break was noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="only the breaks whose name holds one of these")
    parser.add_argument("--list", action="store_true", help="print the table and run nothing")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the outcomes there, and use those that still hold")
    asked = parser.parse_args()
    chosen = [one for one in BREAKS if not asked.words or any(word in one.name for word in asked.words)]
    if asked.list:
        for one in chosen:
            print(f"promise {one.promise:2}  {one.name:42} {one.file}")
        return 0
    if wrong := places(chosen):
        print("\n".join(wrong))
        return 2
    start = time.monotonic()
    try:
        found = try_all(chosen, asked.jobs, asked.record)
    except RuntimeError as error:
        print(error)
        return 2
    print("\n".join(["", *table(chosen, found), ""]))
    unnoticed = [one.name for one in chosen if not found[one.name].by]
    print(f"{len(chosen)} breaks, {len(unnoticed)} not noticed, {time.monotonic() - start:.0f} s in all")
    print("".join(f"not noticed: {name}\n" for name in unnoticed), end="")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    raise SystemExit(main())
