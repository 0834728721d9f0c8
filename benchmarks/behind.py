"""A clone that is far behind, while another one pushes all the time: does it catch up, and how long does it take?

    python benchmarks/behind.py                                 2,000 notes, 500 commits that wait, a push every 2 seconds
    python benchmarks/behind.py --notes 50000 --commits 1500 --pace 6

Prints one line for each `mdmem sync` of the clone that is behind. Exit code 1 when it has not caught up after `--syncs`.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import redirect_stdout
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

from endurance import git, prepare  # noqa: E402


def note(name: str, number: int) -> tuple[str, str]:
    """Return (path, text) of a note."""
    identity = f"mem-{name}{number:09d}"
    text = f"---\nid: {identity}\ntype: fact\ntitle: {name} {number}\n---\nThe {name} number {number}.\n"
    return f"memories/{name}-{number}-{identity}.md", text


def commits(top: Path, count: int) -> None:
    """Make `count` commits of one new note each, in one go."""
    stream = [f"reset refs/heads/main\nfrom {git(top, 'rev-parse', 'HEAD').strip()}\n\n"]
    for number in range(count):
        path, text = note("w", number)
        stream.append(f"commit refs/heads/main\ncommitter E <e@example.org> {1_790_000_000 + number} +0000\n")
        stream.append(f"data 11\nremember: w\nM 100644 inline {path}\ndata {len(text)}\n{text}\n")
    command = ["git", "-C", str(top), "fast-import", "--quiet", "--force"]
    subprocess.run(command, input="".join(stream).encode(), check=True)
    git(top, "reset", "-q", "--hard")


class Other(threading.Thread):
    """The other clone: a commit and a push by git itself every `pace` seconds, until `stop` is set."""

    def __init__(self, top: Path, pace: float) -> None:
        super().__init__()
        self.top, self.pace = top, pace
        self.stop = threading.Event()
        self.pushes = 0

    def run(self) -> None:
        """Push on and on."""
        number = 0
        while not self.stop.wait(self.pace):
            number += 1
            path, text = note("t", number)
            (self.top / path).write_text(text)
            self.git("add", path)
            self.git("commit", "-qm", "remember: t")
            if not self.git("push", "-q", "origin", "HEAD"):
                self.git("fetch", "-q")
                self.git("merge", "-q", "-m", "merge", "FETCH_HEAD")
                if not self.git("push", "-q", "origin", "HEAD"):
                    continue
            self.pushes += 1

    def git(self, *words: str) -> bool:
        """Return whether a git command did what it was to do."""
        return subprocess.run(["git", "-C", str(self.top), *words], capture_output=True, check=False).returncode == 0


def main() -> int:
    """Run what the command line asks for; returns 1 when the clone did not catch up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=2_000)
    parser.add_argument("--commits", type=int, default=500, help="that wait in the clone that is behind")
    parser.add_argument("--pace", type=float, default=2.0, help="seconds between two pushes of the other one")
    parser.add_argument("--syncs", type=int, default=10, help="at most so many")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mdmem-behind-") as name:
        with redirect_stdout(io.StringIO()):
            one, two = prepare(Path(name), given.notes)
        commits(one, given.commits)
        other = Other(two, given.pace)
        other.start()
        waiting = given.commits
        try:
            for _ in range(given.syncs):
                began, before = time.monotonic(), other.pushes
                words = [sys.executable, "-m", "mdmem", "-C", str(one), "sync", "--json"]
                env = {**os.environ, "PYTHONPATH": str(ROOT)}
                said = json.loads(subprocess.run(words, capture_output=True, text=True, check=False, env=env).stdout)
                waiting = said["waiting"]
                took = f"{time.monotonic() - began:.0f} s: {said['state']}, {waiting} wait"
                print(f"{took}; the other one pushed {other.pushes - before} times. {said['reason']}".rstrip(), flush=True)
                if not waiting:
                    break
        finally:
            other.stop.set()
            other.join()
    return 1 if waiting else 0


if __name__ == "__main__":
    raise SystemExit(main())
