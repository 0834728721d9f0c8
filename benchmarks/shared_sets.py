"""Whether the shared index (milvus-lite in a file) gives the same first ten as the local engine, on files of questions.

    python benchmarks/shared_sets.py FILE… [--limit 60] [--keep]         needs the extra mdmem[milvus]; FILE as for mdmem bench

Each file becomes a store with the bundled model's vectors, is committed and pushed, and each question is asked of both through
`mdmem recall`'s own code, hybrid and by words alone, with everything answered by the one or the other. `--keep` writes the
table into docs/shared-index.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import shared  # noqa: E402


def compare(file: Path, limit: int) -> dict[str, Any]:
    """Return how far both agree on one file."""
    from mdmem.clock import FixedClock
    from mdmem.index.milvus import Engine, targets_of
    from mdmem.memory.sharing import push_store
    from mdmem.recall import shared as asking
    from mdmem.recall.bench import KINDS, note_bytes
    from mdmem.recall.bench_data import load_dataset
    from mdmem.recall.query import Filters, Query
    from mdmem.recall.recall import recall
    from mdmem.setup import init
    from mdmem.store import Store

    data = load_dataset(file)
    step = max(1, len(data.questions) // limit) if limit else 1
    questions = data.questions[::step][: limit or None]
    with tempfile.TemporaryDirectory(prefix="mdmem-sets-") as folder:
        bench = shared.Bench(Path(folder), len(data.docs), len(questions))
        bench.prepare()
        os.environ["MDMEM_INDEX_WAIT"] = "600"
        init(bench.root)
        store = bench.opened("whoosh")
        with store.folder.bulk():
            for number, doc in enumerate(data.docs):
                store.folder.create(f"notes/{number:05d}.md", note_bytes(doc, data.newest()))
        bench.commit()
        store.index.refresh(embed_budget_s=None)
        remote = bench.opened("milvus")
        done = push_store(remote)
        (target,) = targets_of(remote.config)
        kept = Engine(target, 600.0)
        close, Engine.close = Engine.close, lambda self: None  # type: ignore[method-assign]
        asking._open[target] = kept

        def asked(engine: str, query: Query, moment: Any) -> list[tuple[str, float]]:
            os.environ["MDMEM_INDEX_ENGINE"] = engine
            one = Store.open(bench.root, cwd=bench.root, clock=FixedClock(moment))
            answer = recall(one, query)
            if any("local index" in text for text in answer.notices):
                raise SystemExit(f"the engine did not answer: {answer.notices}")
            return [(hit.path.rsplit(": ", 1)[-1], hit.score) for hit in answer.results]

        out: dict[str, Any] = {"file": file.stem, "notes": len(data.docs), "questions": len(questions)}
        out["passages"] = int(store.index.catalog.value("SELECT count(*) FROM windows"))
        out["without a vector"] = done.without_vectors
        for mode in ("hybrid", "keyword"):
            first = order = same = total = 0
            most = 0.0
            for question in questions:
                scopes = (f"user:{question.group}",) if question.group else None
                query = Query(question.text, limit=10, mode=mode, filters=Filters(scopes=scopes, kinds=KINDS))
                moment = question.date or data.newest()
                ours, theirs = asked("whoosh", query, moment), asked("milvus", query, moment)
                first += [path for path, _ in ours[:1]] == [path for path, _ in theirs[:1]]
                order += [path for path, _ in ours] == [path for path, _ in theirs]
                scores = dict(theirs)
                same += sum(path in scores for path, _ in ours)
                total += len(ours)
                most = max([most, *(abs(score - scores[path]) for path, score in ours if path in scores)])
            out[mode] = {"first": first, "order": order, "same": same, "found": total, "score": most}
        Engine.close = close  # type: ignore[method-assign]
        kept.close()
    return out


def main() -> int:
    """Compare each file; print, and keep on request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=60, help="so many questions of a file, evenly drawn; 0: all")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    found = []
    for file in given.files:
        found.append(compare(file, given.limit))
        print(json.dumps(found[-1]), flush=True)
    if given.keep:
        results = json.loads(shared.table.RESULTS.read_text("utf-8"))
        results["shared"]["sets"] = found
        shared.table.RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
        shared.table.put(shared.PAGE, shared.BEGIN, shared.END, shared.render(results["shared"]))
    print("\n".join(shared.agreement(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
