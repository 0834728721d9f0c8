"""How the number of commits weighs: the same 500 notes after 500 and after 5,000 commits, loose and packed.

    python benchmarks/growth.py                    500 against 5,000 commits
    python benchmarks/growth.py --many 1000 --json

Each commit is one that mdmem makes: one note, a subject that says what happened, trailers with agent and device; its objects
lie loose, as `mdmem remember` leaves them. Whole processes, run in turn at each size, as ratios to the small store of the same
run. The third column is after the packing that `mdmem sync` starts by itself, in a process of its own.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

NOTES = 500
START = 1_767_225_600  # 2026-01-01 00:00 UTC; a commit an hour
_LOOSE = 20  # commits in one fast-import: four objects each, below the limit of 100 they stay loose, as single commits do


def name(number: int) -> str:
    """Return the path of a note."""
    return f"memories/note-{number:03d}-mem-{number:012d}.md"


def text(number: int, turn: int) -> bytes:
    """Return the note as its `turn`-th commit left it."""
    head = f"---\nid: mem-{number:012d}\ntype: fact\ntitle: Fact number {number}\nimportance: 0.{turn % 9 + 1}\n---\n\n"
    return (head + f"The service {number} listens on port {8000 + number} since turn {turn}.\n").encode()


def grow(root: Path, first: int, last: int) -> None:
    """Add the commits numbered first to last - 1 to a store, loose."""
    from mdmem.repo.git import Git
    from mdmem.repo.stream import message_text

    git = Git(root)
    branch = git.state().branch
    for start in range(first, last, _LOOSE):
        stream = [b"feature done\n"]
        for number in range(start, min(start + _LOOSE, last)):
            note, turn = number % NOTES, number // NOTES
            verb = "set" if turn else "remember"
            message = message_text(f"{verb}: Fact number {note}", {"Agent": "claude", "Device": f"device{number % 3}"}).encode()
            who = f"Bench <bench@example.org> {START + number * 3600} +0000"
            head = f"commit refs/heads/{branch}\nauthor {who}\ncommitter {who}\ndata {len(message)}\n"
            stream.append(head.encode() + message)
            stream += [f"from refs/heads/{branch}^0\n".encode()] if number == start else []
            data = text(note, turn)
            stream.append(f"M 100644 inline {name(note)}\ndata {len(data)}\n".encode() + data + b"\n")
        git.run("fast-import", "--quiet", input=b"".join([*stream, b"done\n"]), timeout=300)
    git.run("reset", "--quiet", "--hard", timeout=300)


def build(base: Path, label: str, commits: int) -> Path:
    """Make a store of so many commits, all of them at its remote."""
    from mdmem.cli.main import run
    from mdmem.repo.git import Git
    from mdmem.repo.maintenance import _mark

    subprocess.run(["git", "init", "-q", "--bare", str(base / f"{label}.git")], check=True)
    root = base / label
    assert run(["clone", str(base / f"{label}.git"), str(root), "--json"]) == 0
    grow(root, 0, commits)
    _mark(Git(root)).parent.mkdir(parents=True, exist_ok=True)
    _mark(Git(root)).touch()  # this sync is not to start the packing
    assert run(["-C", str(root), "sync", "--json"]) == 0
    assert run(["-C", str(root), "recall", "port", "--keyword", "--json"]) == 0
    return root


def elapsed(words: list[str], cwd: Path) -> float:
    """Return the milliseconds of one whole process. Raises CalledProcessError."""
    begin = time.perf_counter()
    subprocess.run(words, cwd=cwd, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1000


def tasks() -> dict[str, Callable[[int], list[str]]]:
    """Return {what is measured: arguments of its n-th run}."""
    note, day, late = name(7), "2026-01-10", "2026-01-18"
    return {
        "remember": lambda n: ["remember", "fact", f"A fact kept while measuring, number {n}."],
        "undo": lambda n: ["undo"],
        "recall --keyword": lambda n: ["recall", "service port turn", "--keyword"],
        "recall --as-of": lambda n: ["recall", "service port turn", "--keyword", "--as-of", day],
        "status": lambda n: ["status"],
        "history NOTE": lambda n: ["history", note],
        "show NOTE --at DATE": lambda n: ["show", note, "--at", day],
        "diff DATE DATE": lambda n: ["diff", day, late],
        "sync, nothing new": lambda n: ["sync"],
    }


def measure(stores: dict[str, Path], runs: int) -> dict[str, dict[str, float]]:
    """Return {task: {store: median milliseconds}}; the stores take turns, so that a busy moment meets all."""
    took: dict[str, dict[str, list[float]]] = {task: {label: [] for label in stores} for task in tasks()}
    for number in range(runs):
        for task, words in tasks().items():
            for label, root in stores.items():
                took[task][label].append(elapsed([sys.executable, "-m", "mdmem", *words(number)], root))
    return {task: {label: statistics.median(values) for label, values in row.items()} for task, row in took.items()}


def pack(root: Path) -> dict[str, float]:
    """Let a sync start the packing; returns the sync's milliseconds, and the seconds until the packing had ended.

    {} where there is not enough to pack.
    """
    from mdmem.clock import SystemClock
    from mdmem.locks import try_lock
    from mdmem.repo.git import Git
    from mdmem.repo.maintenance import _mark, due

    git = Git(root)
    _mark(git).unlink(missing_ok=True)
    if not due(git, SystemClock()):
        return {}

    def loose() -> int:
        return int(git.run("count-objects", read=True).text().split()[0])

    before = loose()
    begin = time.perf_counter()
    took = elapsed([sys.executable, "-m", "mdmem", "sync"], root)
    assert _mark(git).exists(), "no packing was started"
    left = loose()
    while time.perf_counter() - begin < 300:
        time.sleep(0.1)
        if loose() < before / 10:
            with try_lock(git.common_dir / "mdmem" / "maintenance.lock") as free:
                if free:
                    break
    out = {"sync that starts it, ms": took, "loose objects before": before, "loose objects when that sync had ended": left}
    return {**out, "packing in the background, s": time.perf_counter() - begin, "loose objects after": loose()}


def main() -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--few", type=int, default=500)
    parser.add_argument("--many", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mdmem-growth-") as folder:
        base = Path(folder)
        for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
            os.environ[variable] = str(base / variable.lower())
            (base / variable.lower()).mkdir(mode=0o700)
        os.environ.update(PYTHONPATH=str(ROOT), MDMEM_SERVE="off", GIT_CONFIG_GLOBAL=os.devnull)
        with redirect_stdout(io.StringIO()):
            stores = {"few": build(base, "few", given.few), "many": build(base, "many", given.many)}
        # No packing during the measurement of what lies loose.
        from mdmem.repo.git import Git
        from mdmem.repo.maintenance import _mark

        for root in stores.values():
            _mark(Git(root)).touch()
        loose = measure(stores, given.runs)
        packing = pack(stores["many"])
        packed = measure(stores, given.runs)
    rows: dict[str, Any] = {}
    for task in loose:
        few = loose[task]["few"]
        rows[task] = {
            "few, ms": few,
            "many, ratio": loose[task]["many"] / few,
            "packed, ratio": packed[task]["many"] / packed[task]["few"],
        }
    if given.json:
        print(json.dumps({"few": given.few, "many": given.many, "tasks": rows, "packing": packing}, indent=1))
        return 0
    print(f"{'':24}{given.few:>9} commits, ms {given.many:>7} loose {given.many:>7} packed")
    for task, row in rows.items():
        print(f"{task:24}{row['few, ms']:>21.0f} {row['many, ratio']:>13.2f} {row['packed, ratio']:>14.2f}")
    for what, value in packing.items():
        print(f"{what}: {value:,.1f}" if value % 1 else f"{what}: {value:,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
