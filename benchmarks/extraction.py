"""What is drawn from recorded sessions, against what a person would have kept: precision and recall.

    python benchmarks/extraction.py                    by rules
    python benchmarks/extraction.py --llm              with the language model of the user's configuration as well
    python benchmarks/extraction.py --only a --wrong   only those that begin with `a`; print what was missed, and too much

The transcripts are in tests/learn/transcripts with labels.json: a labelled fact is found when a note says all of its
words. Those named a… were written before the rules and the rules tuned on them; those named b… afterwards, to see how
far that carries (at first sight precision 0.75 and recall 0.29), and the rules were then widened by them; those named
c… after that, and left alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mdmem.learn.categories import load_rules  # noqa: E402
from mdmem.learn.extract import Candidate, extract  # noqa: E402
from mdmem.memory.transcripts import read_transcript  # noqa: E402

FOLDER = ROOT / "tests" / "learn" / "transcripts"


def measure(only: str = "", llm: Any = None) -> dict[str, Any]:
    """Return {found, kept, right, facts, precision, recall, missed, extra, chars_in, chars_out} over the transcripts."""
    labels = json.loads((FOLDER / "labels.json").read_text("utf-8"))
    out: dict[str, Any] = {
        "transcripts": 0,
        "kept": 0,
        "right": 0,
        "facts": 0,
        "found": 0,
        "category": 0,
        "missed": [],
        "extra": [],
    }
    for name, label in labels.items():
        if not name.startswith(only):
            continue
        record = read_transcript(FOLDER / f"{name}.jsonl")
        assert record is not None
        kept, _ = extract(record.turns, load_rules(), 20)
        if llm is not None:
            from mdmem.learn.ask import with_llm

            kept = with_llm(llm, record.turns, kept, load_rules(), 20)[0]
        out["transcripts"] += 1
        out["kept"] += len(kept)
        out["facts"] += len(label["facts"])
        right = set()
        for fact in label["facts"]:
            hits = [number for number, one in enumerate(kept) if _says(one, fact["words"])]
            if not hits:
                out["missed"].append(f"{name}: {fact['category']} {fact['words']}")
                continue
            right.update(hits)
            out["found"] += 1
            out["category"] += any(kept[number].category == fact["category"] for number in hits)
        out["right"] += len(right)
        out["extra"] += [f"{name}: {one.category}: {one.text}" for number, one in enumerate(kept) if number not in right]
    out["precision"] = round(out["right"] / out["kept"], 3) if out["kept"] else 0.0
    out["recall"] = round(out["found"] / out["facts"], 3) if out["facts"] else 0.0
    return out


def _says(one: Candidate, words: list[str]) -> bool:
    text = f"{one.text} {one.said}".lower() if one.category == "case" else one.text.lower()
    return all(word.lower() in text for word in words)


def main() -> int:
    """Print the figures; returns 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--llm", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    llm = None
    if given.llm:
        from mdmem.clock import SystemClock
        from mdmem.config import data_home, load_config
        from mdmem.llm.configured import load_llm

        llm = load_llm(load_config(), data_home(), SystemClock())
        if llm is None:
            print("no language model is configured: mdmem config set llm.backend …", file=sys.stderr)
            return 1
    rows = {part or "all": measure(part, llm) for part in ([given.only] if given.only else ["a", "b", "c", ""])}
    if given.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return 0
    print("transcripts                    facts  found  kept  right  precision  recall  category")
    names = {"a": "a: rules tuned on these", "b": "b: rules widened by these", "c": "c: held out"}
    for part, row in rows.items():
        if row["transcripts"]:
            counts = f"{row['facts']:5}  {row['found']:5}  {row['kept']:4}  {row['right']:5}"
            share = row["category"] / max(1, row["found"])
            print(f"{names.get(part, part):28} {counts}  {row['precision']:9.2f}  {row['recall']:6.2f}  {share:8.2f}")
    if given.wrong:
        row = rows[given.only or "all"]
        print("\n".join(["missed:", *row["missed"], "too much:", *row["extra"]]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
