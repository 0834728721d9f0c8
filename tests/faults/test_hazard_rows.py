"""Every row of the list of hazards (kept beside the checkout, where there is one) is named by a test: `f3` in a test's name, or
`F-3` in the text of a test file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| ([FNGHIP]-\d+) \|", re.M)


def named() -> set[str]:
    """Return the rows that some test names."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        if path.samefile(__file__):
            continue
        text = path.read_text("utf-8")
        for name in re.findall(r"def (test_\w+)", text):
            found |= {f"{letter.upper()}-{number}" for letter, number in re.findall(r"(?<=_)([fnghip])(\d+)(?=_)", name)}
        found |= set(re.findall(r"\b[FNGHIP]-\d+\b", text))
    return found


def test_every_hazard_is_named_by_a_test() -> None:
    lists = (parent / "shared" / "reference" / "hazards.md" for parent in TESTS.parents)
    page = next((path for path in lists if path.is_file()), None)
    if page is None:
        pytest.skip("the list of hazards is not beside this checkout")
    rows = ROW.findall(page.read_text("utf-8"))
    assert len(rows) > 100
    known = named()
    missing = [row for row in rows if row not in known]
    assert not missing, f"{len(missing)} rows without a test: {' '.join(missing)}"
