"""The pages of figures are what the kept results say: nobody edits them by hand, and none is left out."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS / "peers"))
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def one(name: str) -> ModuleType:
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    yield one
    for name in ("all", "scale", "shared", "run", "endurance"):
        sys.modules.pop(name, None)


def section(page: Path, begin: str, end: str) -> str:
    text = page.read_text("utf-8")
    return text[text.index(begin) : text.index(end) + len(end)]


def test_the_pages_show_the_kept_results(load: Any) -> None:
    table = load("all")
    results = json.loads(table.RESULTS.read_text("utf-8"))
    assert section(table.PAGE, table.BEGIN, table.END) == table.render(results)
    peers = load("run")
    assert section(table.PAGE, peers.BEGIN, peers.END) == peers.render(results["peers"])
    shared = load("shared")
    assert section(shared.PAGE, shared.BEGIN, shared.END) == shared.render(results["shared"])


def run_of(engine: str, notes: int, **more: float) -> dict[str, Any]:
    machine = {"day": "d", "processor": "p", "cores": 2, "memory_gb": 8, "python": "3", "git": "2", "packages": {}}
    return {"notes": notes, "language": "en", "engine": engine, "vectors": "random", "machine": machine, **more}


def test_growth_losses_and_wins_come_from_the_figures(load: Any) -> None:
    table = load("all")
    assert table.growth([1_000, 10_000], [2.0, 20.0]) == "n^1.0"
    assert table.growth([1_000, 10_000], [2.0, 2.0]) == "n^0.0"
    assert table.growth([1_000, 10_000, 100_000], [None, 3.0, 300.0]) == "n^2.0"
    assert table.growth([1_000], [2.0]) == ""
    disk, memory = "index on disk, MB", "memory after 20 questions, MB"
    scale = {
        "whoosh en 1000": run_of("whoosh", 1000, **{disk: 10.0, memory: 90.0}),
        "tantivy en 1000": run_of("tantivy", 1000, **{disk: 20.0, memory: 30.0}),
    }
    text = table.render({"scale": scale})
    assert "| index on disk, MB | 10 | 20 |" in text
    assert "tantivy wins, times: memory after 20 questions at 1,000 (English): 3.0" in text
    assert "tantivy loses, times: index on disk at 1,000 (English): 0.5" in text


def test_a_peer_that_cannot_run_stands_in_the_table_with_the_reason(load: Any) -> None:
    peers = load("run")
    machine = run_of("", 0)["machine"]
    found = {"peers": {"memsearch": {"why": "did not end within 600 s"}}, "notes": 3, "questions": 2}
    text = peers.render({"machine": machine, "files": {"f": found}, "versions": {"memsearch": "1.0"}})
    assert "| memsearch | did not end within 600 s |" in text and "memsearch 1.0: " in text


def test_nothing_is_written_where_a_page_has_no_place_for_it(load: Any, tmp_path: Path) -> None:
    table = load("all")
    page = tmp_path / "page.md"
    page.write_text("one BEGIN old END two")
    table.put(page, "BEGIN", "END", "BEGIN new END")
    assert page.read_text() == "one BEGIN new END two"
    page.write_text("no marks")
    with pytest.raises(SystemExit):
        table.put(page, "BEGIN", "END", "x")


def test_an_agent_of_the_endurance_run_that_says_much_ends(load: Any, tmp_path: Path) -> None:
    """An hour of figures is more than a pipe holds, and its reader waits for the end."""
    endurance = load("endurance")
    words = [sys.executable, "-c", "print('x' * 300_000)"]
    worker = endurance.told_to(tmp_path / "said", words, dict(os.environ))
    assert worker.wait(30) == 0
    assert (tmp_path / "said").stat().st_size == 300_001
