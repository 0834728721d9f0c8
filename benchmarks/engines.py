"""The text engines alone, without files and catalog: build, open, search, size, memory, at growing numbers of windows.

    python benchmarks/engines.py [--counts 1000,10000,100000] [--language en] [--json]

Each engine and number runs in a process of its own. Times are processor times, which a busy machine disturbs least. The windows
are 120 words of the vocabulary of scale.py; a question is five words of one of them, asked for the best 200 with the whole
index, with a tenth of the notes and with nine tenths allowed. Both must give the same first ten.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import scale  # noqa: E402

POOL = 200  # what recall asks for
BATCHES = 2_000


def measure(engine: str, count: int, language: str, questions: int) -> dict[str, Any]:
    """Return the figures of one engine at one size."""
    from mdmem.index.analyzer import tokens
    from mdmem.index.engine import TextEngine
    from mdmem.index.segment import Row
    from mdmem.index.text import TextIndex

    def opened(folder: Path) -> TextEngine:
        if engine == "whoosh":
            return TextIndex(folder, "e")
        from mdmem.index.tantivy_text import TantivyText

        return TantivyText(folder, "e")

    rng = random.Random(20261130)
    words, weights = scale.vocabulary(rng, language)
    joint = "" if language == "zh" else " "
    out: dict[str, Any] = {"engine": engine, "windows": count, "language": language}
    asked: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="mdmem-engines-") as name:
        index = opened(Path(name) / "text")
        index.create()
        spent = 0.0
        for start in range(0, count, BATCHES):
            rows = []
            for number in range(start, min(count, start + BATCHES)):
                drawn = rng.choices(words, weights, k=126)
                body = tokens(joint.join(drawn[6:]))
                rows.append(Row(number + 1, number + 1, (body, tokens(joint.join(drawn[:6])), [], [])))
                if number % max(1, count // questions) == 0:
                    asked.append(tokens(" ".join(rng.sample(drawn, 5))))
            began = time.process_time()
            index.update((), rows)
            spent += time.process_time() - began
        began = time.process_time()
        if index.scattered():
            index.optimize()
        out["build, CPU s"] = spent + time.process_time() - began
        out["on disk, MB"] = sum(f.stat().st_size for f in Path(name).rglob("*") if f.is_file()) / 1e6
        before = memory()
        began = time.process_time()
        fresh = opened(Path(name) / "text")
        corpus = fresh.corpus()
        fresh.search(corpus, [(term, 1.0) for term in dict.fromkeys(asked[0])], None, POOL)
        out["open and first question, CPU ms"] = (time.process_time() - began) * 1000
        some, most = {n for n in range(1, count + 1) if n % 10 == 0}, {n for n in range(1, count + 1) if n % 10}
        answers = []
        for label, allowed in (("", None), (", a tenth allowed", some), (", nine tenths allowed", most)):
            took = []
            for terms in asked[:questions]:
                began = time.process_time()
                found = fresh.search(corpus, [(term, 1.0) for term in dict.fromkeys(terms)], allowed, POOL)
                took.append((time.process_time() - began) * 1000)
                answers.append([(hit.window, hit.score) for hit in found.hits[:10]])
            out[f"question{label}, p50 CPU ms"] = scale.percentile(took, 0.5)
            out[f"question{label}, p95 CPU ms"] = scale.percentile(took, 0.95)
        took = []
        for terms in asked[:questions]:
            found = fresh.search(corpus, [(term, 1.0) for term in dict.fromkeys(terms)], None, POOL)
            began = time.process_time()
            corpus.coverage(found.terms, {hit.note for hit in found.hits})
            took.append((time.process_time() - began) * 1000)
        out["words of the notes found, p50 CPU ms"] = scale.percentile(took, 0.5)
        out["memory of the open index, MB"] = memory() - before
        out["answers"] = answers
    return out


def memory() -> float:
    """Return the memory of this process that is no mapped file, in MB."""
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1024


def main() -> int:
    """Print both engines side by side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=lambda text: [int(part) for part in text.split(",")], default=[1_000, 10_000, 100_000])
    parser.add_argument("--language", choices=["en", "zh"], default="en")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", dest="as_json")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one[0], int(given.one[1]), given.language, given.questions)))
        return 0
    runs = []
    for count in given.counts:
        both = []
        for engine in ("whoosh", "tantivy"):
            words = [sys.executable, __file__, "--one", engine, str(count), "--language", given.language]
            done = subprocess.run([*words, "--questions", str(given.questions)], capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stderr[-2000:])
            both.append(json.loads(done.stdout))
        first, second = (run.pop("answers") for run in both)
        same = sum(a == b for a, b in zip(first, second, strict=True))
        for run in both:
            run["the same first ten, %"] = 100 * same / len(first)
        runs += both
    if given.as_json:
        print(json.dumps({"runs": runs}, indent=1))
    else:
        for run in runs:
            print(json.dumps(run, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
