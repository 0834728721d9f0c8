"""What the notes of one conversation say of each other, for a question that names who speaks there."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from mdmem.clock import FixedClock
from mdmem.notes.frontmatter import render
from mdmem.recall.query import Query
from mdmem.recall.recall import Recall, recall
from mdmem.recall.speakers import may_name
from mdmem.recall.talks import MEANT, OTHERS, Note, Told, talkers, told
from mdmem.setup import init
from mdmem.store import Store

PAIR, OTHER = frozenset({"Anna", "Ben"}), frozenset({"Cleo", "Dan"})


def note(talks: frozenset[str], when: str, near: float = 0.0, score: float = 1.0, named: float = 1.0) -> Note:
    return Note(talks, named, when, near, score)


def test_who_talks_stands_before_the_lines() -> None:
    assert talkers(["Anna: I sold it.\nBen: Why?", "so it goes\nAnna: Well."]) == {"Anna", "Ben"}
    assert talkers(["We sold the car.", ""]) == frozenset()


def test_a_conversation_of_others_counts_less_and_a_plain_note_as_before() -> None:
    plain = note(frozenset(), "2026-01-01", named=0.0)
    found = told([note(PAIR, "2026-01-01"), note(OTHER, "2026-01-01", named=0.0), note(OTHER, "2026-01-02", named=0.5), plain])
    # A single label may be a heading; that of two notes is a talker.
    assert [one.others for one in found] == [1.0, OTHERS, (1 + OTHERS) / 2, 1.0]
    assert found[3] == Told()


def test_the_session_before_gains_by_how_near_the_next_one_is() -> None:
    found = told([note(PAIR, "2026-01-03", 0.9), note(PAIR, "2026-01-01", 0.2), note(PAIR, "2026-01-02", 0.5)])
    assert [one.followed for one in found] == [0.0, 0.5, 0.9]
    # Another conversation in between is none of it.
    mixed = [note(PAIR, "2026-01-01"), note(OTHER, "2026-01-02", 0.8), note(PAIR, "2026-01-03", 0.4), note(OTHER, "2026-01-04")]
    assert [one.followed for one in told(mixed)] == [0.4, 0.0, 0.0, 0.0]


def test_of_two_conversations_the_one_that_fits_better_is_meant() -> None:
    other = frozenset({"Anna", "Eve"})
    found = told(
        [
            *(note(PAIR, f"2026-01-0{n}", score=0.8) for n in (1, 2, 3)),
            *(note(other, f"2026-02-0{n}", score=0.4) for n in (1, 2, 3)),
        ]
    )
    assert [one.meant for one in found] == [1.0] * 3 + [pytest.approx(1 - MEANT / 2)] * 3


def test_one_conversation_alone_loses_nothing() -> None:
    assert told([note(PAIR, "2026-01-01"), note(PAIR, "2026-01-02")]) == [Told(), Told()]
    assert told([]) == []


SESSIONS = {
    "2026-03-01": "Anna: I want to learn to ride a horse.\nBen: You, Anna?\nAnna: There is a stable near us.\nBen: Good luck!",
    "2026-03-08": "Ben: How was the horse, Anna?\nAnna: The lesson was good. It is called Blitz.\nBen: Fine.\nAnna: Again!",
    "2026-03-15": "Ben: I bought a tent.\nAnna: For the lake?\nBen: For the mountains, Anna.\nAnna: Take a warm bag.",
    "2026-03-02": "Cleo: I ride my horse each day.\nDan: What is the horse called?\nCleo: Star.\nDan: A horse with a star!",
    "2026-03-09": "Cleo: The horse is ill.\nDan: Your horse Star?\nCleo: It eats nothing.\nDan: Call the horse doctor.",
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr("mdmem.setup._driver", lambda *_: None)
    init(tmp_path / "store")
    opened = Store.open(tmp_path / "store", need="write", clock=FixedClock(datetime(2026, 11, 2, tzinfo=timezone.utc)))
    for day, text in SESSIONS.items():
        stamp = f"{day}T00:00:00Z"
        fields = {"kind": "session", "title": day, "created": stamp, "updated": stamp}
        opened.folder.create(f"sessions/{day}.md", render(fields, text + "\n"))
    opened.index.refresh(embed_budget_s=None)
    return opened


def ask(store: Store, text: str, on: bool, mode: str = "hybrid") -> Recall:
    store.config.values["recall.conversations"] = on
    return recall(store, Query(text, limit=10, explain=True, mode=mode))


def test_the_switch_and_what_explain_tells(store: Store) -> None:
    question = "What is the horse of Anna called?"
    on, off = ask(store, question, True), ask(store, question, False)
    steps = {hit.title: dict(hit.steps) for hit in on.results}
    assert {title for title, one in steps.items() if one.get("others") == OTHERS} == {"2026-03-02", "2026-03-09"}
    # The last of a conversation has none after it.
    assert {title for title, one in steps.items() if "followed" in one} == {"2026-03-01", "2026-03-02", "2026-03-08"}
    assert "conversations" in on.explained["stages"] and "conversations" not in off.explained["stages"]
    assert not any({"others", "followed", "meant"} & set(dict(hit.steps)) for hit in off.results)
    before, after = ([hit.title for hit in answer.results] for answer in (off, on))
    assert after[0] == "2026-03-08"
    # Who is asked about comes before what others say of a horse.
    assert max(map(after.index, ("2026-03-01", "2026-03-08"))) < min(map(after.index, ("2026-03-02", "2026-03-09")))
    assert sorted(before) == sorted(after)
    assert all(0.0 <= hit.score <= 1.0 for hit in on.results)
    # What is told is what was done: of two sessions that end their conversations, as parts of what they had before.
    had = {hit.title: hit.score for hit in off.results}
    kept = {hit.title: hit.score / had[hit.title] for hit in on.results}
    meant = steps["2026-03-09"].get("meant", 1.0) / steps["2026-03-15"].get("meant", 1.0)
    assert kept["2026-03-09"] / kept["2026-03-15"] == pytest.approx(OTHERS * meant, rel=0.001)
    assert meant < 1.0


def test_of_sessions_that_say_the_same_the_first_five_show_one_earlier_than_the_other(store: Store) -> None:
    texts = [
        f"Anna: The horse jumped over the wall {n} times.\nBen: Over the wall, Anna?\nAnna: The horse jumped.\nBen: Oh!"
        for n in range(6)
    ]
    texts.append(
        "Anna: I painted a kitchen wall blue, as my mother asked in spring.\nBen: And the rest?\n"
        "Anna: One of the horse hangs there, a photo.\nBen: A quiet room."
    )
    for number, text in enumerate(texts):
        fields = {"kind": "session", "title": f"later {number}", "created": f"2026-04-{number + 10}T00:00:00Z"}
        store.folder.create(f"sessions/later{number}.md", render(fields, text + "\n"))
    store.index.refresh(embed_budget_s=None)
    question = "Which wall, picture or horse did Anna mention?"
    on, off = ask(store, question, True), ask(store, question, False)
    moved = {hit.title: dict(hit.steps)["mmr"] for hit in on.results if "mmr" in dict(hit.steps)}
    assert moved["later 6"] == "5 → 2" and not any("mmr" in dict(hit.steps) for hit in off.results)
    assert on.results[0].score == max(hit.score for hit in on.results)
    # From the sixth place on the order stays as it was.
    scores = [hit.score for hit in on.results[5:]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("mode", ["keyword", "semantic"])
def test_where_one_stream_alone_is_searched_the_order_is_its_own(store: Store, mode: str) -> None:
    question = "What is the horse of Anna called?"
    on, off = ask(store, question, True, mode), ask(store, question, False, mode)
    assert [(hit.path, hit.score) for hit in on.results] == [(hit.path, hit.score) for hit in off.results]


def test_a_question_that_names_nobody_is_ranked_as_it_is(store: Store) -> None:
    on, off = (ask(store, "What is the horse called?", on) for on in (True, False))
    assert [(hit.path, hit.score) for hit in on.results] == [(hit.path, hit.score) for hit in off.results]


def test_a_plain_note_without_the_name_keeps_its_place(store: Store) -> None:
    fields: dict[str, Any] = {"kind": "memory", "title": "Blitz", "created": "2026-03-20T00:00:00Z"}
    store.folder.create("memories/blitz.md", render(fields, "The horse at the stable is called Blitz.\n"))
    store.index.refresh(embed_budget_s=None)
    hits = {hit.path: hit for hit in ask(store, "What is the horse of Anna called?", True).results}
    assert not {"others", "followed", "meant"} & set(dict(hits["memories/blitz.md"].steps))


def test_a_note_of_several_texts_has_the_labels_of_all_until_two_are_known_and_one_label_is_no_conversation() -> None:
    assert talkers([]) == frozenset()
    assert talkers(["no label here", "Anna: hello", "Anna: again"]) == {"Anna"}
    assert talkers(["Anna: hello", "Ben: hi", "Cleo: never read"]) == {"Anna", "Ben"}
    alone = [note(frozenset({"Anna"}), "2026-01-01"), note(frozenset({"Anna"}), "2026-01-02")]
    assert told(alone) == [Told(), Told()]


def test_whether_a_question_may_name_who_speaks() -> None:
    text = "said quietly: nothing\nAnna: hello\nBen: hi\nAnna: again"
    assert may_name(["no label", text], "what did Ben say?")
    assert not may_name(["no label", text], "what did Benedict say?")
    assert not may_name([], "what did Ben say?")
