"""Every figure of docs/benchmarks.md about speed and growth, by one command.

    python benchmarks/all.py                                        1,000 and 10,000 notes, both languages, both engines
    python benchmarks/all.py --sizes 100000 --languages en --no-sync
    python benchmarks/all.py --only hooks                            one part: scale, sync, engines, hooks, embedding or vectors
    python benchmarks/all.py --render                                write the table again from the kept results

Each part is a run of one of the scripts beside this one, in a process of its own; its results are kept in
benchmarks/results.json, so that a long table can be measured in pieces, and the section of docs/benchmarks.md between the
two markers is written from them. A figure is the median of several runs; a ratio is to a bare `python -c pass` of the same run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- benchmarks/all.py: begin -->", "<!-- benchmarks/all.py: end -->"
LANGUAGES = {"en": "English", "zh": "Chinese"}
PACKAGES = ("whoosh-reloaded", "tantivy", "numpy", "onnxruntime", "tokenizers", "GitPython")
Results = dict[str, Any]
BARE = "bare Python start, ms"
# What is shown of a run of scale.py, and with how many digits; seconds and megabytes of the same names grow with the notes.
ROWS: dict[str, int] = {
    "passages": 0,
    "build words, s": 1,
    "build words, CPU s": 1,
    "build vectors, s": 0,
    "passages embedded a CPU second": 1,
    "refresh, nothing changed, store opened anew, ms": 0,
    "refresh, nothing changed, store kept open, ms": 1,
    "refresh after 1,000 notes came, ms": 0,
    "recall, store kept open, keyword, p50, ms": 1,
    "recall, store kept open, keyword, p95, ms": 1,
    "recall, store kept open, hybrid, p50, ms": 1,
    "recall, store kept open, hybrid, p95, ms": 1,
    "recall, asked of the warm process, keyword, p50, ms": 1,
    "recall, asked of the warm process, keyword, p95, ms": 1,
    "recall, asked of the warm process, hybrid, p50, ms": 1,
    "recall, asked of the warm process, hybrid, p95, ms": 1,
    "of this the engine's search for words, p50, ms": 1,
    "of this the engine's search for words, p95, ms": 1,
    "of this the search among vectors, p50, ms": 1,
    "note added in an editor, found by words, ms": 0,
    "note added in an editor, found by meaning, ms": 0,
    "process recall --keyword, starts": 1,
    "process recall --keyword, with the warm process, starts": 1,
    "process recall, with the warm process, starts": 1,
    "process recall, cold with the model, starts": 1,
    "process remember, starts": 1,
    "process list, starts": 1,
    "process status, starts": 1,
    "sync, first push of everything, s": 1,
    "sync, nothing new, ms": 0,
    "sync of one changed note, ms": 0,
    "sync that brings 1,000 notes, s": 1,
    "memory after 20 questions, MB": 0,
    "memory of the warm process, MB": 0,
    "of this pages of mapped files, MB": 0,
    "memory of the warm process while nobody asks, MB": 0,
    "index on disk, MB": 0,
    "of this words, MB": 1,
    "bare Python start, ms": 1,
}


def machine() -> dict[str, Any]:
    """Return what the figures depend on: processor, cores, memory, versions, day."""
    model = ""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
        memory = int(Path("/proc/meminfo").read_text().split()[1]) // 1024 // 1024
    except OSError:
        memory = 0
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "day": date.today().isoformat(),
        "processor": model or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": memory,
        "python": platform.python_version(),
        "git": git,
        "packages": found,
    }


def run(script: str, *words: str) -> Any:
    """Return the JSON that a script beside this one prints. Raises SystemExit with its words when it fails."""
    print(f"… {script} {' '.join(words)}", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, str(HERE / script), *words, "--json"], capture_output=True, text=True, check=False)
    # hooks.py ends with 1 when a limit is passed, and still prints.
    if not done.stdout.strip():
        raise SystemExit(f"{script}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def measure(given: argparse.Namespace, results: Results, keep: Path) -> None:
    """Run the parts that were asked for, keeping each result at once."""

    def put(part: str, key: str, value: Any) -> None:
        value["machine"] = machine()
        # Read again: another part may have been measured meanwhile.
        results.update(json.loads(keep.read_text("utf-8")) if keep.exists() else {})
        results.setdefault(part, {})[key] = value
        keep.write_text(json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")

    wanted = given.only or ("scale", "engines", "hooks", "embedding", "vectors")
    if "scale" in wanted:
        for size in given.sizes:
            for language in given.languages:
                for engine in given.engines:
                    vectors = given.vectors or ("real" if size <= (10_000 if given.vectors_cache else 1_000) else "random")
                    words = ["--notes", str(size), "--language", language, "--engine", engine, "--vectors", vectors]
                    words += ["--runs", str(given.runs), *(["--no-sync"] if given.no_sync else [])]
                    words += ["--questions", str(given.questions), "--clock", given.clock]
                    words += ["--vectors-cache", str(given.vectors_cache)] if given.vectors_cache else []
                    key = f"{engine} {language} {size}"
                    words += ["--store", str(given.stores / key.replace(" ", "-"))] if given.stores else []
                    found = run("scale.py", *words, *(["--warm-only"] if given.warm_only else []))
                    # What was left out this time is known from the run that did it: building, pushing and fetching, or all
                    # but the warm process, whose own ratios are to a bare start of this run.
                    before = results.get("scale", {}).get(key, {})
                    left_out = ("",) if given.warm_only else ("build words", "sync")
                    kept = {name: value for name, value in before.items() if name.startswith(left_out)}
                    found = {**kept, **found, **({BARE: kept[BARE]} if given.warm_only and BARE in kept else {})}
                    put("scale", key, found)
    if "sync" in wanted:
        for size in given.sizes:
            for language in given.languages:
                for engine in given.engines:
                    words = ["--notes", str(size), "--language", language, "--engine", engine, "--runs", str(given.runs)]
                    put("sync", f"{engine} {language} {size}", run("scale.py", *words, "--clock", given.clock, "--sync-only"))
    if "engines" in wanted:
        for size in given.sizes:
            for language in given.languages:
                put("engines", f"{language} {size}", run("engines.py", "--counts", str(size), "--language", language))
    if "hooks" in wanted:
        for size in given.sizes:
            if size <= 10_000 or given.only:
                put("hooks", str(size), run("hooks.py", "--notes", str(size), "--runs", str(max(5, given.runs))))
    if "embedding" in wanted:
        put("embedding", "", run("embedding.py", "--rounds", str(min(5, given.runs))))
    if "vectors" in wanted:
        put("vectors", "", run("vectors.py", "--runs", str(max(5, given.runs))))


def growth(sizes: Sequence[int], values: Sequence[float | None]) -> str:
    """Return by what power of the number of notes a figure grows between the smallest and the largest size."""
    known = [(size, value) for size, value in zip(sizes, values) if value]
    if len(known) < 2 or known[0][0] == known[-1][0]:
        return ""
    power = math.log(known[-1][1] / known[0][1]) / math.log(known[-1][0] / known[0][0])  # type: ignore[operator]
    return f"n^{power:.1f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + [f"| {' | '.join(row)} |" for row in rows] + [""]


def render(results: Results) -> str:
    """Return the section of docs/benchmarks.md."""
    lines = [BEGIN, ""]
    scale = results.get("scale", {})
    # Measured by itself, sync is the newer figure; nothing else is taken from such a run.
    synced = {
        key: {name: value for name, value in run.items() if name.startswith("sync")}
        for key, run in results.get("sync", {}).items()
    }
    for language, said in LANGUAGES.items():
        found = {
            engine: {
                run["notes"]: {**run, **synced.get(key, {})}
                for key, run in scale.items()
                if key.startswith(f"{engine} {language} ")
            }
            for engine in ("whoosh", "tantivy")
        }
        sizes = sorted({size for runs in found.values() for size in runs})
        if sizes:
            lines += [f"### Notes in {said}, 120 words each", ""]
            lines += _scale_table(found, sizes)
    lines += _losses(scale)
    if results.get("engines"):
        lines += _engines(results["engines"])
    if results.get("hooks"):
        lines += ["### Hooks, whole processes over a bare start", ""]
        sizes = sorted(int(size) for size in results["hooks"])
        names = list(results["hooks"][str(sizes[-1])]["ratios"])
        rows = [[name, *(f"{results['hooks'][str(s)]['ratios'][name]:.1f}" for s in sizes)] for name in names if name != "bare"]
        lines += table(["event", *(f"{size:,} notes" for size in sizes)], rows)
    if results.get("embedding"):
        lines += _embedding(results["embedding"][""])
    if results.get("vectors"):
        lines += _vectors(results["vectors"][""])
    lines += _machines(results)
    return "\n".join([*lines, END])


def _scale_table(found: dict[str, dict[int, Any]], sizes: list[int]) -> list[str]:
    head = ["what"]
    for engine in found:
        head += [f"{engine} {size:,}" for size in sizes] + (["grows"] if len(sizes) > 1 else [])
    rows = []
    for name, digits in ROWS.items():
        row = [name]
        for runs in found.values():
            values = [runs.get(size, {}).get(name) for size in sizes]
            row += ["" if value is None else f"{value:,.{digits}f}" for value in values]
            row += [growth(sizes, values)] if len(sizes) > 1 else []
        if any(row[1:]):
            rows.append(row)
    columns = [(f"{engine} {size:,}", runs.get(size, {})) for engine, runs in found.items() for size in sizes]
    busy = ", ".join(name for name, run in columns if run.get("clock") == "cpu")
    kinds = {run["vectors"] for runs in found.values() for run in runs.values()}
    lines = table(head, rows)
    if busy:
        lines += [f"{busy}: processor times, children included, of a busy machine, without the warm process's own.", ""]
    if "random" in kinds:
        real = max((run["notes"] for runs in found.values() for run in runs.values() if run["vectors"] == "real"), default=0)
        where = f"Above {real:,} notes the" if real else "The"
        lines += [f"{where} vectors are random ones: only their number matters to the search.", ""]
    return lines


def _losses(scale: Results) -> list[str]:
    """Return in which figures the optional engine loses and wins, by the same run's numbers."""
    wins, losses = [], []
    for key, ours in sorted(scale.items()):
        engine, language, size = key.split()
        theirs = scale.get(f"tantivy {language} {size}")
        if engine != "whoosh" or theirs is None:
            continue
        for name in ROWS:
            if name.startswith(("build words, CPU", "recall, store kept open, k", "of this", "memory", "index on")):
                before, after = ours.get(name), theirs.get(name)
                if before and after and not 0.8 < after / before < 1.25:
                    text = f"{name.rsplit(',', 1)[0]} at {int(size):,} ({LANGUAGES[language]}): {before / after:.1f}"
                    (wins if after < before else losses).append(text)
    lines = []
    for title, texts in (("tantivy wins, times", wins), ("tantivy loses, times", losses)):
        if texts:
            lines += [f"{title}: {'; '.join(texts)}.", ""]
    return lines


def _engines(found: Results) -> list[str]:
    """Return the tables of the engines alone."""
    lines = ["### The text engines alone, processor times", ""]
    for language, said in LANGUAGES.items():
        sizes = sorted(int(key.split()[1]) for key in found if key.startswith(language))
        if not sizes:
            continue
        runs = {size: {run["engine"]: run for run in found[f"{language} {size}"]["runs"]} for size in sizes}
        names = [name for name in ENGINE_ROWS if name in runs[sizes[0]]["whoosh"]]
        head = [f"{said}, passages of 120 words"]
        for engine in ("whoosh", "tantivy"):
            head += [f"{engine} {size:,}" for size in sizes] + (["grows"] if len(sizes) > 1 else [])
        rows = []
        for name in names:
            row = [name]
            for engine in ("whoosh", "tantivy"):
                values = [runs[size][engine].get(name) for size in sizes]
                row += [f"{value:,.1f}" for value in values]
                row += [growth(sizes, values) if "%" not in name else ""] if len(sizes) > 1 else []
            rows.append(row)
        lines += table(head, rows)
    return lines


def _embedding(found: Any) -> list[str]:
    head = ["form of the model", "passages a CPU second", "of plain onnxruntime on the same batches"]
    rows = []
    for form in found["forms"]:
        ratio = form.get("of_raw")
        rows.append([form["name"], f"{form['windows_per_s']:.1f}", f"{ratio:.0%}" if ratio else ""])
    lines = ["### Embedding", "", *table(head, rows)]
    if found.get("questions"):
        said = ", ".join(f"{one['ms']:.1f} ms of {one['tokens']}" for one in found["questions"])
        lines += [f"A question takes by its tokens: {said}; one that names a speaker of a conversation is embedded twice.", ""]
    return lines


def _vectors(found: Any) -> list[str]:
    head = [
        "vectors",
        "exact p50 CPU ms",
        "exact p95 CPU ms",
        "approximate p50 CPU ms",
        "its recall@10",
        "its build s",
        "its memory MB",
    ]
    rows = []
    for row in found["rows"]:
        near = row.get("approximate") or {}
        rows.append(
            [
                f"{row['count']:,}",
                f"{row['p50_ms']:.1f}",
                f"{row['p95_ms']:.1f}",
                *(f"{near[name]:.{digits}f}" if name in near else "" for name, digits in NEAR.items()),
            ]
        )
    return ["### Exact search among vectors, and from where an approximate index would pay", "", *table(head, rows)]


ENGINE_ROWS = (
    "build, CPU s",
    "open and first question, CPU ms",
    *(f"question{some}, p{share} CPU ms" for some in ("", ", a tenth allowed", ", nine tenths allowed") for share in (50, 95)),
    "words of the notes found, p50 CPU ms",
    "memory of the open index, MB",
    "on disk, MB",
    "the same first ten, %",
)
NEAR = {"p50_ms": 2, "recall": 3, "build_s": 0, "memory_mb": 0}


def _machines(results: Results) -> list[str]:
    """Return one line for each machine and day that results come from."""
    seen: dict[str, None] = {}
    for part in ("scale", "sync", "engines", "hooks", "embedding", "vectors"):
        for value in results.get(part, {}).values():
            m = value["machine"]
            packages = ", ".join(f"{name} {number}" for name, number in sorted(m["packages"].items()))
            seen[
                f"Measured on {m['day']}: {m['processor']}, {m['cores']} cores, {m['memory_gb']} GB; Python {m['python']}, "
                f"git {m['git']}, {packages}."
            ] = None
    return [*seen, ""]


def put(page: Path, begin: str, end: str, section: str) -> None:
    """Put a section between its markers. Raises SystemExit when the page has none."""
    text = page.read_text("utf-8")
    if begin not in text or end not in text:
        raise SystemExit(f"{page} has no markers {begin} … {end}")
    before, rest = text.split(begin, 1)
    page.write_text(before + section + rest.split(end, 1)[1], "utf-8")


def main() -> int:
    """Measure, keep, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=[1_000, 10_000])
    parser.add_argument("--languages", type=lambda text: text.split(","), default=["en", "zh"])
    parser.add_argument("--engines", type=lambda text: text.split(","), default=["whoosh", "tantivy"])
    parser.add_argument("--vectors", choices=["none", "random", "real"], help="default: real up to 1,000 notes, random above")
    parser.add_argument("--vectors-cache", type=Path, help="real vectors up to 10,000 notes, kept here and used again")
    parser.add_argument("--stores", type=Path, help="stores of scale.py, kept in this folder and used again")
    parser.add_argument("--only", action="append", choices=["scale", "sync", "engines", "hooks", "embedding", "vectors"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: processor times, on a busy machine")
    parser.add_argument("--no-sync", action="store_true")
    parser.add_argument("--warm-only", action="store_true", help="scale: the warm process alone, of kept stores")
    parser.add_argument("--render", action="store_true", help="measure nothing")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    results: Results = json.loads(given.results.read_text("utf-8")) if given.results.exists() else {}
    if not given.render:
        measure(given, results, given.results)
    if given.results == RESULTS:
        put(PAGE, BEGIN, END, render(results))
    print(render(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
