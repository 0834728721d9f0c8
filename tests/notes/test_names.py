"""Slugs, ids and names: safe on every system, stable, and apart where they must be."""

from __future__ import annotations

import random
import unicodedata
from datetime import datetime, timezone

import pytest

from mdmem.clock import FixedClock
from mdmem.notes import names

WHEN = FixedClock(datetime(2026, 11, 30, 9, 53, 0, tzinfo=timezone.utc))


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Use BM25 for search!", "use-bm25-for-search"),
        ("Hyvää yötä", "hyvaa-yota"),
        ("Straße & Øre", "strasse-ore"),
        ("记录 a", "记录-a"),
        ("ＡＢＣ", "abc"),
        ("C++", "c-plus-plus"),
        ("C#", "c-sharp"),
        ("C", "c"),
        ("Fix #12", "fix-12"),
        ("don't", "dont"),
        ("node.js v1.2.3", "node-js-v1-2-3"),
        ("../../etc/passwd", "etc-passwd"),
        ("con", "con-note"),
        ("İstanbul", "istanbul"),
        ("Привет, мир", "привет-мир"),
    ],
)
def test_slugs(title: str, slug: str) -> None:
    assert names.slug(title) == slug


def test_a_title_without_letters_still_has_a_name_of_its_own() -> None:
    one, two = names.slug("🎉"), names.slug("🚀")
    assert one != two and one.isascii() and one == names.slug("🎉")


def test_n4_nfc_and_nfd_titles_are_one() -> None:
    title = "테스트 맥"
    assert names.slug(unicodedata.normalize("NFD", title)) == names.slug(title) == "테스트-맥"
    assert names.memory_id("memory", "shared", unicodedata.normalize("NFD", title)) == names.memory_id(
        "memory", "shared", title
    )


def test_n9_two_spellings_of_an_entity_are_one_file() -> None:
    assert names.entity_path("project", "My Note") == names.entity_path("project", "my-note") == "entities/project/my-note.md"
    assert names.entity_id("project", "My Note") == "project-my-note"


def test_n11_a_long_cjk_title_is_cut_between_characters() -> None:
    title = "记" * 90
    for path in (
        names.memory_path(title, "mem-0123456789ab"),
        names.entity_path("project", title),
        names.task_path(title, "task-x"),
    ):
        name = path.rpartition("/")[2]
        assert len(name.encode()) <= 200 and name.endswith(".md") and "\ufffd" not in name
    assert names.entity_path("project", title + "甲") != names.entity_path("project", title + "乙")


def test_n14_marks_stay_with_their_letters() -> None:
    assert names.slug("अनीता") == "अनीता"
    for limit in range(3, 16):
        part = names.cut("अनीता", limit)
        assert "अनीता".startswith(part)
        rest = "अनीता"[len(part) :]
        assert not rest or unicodedata.category(rest[0])[0] != "M"


def test_memory_ids_follow_the_content() -> None:
    one = names.memory_id("memory", "shared", "Use  tabs\r\n")
    assert one == names.memory_id("memory", "shared", "Use tabs") and len(one) == 16 and one.startswith("mem-")
    others = {
        names.memory_id("memory", "agent:x", "Use tabs"),
        names.memory_id("memory", "shared", "Use tabs", "1"),
        names.memory_id("memory", "shared", "use tabs"),
    }
    assert len({one, *others}) == 4


def test_time_ids_sort_by_time_and_are_repeatable_with_a_seed() -> None:
    early = names.time_id("task", WHEN, random.Random(1))
    assert early == names.time_id("task", WHEN, random.Random(1)) and early.startswith("task-20261130-095300")
    assert names.time_id("task", WHEN) != names.time_id("task", WHEN)
    later = FixedClock(datetime(2026, 11, 30, 9, 53, 1, tzinfo=timezone.utc))
    assert early < names.time_id("task", later, random.Random(0))
    assert names.session_path(early, WHEN.now()) == f"sessions/2026/11/{early}.md"


@pytest.mark.parametrize(
    "path",
    [
        "a -> b.md",
        "a/con.md",
        "AUX",
        "com1.txt",
        "lpt¹.md",
        "a.",
        "a ",
        "a:b.md",
        "a?.md",
        "a\nb.md",
        'a"b.md',
        "a\x7fb.md",
        "x/.git/y.md",
        ".GIT",
        "git~1",
        ".git\u200c",
        ".gitmodules",
        "/abs.md",
        "a\\b.md",
        "",
        "a//b",
        "..",
        "\udc80.md",
        "e\u0301.md",
        "x" * 256,
        "a/" * 600 + "b",
    ],
)
def test_n3_names_that_some_system_cannot_hold_have_a_reason(path: str) -> None:
    assert names.unsafe_name(path)


@pytest.mark.parametrize("path", ["-x.md", "hyvää yötä.md", "记录 a.md", "main", ".mdmem.toml", "console.md", "a.b.md"])
def test_names_that_are_fine(path: str) -> None:
    assert names.unsafe_name(path) is None


def test_n8_names_that_only_look_alike_stay_two() -> None:
    assert names.fold("2026_06_16.md") != names.fold("2026-06-16.md")
    assert names.fold("README.md") == names.fold("readme.md")
    assert names.fold(unicodedata.normalize("NFD", "É.md")) == names.fold("é.md")
