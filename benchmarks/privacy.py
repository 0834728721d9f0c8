"""Measures how fast the gate for secrets reads ordinary text: the project's own prose, its Chinese page, its code.

    python benchmarks/privacy.py [--runs 5] [--json]

Megabytes of UTF-8 a second of processor time, the best of several runs, for `scan` (one reading, as before a push) and for
`redact` (which reads again what it changed). Exit 1 below 20 MB/s for the scan of prose, Chinese or code.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))
LEAST = 20.0
SIZE = 2 << 20


def texts() -> dict[str, str]:
    """Return about SIZE bytes of each sort of text."""
    prose = [*sorted((TOP / "docs").glob("*.md")), *sorted((TOP / "docs" / "tutorials").glob("*.md")), TOP / "README.md"]
    sorts = {"prose": prose, "Chinese": [TOP / "README.zh-CN.md"], "code": sorted((TOP / "mdmem").rglob("*.py"))}
    found = {}
    for name, files in sorts.items():
        text = "\n".join(path.read_text("utf-8") for path in files)
        found[name] = text * (1 + SIZE // len(text.encode()))
    found["one secret in 2 MB"] = found["prose"][:SIZE].replace("the", "password=Tr0ub4dor3 the", 1)
    return found


def best(work: Callable[[str], Any], text: str, runs: int) -> float:
    """Return MB of text a second of processor time."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work(text)
        times.append(time.process_time() - start)
    return len(text.encode()) / 1e6 / min(times)


def main() -> int:
    """Print the speeds; returns 1 when the scan of ordinary text is too slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    from mdmem.notes.redact import redact, spans

    rows = {}
    for name, text in texts().items():
        rows[name] = {"scan": best(spans, text, args.runs), "redact": best(redact, text, args.runs), "found": len(spans(text))}
    slow = [name for name in ("prose", "Chinese", "code") if rows[name]["scan"] < LEAST]
    if args.json:
        print(json.dumps({"mb_per_s": rows, "slow": slow}, indent=1))
    else:
        for name, row in rows.items():
            print(f"{name:20} scan {row['scan']:6.1f} MB/s   redact {row['redact']:6.1f} MB/s   findings {row['found']}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
