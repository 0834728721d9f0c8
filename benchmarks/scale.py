"""How one store behaves at a number of notes: build, refresh, recall, an added note, a pull, sync, memory, size.

    python benchmarks/scale.py                          10,000 English notes of 120 words, words only
    python benchmarks/scale.py --notes 1000 --vectors real          with every passage embedded
    python benchmarks/scale.py --vectors real --vectors-cache ~/.cache/mdmem-bench     embedded once, kept for the next run
    python benchmarks/scale.py --notes 100000 --vectors random      random unit vectors: their number and spread is what matters
    python benchmarks/scale.py --language zh --engine tantivy --json
    python benchmarks/scale.py --notes 100000 --store DIR           kept there; measured again, all but the building

Whole processes are given as ratios to a bare `python -c pass` of the same run; work inside the process in milliseconds.
The notes are drawn from a vocabulary with Zipf's frequencies, seeded, so that each run measures the same store.
`python benchmarks/all.py` runs this at several sizes and writes the table of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

CONSONANTS = tuple("bcdfghjklmnpqrstvwxz")
# Characters that are often seen: 120 words of one to three of them are some 220 characters, one passage as in English.
HANZI = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多定行学法所民得经"
    "进着等部度家电力里如水化高自二理起小物现实加量都两体制机当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全"
    "表间样与关各重新线内数正心反你明看原又利比或但质气第向道命此变条只没结解问意建月公无系军很情者最立代想已通并提直题党程展五果"
    "料象员革位入常文总次品式活设及管特件长求老头基资边流路级少图山统接知较将组见计别她手角期根论运农指几九区强放决西被干做必战先"
)
PULLED = 1_000
RESTS = 33.0  # seconds after which a process that looks every fifteen has seen that nobody asks
CLOCK = {"cpu": False}
# A process that opens the store and asks, for the memory that this takes.
ASKING = """
import sys
from mdmem.recall.query import Query
from mdmem.recall.recall import recall
from mdmem.store import Store
store = Store.open(sys.argv[1], cwd=sys.argv[1])
for text in sys.argv[3:]:
    recall(store, Query(text, mode=sys.argv[2]))
for line in open("/proc/self/status"):
    if line.startswith("VmRSS"):
        print(int(line.split()[1]) / 1024)
"""


def vocabulary(rng: random.Random, language: str, size: int = 20_000) -> tuple[list[str], list[float]]:
    """Return words and their weights (1 / rank)."""
    words: dict[str, None] = {}
    while len(words) < size:
        if language == "zh":
            words["".join(rng.choices(HANZI, k=rng.choice((1, 1, 2, 2, 2, 3))))] = None
        else:
            words["".join(rng.choice(CONSONANTS) + rng.choice("aeiou") for _ in range(rng.randint(2, 4)))] = None
    return list(words), [1.0 / rank for rank in range(1, size + 1)]


def write_notes(folder: Path, numbers: Iterable[int], language: str, questions: int = 200) -> list[str]:
    """Write the notes with these numbers; returns at most `questions` queries of five words drawn from them."""
    rng = random.Random(20261130)
    words, weights = vocabulary(rng, language)
    joint = "" if language == "zh" else " "
    numbers = list(numbers)
    queries = []
    folder.mkdir(parents=True, exist_ok=True)
    rng.seed(numbers[0])
    for number in numbers:
        drawn = rng.choices(words, weights, k=120)
        title = joint.join(drawn[:6])
        lines = [joint.join(drawn[start : start + 12]) for start in range(0, 120, 12)]
        day = f"2026-{number % 11 + 1:02d}-{number % 28 + 1:02d}"
        head = f"---\nid: mem-{number:012d}\ntype: fact\ntitle: {title}\ncreated: {day}\nupdated: {day}\n---\n\n"
        text = ("。\n" if language == "zh" else ".\n").join(lines)
        (folder / f"n{number:06d}.md").write_text(f"{head}{text}\n", "utf-8")
        if number % max(1, len(numbers) // questions) == 0:
            queries.append(" ".join(rng.sample(drawn, 5)))
    return queries


def random_vectors(store: Any) -> None:
    """Give every passage without a vector a random one of length 1."""
    import numpy as np

    dense = store.index.dense
    stored = dense.vectors()
    hashes = list(dict.fromkeys(row["hash"] for row in store.index.catalog.rows("SELECT hash FROM windows ORDER BY rowid")))
    lacking = [digest for digest, there in zip(hashes, stored.has(hashes)) if not there]
    draw = np.random.default_rng(20261130)
    for start in range(0, len(lacking), 10_000):
        part = lacking[start : start + 10_000]
        rows = draw.standard_normal((len(part), stored.dims), dtype=np.float32)
        stored.add(part, rows / np.linalg.norm(rows, axis=1, keepdims=True))


def now() -> float:
    """Return seconds on the clock in force: the wall's, or processor time of this process and of those it has waited for."""
    if not CLOCK["cpu"]:
        return time.perf_counter()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(work: Callable[[], Any]) -> float:
    """Return the milliseconds that a call took."""
    begin = now()
    work()
    return (now() - begin) * 1000


def process(arguments: list[str], runs: int, cwd: Path, env: dict[str, str] | None = None) -> float:
    """Return the median milliseconds of a whole process; where it is run more than once, a first run that writes the
    bytecode, as an installed package has it, is not counted."""
    took = []
    for _ in range(runs + (runs > 1)):
        begin = now()
        done = subprocess.run(arguments, cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL, env=env, check=False)
        took.append((now() - begin) * 1000)
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)}: {done.stderr.decode(errors='replace')[-500:]}")
    return statistics.median(took[runs > 1 :])


def percentile(values: list[float], share: float) -> float:
    """Return the value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def embedded(store: Any, language: str, cache: Path | None, out: dict[str, Any]) -> None:
    """Embed every passage, or take what an earlier run kept in `cache`. How fast is measured either way, on some of them."""
    from mdmem.index.rows import embed_text

    kept = cache / f"{language}-{store.index.catalog.value('SELECT count(*) FROM windows')}" if cache is not None else None
    folder = store.state_dir / "vectors"
    if kept is not None and kept.is_dir():
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        store.index.dense.forget()
    took = timed(lambda: store.index.refresh(embed_budget_s=None)) / 1000
    if kept is not None and not kept.is_dir():
        shutil.copytree(folder, kept)
    elif kept is None:
        out["build vectors, s"] = took
    sql = "SELECT n.title, w.heading, w.text FROM windows w JOIN notes n ON n.rowid = w.note ORDER BY w.rowid LIMIT 64"
    texts = [embed_text(row["title"], row["heading"], row["text"]) for row in store.index.catalog.rows(sql)]
    embedder = store.index.dense.embedder()
    embedder.passages(texts[:4])
    cpu = time.process_time()
    embedder.passages(texts)
    out["passages embedded a CPU second"] = len(texts) / (time.process_time() - cpu)


def measure(
    base: Path,
    count: int,
    language: str,
    vectors: str,
    runs: int,
    sync: bool = True,
    questions: int = 200,
    cache: Path | None = None,
    sync_only: bool = False,
    warm_only: bool = False,
) -> dict[str, Any]:
    """Return every figure for one store; `vectors`: none, random or real; without `sync` nothing is pushed or fetched, with
    `sync_only` or `warm_only` nothing else is measured."""
    from mdmem.recall.query import Query
    from mdmem.recall.recall import recall
    from mdmem.setup import init
    from mdmem.store import Store

    root = base / "store"
    asked, anew = base / "queries.json", not root.exists()
    if anew:
        init(root)
        asked.write_text(json.dumps(write_notes(root / "memories", range(count), language, questions)), "utf-8")
    queries = json.loads(asked.read_text("utf-8"))[:questions]
    store = Store.open(root, need="write", cwd=root)
    out: dict[str, Any] = {"notes": count, "language": language, "engine": str(store.config.get("index.engine"))}
    out["vectors"] = vectors
    out["clock"] = "cpu" if CLOCK["cpu"] else "wall"
    bare = process([sys.executable, "-c", "pass"], runs + 4, root)
    out["bare Python start, ms"] = bare
    if sync_only:  # it looks at no index
        git(root, "add", "-A")
        git(root, "commit", "-qm", "all notes")
        _synced(root, language, runs, out)
        return out
    if anew:
        cpu = time.process_time()
        out["build words, s"] = timed(lambda: store.index.refresh(embed_budget_s=0.0)) / 1000
        out["build words, CPU s"] = time.process_time() - cpu
        git(root, "add", "-A")
        git(root, "commit", "-qm", "all notes")
    else:
        ours = {f"n{number:06d}.md" for number in range(count)}
        for path in (root / "memories").iterdir():  # what an earlier run added
            if path.name not in ours:
                path.unlink()
        store.index.refresh(embed_budget_s=0.0)
    out["passages"] = store.index.catalog.value("SELECT count(*) FROM windows")
    if vectors == "real":
        embedded(store, language, cache, out)
    elif vectors == "random":
        random_vectors(store)
    if warm_only:
        _warm(store, root, queries, vectors != "none", runs, out)
        return out
    out["refresh, nothing changed, store opened anew, ms"] = statistics.median(
        timed(lambda: Store.open(root, cwd=root).index.refresh(embed_budget_s=0.0)) for _ in range(runs)
    )
    for _ in range(2):  # the look-out begins with the second whole look
        store.index.refresh(embed_budget_s=0.0)
    out["refresh, nothing changed, store kept open, ms"] = statistics.median(
        timed(lambda: store.index.refresh(embed_budget_s=0.0)) for _ in range(runs)
    )
    for mode in ("keyword", "hybrid") if vectors != "none" else ("keyword",):
        for query in queries[:3]:
            recall(store, Query(query, mode=mode))
        asked_for = [Query(text, mode=mode) for text in queries]
        took = [timed(lambda q=query: recall(store, q)) for query in asked_for]  # type: ignore[misc]
        out[f"recall, store kept open, {mode}, p50, ms"] = percentile(took, 0.5)
        out[f"recall, store kept open, {mode}, p95, ms"] = percentile(took, 0.95)
        # The search itself: what is left when looking for changed files, filters and ranking are taken away.
    took = [timed(lambda q=query: store.index.text_hits(q, None, 200)) for query in queries]  # type: ignore[misc]
    out["of this the engine's search for words, p50, ms"] = percentile(took, 0.5)
    out["of this the engine's search for words, p95, ms"] = percentile(took, 0.95)
    if vectors != "none":
        asked = store.index.dense.question(queries[0])
        took = [timed(lambda: store.index.vector_search(asked, None, 200)) for _ in range(max(runs, 9))]
        out["of this the search among vectors, p50, ms"] = percentile(took, 0.5)
    _added(store, root, vectors == "real", runs, out)
    files = [f for f in store.state_dir.rglob("*") if f.is_file()]
    out["index on disk, MB"] = sum(f.stat().st_size for f in files) / 1e6
    out["of this words, MB"] = sum(f.stat().st_size for f in files if f.parent.name == "text") / 1e6
    _processes(store, root, queries, vectors != "none", runs, out)
    _warm(store, root, queries, vectors != "none", runs, out)
    if sync:
        _synced(root, language, runs, out)
    took = []
    for number in range(min(3, runs)):
        fresh = 600_000 + number * PULLED
        write_notes(root / "memories", range(fresh, fresh + PULLED), language)
        took.append(timed(lambda: store.index.refresh(embed_budget_s=0.0)))
    out["refresh after 1,000 notes came, ms"] = statistics.median(took)
    return out


def _added(store: Any, root: Path, by_meaning: bool, runs: int, out: dict[str, Any]) -> None:
    """Measure how soon a note that an editor wrote is found."""
    from mdmem.recall.query import Query
    from mdmem.recall.recall import recall

    words, meaning = [], []
    for number in range(runs):
        begin = now()
        text = f"The zebrafish{number} aquarium opens at dawn on market days."
        (root / "memories" / f"new{number}.md").write_text(f"---\nid: mem-new{number}\ntitle: Fresh\n---\n\n{text}\n")
        found = recall(store, Query(f"zebrafish{number}", mode="keyword", limit=1))
        assert found.results and found.results[0].path.endswith(f"new{number}.md")
        words.append((now() - begin) * 1000)
        if by_meaning:
            begin = now()
            (root / "memories" / f"late{number}.md").write_text(f"---\nid: mem-late{number}\n---\n\n{text} Number {number}.\n")
            ahead = recall(store, Query("when does the fish house open", mode="semantic", limit=20))
            assert any(hit.path.endswith(f"late{number}.md") for hit in ahead.results)
            meaning.append((now() - begin) * 1000)
    out["note added in an editor, found by words, ms"] = statistics.median(words)
    if meaning:
        out["note added in an editor, found by meaning, ms"] = statistics.median(meaning)


def _processes(store: Any, root: Path, queries: list[str], vectors: bool, runs: int, out: dict[str, Any]) -> None:
    """Measure whole commands, and the memory of a process that has the store open."""
    bare = out["bare Python start, ms"]
    mdmem = [sys.executable, "-m", "mdmem"]
    commands = [("recall --keyword", ["recall", queries[3], "--keyword"])]
    if vectors:
        commands.append(("recall, cold with the model", ["recall", queries[3]]))
    commands += [
        ("remember", ["remember", "fact", "A fact kept while measuring."]),
        ("list", ["list", "--limit", "5"]),
        ("status", ["status"]),
    ]
    for name, words in commands:
        out[f"process {name}, starts"] = process([*mdmem, *words], runs, root) / bare
    asked = [sys.executable, "-c", ASKING, str(root), "hybrid" if vectors else "keyword", *queries[:20]]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=root)
    out["memory after 20 questions, MB"] = float(done.stdout)


def _warm(store: Any, root: Path, queries: list[str], vectors: bool, runs: int, out: dict[str, Any]) -> None:
    """Measure what the warm process answers to a command, and (by the wall's clock alone, since its work is not this
    process's) to a caller that is there already."""
    from mdmem.recall.query import Query
    from mdmem.warm import client, starting
    from mdmem.warm.recalling import of_store, query_data

    client.GREETING = 60.0
    starting.start(str(root), "bench", "bench")
    while client.ask({"op": "status"}, 60.0) is None:
        time.sleep(0.05)
    client.ask({"op": "warm", "root": str(root), "agent": "bench"}, 60.0)
    modes = {"keyword": ["--keyword"], **({"hybrid": []} if vectors else {})}
    try:
        for mode, words in modes.items():
            asked = [{"op": "recall", **of_store(store), "query": query_data(Query(text, mode=mode))} for text in queries]
            for request in asked[:5]:
                client.ask(request, 60.0)
            took = []
            for request in asked:
                begin = time.perf_counter()
                answer = client.ask(request, 60.0)
                took.append((time.perf_counter() - begin) * 1000)
                assert answer is not None and "recall" in answer, answer
            if not CLOCK["cpu"]:
                out[f"recall, asked of the warm process, {mode}, p50, ms"] = percentile(took, 0.5)
                out[f"recall, asked of the warm process, {mode}, p95, ms"] = percentile(took, 0.95)
            command = [sys.executable, "-m", "mdmem", "recall", queries[3], *words]
            warm = process(command, runs + 2, root, {**os.environ, "MDMEM_SERVE": "auto"}) / out["bare Python start, ms"]
            out[f"process {' '.join(['recall', *words])}, with the warm process, starts"] = warm
        pid = (client.ask({"op": "status"}) or {})["pid"]
        out["memory of the warm process, MB"], out["of this pages of mapped files, MB"] = _memory(pid)
        time.sleep(RESTS)
        out["memory of the warm process while nobody asks, MB"] = _memory(pid)[0]
    finally:
        client.ask({"op": "stop"})


def _memory(pid: int) -> tuple[float, float]:
    """Return the megabytes that a process has in memory, and those of them that stand in files and are the system's to take."""
    said = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    taken = {name: int(said[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon")}
    return taken["VmRSS"], taken["VmRSS"] - taken["RssAnon"]


def git(cwd: Path, *words: str) -> None:
    """Run git as somebody."""
    subprocess.run(["git", "-c", "user.name=b", "-c", "user.email=b@b", *words], cwd=cwd, check=True, capture_output=True)


def _synced(root: Path, language: str, runs: int, out: dict[str, Any]) -> None:
    """Measure sync with a bare remote on the same disk."""
    base = root.parent

    git(base, "init", "-q", "--bare", str(base / "remote.git"))
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "what came meanwhile")
    git(root, "remote", "add", "origin", str(base / "remote.git"))
    sync = [sys.executable, "-m", "mdmem", "sync"]
    out["sync, first push of everything, s"] = process(sync, 1, root) / 1000
    out["sync, nothing new, ms"] = process(sync, runs, root)
    note = next(iter(sorted((root / "memories").glob("*.md"))))
    took = []
    for number in range(runs):
        note.write_text(f"{note.read_text('utf-8')}\nA line that was added on day {number}.\n", "utf-8")
        took.append(process(sync, 1, root))
    out["sync of one changed note, ms"] = statistics.median(took)
    named = subprocess.run(["git", "symbolic-ref", "--short", "HEAD"], cwd=root, check=True, capture_output=True, text=True)
    git(base, "clone", "-q", "-b", named.stdout.strip(), str(base / "remote.git"), str(base / "other"))
    synced = []
    for number in range(min(3, runs)):
        git(base / "other", "pull", "-q", "--ff-only")
        start = 500_000 + number * PULLED
        write_notes(base / "other" / "memories", range(start, start + PULLED), language)
        git(base / "other", "add", "-A")
        git(base / "other", "commit", "-qm", "more notes")
        git(base / "other", "push", "-q")
        synced.append(process(sync, 1, root) / 1000)
    out["sync that brings 1,000 notes, s"] = statistics.median(synced)


def main() -> int:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--language", choices=["en", "zh"], default="en")
    parser.add_argument("--engine", choices=["whoosh", "tantivy"], default="whoosh")
    parser.add_argument("--vectors", choices=["none", "random", "real"], default="none", help="real: minutes at 10,000")
    parser.add_argument("--vectors-cache", type=Path, help="keep real vectors here, and take them from here")
    parser.add_argument("--store", type=Path, help="keep the store in this folder; one that is there already is not built anew")
    parser.add_argument("--no-sync", action="store_true", help="leave out pushing and fetching")
    parser.add_argument("--sync-only", action="store_true", help="measure pushing and fetching alone")
    parser.add_argument("--warm-only", action="store_true", help="measure the warm process alone, on a store that was kept")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: processor times, on a busy machine")
    parser.add_argument("--json", action="store_true", dest="as_json")
    given = parser.parse_args()
    CLOCK["cpu"] = given.clock == "cpu"
    with tempfile.TemporaryDirectory(prefix="mdmem-scale-") as folder:
        base = given.store.resolve() if given.store else Path(folder)
        for name in ("CONFIG", "DATA", "CACHE"):
            os.environ[f"XDG_{name}_HOME"] = str(base / name.lower())
        run = Path(folder) / "run"
        run.mkdir(mode=0o700)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in the warm process
        os.environ.update(MDMEM_SERVE="off", PYTHONPATH=str(ROOT), MDMEM_DEVICE="bench", MDMEM_AGENT="bench")
        os.environ.update(XDG_RUNTIME_DIR=str(run), HOME=str(base), MDMEM_INDEX_ENGINE=given.engine)
        words = (given.notes, given.language, given.vectors, given.runs, not given.no_sync, given.questions)
        out = measure(base, *words, given.vectors_cache, given.sync_only, given.warm_only)
    if given.as_json:
        print(json.dumps(out, indent=1, ensure_ascii=False))
    else:
        for name, value in out.items():
            print(f"{name:<52} {value:,.1f}" if isinstance(value, float) else f"{name:<52} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
