"""The shared index (milvus-lite in a file) beside the local engines, on the same notes in one run.

    python benchmarks/shared.py [--sizes 2000,20000] [--questions 40]        needs the extras mdmem[milvus,tantivy]
    python benchmarks/shared.py --sizes 200000 --folder /var/tmp/big --clock cpu         goes on where it was cut off
    python benchmarks/shared.py --render                                     write the page again from the kept results

Notes as in scale.py, with random vectors. Each phase is a process of its own, so that its memory is its own: writing the
notes; building and asking with tantivy; the same with Whoosh; pushing everything, one changed note and nothing; asking the
engine. Asked is `mdmem recall`'s own code, hybrid, the store kept open. What a phase measured is kept in its folder, and with
`--folder` a run that was cut off goes on there. The table goes into docs/shared-index.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import all as table  # the machine, the kept results and the markers  # noqa: E402
import scale  # noqa: E402

PAGE = HERE.parent / "docs" / "shared-index.md"
BEGIN, END = "<!-- benchmarks/shared.py: begin -->", "<!-- benchmarks/shared.py: end -->"
ENGINES = {"tantivy": "tantivy", "whoosh": "Whoosh"}
ROWS = {
    "build: Whoosh, s": 1,
    "build: tantivy, s": 1,
    "first push to milvus-lite, s": 1,
    "push of one changed note, s": 1,
    "push with nothing to do, s": 1,
    "question: Whoosh, p50 ms": 0,
    "question: Whoosh, p95 ms": 0,
    "question: tantivy, p50 ms": 0,
    "question: tantivy, p95 ms": 0,
    "question: milvus-lite, p50 ms": 0,
    "question: milvus-lite, p95 ms": 0,
    "of this its search by words, p50 ms": 0,
    "of this its search by meaning, p50 ms": 0,
    "milvus-lite: opening and the first question, s": 1,
    "memory: Whoosh, MB": 0,
    "memory: tantivy, MB": 0,
    "memory: milvus-lite in the process, MB": 0,
    "memory: the push, the engine in the process, MB": 0,
    "disk: the local index with Whoosh, MB": 0,
    "disk: milvus-lite, MB": 0,
    "milvus-lite and Whoosh: the same note first, %": 0,
    "milvus-lite and Whoosh: the same among the first ten, %": 1,
}


BARE = ("insert", "flush,", "first ", "questi", "memory")  # how the rows of benchmarks/shared_bare.py begin, in their order


class Bench:
    """One size in one folder."""

    def __init__(self, folder: Path, count: int, questions: int) -> None:
        self.base, self.count, self.questions = folder, count, questions
        self.root = folder / "store"
        self.phases: dict[str, Callable[[], dict[str, Any]]] = {
            "notes": self.notes,
            "tantivy": lambda: self.local("tantivy"),
            "whoosh": lambda: self.local("whoosh"),
            "push": self.push,
            "ask": self.ask,
            "again": self.again,
        }

    def prepare(self) -> None:
        """Set the environment of a phase."""
        for name in ("CONFIG", "DATA", "CACHE"):
            os.environ[f"XDG_{name}_HOME"] = str(self.base / name.lower())
        os.environ.update(HOME=str(self.base), MDMEM_SERVE="off", MDMEM_DEVICE="bench", MDMEM_AGENT="bench")
        os.environ.update(MDMEM_INDEX_URI=str(self.base / "shared.db"), MDMEM_INDEX_SHARE="all")

    def opened(self, engine: str) -> Any:
        """Return the store with an engine."""
        from mdmem.store import Store

        os.environ["MDMEM_INDEX_ENGINE"] = engine
        return Store.open(self.root, need="write", cwd=self.root)

    def commit(self) -> None:
        """Commit everything."""
        for words in (["add", "-A"], ["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "notes"]):
            subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True)

    def notes(self) -> dict[str, Any]:
        """Write the notes; returns the questions."""
        from mdmem.setup import init

        shutil.rmtree(self.root, ignore_errors=True)
        init(self.root)
        asked = scale.write_notes(self.root / "memories", range(self.count), "en", self.questions)[: self.questions]
        self.commit()
        return {"asked": asked}

    def local(self, engine: str) -> dict[str, Any]:
        """Build anew with a local engine, and ask."""
        name = ENGINES[engine]
        shutil.rmtree(self.opened(engine).state_dir, ignore_errors=True)
        store = self.opened(engine)
        out: dict[str, Any] = {
            f"build: {name}, s": scale.timed(lambda: store.index.refresh(embed_budget_s=0.0)) / 1000,
        }
        scale.random_vectors(store)
        out[f"disk: the local index with {name}, MB"] = _size(store.state_dir)
        # A process that opened the store and only asks, for its memory.
        out |= self.run_phase(f"ask {engine}")
        return out

    def ask_local(self, engine: str) -> dict[str, Any]:
        """Ask with a local engine."""
        name, store = ENGINES[engine], self.opened(engine)
        self._questions(store)
        found, took = self._questions(store)
        p50, p95 = _both(took)
        memory = _memory()
        return {
            f"question: {name}, p50 ms": p50,
            f"question: {name}, p95 ms": p95,
            f"memory: {name}, MB": memory,
            f"found {engine}": found,
        }

    def push(self) -> dict[str, Any]:
        """Push everything; a push that was cut off counts what it took to finish."""
        from mdmem.memory.sharing import push_store

        store = self.opened("milvus")
        out = {"first push to milvus-lite, s": scale.timed(lambda: push_store(store)) / 1000}
        out["memory: the push, the engine in the process, MB"] = _memory()
        out["disk: milvus-lite, MB"] = _size(self.base / "shared.db")
        return out

    def again(self) -> dict[str, Any]:
        """Push one changed note, and nothing."""
        from mdmem.memory.sharing import push_store

        store = self.opened("milvus")
        changed = self.root / "memories" / "n000000.md"
        changed.write_text(changed.read_text("utf-8") + "\nA line more.\n", "utf-8")
        self.commit()
        store.index.refresh(embed_budget_s=0.0)
        scale.random_vectors(store)
        names = ("push of one changed note, s", "push with nothing to do, s")
        return {name: scale.timed(lambda: push_store(store)) / 1000 for name in names}

    def ask(self) -> dict[str, Any]:
        """Ask the engine, which stays open as a server would."""
        from mdmem.index.milvus import Engine, targets_of
        from mdmem.recall import shared

        os.environ["MDMEM_INDEX_WAIT"] = "600"
        store = self.opened("milvus")
        began = scale.now()
        (target,) = targets_of(store.config)
        kept = Engine(target, 600.0)
        Engine.close = lambda self: None  # type: ignore[method-assign]
        shared._open[target] = kept
        calls: dict[str, list[float]] = {"words": [], "meaning": []}
        plain = Engine.nearest

        def timed(engine: Any, field: str, *words: Any) -> Any:
            begin = scale.now()
            rows = plain(engine, field, *words)
            calls[field].append((scale.now() - begin) * 1000)
            return rows

        Engine.nearest = timed  # type: ignore[method-assign]
        self._questions(store, 1)
        out: dict[str, Any] = {"milvus-lite: opening and the first question, s": scale.now() - began}
        self._questions(store, 3)
        for kind in calls.values():
            kind.clear()
        found, took = self._questions(store)
        out["question: milvus-lite, p50 ms"], out["question: milvus-lite, p95 ms"] = _both(took)
        out["of this its search by words, p50 ms"] = _both(calls["words"])[0]
        out["of this its search by meaning, p50 ms"] = _both(calls["meaning"])[0]
        out["memory: milvus-lite in the process, MB"] = _memory()
        local = self.kept("whoosh")["found whoosh"]
        pairs = list(zip(local, found, strict=True))
        same = 100 * sum(len({*a} & {*b}) / max(1, len(a)) for a, b in pairs) / len(pairs)
        out["milvus-lite and Whoosh: the same note first, %"] = 100 * sum(a[:1] == b[:1] for a, b in pairs) / len(pairs)
        out["milvus-lite and Whoosh: the same among the first ten, %"] = same
        return out

    def _questions(self, store: Any, count: int | None = None) -> tuple[list[list[str]], list[float]]:
        """Return what was found for each question, and the milliseconds that each took."""
        from mdmem.recall.query import Query
        from mdmem.recall.recall import recall

        found, took = [], []
        for text in self.kept("notes")["asked"][:count]:
            began = scale.now()
            answer = recall(store, Query(text, limit=10))
            took.append((scale.now() - began) * 1000)
            if any("local index" in notice for notice in answer.notices):
                raise SystemExit(f"the engine did not answer: {answer.notices}")
            found.append([hit.id for hit in answer.results])
        return found, took

    def kept(self, phase: str) -> Any:
        """Return what a phase measured."""
        return json.loads((self.base / f"{phase}.json").read_text("utf-8"))

    def run_phase(self, phase: str) -> dict[str, Any]:
        """Run a phase in a process of its own, unless it is done."""
        file = self.base / f"{phase}.json"
        if not file.exists():
            print(f"… {self.count:,} notes: {phase}", file=sys.stderr, flush=True)
            words = [sys.executable, __file__, "--phase", phase, "--folder", str(self.base), "--sizes", str(self.count)]
            words += ["--questions", str(self.questions), "--clock", "cpu" if scale.CLOCK["cpu"] else "wall"]
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{phase} failed")
            file.write_text(done.stdout.strip().splitlines()[-1], "utf-8")
        found: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return found

    def phase(self, name: str) -> dict[str, Any]:
        """Do one phase here."""
        self.prepare()
        return self.ask_local(name.split()[1]) if " " in name else self.phases[name]()

    def run(self) -> dict[str, Any]:
        """Do what lacks, and return every figure."""
        out: dict[str, Any] = {"notes": self.count}
        for name in self.phases:
            out |= {key: value for key, value in self.run_phase(name).items() if key not in ("asked",) and "found" not in key}
        return out


def _both(took: list[float]) -> tuple[float, float]:
    return scale.percentile(took, 0.5), scale.percentile(took, 0.95)


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _size(folder: Path) -> float:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def render(found: dict[str, Any]) -> str:
    """Return the section of docs/shared-index.md."""
    runs = [found["sizes"][size] for size in sorted(found["sizes"], key=int)]
    sizes = [run["notes"] for run in runs]
    rows = []
    for name, digits in ROWS.items():
        values = [run.get(name) for run in runs]
        grows = table.growth(sizes, values) if "%" not in name else ""
        rows.append([name, *("—" if value is None else f"{value:,.{digits}f}" for value in values), grows])
    m = found["machine"]
    lines = [BEGIN, "", *table.table(["", *(f"{size:,} notes" for size in sizes), "grows"], rows)]
    lines += [
        "`python benchmarks/shared.py`: notes of 120 words, random vectors, milvus-lite in the same process; "
        f"{m['processor']}, {m['cores']} cores, {m['day']}, Python {m['python']}."
        + (" Processor times: the machine was busy." if found.get("clock") == "cpu" else "")
        + (" —: not measured." if any(name not in run for run in runs for name in ROWS) else ""),
        "",
        *(alone(found["bare"]) if "bare" in found else []),
        *(agreement(found["sets"]) if "sets" in found else []),
        *plan(runs),
        END,
    ]
    return "\n".join(lines)


def alone(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return the table of benchmarks/shared_bare.py."""
    runs = [found[size] for size in sorted(found, key=int)]
    names = sorted({name for run in runs for name in run if name != "rows"}, key=lambda name: (BARE.index(name[:6]), name))
    sizes = [run["rows"] for run in runs]
    rows = []
    for name in names:
        values = [run.get(name) for run in runs]
        digits = 1 if name.endswith(", s") else 0
        shown = ("—" if value is None else f"{value:,.{digits}f}" for value in values)
        rows.append([name, *shown, table.growth(sizes, values)])
    told = "milvus-lite alone, without mdmem, the same kind of rows (`python benchmarks/shared_bare.py`, processor times):"
    return [told, "", *table.table(["", *(f"{size:,} rows" for size in sizes), "grows"], rows)]


def agreement(sets: list[dict[str, Any]]) -> list[str]:
    """Return the table of benchmarks/shared_sets.py."""
    rows = []
    for one in sets:
        for mode in ("hybrid", "keyword"):
            m, asked = one[mode], one["questions"]
            same = f"{m['same']} of {m['found']}"
            row = [one["file"], f"{one['notes']}", mode, f"{m['first']} of {asked}", same, f"{m['order']} of {asked}"]
            rows.append([*row, f"{m['score']:.1e}"])
    head = ["questions of", "notes", "search", "same note first", "same among ten", "same order of ten", "scores differ by"]
    told = "Whoosh beside milvus-lite, the bundled model, files of questions (`python benchmarks/shared_sets.py`):"
    return [told, "", *table.table(head, rows)]


def plan(runs: list[dict[str, Any]]) -> list[str]:
    """Return the paper plan: what the largest size measured says about larger ones, with the arithmetic."""
    last = next(run for run in reversed(runs) if "disk: milvus-lite, MB" in run)
    disk = last["disk: milvus-lite, MB"] * 1e6 / last["notes"]
    push = last["first push to milvus-lite, s"] * 1000 / last["notes"]
    look, among = next(
        (run["push with nothing to do, s"], run["notes"]) for run in reversed(runs) if "push with nothing to do, s" in run
    )
    embed, dims = 17, 384  # passages a second and core, docs/benchmarks.md; numbers of a vector
    vector = dims * 4
    # A node holds vectors and their graph, words and keys of its rows in memory: vectors, half as much again, and the words.
    words = disk / 2
    node = 32e9
    rows = []
    for count in (1_000_000, 10_000_000, 100_000_000):
        memory = count * (vector * 1.5 + words)
        small = count * (vector / 4 * 1.5 + words)
        rows.append(
            [
                f"{count:,}",
                f"{count * disk / 1e9:,.0f} GB",
                f"{memory / 1e9:,.0f} GB",
                f"{small / 1e9:,.0f} GB",
                f"{-(-memory // node):,.0f}",
                f"{count * push / 1000 / 3600:,.1f} h",
                f"{count / embed / 3600:,.0f} h",
            ]
        )
    head = ["notes of one passage", "disk", "memory", "memory, 8-bit vectors", "nodes of 32 GB", "first push", "embedding"]
    return [
        f"A paper plan, drawn out from the figures for {last['notes']:,} notes. A row takes {disk:,.0f} bytes on disk",
        f"(measured, of which the vector is {dims} × 4 = {vector:,}). A server's query nodes hold in memory the vectors, half",
        f"as much again for their graph, and the words, taken as half of the row: {vector:,} × 1.5 + {words:,.0f} =",
        f"{vector * 1.5 + words:,.0f} bytes; with vectors of 8 bits {vector / 4:,.0f} × 1.5 + {words:,.0f} =",
        f"{vector / 4 * 1.5 + words:,.0f}. A first push takes {push:,.1f} ms a note and core, embedding 1 / {embed} s a",
        "passage and core (docs/benchmarks.md); both divide by the number of repositories that push at the same time, since",
        f"each has a writer of its own. A push that finds nothing to do among {among:,} notes took {look:,.1f}",
        "s, most of it for opening the embedded engine.",
        "Times of questions on a server are not promised: none was measured.",
        "",
        *table.table(head, rows),
    ]


def main() -> int:
    """Measure each size, keep, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=[2_000, 20_000])
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: processor times, on a busy machine")
    parser.add_argument("--folder", type=Path, help="keep what was made and measured there (one size), and go on from it")
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--phase", help=argparse.SUPPRESS)
    given = parser.parse_args()
    scale.CLOCK["cpu"] = given.clock == "cpu"
    if given.phase:
        print(json.dumps(Bench(given.folder, given.sizes[0], given.questions).phase(given.phase)))
        return 0
    for size in [] if given.render else given.sizes:
        with tempfile.TemporaryDirectory(prefix="mdmem-shared-") as folder:
            base = given.folder / str(size) if given.folder else Path(folder)
            base.mkdir(parents=True, exist_ok=True)
            measured = Bench(base, size, given.questions).run()
        results = json.loads(table.RESULTS.read_text("utf-8")) if table.RESULTS.exists() else {}
        kept = results.setdefault("shared", {"sizes": {}})
        kept["machine"], kept["clock"] = table.machine(), given.clock
        kept["sizes"][str(size)] = measured
        table.RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
    kept = json.loads(table.RESULTS.read_text("utf-8"))["shared"]
    table.put(PAGE, BEGIN, END, render(kept))
    print(render(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
