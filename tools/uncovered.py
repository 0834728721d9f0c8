"""How much of the rooms that write memories, speak to git and answer is run by the tests, and why the rest is not.

    python tools/uncovered.py                 run the tests with coverage (branches; processes they start count), then tell
    python tools/uncovered.py tests/repo …    run these alone and add what they reach to what is known already
    python tools/uncovered.py --tell          only tell what is known

What no test reaches stands in tools/uncovered.toml with its reason. Exit 1 when a test fails, when a place has no reason,
when a reason has lost its place in the code, or when a room is below --least percent of its branches.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
ROOMS = ("notes", "repo", "recall")
REASONS = TOP / "tools" / "uncovered.toml"
DATA = TOP / "build" / "coverage" / "data"
TESTS = ("tests/notes", "tests/repo", "tests/recall")
# Files that only run where a package is installed; elsewhere they are not counted, and that is said.
NEEDS = {"mdmem/recall/shared.py": "pymilvus", "mdmem/recall/shared_note.py": "pymilvus"}
# They look at what the measuring itself changes: how fast text is read, what is loaded by an import.
LEFT_OUT = (
    "tests/notes/test_redact_hostile.py::test_ordinary_text_is_read_at_twenty_megabytes_a_second",
    "tests/repo/test_git.py::test_importing_the_runner_starts_nothing_heavy",
    "tests/cli/test_tree.py::test_version_starts_without_click",
)


@dataclass(frozen=True)
class Place:
    """Code that no test reaches: the function, the line (stripped), and where a branch that was never taken leads."""

    file: str
    inside: str
    line: str
    to: str = ""

    def __str__(self) -> str:
        return f"{self.file}  {self.inside}:  {self.line}" + (f"  ->  {self.to}" if self.to else "")


@dataclass
class Room:
    """What was counted in one room."""

    lines: int = 0
    lines_run: int = 0
    branches: int = 0
    branches_run: int = 0

    def share(self) -> float:
        """Return the branches that were taken, in percent."""
        return 100.0 * self.branches_run / self.branches if self.branches else 100.0

    def __str__(self) -> str:
        lines = 100.0 * self.lines_run / self.lines if self.lines else 100.0
        return (
            f"{self.share():.1f} % of branches ({self.branches_run} of {self.branches}), "
            f"{lines:.1f} % of lines ({self.lines_run} of {self.lines})"
        )


def coverage(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run coverage with the settings of pyproject.toml."""
    command = [sys.executable, "-m", "coverage", words[0], f"--rcfile={TOP / 'pyproject.toml'}", *words[1:]]
    there = {**os.environ, "COVERAGE_TOP": str(TOP), "COVERAGE_FILE": str(DATA), **(env or {})}
    return subprocess.run(command, cwd=TOP, env=there, capture_output=True, text=True, check=False)


def run_tests(paths: list[str], workers: int) -> int:
    """Run tests with coverage and add what they and their processes reached to DATA; returns pytest's exit code."""
    DATA.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="run-", dir=DATA.parent))
    env = {**os.environ, "COVERAGE_TOP": str(TOP), "COVERAGE_FILE": str(fresh / "data"), "PYTHONPATH": str(TOP)}
    skip = [word for name in LEFT_OUT for word in ("--deselect", name)]
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--cov", "--cov-report=", *skip, *paths]
    try:
        code = subprocess.run(command, cwd=TOP, env=env, check=False).returncode
        # A process that was killed may have left half a file: that one is named on stderr and left out.
        told = coverage("combine", "--append", "--quiet", *map(str, fresh.iterdir()))
        print(told.stdout + told.stderr, end="", file=sys.stderr)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return code


def measured() -> tuple[dict[str, Room], list[Place]]:
    """Return the counts of each room and what was not reached, from DATA."""
    with tempfile.TemporaryDirectory() as folder:
        told = coverage("json", "--quiet", "-o", f"{folder}/told.json")
        if told.returncode:
            sys.exit(f"nothing is measured yet: {(told.stdout + told.stderr).strip()}")
        files: dict[str, dict[str, Any]] = json.loads(Path(folder, "told.json").read_bytes())["files"]
    rooms = {name: Room() for name in ROOMS}
    found: list[Place] = []
    for name, seen in sorted(files.items()):
        path = TOP / name
        if lacks(path):
            continue
        room = rooms[path.relative_to(TOP).parts[1]]
        counted = seen["summary"]
        room.lines += counted["num_statements"]
        room.lines_run += counted["covered_lines"]
        room.branches += counted["num_branches"]
        room.branches_run += counted["covered_branches"]
        found += places(Source(path), seen["missing_lines"], seen["missing_branches"])
    return rooms, list(dict.fromkeys(found))


def lacks(path: Path) -> str:
    """Return the package that a file needs and that is not installed, else nothing."""
    package = NEEDS.get(path.relative_to(TOP).as_posix(), "")
    return package if package and importlib.util.find_spec(package) is None else ""


def functions(tree: ast.Module) -> Iterator[tuple[int, int, str]]:
    """Yield (first line, last line, dotted name) of each function and class, outer ones first."""
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, name = waiting.pop(0)
        for child in ast.iter_child_nodes(node):
            below = name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                below = f"{name}.{child.name}" if name else child.name
                yield child.lineno, child.end_lineno or child.lineno, below
            waiting.append((child, below))


class Source:
    """The text of one file, asked by line number."""

    def __init__(self, path: Path) -> None:
        self.file = path.relative_to(TOP).as_posix()
        text = path.read_text("utf-8")
        self.lines = ["", *text.splitlines()]
        self.spans = list(functions(ast.parse(text)))

    def line(self, number: int) -> str:
        """Return a line without its indent and comment; a number below zero is the end of a function."""
        return self.lines[number].strip().split("  # ")[0] if number > 0 else "end"

    def has(self, line: str, inside: str) -> bool:
        """Tell whether a function has this line; each one has an end."""
        return line == "end" or any(
            self.line(at) == line and self.inside(at) == inside for at in range(1, len(self.lines))
        )

    def inside(self, number: int) -> str:
        """Return the innermost function or class around a line."""
        name = "top"
        for first, last, found in self.spans:
            if first <= number <= last:
                name = found
        return name


def places(source: Source, missing: list[int], branches: list[list[int]]) -> Iterator[Place]:
    """Yield what was not reached: each branch never taken, and each run of lines that no such branch leads to."""
    unreached = set(missing)
    taken_from = [(start, end) for start, end in branches if start not in unreached]
    for start, end in taken_from:
        yield Place(source.file, source.inside(start), source.line(start), source.line(end))
    led_to = {end for _, end in branches}
    before = 0
    for number in sorted(missing):
        run_goes_on = before and not any(source.line(at) for at in range(before + 1, number))
        before = number
        if not run_goes_on and number not in led_to:
            yield Place(source.file, source.inside(number), source.line(number))


def reasons() -> dict[Place, str]:
    """Return why each place of tools/uncovered.toml is not reached."""
    known: dict[Place, str] = {}
    for group in tomllib.loads(REASONS.read_text("utf-8")).get("because", []):
        for file, inside, line, *to in group["places"]:
            known[Place(file, inside, line, *to)] = group["why"]
    return known


def lost(known: dict[Place, str]) -> list[Place]:
    """Return the places that are no longer in the code."""
    gone = []
    sources: dict[str, Source | None] = {}
    for place in known:
        path = TOP / place.file
        if place.file not in sources:
            sources[place.file] = Source(path) if path.is_file() else None
        source = sources[place.file]
        if source is None or not source.has(place.line, place.inside) or not source.has(place.to or "end", place.inside):
            gone.append(place)
    return gone


def tell(least: float) -> int:
    """Print the figures, how many places have which reason, and every place without one; returns the exit code."""
    rooms, found = measured()
    known = reasons()
    low = [name for name, room in rooms.items() if room.share() < least]
    for name, room in rooms.items():
        print(f"mdmem/{name}: {room}" + (f"; below {least:g} %" if name in low else ""))
    for file in NEEDS:
        if package := lacks(TOP / file):
            print(f"{file} is not counted: it needs {package}")
    print(f"{len(found)} places are not reached:")
    for why, count in Counter(known[place] for place in found if place in known).most_common():
        print(f"{count:4}  {why}")
    unknown = [place for place in found if place not in known]
    gone = lost(known)
    for place in unknown:
        print(f"no reason: {place}")
    for place in gone:
        print(f"no such place any more: {place}")
    for place in sorted(set(known) - set(found) - set(gone), key=str):
        if not lacks(TOP / place.file):
            print(f"reached this time: {place}", file=sys.stderr)
    return int(bool(low or unknown or gone))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", help="run only these, and add to what is known")
    parser.add_argument("--tell", action="store_true", help="run nothing")
    parser.add_argument("--least", type=float, default=95.0, help="percent of branches that each room must reach")
    parser.add_argument("-n", type=int, default=os.cpu_count() or 1, help="processes that run tests")
    options = parser.parse_args()
    code = 0
    if not options.tell:
        if not options.tests:
            DATA.unlink(missing_ok=True)
        start = time.monotonic()
        code = run_tests(options.tests or list(TESTS), options.n)
        print(f"the tests took {time.monotonic() - start:.0f} s")
    return tell(options.least) or code


if __name__ == "__main__":
    sys.exit(main())
