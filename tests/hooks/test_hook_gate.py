"""The relevance gate on the labelled prompts: 95% of unrelated ones bring nothing, 80% of answered ones bring the answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mdmem.memory import gate, near

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import gate as bench


def measured(tmp_path: Path, teams: tuple[str, ...], dense: bool) -> dict[str, Any]:
    found = []
    for team in teams:
        facts = bench.read("facts.jsonl", team)
        store = bench.make_store(tmp_path / team, facts, [])
        found += bench.cases(store, facts, bench.read("prompts.jsonl", team), dense)
    return dict(bench.rates(found, dense))


def test_the_set_is_what_it_says() -> None:
    prompts = bench.read("prompts.jsonl")
    assert len(prompts) >= 300
    assert {p["kind"] for p in prompts} == {"answer", "reworded", "chore", "chat", "unanswered"}
    chinese = [p for p in prompts if any("\u4e00" <= c <= "\u9fff" for c in p["prompt"])]
    assert len(chinese) >= 100
    keys = {(fact["team"], fact["key"]) for fact in bench.read("facts.jsonl")}
    for prompt in prompts:
        assert bool(prompt.get("answer")) == (prompt["kind"] in ("answer", "reworded"))
        assert {(prompt["team"], key) for key in prompt.get("answer", ())} <= keys


def test_no_labelled_prompt_is_in_the_background() -> None:
    background = {line[2:].lower() for line in near.BACKGROUND.read_text("utf-8").splitlines()}
    assert not [p["prompt"] for p in bench.read("prompts.jsonl") if p["prompt"].lower().rstrip("?") in background]


def test_words_alone(tmp_path: Path) -> None:
    found = measured(tmp_path, bench.FITTED, dense=False)
    assert found["unrelated_quiet"] >= 95, found["wrong"]
    assert found["own_words_given"] >= 75, found["wrong"]


@pytest.mark.nightly
@pytest.mark.timeout(1500)
def test_with_the_model(tmp_path: Path) -> None:
    found = measured(tmp_path, bench.FITTED, dense=True)
    assert found["unrelated_quiet"] >= 95, found["wrong"]
    assert found["answered_given"] >= 80, found["wrong"]


@pytest.mark.nightly
@pytest.mark.timeout(1500)
def test_a_team_that_nothing_was_fitted_on(tmp_path: Path) -> None:
    found = measured(tmp_path, ("clinic",), dense=True)
    assert found["unrelated_quiet"] >= 90, found["wrong"]
    assert found["answered_given"] >= 70, found["wrong"]


def test_evidence_grows_with_what_is_found() -> None:
    assert gate.chance(0.9, 1.5, None) > gate.limit(False, False) > gate.chance(0.2, 0.3, None)
    assert gate.chance(0.9, 1.5, (0.4, 0.0, 0.0)) > gate.chance(0.9, 1.5, (0.0, 0.0, 0.0))
    assert gate.chance(0.9, 1.5, (0.2, 0.2, 1.0)) > gate.chance(0.9, 1.5, (0.2, 0.2, -1.0))
    assert gate.limit(True, True) < gate.limit(True, False)


def test_an_empty_store_and_an_empty_prompt() -> None:
    assert gate.telling_words("what is the") == []
    assert gate.Weighing([], 0).evidence([]) == (0.0, 0.0)


def test_another_name_of_a_thing_counts_in_part() -> None:
    words = gate.telling_words("how do we roll out to the database")
    terms = [(term, weight, 1, 0.0) for term, weight in gate.with_concepts(words)]
    weighing = gate.Weighing(terms, 50, len(words))
    place = {term: number for number, (term, *_) in enumerate(terms)}
    own, other = weighing.evidence([place["databas"]]), weighing.evidence([place["postgresql"]])
    assert own[1] > other[1] > 0
    assert weighing.evidence([place["数据"]])[1] == other[1]


def test_nearness_takes_away_what_all_have_in_common() -> None:
    import numpy as np

    axis = np.eye(4, dtype="float32")
    space = near.Space("f", 1, question_mean=axis[0], passage_mean=axis[1], common=axis[2], asking=np.r_[0.5, axis[3]])
    question = axis[0] + 5 * axis[2] + 0.1 * axis[3]
    close, far = axis[1] - 5 * axis[2] + 0.1 * axis[3], axis[1] + 5 * axis[2] - 0.1 * axis[3]
    without, plain = space.nearness(question, np.array([close, far]))
    assert without.round(3).tolist() == [1.0, -1.0] and plain[0] < plain[1]
    assert space.asks(question) == pytest.approx(0.5 + near.SPREAD * 0.1 / (25.01**0.5), abs=1e-4)


def test_what_a_prompt_asks_for_is_learnt_from_the_background() -> None:
    import numpy as np

    draw = np.random.RandomState(0)
    wanted = np.r_[np.ones(40), np.zeros(40)]
    questions = draw.standard_normal((80, 6)) + np.outer(wanted * 2 - 1, [2, 0, 0, 0, 0, 0])
    weights = near.fit_asking(questions, wanted, questions.mean(0))
    space = near.Space("f", 1, questions.mean(0), questions.mean(0), np.zeros(6), weights)
    positive = np.array([space.asks(question) > 0 for question in questions])
    assert positive[:40].mean() > 0.9 and positive[40:].mean() < 0.1


def test_a_damaged_background_is_made_again(tmp_path: Path) -> None:
    import numpy as np

    from mdmem.config import data_home

    class Toy:
        fingerprint, dims = "toy", 3

        def queries(self, texts: list[str]) -> Any:
            return np.random.RandomState(1).rand(len(texts), 3).astype("float32")

        passages = queries

    toy: Any = Toy()
    assert near._background(toy, make=False) is None
    made = near._background(toy, make=True)
    (file,) = (data_home() / "gate").iterdir()
    assert near._background(toy, make=False) is not None and made is not None
    for damage in (b"", b"PK\x03\x04garbage", file.read_bytes()[:200]):
        file.write_bytes(damage)
        assert near._background(toy, make=False) is None
        assert near._background(toy, make=True) is not None


def test_a_known_chinese_word_stands_by_itself() -> None:
    words = dict(gate.telling_words("账单系统用什么数据库"))
    # Neither pairs across two words nor the inner pairs of a long one; what stands for a long word is no everyday word.
    assert words == {"账单": 1.0, "系统": 1.0, "数据": 1.0}
    assert dict(gate.telling_words("把数据排序"))["数据"] == gate.EVERYDAY
