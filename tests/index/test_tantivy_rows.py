"""The rows of frequencies beside tantivy: what went in comes out, and the scores are the same with numpy and without."""

from __future__ import annotations

import random
import sys

import numpy  # noqa: F401 - from here on rows are scored with it
import pytest

from mdmem.index import tantivy_rows
from mdmem.index.score import Settings, Term
from mdmem.index.segment import Row, frequencies
from mdmem.index.tantivy_rows import hashed, pack, scored, unpack

WORDS = [f"word{number}" for number in range(80)] + ["部署", "部", "署", "v1.2.3", "c++", "naïve"]


def row(window: int, rng: random.Random) -> Row:
    def some(most: int) -> list[str]:
        return [WORDS[min(int(rng.expovariate(0.06)), len(WORDS) - 1)] for _ in range(rng.randint(0, most))]

    return Row(window, window, (some(60), some(4), some(3), some(2)))


def test_rows_are_scored_alike_with_numpy_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(8)
    rows = [row(n, rng) for n in range(1, 200)] + [
        Row(200, 200, ([], [], [], [])),
        Row(201, 201, (["word1"] * 300, [], [], [])),
    ]
    packed = [pack(frequencies(one)) for one in rows]
    lengths = [[len(part) for part in one.fields] for one in rows]
    words = rng.sample(WORDS, 12)
    terms = [(n, Term(word, weight, 5, 1.5)) for n, (word, weight) in enumerate(zip(words, (0.5, 1.0, 2.0, -1.0) * 3))]
    terms.append((12, Term("word1", 1.0, 3, 0.7)))
    with_numpy = scored(packed, lengths, terms, [31.0, 2.1, 1.7, 1.0], Settings())
    monkeypatch.delitem(sys.modules, "numpy")
    monkeypatch.setitem(tantivy_rows._done, "searches", 0)
    assert scored(packed, lengths, terms, [31.0, 2.1, 1.7, 1.0], Settings()) == with_numpy
    assert with_numpy[-2] == (0.0, ()) and with_numpy[-1][1][-1] == 12 and scored([], [], terms, [1.0] * 4, Settings()) == []
    for one, data in zip(rows, packed):
        held = unpack(data)
        numbers = held.numbers()
        found = {term: held.frequencies(numbers[hashed(term)]) for term in frequencies(one)}
        assert found == {term: tuple(v >> 8 * f & 255 for f in range(4)) for term, v in frequencies(one).items()}


def test_halves_of_hashes_that_are_the_same_and_numbers_that_stand_across_two_others(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [f"w{number}" for number in range(300)]
    rows = [Row(1, 1, (many, many[:2], [], many[1:2])), Row(2, 2, (many[:50] + many[255:258], many[:257], [], []))]
    rows += [Row(3, 3, (many[::-1], many[:3], many[:3], []))]
    lengths = [[len(part) for part in one.fields] for one in rows]
    terms = [(number, Term(many[word], 1.0, 5, 1.0 + number)) for number, word in enumerate((0, 1, 2, 255, 256, 257, 299))]
    seen = []
    for shift in (0, 8, 16, 32, 40):
        keys = {word: (number << shift & (1 << 48) - 1) + 7 for number, word in enumerate(many)}
        wanted = [(place, term) for place, term in terms if list(keys.values()).count(keys[term.text]) == 1]
        monkeypatch.setattr(tantivy_rows, "hashed", keys.__getitem__)
        packed = [pack(frequencies(one)) for one in rows]
        with_numpy = scored(packed, lengths, wanted, [300.0, 60.0, 1.0, 1.0], Settings())
        with monkeypatch.context() as patch:
            patch.delitem(sys.modules, "numpy")
            patch.setitem(tantivy_rows._done, "searches", 0)
            assert scored(packed, lengths, wanted, [300.0, 60.0, 1.0, 1.0], Settings()) == with_numpy
        seen.append(with_numpy)
    assert seen[0] == seen[1] == seen[2] == seen[3]
