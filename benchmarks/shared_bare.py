"""milvus-lite alone, through pymilvus and without mdmem: what of a question's time is the engine's own, and how it grows.

    python benchmarks/shared_bare.py [--sizes 2000,20000,200000] [--keep]         needs the extra mdmem[milvus]

The rows are as mdmem writes them: a sparse vector of the words of a note (120 drawn by Zipf's frequencies from 20,000), a
random vector of 384 numbers, 700 characters of text, the fields that filters ask for. Asked is by five words for 250 rows and
by a vector for 200, each with a filter, before (up to 2,000 rows) and after a flush. Processor times, a process for each size.
`--keep` writes the table into docs/shared-index.md.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import shared  # noqa: E402

BATCH, WORDS, DIMS = 500, 20_000, 384
FILTER = 'repo in ["r0", "r1", "r2"] and kind in ["memory", "entity"] and status not in ["forgotten"]'
UNFLUSHED = 2_000  # above, a question to what is only logged takes longer than anyone waits


def measure(count: int, times: int = 7) -> dict[str, Any]:
    """Return the figures of one size."""
    import numpy as np
    from pymilvus import DataType, MilvusClient

    out: dict[str, Any] = {"rows": count}
    with tempfile.TemporaryDirectory(prefix="mdmem-bare-") as folder:
        client = MilvusClient(str(Path(folder) / "bare.db"))
        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("pk", DataType.VARCHAR, max_length=128, is_primary=True)
        schema.add_field("repo", DataType.VARCHAR, max_length=64, is_partition_key=True)
        for name in ("kind", "status"):
            schema.add_field(name, DataType.VARCHAR, max_length=64)
        schema.add_field("row", DataType.VARCHAR, max_length=65_535)
        schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_field("meaning", DataType.FLOAT_VECTOR, dim=DIMS)
        index = MilvusClient.prepare_index_params()
        index.add_index("meaning", index_type="FLAT", metric_type="IP")
        index.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        client.create_collection("bare", schema=schema, index_params=index)
        numbers, draw = np.random.default_rng(20261130), random.Random(20261130)
        weights = [1.0 / rank for rank in range(1, WORDS + 1)]

        def insert() -> None:
            for start in range(0, count, BATCH):
                rows = []
                for number in range(start, min(count, start + BATCH)):
                    words = {word * 7919: 1.5 for word in draw.choices(range(WORDS), weights, k=120)}
                    vector = numbers.standard_normal(DIMS, dtype=np.float32)
                    fields = {"pk": f"n{number}", "repo": f"r{number % 3}", "kind": "memory", "status": "active"}
                    rows.append({**fields, "row": "x" * 700, "words": words, "meaning": (vector / 20).tolist()})
                client.insert("bare", rows)

        def ask(field: str, limit: int) -> None:
            five = {word * 7919: 1.0 for word in draw.choices(range(WORDS), weights, k=5)}
            vector = five if field == "words" else numbers.standard_normal(DIMS, dtype=np.float32).tolist()
            given = {"anns_field": field, "limit": limit, "filter": FILTER, "output_fields": ["repo", "row"]}
            client.search("bare", [vector], search_params={"metric_type": "IP"}, **given)

        def asked(told: str) -> None:
            for field, limit in (("words", 250), ("meaning", 200)):
                out[f"first question by {field}, {told}, ms"] = _spent(lambda f=field, n=limit: ask(f, n))  # type: ignore[misc]
                took = sorted(_spent(lambda f=field, n=limit: ask(f, n)) for _ in range(times))  # type: ignore[misc]
                out[f"question by {field}, {told}, p50 ms"] = took[len(took) // 2]

        out["insert, s"] = _spent(insert) / 1000
        if count <= UNFLUSHED:
            asked("before a flush")
        out["flush, s"] = _spent(lambda: client.flush("bare")) / 1000
        asked("flushed")
        out["memory, MB"] = shared._memory()
    return out


def _spent(work: Callable[[], Any]) -> float:
    """Return the milliseconds of processor time of a call, the engine's threads in this process included."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def main() -> int:
    """Measure each size in a process of its own; print, and keep on request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=[2_000, 20_000, 200_000])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one)))
        return 0
    found = []
    for size in given.sizes:
        done = subprocess.run([sys.executable, __file__, "--one", str(size)], stdout=subprocess.PIPE, text=True, check=True)
        found.append(json.loads(done.stdout.strip().splitlines()[-1]))
        print(json.dumps(found[-1]), flush=True)
        if given.keep:
            results = json.loads(shared.table.RESULTS.read_text("utf-8"))
            kept = {str(one["rows"]): one for one in found}
            results["shared"]["bare"] = results["shared"].get("bare", {}) | kept
            shared.table.RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
            shared.table.put(shared.PAGE, shared.BEGIN, shared.END, shared.render(results["shared"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
