"""BM25F: the two kernels agree to the last bit, and both with the formula written out."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

import pytest

from mdmem.index.score import Corpus, Settings, TextHits
from mdmem.index.segment import Builder, Damaged, FileSegment, Row, memory

WORDS = [f"w{number}" for number in range(60)]


def rows(count: int, seed: int = 1, start: int = 1) -> list[Row]:
    rng = random.Random(seed)

    def some(most: int) -> list[str]:
        return [WORDS[min(int(rng.expovariate(0.08)), 59)] for _ in range(rng.randint(0, most))]

    return [Row(start + n, 1 + (start + n) // 3, (some(50), some(4), some(4), some(2))) for n in range(count)]


def written(tmp_path: Path, name: str, content: list[Row], dead: tuple[int, ...] = ()) -> FileSegment:
    builder = Builder()
    for row in content:
        builder.add(row)
    (tmp_path / f"{name}.doc").write_bytes(builder.doc_file())
    terms, postings = builder.term_files()
    (tmp_path / f"{name}.trm").write_bytes(terms)
    (tmp_path / f"{name}.pst").write_bytes(postings)
    return FileSegment(tmp_path, name, dead)


def by_hand(content: list[Row], words: list[tuple[str, float]], settings: Settings) -> dict[int, float]:
    count = len(content)
    averages = [sum(len(row.fields[f]) for row in content) / count or 1.0 for f in range(4)]
    scores: dict[int, float] = {}
    for word, weight in words:
        df = sum(any(word in field for field in row.fields) for row in content)
        idf = math.log(1 + (count - df + 0.5) / (df + 0.5))
        for row in content:
            x = sum(
                settings.boosts[f]
                * row.fields[f].count(word)
                / (1 - settings.b + settings.b * len(row.fields[f]) / averages[f])
                for f in range(4)
            )
            if x:
                scores[row.window] = scores.get(row.window, 0) + weight * idf * x * (settings.k1 + 1) / (settings.k1 + x)
    return scores


def plain(corpus: Corpus, *arguments: object, monkeypatch: pytest.MonkeyPatch) -> TextHits:
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "numpy", raising=False)
        return corpus.search(*arguments)  # type: ignore[arg-type]


def test_both_kernels_give_the_formula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy  # noqa: F401

    content = rows(300)
    extra = rows(40, seed=2, start=301)
    dead = (3, 77, 299)
    living = [row for number, row in enumerate(content) if number not in dead] + extra
    segments = [written(tmp_path, "a", content, dead), memory(extra)]
    rng = random.Random(5)
    for _ in range(30):
        words = [(word, rng.choice([1.0, 0.5, 2.0])) for word in rng.sample(WORDS, rng.randint(1, 6))]
        fast = Corpus(segments).search(words, None, 20)
        slow = plain(Corpus(segments), words, None, 20, monkeypatch=monkeypatch)
        assert fast == slow
        truth = by_hand(living, words, Settings())
        best = sorted(truth, key=lambda window: (-round(truth[window], 9), window))[:20]
        assert [round(hit.score, 9) for hit in fast.hits] == [round(truth[window], 9) for window in best]
        for hit in fast.hits:
            assert math.isclose(hit.score, truth[hit.window])
            row = next(row for row in living if row.window == hit.window)
            held = tuple(n for n, (word, _) in enumerate(words) if any(word in field for field in row.fields))
            assert hit.matched == held


def test_i17_a_filter_applies_before_the_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = [Row(n, n, (["common"] * (1 if n in (5, 500, 19_999) else 9), [], [], [])) for n in range(1, 20_001)]
    corpus = Corpus([written(tmp_path, "a", content)])
    wanted = {5, 500, 19_999}
    assert {hit.note for hit in corpus.search([("common", 1.0)], wanted, 5).hits} == wanted
    assert {hit.note for hit in plain(corpus, [("common", 1.0)], wanted, 5, monkeypatch=monkeypatch).hits} == wanted
    assert corpus.search([("common", 1.0)], set(), 5).hits == []


def test_equal_scores_come_in_a_stable_order_even_at_the_cut() -> None:
    corpus = Corpus([memory([Row(n, n, (["same"], [], [], [])) for n in range(50, 0, -1)])])
    assert [hit.window for hit in corpus.search([("same", 1.0)], None, 7).hits] == [1, 2, 3, 4, 5, 6, 7]


def test_i32_a_single_window_scores_finitely() -> None:
    (hit,) = Corpus([memory([Row(1, 1, (["only"], [], [], []))])]).search([("only", 1.0), ("absent", 1.0)], None, 5).hits
    assert 0 < hit.score < math.inf


def test_hidden_notes_leave_no_trace_in_the_statistics(tmp_path: Path) -> None:
    content = rows(200)
    gone = {row.note for row in content if row.note % 4 == 0}
    hidden = Corpus([written(tmp_path, "a", content)], gone).search([("w3", 1.0), ("w20", 1.0)], None, 10)
    clean = Corpus([memory([row for row in content if row.note not in gone])]).search([("w3", 1.0), ("w20", 1.0)], None, 10)
    assert hidden == clean


@pytest.mark.parametrize("suffix", ["doc", "trm", "pst"])
@pytest.mark.parametrize("harm", ["truncate", "zero", "garbage", "flip", "empty"])
def test_any_damage_to_a_file_is_noticed(tmp_path: Path, suffix: str, harm: str) -> None:
    content = rows(50)
    written(tmp_path, "a", content)
    path = tmp_path / f"a.{suffix}"
    data = bytearray(path.read_bytes())
    if harm == "truncate":
        data = data[: len(data) // 2]
    elif harm == "zero":
        data = bytearray(len(data))
    elif harm == "garbage":
        data = bytearray(random.Random(3).randbytes(len(data)))
    elif harm == "flip":
        data[len(data) * 2 // 3] ^= 0x40
    else:
        data = bytearray()
    path.write_bytes(data)
    with pytest.raises(Damaged):
        segment = FileSegment(tmp_path, "a")
        for _ in segment.every():
            pass


def test_notes_that_are_gone_are_counted_alike_with_and_without_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = rows(200)
    segment = written(tmp_path, "s", content, dead=(0, 5))
    gone = {3, 17, 40, 999}
    fast = Corpus([segment], gone)
    monkeypatch.delitem(sys.modules, "numpy")
    plain = Corpus([segment], gone)
    assert fast.parts[0].dead == plain.parts[0].dead > {0, 5}
    assert all(type(doc) is int for doc in fast.parts[0].dead)
    assert (fast.count, fast.averages) == (plain.count, plain.averages)
