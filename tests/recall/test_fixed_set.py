"""Sixty notes and sixty questions of our own, in English and Chinese, in one store, asked with the real model: what is
found now must still be found. A better figure is written here by whoever makes it better."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from mdmem.recall import bench
from mdmem.recall.bench_data import load_dataset

# recall@5 in percent when this was last set, over all and for each direction (asked-held).
FOUND = {"all": 100.0, "en-en": 100.0, "zh-zh": 100.0, "en-zh": 100.0, "zh-en": 100.0}
LOSS = 1.0  # points that may go
PER_DIRECTION = 100 / 12  # one question of the smallest direction


def test_recall_at_5_of_the_fixed_set_does_not_fall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(bench, "TIMED", 0)
    data = load_dataset(Path(__file__).with_name("fixed_set.json"))
    assert (len(data.docs), len(data.questions)) == (60, 60)
    result = bench.measure(data, ("hybrid",))[0]
    ranks: dict[str, list[int]] = defaultdict(list)
    for question, rank in zip(data.questions, result.ranks, strict=True):
        for name in ("all", question.id.split()[0]):
            ranks[name].append(rank)
    found = {name: 100 * sum(0 < rank <= 5 for rank in places) / len(places) for name, places in ranks.items()}
    missed = [q.text for q, rank in zip(data.questions, result.ranks, strict=True) if not 0 < rank <= 5]
    assert found["all"] >= FOUND["all"] - LOSS, missed
    assert {n for n, share in found.items() if share < FOUND[n] - max(LOSS, PER_DIRECTION) - 0.01} == set(), missed
