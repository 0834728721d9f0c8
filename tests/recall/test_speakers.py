"""Questions that name a speaker of a written conversation: how they are told, what is searched then. With the real model."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdmem.clock import FixedClock
from mdmem.index.embed import BUNDLED
from mdmem.index.embed_onnx import OnnxEmbedder
from mdmem.notes.frontmatter import render
from mdmem.recall.query import Query
from mdmem.recall.recall import Recall, ranking, recall
from mdmem.recall.speakers import answered_share, speakers, without
from mdmem.recall.usual import usual_question
from mdmem.setup import init
from mdmem.store import Store

TALK = "Anna: I sold the car.\nBen: Why, Anna?\nAnna: I cycle now.\nBen: Good for you!"


def test_speakers_are_those_of_a_conversation_that_the_question_names() -> None:
    assert speakers([TALK], "What did Anna sell?") == ["Anna"]
    assert speakers([TALK], "Anna's car and Ben's answer") == ["Anna", "Ben"]
    # Who says little there is a speaker too.
    assert speakers([TALK, "Cleo: I am late."], "Why was Cleo late?") == ["Cleo"]
    assert speakers(TALK.split("\n"), "What did Anna sell?") == ["Anna"]
    assert speakers([TALK], "What did Annabel sell?") == []
    assert speakers([TALK], "what was sold?") == []
    # The same lines again, as overlapping windows have them, are not more of them.
    assert speakers(["Anna: hello\nBen: hello"] * 3, "What did Anna say?") == []


def test_a_list_of_keys_is_no_conversation() -> None:
    note = "Database: Postgres\nCache: Redis\nQueue: RabbitMQ\nOwner: Anna"
    assert speakers([note], "Which Database do we use?") == []
    assert speakers(["Status: open\nStatus: closed", *[f"note {n}" for n in range(3)]], "What Status is it?") == []
    assert speakers(["status: a\nstatus: b\nowner: x\nowner: y"], "which status has it") == []


def test_the_question_without_the_name() -> None:
    assert without("When did Anna sell the car?", ["Anna"]) == "When did sell the car?"
    assert without("What is Anna's job?", ["Anna"]) == "What is job?"
    assert without("What do Anna and Ben have in common?", ["Anna", "Ben"]) == "What do have in common?"
    assert without("Anna Lee's or Anna's car", ["Anna", "Anna Lee"]) == "car"
    assert without("Who is Annabel?", ["Anna"]) == "Who is Annabel?"
    assert without("Anna?", ["Anna"]) == "" == without("Who?", [])


def test_a_line_counts_with_the_line_that_it_answers() -> None:
    worth = {"anna": 1.0, "hous": 2.0, "lake": 1.0}
    asked = "Ben: Is your house big?\n\nAnna: No, but by the lake."
    assert answered_share(asked, worth) == (1.0 + 1.0 + 2.0 / 2) / 4.0
    assert answered_share("Anna: My house is by the lake.\nBen: The house?", worth) == 1.0
    assert answered_share("Ben: Anna, your house?\nBen: By the lake.", worth) == 0.0
    assert answered_share("", worth) == answered_share(asked, {}) == 0.0


def test_what_questions_have_in_common_is_known_of_the_bundled_model_only(tmp_path: Path) -> None:
    bundled = OnnxEmbedder(BUNDLED, tmp_path)
    common = usual_question(bundled)
    asked, told = bundled.queries(["Where did we park the car?"])[0], bundled.passages(["The car is parked here."])[0]
    assert common.shape == (384,) and 0.8 < float(np.linalg.norm(common)) < 1.0
    # It is a direction of questions: nearer to one that it was not made of than a passage is.
    assert float(common @ asked) > float(common @ told) > 0

    class Other:
        dims = 384

    assert usual_question(Other()) is None


DAYS = {
    "cycling": TALK + "\nAnna: The bus is too full in the morning.\nBen: I take the tram to my office, as ever.",
    "greeting": "Ben: Anna! Good to see you, Anna.\nAnna: You too, Ben!\nBen: How are you, Anna?\nAnna: Very well.",
    "cooking": "Ben: I made noodles, Anna.\nAnna: Nice.\nBen: With a sauce of nuts, Anna.\nAnna: I want to try that.",
    "music": "Anna: We play on Friday.\nBen: Which songs, Anna?\nAnna: The old ones.\nBen: I will be there, Anna.",
    "garden": "Ben: The roses are out, Anna.\nAnna: Mine too.\nBen: Anna, do you water them?\nAnna: At night.",
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr("mdmem.setup._driver", lambda *_: None)
    init(tmp_path / "store")
    opened = Store.open(tmp_path / "store", need="write", clock=FixedClock(datetime(2026, 11, 2, tzinfo=timezone.utc)))
    for name, text in DAYS.items():
        stamp = "2026-11-01T00:00:00Z"
        fields = {"kind": "session", "title": name, "created": stamp, "updated": stamp}
        opened.folder.create(f"sessions/{name}.md", render(fields, text + "\n"))
    opened.index.refresh(embed_budget_s=None)
    return opened


def ask(store: Store, text: str, **settings: Any) -> Recall:
    store.config.values |= {f"recall.{name}": value for name, value in settings.items()}
    return recall(store, Query(text, limit=10, explain=True))


def test_the_switch_and_what_explain_tells(store: Store) -> None:
    question = "How does Anna commute to work?"
    on, off = ask(store, question, speakers=True), ask(store, question, speakers=False)
    assert on.explained["speakers"] == ["Anna"] and off.explained["speakers"] == []
    assert on.explained["bm25_weight"] == 0.75 * off.explained["bm25_weight"]
    assert on.results[0].title == "cycling"
    # Cosines are those to the question itself, whatever was searched with.
    shown = {hit.path: hit.cosine for hit in on.results}
    assert len(shown) == len(DAYS)
    for hit in off.results:
        assert shown[hit.path] == pytest.approx(hit.cosine, abs=0.02)


def test_a_question_that_names_nobody_is_searched_as_it_is(store: Store) -> None:
    question = "How does one commute to work?"
    on, off = ask(store, question, speakers=True), ask(store, question, speakers=False)
    assert [(hit.path, hit.score, hit.steps) for hit in on.results] == [(hit.path, hit.score, hit.steps) for hit in off.results]


def test_a_store_of_two_languages_is_searched_with_the_question_as_it_is(store: Store) -> None:
    for number in range(3):
        fields = {"kind": "memory", "title": f"笔记{number}", "created": "2026-11-01T00:00:00Z"}
        store.folder.create(f"memories/zh{number}.md", render(fields, f"第{number}条关于骑车上班的笔记\n"))
    store.index.refresh(embed_budget_s=None)
    assert ask(store, "How does Anna commute to work?", speakers=True).explained["speakers"] == []


def test_near_keeps_the_order_of_the_aim_and_the_span_of_the_cosines(store: Store) -> None:
    found = [one.candidate for one in ranking([("", store)], Query("How does Anna commute to work?"))]
    near = [candidate.near for candidate in found if candidate.near is not None]
    cosines = [candidate.cosine for candidate in found if candidate.cosine is not None]
    assert len(near) == len(cosines) == len(DAYS)
    assert (min(near), max(near)) == pytest.approx((min(cosines), max(cosines)))
    best = max(found, key=lambda candidate: candidate.near or 0.0)
    assert best.row is not None and best.row["title"] == "cycling"
