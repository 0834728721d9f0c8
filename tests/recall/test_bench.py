"""Reading files of questions, and measuring with them."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from mdmem.errors import MdmemError, UsageError
from mdmem.recall.bench import Measured, grep, measure, note_bytes
from mdmem.recall.bench_data import Doc, load_dataset


def write(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data), "utf-8")
    return path


LOCOMO = [
    {
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "I planted tomatoes."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "Nice!", "blip_caption": "a greenhouse"},
            ],
            "session_2_date_time": "9:05 am on 2 June, 2023",
            "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "My bicycle was stolen."}],
        },
        "qa": [
            {"question": "What did Ann plant?", "evidence": ["D1:01"], "category": 4},
            {"question": "What was stolen from Ben?", "evidence": ["D9:1; D2:1"], "category": 4},
            {"question": "Cites no turn", "evidence": ["D7:3"], "category": 4},
            {"question": "Cites nothing", "evidence": [], "category": 5},
        ],
    }
]


def test_locomo_reads_evidence_as_session_and_turn(tmp_path: Path) -> None:
    data = load_dataset(write(tmp_path / "l.json", LOCOMO))
    assert [doc.id for doc in data.docs] == ["c0s1", "c0s2"] and data.left_out == 2
    assert [sorted(question.evidence) for question in data.questions] == [["c0s1"], ["c0s2"]]
    assert data.docs[0].text == "Ann: I planted tomatoes.\nBen: Nice!"
    assert data.docs[0].date == datetime(2023, 5, 8, 13, 56, tzinfo=timezone.utc) == data.docs[0].date
    assert data.newest() == datetime(2023, 6, 2, 9, 5, tzinfo=timezone.utc)
    assert "greenhouse" in load_dataset(tmp_path / "l.json", captions=True).docs[0].text


def test_longmemeval_ids_say_nothing(tmp_path: Path) -> None:
    entry = {
        "question_id": "x_abs",
        "question": "Which car?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["noise_1", "answer_77"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 02:21"],
        "haystack_sessions": [[{"role": "user", "content": "hello"}], [{"role": "user", "content": "A red car"}]],
        "answer_session_ids": ["answer_77"],
    }
    data = load_dataset(write(tmp_path / "m.json", [entry]))
    assert data.apart and [doc.id for doc in data.docs] == ["q0s0", "q0s1"]
    assert not any(b"answer" in note_bytes(doc, data.newest()) for doc in data.docs)
    assert data.questions[0].evidence == {"q0s1"} and data.questions[0].date == datetime(
        2023, 5, 30, 23, 40, tzinfo=timezone.utc
    )


@pytest.mark.parametrize("direction", ["zh-zh", "en-zh"])
def test_decisions_take_questions_and_documents_by_direction(tmp_path: Path, direction: str) -> None:
    pair = {"doc_zh": "缓存用 Redis。", "query_zh": "缓存", "doc_en": "The cache is Redis.", "query_en": "cache"}
    data = load_dataset(
        write(tmp_path / "d.json", {"pairs": [pair], "distractors_zh": ["天气"], "distractors_en": ["weather"]}), direction
    )
    assert [doc.text for doc in data.docs] == ["缓存用 Redis。", "天气"]
    assert data.questions[0].text == pair[f"query_{direction[:2]}"]


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(MdmemError, match="cannot read"):
        load_dataset(tmp_path / "absent.json")
    with pytest.raises(UsageError):
        load_dataset(write(tmp_path / "x.json", {"a": 1}))
    with pytest.raises(MdmemError, match="own format"):
        load_dataset(write(tmp_path / "y.json", {"docs": [{"id": "a"}], "questions": []}))
    (tmp_path / "z.json").write_text("{")
    with pytest.raises(MdmemError, match="not JSON"):
        load_dataset(tmp_path / "z.json")


def test_rates_and_mrr() -> None:
    result = Measured("f", "hybrid", [1, 3, 0, 7], [0.002, 0.001], 9)
    assert (result.at(1), result.at(5), result.at(10)) == (25.0, 50.0, 75.0)
    assert result.mrr == pytest.approx(100 * (1 + 1 / 3 + 1 / 7) / 4)


def test_grep_counts_distinct_words_then_matches() -> None:
    docs = [Doc("a", "red red red"), Doc("b", "a red car"), Doc("c", "blue"), Doc("d", "数据库选型")]
    assert grep(docs, "Red car") == ["b", "a"]
    assert grep(docs, "数据库") == ["d"]


def test_grep_leaves_function_words_out_and_prefers_the_dense_text() -> None:
    docs = [Doc("a", "what did the when and the why did it"), Doc("b", "an elm " + "x " * 90), Doc("c", "an elm")]
    assert grep(docs, "When did the elm fall?") == ["c", "b"]
    assert grep(docs, "what did the") == ["a"]


PLAIN = {
    "docs": [
        {"id": "d1", "text": "We chose PostgreSQL for its replication.", "group": "g1", "date": "2026-01-01"},
        {"id": "d2", "text": "Lunch is at noon.", "group": "g1", "date": "2026-01-02"},
        {"id": "d3", "text": "We chose PostgreSQL here as well.", "group": "g2"},
    ],
    "questions": [{"id": "q", "question": "Which PostgreSQL did we choose?", "evidence": ["d3"], "group": "g2"}],
}


@pytest.mark.parametrize("decay", [False, True])
def test_a_group_sees_its_own_documents_only(tmp_path: Path, decay: bool) -> None:
    data = load_dataset(write(tmp_path / "p.json", PLAIN))
    for result in measure(data, ("bm25", "keyword", "grep"), decay):
        assert result.ranks == [1] and result.as_dict()["recall@1"] == 100.0, result.system


def test_nothing_of_the_user_is_touched(tmp_path: Path, own_home: Path) -> None:
    measure(load_dataset(write(tmp_path / "p.json", PLAIN)), ("bm25",))
    assert [path for path in own_home.rglob("*") if path.is_file()] == [own_home / ".gitconfig"]


def test_bench_self_compares_settings_and_leaves_them_as_they_were(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from mdmem.cli.main import group
    from mdmem.setup import init
    from mdmem.store import Store

    monkeypatch.setattr("mdmem.setup._driver", lambda *_: None)
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "none")
    init(tmp_path / "store")
    store = Store.open(tmp_path / "store", need="write")
    for name in ("heron", "kestrel", "owl"):
        store.folder.create(f"memories/{name}.md", f"---\nkind: memory\ntitle: The {name}\n---\n{name} text\n".encode())
    monkeypatch.chdir(tmp_path / "store")
    done = CliRunner().invoke(
        group, ["bench", "self", "--system", "keyword", "--with", "recall.length=on", "--with", "recall.mmr=on", "--json"]
    )
    rows = json.loads(done.stdout)
    assert [row["system"] for row in rows] == ["keyword", "hybrid recall.length=on", "hybrid recall.mmr=on"]
    assert {row["recall@1"] for row in rows} == {100.0} and {row["questions"] for row in rows} == {3}
    from mdmem.recall.bench import measure_own

    measure_own(store, ("keyword",), settings=[("recall.length", "on")])
    assert store.config.get("recall.length") is False
    for wrong in ("recall.mmr", "recall.none=1", "llm.command=rm", "recall.mmr=maybe"):
        assert CliRunner().invoke(group, ["bench", "self", "--with", wrong]).exit_code != 0


def test_questions_without_an_answer_in_the_file_are_left_out_and_counted(tmp_path: Path) -> None:
    plain = {**PLAIN, "questions": [*PLAIN["questions"], {"id": "q2", "question": "?", "evidence": ["nowhere"]}]}
    data = load_dataset(write(tmp_path / "p.json", plain))
    assert (len(data.questions), data.left_out) == (1, 1)
    entry = {"question": "?", "haystack_session_ids": [], "haystack_sessions": [], "answer_session_ids": ["gone"]}
    data = load_dataset(write(tmp_path / "m.json", [entry]))
    assert (data.questions, data.left_out) == ([], 1)
    with pytest.raises(UsageError, match="en-fr"):
        load_dataset(write(tmp_path / "d.json", {"pairs": []}), "en-fr")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("8 May, 2023", datetime(2023, 5, 8)),
        ("1:56 on 8 May, 2023", datetime(2023, 5, 8, 1, 56)),
        ("12:05 am on 8 May, 2023", datetime(2023, 5, 8, 0, 5)),
        ("8 May", None),
        ("in May 2023", None),
        ("some day", None),
    ],
)
def test_a_date_is_read_only_where_it_names_one_day(tmp_path: Path, written: str, read: datetime | None) -> None:
    doc = {"id": "a", "text": "x", "date": written}
    (found,) = load_dataset(write(tmp_path / "p.json", {"docs": [doc], "questions": []})).docs
    assert found.date == (read.replace(tzinfo=timezone.utc) if read else None)


def test_every_system_is_asked_each_question_in_its_own_history(tmp_path: Path) -> None:
    def entry(number: int, answer: str) -> dict[str, Any]:
        return {
            "question": f"Which {answer} did I buy?",
            "question_date": "2023/05/30 (Tue) 23:40",
            "haystack_session_ids": [f"noise{number}", f"answer{number}"],
            "haystack_dates": ["2023/05/20 (Sat) 02:21"],
            "haystack_sessions": [
                [{"role": "user", "content": "good morning"}],
                [{"role": "user", "content": f"I bought a {answer} today"}],
            ],
            "answer_session_ids": [f"answer{number}"],
        }

    nothing = {**entry(2, "kite"), "question": "zzz"}
    data = load_dataset(write(tmp_path / "m.json", [entry(0, "car"), entry(1, "boat"), nothing]))
    told: list[tuple[int, int, str]] = []
    results = measure(data, ("bm25", "minmax", "rrf", "grep"), tell=lambda *seen: told.append(seen))
    assert [result.ranks[:2] for result in results] == [[1, 1]] * 4
    assert results[0].ranks[2] == 0  # not returned at all
    assert told[-1][:2] == (3, 3)


def test_a_decision_is_a_memory_of_that_type() -> None:
    data = note_bytes(Doc("p0", "The cache is Redis.", kind="decision"), datetime(2026, 1, 1, tzinfo=timezone.utc))
    assert b"kind: memory\n" in data and b"type: decision\n" in data


def test_without_a_model_measuring_by_meaning_says_what_still_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "none")
    with pytest.raises(MdmemError, match="no embedding model") as caught:
        measure(load_dataset(write(tmp_path / "p.json", PLAIN)), ("dense",))
    assert "--system bm25" in caught.value.hint


def test_damaged_vectors_in_the_cache_are_made_again(tmp_path: Path, own_home: Path) -> None:
    data = load_dataset(write(tmp_path / "p.json", PLAIN))
    (first,) = measure(data, ("dense",))
    kept = [path for path in (own_home / ".cache/mdmem/bench").rglob("*") if path.is_file() and path.name != "lock"]
    assert kept
    for path in kept:
        path.write_bytes(b"damaged")
    (second,) = measure(data, ("dense",))
    assert second.ranks == first.ranks == [1]


def test_a_model_that_does_not_answer_ends_the_measuring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "openai")
    monkeypatch.setenv("MDMEM_EMBEDDING_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("MDMEM_EMBEDDING_MODEL", "m")
    monkeypatch.setenv("MDMEM_EMBEDDING_DIMENSIONS", "8")
    with pytest.raises(MdmemError) as caught:
        measure(load_dataset(write(tmp_path / "p.json", PLAIN)), ("dense",))
    assert "127.0.0.1" in str(caught.value) + caught.value.why
