"""How the store grows: build, refresh, recall and one added note, at a number of notes.

    python benchmarks/scale.py                          10,000 English notes of 120 words, words only
    python benchmarks/scale.py --notes 1000 --vectors   with every passage embedded
    python benchmarks/scale.py --language zh --json

Whole processes are given as ratios to a bare `python -c pass` of the same run; work inside the process in milliseconds.
The notes are drawn from a vocabulary with Zipf's frequencies, seeded, so that each run measures the same store.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

CONSONANTS = tuple("bcdfghjklmnpqrstvwxz")
HANZI = "数据库服务部署记忆索引合并同步冲突会话任务决定偏好项目代码测试缓存接口网络安全发布团队机器文件搜索"


def vocabulary(rng: random.Random, language: str, size: int = 20_000) -> tuple[list[str], list[float]]:
    """Return words and their weights (1 / rank)."""
    words: dict[str, None] = {}
    while len(words) < size:
        parts = range(rng.randint(2, 4))
        if language == "zh":
            words["".join(rng.choice(HANZI) for _ in parts)] = None
        else:
            words["".join(rng.choice(CONSONANTS) + rng.choice("aeiou") for _ in parts)] = None
    return list(words), [1.0 / rank for rank in range(1, size + 1)]


def write_notes(folder: Path, count: int, language: str) -> list[str]:
    """Write the notes; returns queries of five words drawn from them."""
    rng = random.Random(20261130)
    words, weights = vocabulary(rng, language)
    joint = "" if language == "zh" else " "
    queries = []
    folder.mkdir(parents=True)
    for number in range(count):
        drawn = rng.choices(words, weights, k=120)
        title = joint.join(drawn[:6])
        lines = [joint.join(drawn[start : start + 12]) for start in range(0, 120, 12)]
        day = f"2026-{number % 11 + 1:02d}-{number % 28 + 1:02d}"
        head = f"---\nid: mem-{number:012d}\ntype: fact\ntitle: {title}\ncreated: {day}\nupdated: {day}\n---\n\n"
        (folder / f"n{number:06d}.md").write_text(head + ("。\n" if language == "zh" else ".\n").join(lines) + "\n", "utf-8")
        if number % max(1, count // 200) == 0:
            queries.append(" ".join(rng.sample(drawn, 5)))
    return queries


def timed(work: Callable[[], Any]) -> float:
    """Return the milliseconds that a call took."""
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1000


def process(arguments: list[str], runs: int, cwd: Path) -> float:
    """Return the median milliseconds of a whole process."""
    took = []
    for _ in range(runs):
        begin = time.perf_counter()
        subprocess.run(arguments, cwd=cwd, capture_output=True, check=True, stdin=subprocess.DEVNULL)
        took.append((time.perf_counter() - begin) * 1000)
    return statistics.median(took)


def percentile(values: list[float], share: float) -> float:
    """Return the value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(base: Path, count: int, language: str, vectors: bool, runs: int) -> dict[str, Any]:
    """Return every figure for one store."""
    from mdmem.recall.query import Query
    from mdmem.recall.recall import recall
    from mdmem.setup import init
    from mdmem.store import Store

    root = base / "store"
    init(root)
    queries = write_notes(root / "memories", count, language)
    store = Store.open(root, need="write", cwd=root)
    out: dict[str, Any] = {"notes": count, "language": language}
    cpu = time.process_time()
    out["build words, s"] = timed(lambda: store.index.refresh(embed_budget_s=0.0)) / 1000
    out["build words, CPU s"] = time.process_time() - cpu
    if vectors:
        out["build vectors, s"] = timed(lambda: store.index.refresh(embed_budget_s=None)) / 1000
    out["refresh, nothing changed, ms"] = statistics.median(
        timed(lambda: Store.open(root, cwd=root).index.refresh(embed_budget_s=0.0)) for _ in range(runs)
    )
    mode = "hybrid" if vectors else "keyword"
    recall(store, Query(queries[0], mode=mode))
    took = [timed(lambda q=query: recall(store, Query(q, mode=mode))) for query in queries[:200]]  # type: ignore[misc]
    out[f"recall warm {mode} p50, ms"] = percentile(took, 0.5)
    out[f"recall warm {mode} p95, ms"] = percentile(took, 0.95)
    by_words, by_meaning = [], []
    for number in range(runs):
        begin = time.perf_counter()
        text = f"The zebrafish{number} aquarium opens at dawn on market days."
        (root / "memories" / f"new{number}.md").write_text(f"---\nid: mem-new{number}\ntitle: Fresh\n---\n\n{text}\n")
        found = recall(store, Query(f"zebrafish{number}", mode="keyword", limit=1))
        assert found.results and found.results[0].path.endswith(f"new{number}.md")
        by_words.append((time.perf_counter() - begin) * 1000)
        if vectors:
            begin = time.perf_counter()
            (root / "memories" / f"late{number}.md").write_text(f"---\nid: mem-late{number}\n---\n\n{text} Number {number}.\n")
            ahead = recall(store, Query("when does the fish house open", mode="semantic", limit=20))
            assert any(hit.path.endswith(f"late{number}.md") for hit in ahead.results)
            by_meaning.append((time.perf_counter() - begin) * 1000)
    out["added note found by words, ms"] = statistics.median(by_words)
    if by_meaning:
        out["added note found by meaning, ms"] = statistics.median(by_meaning)
    out["index size, MB"] = sum(f.stat().st_size for f in store.state_dir.rglob("*") if f.is_file()) / 1e6
    out["memory, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    bare = process([sys.executable, "-c", "pass"], runs + 4, root)
    out["bare Python start, ms"] = bare
    mdmem = [sys.executable, "-m", "mdmem"]
    for name, words in (
        ("recall --keyword", ["recall", queries[3], "--keyword"]),
        ("recall, cold with the model", ["recall", queries[3]]),
        ("remember", ["remember", "fact", "A fact kept while measuring."]),
        ("list", ["list", "--limit", "5"]),
        ("status", ["status"]),
    ):
        if "cold" not in name or vectors:
            out[f"process {name}, starts"] = process([*mdmem, *words], runs, root) / bare
    return out


def main() -> int:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--language", choices=["en", "zh"], default="en")
    parser.add_argument("--vectors", action="store_true", help="embed every passage (some minutes at 10,000)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true", dest="as_json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mdmem-scale-") as folder:
        base = Path(folder)
        for name in ("CONFIG", "DATA", "CACHE"):
            os.environ[f"XDG_{name}_HOME"] = str(base / name.lower())
        os.environ.update(MDMEM_SERVE="off", PYTHONPATH=str(ROOT), MDMEM_DEVICE="bench", MDMEM_AGENT="bench")
        out = measure(base, given.notes, given.language, given.vectors, given.runs)
    if given.as_json:
        print(json.dumps(out, indent=1))
    else:
        for name, value in out.items():
            print(f"{name:<36} {value:,.1f}" if isinstance(value, float) else f"{name:<36} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
