"""What is worth keeping of what was said: by rules, in English and Chinese."""

from __future__ import annotations

import importlib.util
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from mdmem.config import config_home
from mdmem.errors import MdmemError
from mdmem.learn.categories import load_rules
from mdmem.learn.dates import dated
from mdmem.learn.extract import extract
from mdmem.memory.session_record import Turn

AT = datetime(2026, 3, 4, 10, 0, tzinfo=timezone.utc)  # a Wednesday


def turns(*said: str) -> list[Turn]:
    """Turns from `U: …` and `A: …`, a line each."""
    who = {"U": "user", "A": "assistant"}
    return [Turn(who[text[0]], text[3:], number, AT) for number, text in enumerate(said, 1)]


def kept(*said: str, limit: int = 20, least: int = 0) -> list[tuple[str, str]]:
    return [(one.category, one.text) for one in extract(turns(*said), load_rules(), limit, least)[0]]


@pytest.mark.parametrize(
    ("said", "category"),
    [
        ("We decided to stay with PostgreSQL 16.", "decision"),
        ("I prefer short answers.", "preference"),
        ("I'm the release manager of this project.", "profile"),
        ("Before every release you must run the smoke tests.", "pattern"),
        ("Mei owns the billing service.", "entity"),
        ("Yesterday's outage lasted six hours.", "event"),
        ("缓存统一用 Redis,过期时间 10 分钟", "decision"),
        ("我喜欢简短的回答", "preference"),
        ("支付服务由小王负责", "entity"),
        ("每次发布之前都要先跑冒烟测试", "pattern"),
    ],
)
def test_a_statement_that_will_matter_is_kept(said: str, category: str) -> None:
    assert [one for one, _ in kept(f"U: {said}")] == [category]


@pytest.mark.parametrize(
    "said",
    [
        "hi",
        "ok, thanks!",
        "Which database do we use?",
        "what if we moved to MySQL",
        "Did we not agree that Mei owns the billing service?",
        "我们决定用 Redis 7 了吗",
        "Maybe we should use Rust some day.",
        "Imagine we use Haskell here, how would this look?",
        "Fix the typo in line 3 of README.md",
        "run the tests again",
        "The date picker shows the wrong day in Japan",
        "Remember",
        "remember this",
        "好的",
        "如果以后用 MySQL 呢",
        "帮我看看支付回调的签名校验",
        "```\nWe use MySQL for everything and always will.\n```",
        "<paste>We use MySQL for everything.</paste>",
        "> We use MySQL for everything.",
    ],
)
def test_noise_questions_requests_and_what_ifs_are_not(said: str) -> None:
    assert kept(f"U: {said}") == []


def test_an_assistants_guess_is_no_preference_of_the_user() -> None:
    assert kept("A: I think you prefer tabs.", "A: You should always use tuples.", "A: We use MySQL here.", "U: ok") == []
    assert kept("A: I prefer short functions without comments.", "A: I'm the reviewer of this change.", "U: ok") == []


def test_a_proposal_counts_once_the_user_agrees() -> None:
    assert kept("A: I suggest we use NATS as message bus.", "U: yes, do that") == [("decision", "Use NATS as message bus.")]
    assert kept("A: I suggest we use NATS as message bus.", "U: no, too early for that") == []


def test_a_cause_and_its_fix_are_one_case() -> None:
    found = kept(
        "U: the login fails",
        "A: The root cause was the expired token in auth.py.",
        "A: Fixed it by renewing the token in auth.py.",
    )
    assert [category for category, _ in found] == ["case"] and "renewing" in found[0][1] and "expired" in found[0][1]


def test_asked_to_be_remembered_is_kept_even_in_a_short_session() -> None:
    said = ("U: Remember that the demo account is called otter-7.", "U: We use PostgreSQL 16 for orders.")
    assert [text for _, text in kept(*said, least=4)] == ["The demo account is called otter-7."]
    assert len(kept(*said, least=2)) == 2


def test_at_most_n_the_weightiest() -> None:
    said = [f"U: The host batch-{number} has {number} GB of memory." for number in range(2, 9)]
    found = kept(*said, "U: We decided to move every host to Hetzner.", limit=3)
    assert len(found) == 3 and ("decision", "We decided to move every host to Hetzner.") in found


def test_each_skipped_sentence_says_why() -> None:
    judged = extract(turns("U: ok. Which port?", "U: maybe we use Rust", "A: I will look."), load_rules(), 5)[1]
    assert {one.outcome for one in judged} == {"skipped"} and all(one.why for one in judged) and len(judged) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it broke yesterday", "it broke yesterday (2026-03-03)"),
        ("due by Friday", "due by Friday (2026-03-06)"),
        ("we met last Monday", "we met last Monday (2026-03-02)"),
        ("we met last Friday", "we met last Friday (2026-02-27)"),
        ("deploys are on Tuesdays", "deploys are on Tuesdays"),
        ("two days ago it worked", "two days ago (2026-03-02) it worked"),
        ("in 2 weeks it ends", "in 2 weeks (2026-03-18) it ends"),
        ("next month we move", "next month (2026-04) we move"),
        ("昨天发布了 0.3", "昨天 (2026-03-03)发布了 0.3"),
        ("下周五之前完成", "下周五 (2026-03-13)之前完成"),
        ("每周四发布", "每周四发布"),
        ("上个月搬的", "上个月 (2026-02)搬的"),
        ("三天前坏的", "三天前 (2026-03-01)坏的"),
    ],
)
def test_words_that_count_from_today_get_their_date(text: str, expected: str) -> None:
    assert dated(text, AT) == expected
    assert dated(expected, AT) == expected


def test_the_users_own_categories_and_noise(own_home: Path) -> None:
    folder = config_home() / "learn"
    folder.mkdir(parents=True)
    (folder / "categories.toml").write_text("[recipe]\ntype = 'recipe'\ncues = ['\\bbake\\b']\n")
    (folder / "noise.txt").write_text("# ours\n^zzz\n")
    assert kept("U: bake the bread at 230 degrees") == [("recipe", "Bake the bread at 230 degrees")]
    assert kept("U: zzz We decided to use Redis 7.") == []
    (folder / "categories.toml").write_text("[decision]\nreplace = true\ncues = ['\\bdecree\\b']\n")
    assert kept("U: We decided upon a thing for it.") == []
    (folder / "categories.toml").write_text("[decision]\ncues = ['(']\n")
    with pytest.raises(MdmemError, match="cannot be read"):
        load_rules()


def test_hostile_text_takes_linear_time() -> None:
    import time

    begin = time.process_time()
    for text in ("a " * 20_000, "not " * 20_000, "<a>" * 20_000, "从" * 20_000, "1." * 20_000, "is the " * 10_000):
        kept(f"U: {text}", f"A: {text}")
    assert time.process_time() - begin < 10


def benchmark() -> Any:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "extraction.py"
    spec = importlib.util.spec_from_file_location("extraction", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("part", ["a", "b", "c"])
def test_precision_and_recall_on_labelled_transcripts(part: str) -> None:
    """The targets: 0.6 and 0.5; `c` was never looked at for tuning."""
    found = benchmark().measure(part)
    assert found["facts"] >= 20 and found["precision"] >= 0.6 and found["recall"] >= 0.5, found
