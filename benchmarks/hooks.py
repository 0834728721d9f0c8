"""Whole-process times of the hooks, as ratios to a bare `python -c pass` in the same run.

    python benchmarks/hooks.py [--notes 10000] [--runs 21] [--store DIR] [--json]

Builds a store of N notes of 120 words (or uses one that an earlier run left in DIR), then runs each event as the installer
writes it, in turns with the bare start, each after the background work of the one before has ended. Exit 1 when a median is
over its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
# A machine that forbids Python to keep what it compiled would have every process compile mdmem anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.path.insert(0, str(TOP))

# Event → (payload beyond the common fields, limit as a multiple of a bare start, whether the warm process may be used).
CASES: dict[str, tuple[str, dict[str, Any], float, bool]] = {
    "ignored": ("PreToolUse", {"tool_name": "Write", "tool_input": {"file_path": "a.txt", "content": "x" * 2000}}, 1.5, False),
    "Stop": ("Stop", {"last_assistant_message": "All tests pass; the cache now lives in Redis. " * 30}, 3.0, False),
    "PostToolUse on a note": ("PostToolUse", {"tool_name": "Edit"}, 4.0, False),
    "SessionStart": ("SessionStart", {"source": "startup"}, 10.0, False),
    "UserPromptSubmit, warm": ("UserPromptSubmit", {"prompt": "which database does the billing service run on?"}, 5.0, True),
    "UserPromptSubmit, words": ("UserPromptSubmit", {"prompt": "which database does the billing service run on?"}, 20.0, False),
}


def build(store: Path, notes: int) -> None:
    """Make and index a store of `notes` notes of 120 words, one of which answers the prompt."""
    from mdmem.locate import trust
    from mdmem.notes.frontmatter import render
    from mdmem.store import Store

    (store / "memories").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(store)], check=True)
    (store / ".mdmem.toml").write_text('format = 1\n[store]\nid = "st-bench"\n')
    trust("st-bench", "", store)
    draw = random.Random(1)
    words = [f"{a}{b}" for a in ("con", "pro", "re", "de", "in", "ex", "sub", "trans") for b in _ENDS.split()]
    kinds = ("decision", "preference", "fact", "case", "pattern", "procedure")
    for number in range(notes):
        text = " ".join(draw.choices(words, k=120))
        title = " ".join(draw.choices(words, k=4))
        if number == 0:
            title, text = "Billing database", "The billing service runs on the database PostgreSQL 16. " + text
        day = f"2026-{1 + number % 12:02}-{1 + number % 28:02}T00:00:00Z"
        fields = {"id": f"mem-{number:06}", "kind": "memory", "type": kinds[number % 6], "title": title, "scope": "shared"}
        data = render({**fields, "created": day, "updated": day}, text + "\n")
        (store / "memories" / f"n{number:06}.md").write_bytes(data)
    opened = Store.open(store)
    opened.index.refresh(embed_budget_s=0.0)
    embed(opened)


def embed(store: Any) -> None:
    """Give each window a vector: the answer its own, the others one that is as near to any question as unrelated texts are.

    Embedding 10,000 notes takes half an hour; here only their number and their spread matter.
    """
    import numpy as np

    dense = store.index.dense
    rows = store.index.catalog.rows("SELECT w.hash, w.text, n.title, w.note FROM windows w JOIN notes n ON n.rowid = w.note")
    embedder, vectors = dense.embedder(), dense.vectors()
    own = [row for row in rows if row["title"] == "Billing database"]
    vectors.add([row["hash"] for row in own], embedder.passages([f"{row['title']}\n{row['text']}" for row in own]))
    base = embedder.passages(["notes of no interest"])[0]
    others = list(dict.fromkeys(row["hash"] for row in rows if row["title"] != "Billing database"))
    noise = np.random.RandomState(1).standard_normal((len(others), embedder.dims)).astype("float32")
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    near = base + 0.55 * noise
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    vectors.add(others, near.astype("float32"))


_ENDS = "tain form duct fer pose press tract scribe mit vert ceive clude sist spect cede flect fuse gress ject late lect"


def quiet(store: Path) -> None:
    """Wait until no worker of the store is at work."""
    while subprocess.run(["pgrep", "-f", f"worker.py {store}"], capture_output=True, check=False).returncode == 0:
        time.sleep(0.05)


def measure(store: Path, runs: int, env: dict[str, str]) -> dict[str, list[float]]:
    """Return {case: seconds of each run}; `bare` is the bare start."""
    from mdmem.install.command import hook_argv

    times: dict[str, list[float]] = {"bare": [], **{name: [] for name in CASES}}
    note = store / "memories" / "n000000.md"
    for run in range(runs + 1):
        for name in times:
            if name == "bare":
                argv, data, more = [sys.executable, "-c", "pass"], b"", {}
            else:
                event, fields, _, warm = CASES[name]
                argv, more = hook_argv(event), {"MDMEM_SERVE": "auto" if warm else "off"}
                session = f"{len(name)}-{os.getpid()}-{run}"
                payload = {"session_id": session, "cwd": str(store), "hook_event_name": event, **fields}
                if "note" in name:
                    payload["tool_input"] = {"file_path": str(note)}
                data = json.dumps(payload).encode()
            start = time.perf_counter()
            done = subprocess.run(argv, input=data, capture_output=True, env={**env, **more}, check=True)
            seconds = time.perf_counter() - start
            if name.startswith("User") and b"PostgreSQL" not in done.stdout:
                raise SystemExit(f"{name}: the prompt got no answer: {done.stdout[:200]!r}")
            if run:  # the first round fills caches
                times[name].append(seconds)
            quiet(store)
    return times


def main() -> int:
    """Print the medians as ratios; returns 1 when one is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--store", type=Path, help="keep the store and the home beside it here, and use it again")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = args.store or Path(folder)
        os.environ |= {
            "HOME": str(base / "home"),
            "XDG_CONFIG_HOME": str(base / "home/config"),
            "XDG_DATA_HOME": str(base / "home/data"),
            "XDG_RUNTIME_DIR": str(base / "run"),
            "MDMEM_WORKER_SETTLE": "0.05",
        }
        for name in [name for name in os.environ if name.startswith(("CLAUDE", "MDMEM_HOOK"))]:
            del os.environ[name]
        (base / "run").mkdir(parents=True, exist_ok=True)
        store = base.resolve() / "store"
        if not store.exists():
            build(store, args.notes)
        from mdmem.warm import client, starting

        client.GREETING = 60.0
        starting.start(str(store), "claude-code", "bench")
        while client.ask({"op": "status"}, 60.0) is None:
            time.sleep(0.05)
        client.ask({"op": "warm", "root": str(store), "agent": "claude-code"}, 60.0)
        try:
            times = measure(store, args.runs, dict(os.environ))
        finally:
            client.ask({"op": "stop"})
    bare = statistics.median(times["bare"])
    rows = {name: statistics.median(found) / bare for name, found in times.items()}
    over = [name for name, ratio in rows.items() if name in CASES and ratio > CASES[name][2]]
    if args.json:
        print(json.dumps({"bare_ms": bare * 1000, "ratios": rows, "over": over}, indent=1))
    else:
        print(f"bare start: {bare * 1000:.1f} ms")
        for name, ratio in rows.items():
            if name in CASES:
                print(f"{name:26} {ratio:5.2f}  (limit {CASES[name][2]:g})")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
