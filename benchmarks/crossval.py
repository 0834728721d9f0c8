"""Whether weights of recall hold for conversations that they were not chosen on: leave one out, choose on the others.

    python benchmarks/crossval.py locomo.json [--step speakers|conversations] [--keep FILE] [--json]

For each conversation of a LoCoMo file the weights of one step, of questions that name a speaker, are chosen on all other
conversations, by the sum of recall@1 to @10 and MRR, and counted on that one alone. Prints for each conversation what ships,
what was chosen and what that gives, then all together: what ships, without the step, and out of fold. Then the same with each
two conversations to choose on and the others to count on: mean and spread of what is won over the step switched off. `--keep`
is as in ablation.py.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from itertools import combinations, product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from ablation import SHIPPED, Kept, Variant, measure

from mdmem.recall import bench, rank, speakers, talks
from mdmem.recall.bench_data import load_dataset

# COMMON is of what is searched, the others of how it is ranked. The value that is off comes first.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "speakers": {"COMMON": (0.0, speakers.COMMON), "KEPT": (rank.KEPT, 1.0), "ANSWERS": (rank.SAID, rank.ANSWERS)},
    "conversations": {
        "OTHERS": (1.0, 0.8, talks.OTHERS),
        "FOLLOWED": (0.0, 0.05, talks.FOLLOWED, 0.15),
        "MEANT": (0.0, talks.MEANT),
    },
}
ON = "as shipped"


def variants(step: str) -> list[Variant]:
    """Return the step switched off, what ships, and each choice of its weights."""
    out = [Variant(f"without {step}", SHIPPED | {step: False}), Variant(ON, SHIPPED)]
    for values in product(*GRIDS[step].values()):
        weights = dict(zip(GRIDS[step], values, strict=True))
        out.append(Variant(" ".join(f"{name}={value}" for name, value in weights.items()), SHIPPED, weights))
    return out


def figures(places: list[int]) -> list[float]:
    """Return recall@1, @5, @10 and MRR in percent."""
    found = bench.Measured("", "", places, [], 0)
    return [round(value, 1) for value in (found.at(1), found.at(5), found.at(10), found.mrr)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--step", choices=list(GRIDS), default="speakers")
    parser.add_argument("--every", type=int, default=1, help="only every Nth question")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write what was measured there, and go on from there")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    data, ways, off = load_dataset(chosen.file), variants(chosen.step), f"without {chosen.step}"
    measured = dict(zip([way.label for way in ways], measure(data, ways, chosen.every, Kept(chosen.keep)), strict=True))
    parts = [re.match(r"[a-z]+\d+", question.id) for question in data.questions[:: chosen.every]]
    groups = [part[0] if part else "" for part in parts]
    held_out: list[int] = [0] * len(groups)
    rows: dict[str, list[float]] = {}
    picked: dict[str, str] = {}

    def of(label: str, wanted: set[str]) -> list[int]:
        return [place for place, one in zip(measured[label], groups, strict=True) if one in wanted]

    def chosen_on(wanted: set[str]) -> str:
        return max(list(measured)[2:], key=lambda label: sum(figures(of(label, wanted))))

    every = set(groups)
    for group in sorted(every):
        best = picked[group] = chosen_on(every - {group})
        for number, one in enumerate(groups):
            if one == group:
                held_out[number] = measured[best][number]
        for label in (off, ON, best):
            rows[f"{group}, {label}"] = figures(of(label, {group}))
    rows |= {f"all, {off}": figures(measured[off]), f"all, {ON}": figures(measured[ON]), "all, out of fold": figures(held_out)}
    won: list[list[float]] = []
    for pair in combinations(sorted(every), 2):
        best = chosen_on(set(pair))
        both = (figures(of(label, every - set(pair))) for label in (best, off))
        won.append([mine - without for mine, without in zip(*both, strict=True)])
    if len(won) > 1:
        rows["chosen on two, won on the others"] = [round(statistics.mean(column), 2) for column in zip(*won, strict=True)]
        rows["its spread (standard deviation)"] = [round(statistics.stdev(column), 2) for column in zip(*won, strict=True)]
    if chosen.json:
        print(json.dumps({"rows": rows, "chosen": picked}, indent=1))
        return
    print("| | R@1 | R@5 | R@10 | MRR |\n|---|---|---|---|---|")
    for label, values in rows.items():
        print(f"| {label} | " + " | ".join(map(str, values)) + " |")


if __name__ == "__main__":
    main()
