"""The write decision on labelled pairs: what the rules say of each class, and what cosines the configured model gives them.

    python benchmarks/decision.py             a table of classes and verdicts, and of cosines with the measured limit
    python benchmarks/decision.py --wrong     also each pair that is not judged as labelled
    python benchmarks/decision.py --no-model  words alone

The pairs are in tests/learn: pairs.tsv, which the rules were written by, and pairs_held_out.tsv, written afterwards.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mdmem.learn.compare import compare  # noqa: E402
from mdmem.learn.statement import read  # noqa: E402

FITS = {
    "same": {"same", "narrower"},
    "number": {"update", "opposes"},
    "name": {"update", "opposes"},
    "negated": {"opposes", "update"},
    "update": {"update"},
    "wider": {"wider"},
    "near": {"apart"},
    "apart": {"apart"},
}


def pairs(name: str) -> list[tuple[str, str, str]]:
    """Return the (class, older text, newer text) rows of a file of pairs."""
    lines = (ROOT / "tests" / "learn" / name).read_text("utf-8").splitlines()
    return [(kind, older, newer) for kind, older, newer in (line.split("\t") for line in lines if line[:1] not in ("", "#"))]


def verdicts(name: str, wrong: bool) -> None:
    """Print a table of classes and verdicts of one file."""
    rows = pairs(name)
    print(f"{name}: {len(rows)} pairs")
    for kind in FITS:
        found = [(compare(read(newer), read(older)).kind, older, newer) for label, older, newer in rows if label == kind]
        right = sum(verdict in FITS[kind] for verdict, _, _ in found)
        told = ", ".join(f"{verdict} {count}" for verdict, count in Counter(v for v, _, _ in found).most_common())
        print(f"  {kind:8} {right:3} of {len(found):3} as labelled: {told}")
        for verdict, older, newer in found if wrong else []:
            if verdict not in FITS[kind]:
                print(f"           {verdict}: {older} | {newer}")


def model_cosines() -> None:
    """Print the cosines of each class and the limit that is measured for the model of the user's configuration."""
    from mdmem.config import load_config
    from mdmem.index.embed import load_embedder
    from mdmem.learn.nearness import calibration, cosines, threshold

    with tempfile.TemporaryDirectory() as state:
        embedder = load_embedder(load_config(), Path(state))
        limit = threshold(*cosines(embedder, calibration()))
        rows = pairs("pairs.tsv") + pairs("pairs_held_out.tsv")
        values = cosines(embedder, [("same", older, newer) for _, older, newer in rows])[0]
    print(f"cosines of {embedder.fingerprint}, limit {limit:.3f}")
    for kind in FITS:
        mine = sorted(value for value, row in zip(values, rows, strict=True) if row[0] == kind)
        above = sum(value >= limit for value in mine)
        middle = mine[len(mine) // 2]
        print(f"  {kind:8} {mine[0]:.3f} to {mine[-1]:.3f}, median {middle:.3f}; {above} of {len(mine)} reach the limit")


def main() -> int:
    """Print the tables; returns 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--no-model", action="store_true")
    given = parser.parse_args()
    for name in ("pairs.tsv", "pairs_held_out.tsv"):
        verdicts(name, given.wrong)
    if not given.no_model:
        model_cosines()
    return 0


if __name__ == "__main__":
    sys.exit(main())
