"""The script that breaks each promise's code: its places are real, and what it calls noticed was."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import break_promises as script


def test_every_break_has_its_place_and_its_tests() -> None:
    assert script.places() == []
    assert {one.promise for one in script.BREAKS} >= {1, 2, 3, 4, 5, 6, 7, 8}


@pytest.mark.timeout(1200)  # it runs a file of tests twice, which takes minutes where ten others want the processor
def test_a_break_is_noticed_and_a_harmless_change_is_not(tmp_path: Path) -> None:
    script.copy(tmp_path)
    file, test = "mdmem/locks.py", "tests/ground/test_locks.py"
    old = "            held = self.acquire()\n"
    assert script.noticed(script.Break("lock", 1, file, old, "            held = True\n", test), tmp_path) == test
    assert script.noticed(script.Break("none", 1, file, old, old + "            # harmless\n", test), tmp_path) == ""
    assert (tmp_path / file).read_bytes() == (script.ROOT / file).read_bytes()


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_a_test_notices_every_break(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["break_promises.py"])
    assert script.main() == 0, capsys.readouterr().out
