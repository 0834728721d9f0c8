"""How the store grows: build, refresh, recall and one added note, at a number of notes.

    python benchmarks/scale.py                          10,000 English notes of 120 words, words only
    python benchmarks/scale.py --vectors random         the passages' vectors drawn at random, questions embedded
    python benchmarks/scale.py --notes 2000 --vectors real   every passage embedded
    python benchmarks/scale.py --language zh --json

Whole processes are given as ratios to a bare `python -c pass` of the same run, with their bytecode written beforehand as an
installed package has it; work inside the process in milliseconds.
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

from mdmem.recall.query import Query  # noqa: E402
from mdmem.recall.recall import recall  # noqa: E402
from mdmem.setup import init  # noqa: E402
from mdmem.store import Store  # noqa: E402

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


def process(arguments: list[str], runs: int, cwd: Path, **env: str) -> float:
    """Return the median milliseconds of a whole process, after one run that is not counted: it writes the bytecode."""
    took = []
    for _ in range(runs + 1):
        begin = time.perf_counter()
        subprocess.run(arguments, cwd=cwd, capture_output=True, check=True, stdin=subprocess.DEVNULL, env={**os.environ, **env})
        took.append((time.perf_counter() - begin) * 1000)
    return statistics.median(took[1:])


def percentile(values: list[float], share: float) -> float:
    """Return the value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def fill_at_random(store: Store) -> None:
    """Store a random unit vector for each passage: search takes as long as with real ones, embedding does not."""
    import numpy as np

    from mdmem.index.refresh import index_lock

    vectors = store.index.dense.vectors()
    assert vectors is not None, store.index.dense.trouble
    hashes = [row[0] for row in store.index.catalog.rows("SELECT DISTINCT hash FROM windows ORDER BY hash")]
    rng = np.random.default_rng(20261130)
    with index_lock(store.index, 10.0):
        for start in range(0, len(hashes), 2000):
            part = hashes[start : start + 2000]
            matrix = rng.standard_normal((len(part), vectors.dims)).astype(np.float32)
            vectors.add(part, matrix / np.linalg.norm(matrix, axis=1, keepdims=True))


def resident(pid: int | str = "self") -> float:
    """Return the megabytes that a process holds now (Linux), 0 where that cannot be asked."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
    except (OSError, StopIteration):
        return 0.0


def looks(root: Path, store: Store, runs: int) -> dict[str, float]:
    """Return what it costs to find that nothing changed."""

    def whole() -> None:
        store.index.lookout.close()
        store.index.refresh(embed_budget_s=0.0)

    def told() -> None:
        store.index.refresh(embed_budget_s=0.0)

    def anew() -> None:
        opened = Store.open(root, cwd=root)
        opened.index.refresh(embed_budget_s=0.0)
        opened.index.catalog.close()

    anew()
    out = {}
    for name, work in (("opened anew", anew), ("same process, every file", whole), ("same process, told of changes", told)):
        work()
        out[f"refresh, {name}, ms"] = statistics.median(timed(work) for _ in range(2 * runs + 1))
    return out


def searches(store: Store, queries: list[str], mode: str) -> dict[str, float]:
    """Return how long recall takes in a process that is warm."""
    recall(store, Query(queries[0], mode=mode))
    took = [timed(lambda q=query: recall(store, Query(q, mode=mode))) for query in queries[:200]]  # type: ignore[misc]
    return {f"recall warm {mode} {name}, ms": percentile(took, share) for name, share in (("p50", 0.5), ("p95", 0.95))}


def added(root: Path, store: Store, vectors: bool, runs: int) -> dict[str, float]:
    """Return how soon a note that an editor saved is found."""
    by_words, by_meaning = [], []
    for number in range(runs):
        begin = time.perf_counter()
        text = f"The zebrafish{number} aquarium opens at dawn on market days."
        (root / "memories" / f"new{number}.md").write_text(f"---\nid: mem-new{number}\ntitle: Fresh\n---\n\n{text}\n")
        found = recall(store, Query(f"zebrafish{number}", mode="keyword", limit=1))
        assert found.results and found.results[0].path.endswith(f"new{number}.md")
        by_words.append((time.perf_counter() - begin) * 1000)
        if vectors:
            store.index.refresh(embed_budget_s=None)
            begin = time.perf_counter()
            (root / "memories" / f"late{number}.md").write_text(f"---\nid: mem-late{number}\n---\n\n{text} Number {number}.\n")
            ahead = recall(store, Query("when does the fish house open", mode="semantic", limit=20))
            assert any(hit.path.endswith(f"late{number}.md") for hit in ahead.results)
            by_meaning.append((time.perf_counter() - begin) * 1000)
    out = {"added note found by words, ms": statistics.median(by_words)}
    if by_meaning:
        out["added note found by meaning, ms"] = statistics.median(by_meaning)
    return out


def processes(root: Path, queries: list[str], vectors: bool, runs: int) -> dict[str, float]:
    """Return whole processes in bare Python starts, without and with the warm process, and what the latter holds."""
    bare = process([sys.executable, "-c", "pass"], runs + 4, root)
    out = {"bare Python start, ms": bare}
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
    if not hasattr(os, "fork"):
        return out
    serve = {"MDMEM_SERVE": "on"}
    env = {**os.environ, **serve}
    subprocess.run([*mdmem, "serve", "--detach"], cwd=root, env=env, check=True, capture_output=True)
    try:
        time.sleep(1.0)
        for name, words in (("recall --keyword", ["--keyword"]), ("recall", [])):
            if words or vectors:
                process([*mdmem, "recall", queries[4], *words], 2, root, **serve)
                out[f"process {name}, warm process, starts"] = (
                    process([*mdmem, "recall", queries[5], *words], 2 * runs, root, **serve) / bare
                )
        told = subprocess.run([*mdmem, "serve", "--status", "--json"], cwd=root, env=env, capture_output=True, check=True)
        status = json.loads(told.stdout)
        assert status["served"] >= 2 * runs, "the warm process was not asked"
        out["memory of the warm process, MB"] = resident(status["pid"])
    finally:
        subprocess.run([*mdmem, "serve", "--stop"], cwd=root, env=env, check=False, capture_output=True)
    return out


def measure(base: Path, count: int, language: str, vectors: str, runs: int) -> dict[str, Any]:
    """Return every figure for one store."""
    root = base / "store"
    init(root)
    queries = write_notes(root / "memories", count, language)
    store = Store.open(root, need="write", cwd=root)
    out: dict[str, Any] = {"notes": count, "language": language, "vectors": vectors}
    cpu = time.process_time()
    out["build words, s"] = timed(lambda: store.index.refresh(embed_budget_s=0.0)) / 1000
    out["build words, CPU s"] = time.process_time() - cpu
    # As after some seconds: a file that was just written is compared by its content.
    with store.index.catalog.writing() as connection:
        connection.execute("UPDATE notes SET checked_ns = checked_ns + 10000000000")
    store = Store.open(root, need="write", cwd=root)
    out |= looks(root, store, runs)
    out |= searches(store, queries, "keyword")
    out["memory, words, MB"] = resident()
    if vectors == "random":
        fill_at_random(store)
    elif vectors == "real":
        out["build vectors, s"] = timed(lambda: store.index.refresh(embed_budget_s=None)) / 1000
    if vectors != "none":
        out |= searches(store, queries, "hybrid")
        out["memory, words and vectors, MB"] = resident()
    out |= added(root, store, vectors != "none", runs)
    out["index size, MB"] = sum(f.stat().st_size for f in store.state_dir.rglob("*") if f.is_file()) / 1e6
    out["memory at its most, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return out | processes(root, queries, vectors != "none", runs)


def main() -> int:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--language", choices=["en", "zh"], default="en")
    parser.add_argument(
        "--vectors",
        choices=["none", "random", "real"],
        default="none",
        help="random: search alone is measured; real: every passage is embedded (some ten minutes at 10,000)",
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true", dest="as_json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mdmem-scale-") as folder:
        base = Path(folder)
        for name in ("CONFIG", "DATA", "CACHE"):
            os.environ[f"XDG_{name}_HOME"] = str(base / name.lower())
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ.update(XDG_RUNTIME_DIR=folder, PYTHONPYCACHEPREFIX=str(base / "bytecode"))
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
