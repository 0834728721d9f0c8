"""What each step of recall is worth: taken away from what ships, added to it, and alone on the bare sum of the streams.

    python benchmarks/ablation.py locomo.json zh.json en.json decisions.json [--every 3] [--first 390]
        [--json] [--decay] [--keep FILE]

Each file is one that `mdmem bench recall` reads; of decision pairs all four directions are asked of a store with notes of both
languages. The table is without decay, since nobody asks at the time of the texts; with --decay only that is measured, as of the
day of the newest text. With --keep what was measured is written to FILE, and a run that was stopped goes on there: it is of use
as long as nothing of recall is changed. Prints a table in markdown: recall@1 / recall@5 / MRR in percent. Vectors come from the
bench's cache.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mdmem.config import DEFAULTS
from mdmem.recall import adjust, bench, rank, speakers, stages, streams, talks
from mdmem.recall.bench_data import DIRECTIONS, Dataset, load_dataset
from mdmem.recall.query import Filters, Query

# A step is a setting (its name, its value when on, when off) or a weight of the ranking (its name in rank, None: as is, off).
SETTINGS = (
    *("common", "languages", "speakers", "conversations", "graph", "standing", "diversity", "length", "mmr", "routing"),
    "synonyms",
)
# Of these only what is gathered depends, not how it is ranked.
GATHERED = ("common", "languages", "speakers", "graph", "synonyms")
WEIGHTS: dict[str, dict[str, float]] = {
    "share of the question in the note": {"SHARE": 0.0},
    "distrust of few words": {"TRUSTED": 1e-9},
    "phrases": {"PHRASE": 0.0},
    "lines of whom is named": {"SAID": 0.0, "ANSWERS": 0.0},
    "dates": {"DATE": 0.0, "DAY": 0.0},
    "words lent to the other language": {"FOREIGN": 0.0},
}
SHIPPED = {name: bool(DEFAULTS[f"recall.{name}"]) for name in SETTINGS}


@dataclass
class Variant:
    """One way to rank: which settings are on, and which weights are off."""

    label: str
    settings: dict[str, bool]
    weights: dict[str, float] = field(default_factory=dict)
    shape: str = ""  # of decay; none when empty


def decays() -> list[Variant]:
    """Return what ships without decay and with each shape of it."""
    return [Variant("no decay", SHIPPED), *(Variant(shape, SHIPPED, shape=shape) for shape in ("weibull", "exponential"))]


def variants() -> list[Variant]:
    """Return what ships, what ships without or with one step, and each step alone on the bare sum."""
    out = [Variant("as shipped", SHIPPED)]
    out += [Variant(f"without {name}", SHIPPED, weights) for name, weights in WEIGHTS.items()]
    out += [Variant(f"without {name}", SHIPPED | {name: False}) for name in SETTINGS if SHIPPED[name]]
    out += [Variant(f"with {name}", SHIPPED | {name: True}) for name in SETTINGS if not SHIPPED[name]]
    nothing = dict.fromkeys(SETTINGS, False)
    off = {key: value for weights in WEIGHTS.values() for key, value in weights.items()}
    out.append(Variant("bare sum", nothing, off))
    for name, weights in WEIGHTS.items():
        out.append(Variant(f"only {name}", nothing, {key: value for key, value in off.items() if key not in weights}))
    return out + [Variant(f"only {name}", nothing | {name: True}, off) for name in SETTINGS]


def parts(path: Path) -> list[Dataset]:
    """Return the datasets of a file."""
    first = load_dataset(path)
    return [load_dataset(path, one, mixed=True) for one in DIRECTIONS] if first.format == "decisions" else [first]


@contextmanager
def weighed(changes: dict[str, float]) -> Iterator[None]:
    """Set weights of the ranking, or of what is searched, for a while."""
    before = {name: getattr(_home(name), name) for name in changes}
    for name, value in changes.items():
        setattr(_home(name), name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(_home(name), name, value)


def _home(name: str) -> Any:
    return next(module for module in (rank, speakers, talks) if hasattr(module, name))


def measure(data: Dataset, ways: list[Variant], every: int, kept: Kept, first: int | None = None) -> list[list[int]]:
    """Return for each variant the place of the best evidence for each question (of the `first` ones), 0: not returned."""
    out = kept.places(f"{data.name}, every {every}", [way.label for way in ways])
    questions = data.questions[:first:every]
    if len(out[0]) > len(questions):
        return [places[: len(questions)] for places in out]
    if len(out[0]) == len(questions):
        return out
    with bench._store(data.docs, data.newest()) as (store, paths):
        vector_of = bench._fill(store, True, None)
        # A question without its name is embedded once, not for each variant.
        store.index.dense.question = cache(store.index.dense.question)  # type: ignore[method-assign]
        for number, question in enumerate(questions[len(out[0]) :], len(out[0]) + 1):
            scopes = (f"user:{question.group}",) if question.group else None
            filters = Filters(scopes=scopes, kinds=bench.KINDS)
            query = Query(question.text, limit=bench.DEPTH, decay=any(way.shape for way in ways), filters=filters)
            gathered: dict[Any, streams.Streams] = {}
            for places, way in zip(out, ways, strict=True):
                store.config.values.update({f"recall.{name}": value for name, value in way.settings.items()})
                searched = {name: value for name, value in way.weights.items() if _home(name) is speakers}
                key = (*(way.settings[name] for name in GATHERED), *sorted(searched.items()))
                if key not in gathered:
                    with weighed(searched):
                        gathered[key] = streams.gather(store, query, vector_of(question.text))
                found = [gathered[key]]
                on = stages.switches(store.config, query)
                window = adjust.window_days(str(DEFAULTS["recall.decay_window"])) if way.shape else None
                weight, talk = float(DEFAULTS["recall.bm25_weight"]), way.settings["conversations"]
                usual = rank.Settings("minmax", weight, window, way.shape, talk)
                settings, _ = stages.routed(query, usual, on, found)
                with weighed(way.weights):
                    ranked = stages.reordered(rank.rank(found, query, settings, store.clock.now()), query, on, [])
                ids = [paths[one.candidate.row["path"]] for one in ranked if one.candidate.row is not None]
                places.append(next((place for place, one in enumerate(ids, 1) if one in question.evidence), 0))
            if number % 25 == 0 or number == len(questions):
                kept.save()
    return out


class Kept:
    """Places that were measured, in memory and, where a file is given, on disk: {dataset: {variant: places}}."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[str, dict[str, list[int]]] = json.loads(path.read_bytes()) if path and path.exists() else {}

    def places(self, name: str, labels: list[str]) -> list[list[int]]:
        """Return the lists of a dataset to add to, one for each variant; empty ones where the variants are not these."""
        if list(self.known.get(name, {})) != labels:
            self.known[name] = {label: [] for label in labels}
        return list(self.known[name].values())

    def save(self) -> None:
        """Write what is there, whole or not at all."""
        if self.path is not None:
            beside = self.path.with_suffix(".new")
            beside.write_text(json.dumps(self.known))
            beside.replace(self.path)


def figures(places: list[int]) -> dict[str, float]:
    """Return recall@1, recall@5 and MRR in percent."""
    found = bench.Measured("", "", places, [], 0)
    return {"recall@1": round(found.at(1), 1), "recall@5": round(found.at(5), 1), "mrr": round(found.mrr, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=1, help="only every Nth question of each file")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N questions of each file")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--decay", action="store_true", help="measure what decay does, and nothing else")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write what was measured there, and go on from there")
    chosen = parser.parse_args()
    kept = Kept(chosen.keep)
    ways = decays() if chosen.decay else variants()
    table: dict[str, list[dict[str, float]]] = {}
    for path in chosen.files:
        places: list[list[int]] = [[] for _ in ways]
        for data in parts(path):
            for whole, part in zip(places, measure(data, ways, chosen.every, kept, chosen.first), strict=True):
                whole += part
        table[path.stem] = [figures(one) for one in places]
        print(f"measured {path.stem}: {len(places[0])} questions", file=sys.stderr)
    if chosen.json:
        print(json.dumps({name: dict(zip([way.label for way in ways], rows)) for name, rows in table.items()}, indent=1))
        return
    print("| step | " + " | ".join(table) + " |\n|---|" + "---|" * len(table))
    for number, way in enumerate(ways):
        cells = ["{recall@1} / {recall@5} / {mrr}".format(**rows[number]) for rows in table.values()]
        print(f"| {way.label} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
