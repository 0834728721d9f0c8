"""The shared index (milvus-lite in a file) beside the local engines, on the same notes in one run.

    python benchmarks/shared.py [--sizes 1000,10000] [--questions 60]        needs the extra mdmem[milvus]

Notes as in scale.py, with random vectors. For each size: the first push and one that has nothing to do, questions by words and
vectors through `mdmem recall`'s own code with the local engine and with everything asked of the shared one, how many of the
first ten are the same, memory and disk. The table goes into docs/shared-index.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import all as table  # the machine, the kept results and the markers  # noqa: E402
import scale  # noqa: E402

PAGE = HERE.parent / "docs" / "shared-index.md"
BEGIN, END = "<!-- benchmarks/shared.py: begin -->", "<!-- benchmarks/shared.py: end -->"
ROWS = {
    "build the local index, s": 1,
    "first push, s": 1,
    "push with nothing to do, s": 1,
    "questions locally, p50 ms": 1,
    "questions locally, p95 ms": 1,
    "questions to the engine, p50 ms": 1,
    "questions to the engine, p95 ms": 1,
    "the same note first, %": 0,
    "the same among the first ten, %": 1,
    "memory after local questions, MB": 0,
    "memory after all, the engine in the process, MB": 0,
    "local index on disk, MB": 0,
    "the engine's file on disk, MB": 0,
}


def measure(count: int, questions: int) -> dict[str, Any]:
    """Return every figure for a number of notes; runs in a process of its own."""
    from mdmem.index.milvus import Engine, target_of
    from mdmem.memory.sharing import push_store
    from mdmem.recall import shared
    from mdmem.recall.query import Query
    from mdmem.recall.recall import recall
    from mdmem.setup import init
    from mdmem.store import Store

    with tempfile.TemporaryDirectory(prefix="mdmem-shared-") as folder:
        base = Path(folder)
        for name in ("CONFIG", "DATA", "CACHE"):
            os.environ[f"XDG_{name}_HOME"] = str(base / name.lower())
        os.environ.update(HOME=folder, MDMEM_SERVE="off", MDMEM_DEVICE="bench", MDMEM_AGENT="bench")
        os.environ.update(MDMEM_INDEX_URI=str(base / "shared.db"), MDMEM_INDEX_SHARE="all")
        root = base / "store"
        init(root)
        asked = scale.write_notes(root / "memories", range(count), "en", questions)[:questions]
        for words in (["add", "-A"], ["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "notes"]):
            subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)

        def opened(engine: str) -> Any:
            os.environ["MDMEM_INDEX_ENGINE"] = engine
            return Store.open(root, need="write", cwd=root)

        local = opened("whoosh")
        out: dict[str, Any] = {"notes": count}
        out["build the local index, s"] = scale.timed(lambda: local.index.refresh(embed_budget_s=0.0)) / 1000
        scale.random_vectors(local)

        def ask(store: Any) -> tuple[list[list[str]], list[float]]:
            found, took = [], []
            for text in asked:
                began = scale.now()
                answer = recall(store, Query(text, limit=10))
                took.append((scale.now() - began) * 1000)
                if any("local index" in notice for notice in answer.notices):
                    raise SystemExit(f"the engine did not answer: {answer.notices}")
                found.append([hit.id for hit in answer.results])
            return found, took

        ask(local)
        ours, took = ask(local)
        out["questions locally, p50 ms"], out["questions locally, p95 ms"] = _both(took)
        out["memory after local questions, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        remote = opened("milvus")
        out["first push, s"] = scale.timed(lambda: push_store(remote)) / 1000
        out["push with nothing to do, s"] = scale.timed(lambda: push_store(remote)) / 1000
        target = target_of(remote.config)
        assert target is not None
        kept = Engine(target, 120.0)  # as a server would, it stays open
        close, Engine.close = Engine.close, lambda self: None
        shared._open[target] = kept
        theirs, took = ask(remote)
        out["questions to the engine, p50 ms"], out["questions to the engine, p95 ms"] = _both(took)
        Engine.close = close
        pairs = list(zip(ours, theirs, strict=True))
        out["the same note first, %"] = 100 * sum(a[:1] == b[:1] for a, b in pairs) / len(pairs)
        out["the same among the first ten, %"] = 100 * sum(len({*a} & {*b}) / max(1, len(a)) for a, b in pairs) / len(pairs)
        kept.close()
        out["memory after all, the engine in the process, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        out["local index on disk, MB"] = _size(local.state_dir)
        out["the engine's file on disk, MB"] = _size(base / "shared.db")
    return out


def _both(took: list[float]) -> tuple[float, float]:
    return scale.percentile(took, 0.5), scale.percentile(took, 0.95)


def _size(folder: Path) -> float:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def render(found: dict[str, Any]) -> str:
    """Return the section of docs/shared-index.md."""
    runs = [found["sizes"][size] for size in sorted(found["sizes"], key=int)]
    sizes = [run["notes"] for run in runs]
    rows = []
    for name, digits in ROWS.items():
        values = [run[name] for run in runs]
        grows = table.growth(sizes, values) if "%" not in name else ""
        rows.append([name, *(f"{value:,.{digits}f}" for value in values), grows])
    m = found["machine"]
    lines = [BEGIN, "", *table.table(["", *(f"{size:,} notes" for size in sizes), "grows"], rows)]
    lines += [
        "`python benchmarks/shared.py`: notes of 120 words, random vectors, milvus-lite in the same process; "
        f"{m['processor']}, {m['cores']} cores, {m['day']}, Python {m['python']}."
        + (" Processor times: the machine was busy." if found.get("clock") == "cpu" else ""),
        "",
        *plan(runs),
        END,
    ]
    return "\n".join(lines)


def plan(runs: list[dict[str, Any]]) -> list[str]:
    """Return the paper plan: what the measured sizes say about larger ones."""
    last = runs[-1]
    disk = last["the engine's file on disk, MB"] * 1e6 / last["notes"]
    rate = last["notes"] / last["first push, s"]
    rows = []
    for count in (1_000_000, 10_000_000, 100_000_000):
        vectors = count * 384 * 4 / 1e9
        rows.append(
            [
                f"{count:,}",
                f"{count * disk / 1e9:,.0f} GB",
                f"{vectors:,.1f} GB",
                f"{vectors / 4:,.1f} GB",
                f"{count / rate / 3600:,.1f} h",
                f"{math.ceil(count / 17 / 3600):,} h",
            ]
        )
    head = ["notes of one passage", "rows on disk", "float32 vectors", "8-bit vectors", "one writer's first push", "embedding"]
    return [
        "A paper plan, drawn out from the largest size measured; embedding at 17 passages a second and core, which divides by",
        "the number of machines that embed, since each repository's writer embeds its own:",
        "",
        *table.table(head, rows),
    ]


def main() -> int:
    """Measure each size in a process of its own, keep, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=[1_000, 10_000])
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: processor times, on a busy machine")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    scale.CLOCK["cpu"] = given.clock == "cpu"
    if given.one:
        print(json.dumps(measure(given.one, given.questions)))
        return 0
    results = json.loads(table.RESULTS.read_text("utf-8")) if table.RESULTS.exists() else {}
    kept = results.setdefault("shared", {"sizes": {}})
    kept["machine"] = table.machine()
    for size in given.sizes:
        print(f"… {size:,} notes", file=sys.stderr, flush=True)
        words = [sys.executable, __file__, "--one", str(size), "--questions", str(given.questions), "--clock", given.clock]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        kept["sizes"][str(size)] = json.loads(done.stdout.strip().splitlines()[-1])
        kept["clock"] = given.clock
        results = json.loads(table.RESULTS.read_text("utf-8")) if table.RESULTS.exists() else {}
        results["shared"] = kept
        table.RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
    table.put(PAGE, BEGIN, END, render(kept))
    print(render(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
