"""Exact search among memory-mapped vectors at growing numbers, beside an approximate index (faiss HNSW, when it is installed).

    python benchmarks/vectors.py [--counts 1000,10000,100000] [--runs 9] [--json]

The vectors are unit vectors of 384 dimensions around a thousand centres, as those of texts are, seeded. Exact search is mdmem's
own store (mdmem/index/vectors.py): the matrix on disk, mapped, the best rows scored again in double precision. Times are
processor times of one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
DIMS = 384
QUESTIONS = 50


def drawn(count: int, seed: int) -> Any:
    """Return float32 [count, 384] rows of length 1."""
    draw = np.random.default_rng(seed)
    centres = np.random.default_rng(1).standard_normal((1000, DIMS), dtype=np.float32)
    rows = centres[draw.integers(0, 1000, count)] + 0.8 * draw.standard_normal((count, DIMS), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def resident() -> float:
    """Return the memory of this process in MB that is not a mapped file."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024 if "RssAnon:" in status else 0.0


def measure(count: int, runs: int) -> dict[str, Any]:
    """Return the times of exact search, and of an approximate one with its recall against it."""
    from mdmem.index.vectors import Vectors

    asked = drawn(QUESTIONS, 7)
    rows = drawn(count, 3)
    with tempfile.TemporaryDirectory(prefix="mdmem-vectors-") as folder:
        store = Vectors(Path(folder), "benchmark", DIMS)
        for start in range(0, count, 10_000):
            part = rows[start : start + 10_000]
            store.add([f"{start + number:032x}" for number in range(len(part))], part)
        took, truth = [], []
        for _ in range(max(1, runs // 3)):
            truth = []
            for question in asked:
                began = time.process_time()
                found = store.search(question, None, 10)
                took.append((time.process_time() - began) * 1000)
                truth.append({int(hit.hash, 16) for hit in found})
    out = {"count": count, "p50_ms": statistics.median(took), "p95_ms": sorted(took)[int(0.95 * len(took))]}
    near = approximate(rows, asked, truth, runs)
    return {**out, "approximate": near} if near else out


def approximate(rows: Any, asked: Any, truth: list[set[int]], runs: int) -> dict[str, float]:
    """Return time, recall@10, build time and memory of an HNSW graph; {} without faiss."""
    try:
        import faiss
    except ImportError:
        return {}
    faiss.omp_set_num_threads(1)
    before = resident()
    began = time.process_time()
    index = faiss.IndexHNSWFlat(DIMS, 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = 100, 64
    index.add(rows)
    built = time.process_time() - began
    memory = resident() - before
    took, right = [], 0
    for _ in range(max(1, runs // 3)):
        right = 0
        for question, best in zip(asked, truth):
            began = time.process_time()
            _, found = index.search(question[None, :], 10)
            took.append((time.process_time() - began) * 1000)
            right += len(best & set(found[0].tolist()))
    recall = right / (10 * len(truth))
    return {"p50_ms": statistics.median(took), "recall": recall, "build_s": built, "memory_mb": memory}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=lambda text: [int(part) for part in text.split(",")], default=[1_000, 10_000, 100_000])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--json", action="store_true", dest="as_json")
    given = parser.parse_args()
    found = [measure(count, given.runs) for count in given.counts]
    if given.as_json:
        print(json.dumps({"rows": found}, indent=1))
    else:
        for row in found:
            print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
