"""Synonyms of the trade lead no everyday question astray: chats of several users, asked over all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mdmem.recall import bench, expand
from mdmem.recall.bench_data import load_dataset


@pytest.mark.parametrize("name", ["en_dev.json", "zh_dev.json"])
def test_chats_are_found_as_well_with_synonyms_as_without(
    name: str, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words such as share, book, live and like mean another thing there than in the list, and cost three questions of 53."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(bench, "TIMED", 0)
    data = load_dataset(data_dir / name)
    data.docs = [replace(doc, group="") for doc in data.docs]
    data.questions = [replace(question, group="") for question in data.questions]
    with_list = bench.measure(data, ("hybrid",))[0]
    monkeypatch.setattr(expand, "alike", lambda text: [])
    without = bench.measure(data, ("hybrid",))[0]
    assert with_list.ranks != without.ranks or name == "zh_dev.json"  # the list was asked at all
    assert with_list.at(1) >= without.at(1) and with_list.at(5) >= without.at(5)
