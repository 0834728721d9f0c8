"""Measures the relevance gate of the prompt hook on the labelled prompts, and fits its weights.

    python benchmarks/gate.py            the share of unrelated prompts that bring nothing, and of answered ones that bring it
    python benchmarks/gate.py --wrong    also the prompts that were judged wrongly
    python benchmarks/gate.py --words    the same without a model
    python benchmarks/gate.py --fit      also fit the weights by five-fold cross-validation over stores of several sizes

Prompts and facts are in tests/hooks/gate/. A store that lacks the fact which a prompt asks for makes that prompt an
unrelated one. `reworded` prompts ask for a fact in other words than the note has: what a search engine cannot find by words.
Stores are also filled up with prose that has nothing to do with them (the docstrings of the standard library).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pkgutil
import random
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))
DATA = TOP / "tests" / "hooks" / "gate"

# (facts, strangers) of the stores that the weights are fitted on; the first one is the one reported.
STORES = [(88, 0), (60, 0), (40, 0), (25, 0), (12, 0), (5, 0), (88, 300)]


@dataclass
class Case:
    """One prompt against one store: the evidence of each candidate, and whether that is the right note."""

    prompt: int
    kind: str
    answered: bool
    candidates: list[tuple[float, float, float | None, bool]]


def read(name: str) -> list[dict[str, Any]]:
    """Return the records of a file of labelled data."""
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def strangers(count: int) -> list[str]:
    """Return docstrings of the standard library: technical prose that answers none of the prompts."""
    found = []
    for module in sorted(pkgutil.iter_modules(), key=lambda m: m.name):
        if module.name.startswith("_") or module.name not in sys.stdlib_module_names or module.name in ("antigravity", "this"):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text = (__import__(module.name).__doc__ or "").strip()
        except Exception:
            continue
        found += [part.strip()[:600] for part in text.split("\n\n") if len(part) > 80]
    random.Random(3).shuffle(found)
    return found[:count]


def make_store(root: Path, facts: list[dict[str, Any]], others: list[str]) -> Any:
    """Make a store of these facts and return it, indexed."""
    from mdmem.locate import trust
    from mdmem.notes.frontmatter import render
    from mdmem.store import Store

    (root / "memories").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".mdmem.toml").write_text(f'format = 1\n[store]\nid = "{root.name}"\n')
    trust(root.name, "", root)
    for fact in facts:
        fields = {"id": f"mem-{fact['key']}", "kind": "memory", "type": fact["type"], "title": fact["title"]}
        fields |= {"tags": fact["tags"], "scope": "shared", "created": "2026-01-01T00:00:00Z"}
        (root / "memories" / f"{fact['key']}.md").write_bytes(render(fields, fact["text"] + "\n"))
    for number, text in enumerate(others):
        fields = {"id": f"mem-x{number}", "kind": "memory", "type": "fact", "title": text.split("\n")[0][:60]}
        (root / "memories" / f"x{number}.md").write_bytes(render(fields, text + "\n"))
    store = Store.open(root)
    return store


def cases(store: Any, facts: list[dict[str, Any]], prompts: list[dict[str, Any]], dense: bool) -> list[Case]:
    """Return the evidence for every prompt in a store, by the product's own code."""
    from mdmem.memory.prompts import searchable
    from mdmem.memory.relevant import weigh

    store.index.refresh(embed_budget_s=None if dense else 0.0)
    ids = {row["rowid"]: str(row["id"])[4:] for row in store.index.catalog.rows("SELECT rowid, id FROM notes")}
    here = {fact["key"] for fact in facts}
    found = []
    for number, prompt in enumerate(prompts):
        answers = set(prompt.get("answer", ())) & here
        evidence = weigh(store, searchable(prompt["prompt"]), dense, make=True)
        rows = [(e.share, e.mass, e.near, ids[note] in answers) for note, e in evidence.items()]
        kind = prompt["kind"] if answers or not prompt.get("answer") else "left out"
        found.append(Case(number, kind, bool(answers), rows))
    return found


def rates(found: list[Case], prompts: list[dict[str, Any]], dense: bool) -> dict[str, Any]:
    """Return the rates in percent, with the weights and limits in force."""
    from mdmem.memory import gate
    from mdmem.memory.prompts import forced, worth_searching

    given: Counter[str] = Counter()
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    missed = []
    for case in found:
        text = prompts[case.prompt]["prompt"]
        least = gate.limit(dense, forced(text))
        passed = [row for row in case.candidates if gate.chance(*row[:3]) >= least] if worth_searching(text) else []
        best = sorted(passed, key=lambda row: -gate.chance(*row[:3]))[:3]
        total[case.kind] += 1
        given[case.kind] += bool(best)
        right[case.kind] += any(row[3] for row in best)
        if case.answered != bool(best):
            missed.append(f"{case.kind}: {text}")
    unrelated = [kind for kind in total if kind not in ("answer", "reworded")]
    quiet = 100 - 100 * sum(given[k] for k in unrelated) / max(1, sum(total[k] for k in unrelated))
    return {
        "unrelated_quiet": round(quiet, 1),
        "answered_given": round(100 * right["answer"] / max(1, total["answer"]), 1),
        "reworded_given": round(100 * right["reworded"] / max(1, total["reworded"]), 1),
        "given": {kind: f"{given[kind]}/{total[kind]}" for kind in sorted(total)},
        "wrong": missed,
    }


def fit(all_cases: list[list[Case]], dense: bool) -> dict[str, Any]:
    """Return {weights, limit, rates by cross-validation}: a logistic regression of right candidates against the strongest
    wrong one of each unanswered prompt, the folds by prompt."""
    import numpy as np

    flat = [case for found in all_cases for case in found]
    folds = np.random.RandomState(0).randint(0, 5, 1 + max(case.prompt for case in flat))

    def features(case: Case) -> Any:
        rows = [[1.0, share, min(mass, 3.0), 5 * (near or 0.0)] for share, mass, near, _ in case.candidates]
        return np.array(rows)[:, : 4 if dense else 3]

    def train(some: list[Case]) -> Any:
        weights = None
        for _ in range(4):
            rows, labels = [], []
            for case in some:
                if not case.candidates:
                    continue
                values = features(case)
                scores = values @ weights if weights is not None else values[:, 1:].sum(1)
                right = [n for n, row in enumerate(case.candidates) if row[3]]
                if right:
                    rows.append(values[max(right, key=lambda n: scores[n])])
                    labels.append(1.0)
                elif not case.answered:
                    rows.append(values[scores.argmax()])
                    labels.append(0.0)
            x, y = np.array(rows), np.array(labels)
            weights = np.zeros(x.shape[1])
            soft = 0.005 * np.r_[0, np.ones(x.shape[1] - 1)]
            for _ in range(40):
                p = 1 / (1 + np.exp(-x @ weights))
                slope = x.T @ (p - y) / len(y) + soft * weights
                bend = (x.T * (p * (1 - p))) @ x / len(y) + np.diag(soft + 1e-6)
                weights = weights - np.linalg.solve(bend, slope)
        return weights

    scores = np.zeros(len(flat))
    for fold in range(5):
        weights = train([case for case in flat if folds[case.prompt] != fold])
        for number, case in enumerate(flat):
            if folds[case.prompt] == fold:
                best = (features(case) @ weights).max() if case.candidates else -20.0
                scores[number] = 1 / (1 + math.exp(-best))
    answered = np.array([case.answered for case in flat])
    table = {}
    for quiet in (0.95, 0.96, 0.97, 0.98):
        limit = float(np.quantile(scores[~answered], quiet))
        table[f"{quiet:.0%}"] = {"limit": round(limit, 3), "answered": round(float((scores[answered] > limit).mean() * 100), 1)}
    found = [float(w) for w in train(flat)]
    # Nearness went in five times, so that the soft pull towards zero weighs on it as on the others.
    return {"weights": [round(w * (5 if place == 3 else 1), 2) for place, w in enumerate(found)], "by_limit": table}


def main() -> int:
    """Print the rates as JSON; exit 1 when they miss 95 and 80 percent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", action="store_true", help="without a model")
    parser.add_argument("--fit", action="store_true", help="fit the weights by cross-validation")
    parser.add_argument("--wrong", action="store_true", help="list the prompts that were judged wrongly")
    args = parser.parse_args()
    dense = not args.words
    facts, prompts = read("facts.jsonl"), read("prompts.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ |= {name: str(home / name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
        found = []
        draw = random.Random(5)
        for number, (few, others) in enumerate(STORES if args.fit else STORES[:1]):
            some = sorted(draw.sample(facts, few), key=lambda fact: str(fact["key"]))
            store = make_store(home / f"store{number}", some, strangers(others))
            found.append(cases(store, some, prompts, dense))
        out = {"prompts": len(prompts), "mode": "words" if args.words else "hybrid", **rates(found[0], prompts, dense)}
        if args.fit:
            out["stores"] = {str(size): rates(one, prompts, dense)["given"] for size, one in zip(STORES, found, strict=True)}
            out["fit"] = fit(found, dense)
    wrong = out.pop("wrong")
    if args.wrong:
        out["wrong"] = wrong
    print(json.dumps(out, indent=1, ensure_ascii=False))
    return 0 if out["unrelated_quiet"] >= 95 and out["answered_given"] >= 80 else 1


if __name__ == "__main__":
    sys.exit(main())
