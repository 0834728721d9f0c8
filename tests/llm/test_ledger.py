"""The account of what a language model was asked: a damaged file counts as none, a damaged row as no row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdmem.clock import FixedClock
from mdmem.llm.ledger import Ledger
from mdmem.llm.model import Answer, LlmUnavailable
from tests.conftest import NOW

TODAY = NOW.strftime("%Y-%m-%d")


@pytest.mark.parametrize(
    "text",
    ["", "[", "null", "[" * 100_000, json.dumps({TODAY: {"calls": "x"}}), json.dumps({TODAY: 7}), json.dumps({TODAY: {}})],
)
def test_damage_is_forgotten_and_the_limit_still_holds(tmp_path: Path, text: str) -> None:
    path = tmp_path / "llm.json"
    path.write_text(text)
    ledger = Ledger(path, FixedClock(NOW), max_calls=1)
    ledger.allow()
    ledger.account("m", Answer("", 3, 4, 0.5))
    assert ledger.today() == {"calls": 1, "tokens_in": 3, "tokens_out": 4, "cost": 0.5}
    with pytest.raises(LlmUnavailable):
        ledger.allow()
