"""Synonyms: the list that ships, and the user's own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mdmem.index.analyzer import tokens
from mdmem.recall import expand
from mdmem.recall.expand import MOST, OFTEN, Concept, alike, expanded, groups, held
from mdmem.recall.words import terms_of
from mdmem.recall.wordvectors import members, shipped_list


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "mdmem").mkdir()
    return tmp_path / "mdmem"


def added(text: str) -> set[str]:
    return {term for one in alike(text) for member in one.others for term in member.terms}


def test_the_shipped_list_knows_both_languages() -> None:
    assert "defect" in added("a bug in checkout")
    assert "认证" in added("auth flow")
    assert "auth" in added("认证方式")
    assert added("nothing of the kind") == set()


def test_what_is_asked_already_is_not_added_and_the_number_is_bounded() -> None:
    assert "bug" not in added("bug and defect")
    concepts = alike("bug auth config deploy release cache log")
    assert sum(len(one.others) for one in concepts) > MOST
    many = [Concept((expand.Member(f"word{number}", (f"word{number}",)),), ()) for number in range(3 * MOST)]
    assert len(expanded(many, [])) == MOST
    assert "defect" not in {term for term, _ in expanded(concepts, terms_of("defect"))}


def test_what_is_named_by_more_words_comes_first() -> None:
    first = alike("the main branch of a queue")[0]
    assert "trunk" in {member.text for member in first.others}


def test_members_that_the_store_does_not_hold_are_left_out() -> None:
    concepts = held(alike("auth cache"), lambda terms: dict.fromkeys({"缓", "缓存", "存", "sign"} & set(terms), 1))
    assert concepts and {member.text for one in concepts for member in one.others} == {"缓存"}
    assert held([], lambda terms: pytest.fail("nothing to look up")) == []  # type: ignore[func-returns-value]


def test_a_store_that_has_the_word_of_the_question_much_more_often_is_asked_in_that_word(home: Path) -> None:
    """`like` stands in every other chat, `prefer` in few: the synonym outweighed what was asked."""

    def kept(text: str, **counts: int) -> set[str]:
        return {member.text for one in held(alike(text), lambda terms: counts) for member in one.others}

    assert kept("which bug", bug=OFTEN + 1, defect=1) == set()
    assert kept("which bug", bug=OFTEN, defect=1) == {"defect"}
    chinese = {"缺": 2, "陷": 2, "缺陷": 2}
    assert kept("which bug", bug=2 * OFTEN, defect=1, **chinese) == {"defect", "缺陷"}  # one that stands so often will do
    assert kept("which bug", defect=1) == {"defect"}  # a word that the store does not hold is found by its synonym
    # Who wrote a group knows what is meant by it.
    (home / "synonyms.txt").write_text("!only\nbug, defect\n", "utf-8")
    assert kept("which bug", bug=OFTEN * 2, defect=1) == {"defect"}


def test_single_characters_of_a_pair_are_not_searched_by_themselves(home: Path) -> None:
    (home / "synonyms.txt").write_text("!only\ncache, 缓存\n", "utf-8")
    assert {term for term, _ in expanded(alike("cache"), [])} == {"缓存"}


def test_function_words_of_a_phrase_are_not_searched_by_themselves(home: Path) -> None:
    (home / "synonyms.txt").write_text("!only\nforbidden, not allowed\n", "utf-8")
    assert {term for term, _ in expanded(alike("forbidden"), [])} == {"allow"}


@pytest.mark.parametrize(
    ("question", "others"),
    [
        ("where does Anna live in Berlin", {"production", "prod", "kept in", "put in"}),
        ("which book did I book a table with", {"appointment", "reservation"}),
        ("who did I share it with", {"common", "percent"}),
        ("what was the content of the film", {"cms", "content management"}),
        ("the novel that I read in the library", {"package"}),
        ("is there an issue with the concert ticket", {"ticket", "issue"}),
        ("what was the weather like", {"prefer", "favorite"}),
        ("the local restaurant and the green dress", {"laptop", "pass"}),
        ("emotional support for who hangs out", {"styling", "customer service", "freeze"}),
    ],
)
def test_everyday_words_do_not_find_what_only_the_trade_means(question: str, others: set[str]) -> None:
    assert others & {member.text for one in alike(question) for member in one.others} == set()


def test_a_word_inside_another_one_is_no_match() -> None:
    assert added("authors of a buggy") == set()


def test_only_lines_that_a_question_may_touch_are_taken_apart(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "synonyms.txt").write_text("Buy, purchase\nＤｅｂｔ，欠债\n锁, mutex\nnever, unused words\n", "utf-8")
    assert "purchas" in added("what was bought")
    assert "欠债" in added("technical debt")
    assert "锁" in added("a mutex")
    taken: list[str] = []
    monkeypatch.setattr(expand, "_group", lambda line, rows="": taken.append(line) or ())
    alike("the cache is stale")
    assert 0 < len(taken) < 10
    assert any("cache" in line for line in taken)


def test_each_member_has_the_terms_of_the_analyzer() -> None:
    lines = [line for line in shipped_list().decode().splitlines() if line and line[0] not in "#!"]
    groups = [group for line in lines if (group := expand._group(line))]
    assert len(groups) == len(lines) > 300
    assert [m for group in groups for m in group if list(m.terms) != tokens(m.text)] == []


def test_the_users_file_adds_groups_and_is_read_again_when_it_changes(home: Path) -> None:
    path = home / "synonyms.txt"
    path.write_text("# mine\nflux, 助焊剂, soldering paste\n", "utf-8")
    assert added("flux") >= {"助焊", "焊剂", "solder", "past"}
    assert "defect" in added("bug")
    path.write_text("!only\nflux, rosin\n", "utf-8")
    os.utime(path, ns=(1, 1))
    assert added("flux") == {"rosin"}
    assert added("bug") == set()


def test_a_kind_finds_what_is_of_it_and_this_the_kind_but_not_each_other(home: Path) -> None:
    (home / "synonyms.txt").write_text("!only\nvehicle, 车辆 > lorry, 卡车, tram\n", "utf-8")
    assert added("which vehicle") == {"车辆", "车", "辆", "lorri", "卡车", "卡", "tram"}
    assert added("卡车") == {"vehicl", "车辆", "车", "辆"}
    assert added("a tram") & {"lorri", "卡车"} == set()
    assert added("vehicle and tram") >= {"车辆", "lorri"}
    assert alike("vehicle 车辆 lorry 卡车 tram") == []
    (home / "synonyms.txt").unlink()
    assert "neovim" in added("which editor")
    assert "emac" not in added("neovim")


def test_a_longer_form_of_what_is_asked_is_no_other_word(home: Path) -> None:
    (home / "synonyms.txt").write_text("!only\nlog, log storage, journal, 日志, 日志平台\n", "utf-8")
    assert {member.text for one in alike("the log") for member in one.others} == {"journal", "日志", "日志平台"}
    assert {member.text for one in alike("日志") for member in one.others} == {"log", "log storage", "journal"}


def test_the_table_of_the_shipped_list_is_of_this_list_and_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change of synonyms.txt: python tools/build_model_common.py mdmem/models/e5-small-q4-enzh"""
    table = Path(expand.__file__).with_name(expand.TABLE)
    assert json.loads(table.read_bytes()) == expand.table_of(shipped_list(), members(shipped_list()))
    question = "which linter runs before a 回滚"
    texts = [[member.text for member in one.others] for one in alike(question)]
    assert {"ruff", "rollback"} <= {text for group in texts for text in group}
    of_another = expand.table_of(b"one, two\n", ["one", "two"])
    for name, told in (("missing.json", None), (expand.NAME, None), (expand.TABLE, of_another)):
        expand._shipped.cache_clear()
        monkeypatch.setattr(expand, "TABLE", name)
        if told is not None:
            monkeypatch.setattr(expand.json, "loads", lambda data, told=told: told)
        without = alike(question)
        assert [[member.text for member in one.others] for one in without] == texts
        assert {member.row for one in without for member in one.others} == {-1}
    expand._shipped.cache_clear()


def test_a_broken_file_adds_nothing(home: Path) -> None:
    (home / "synonyms.txt").write_bytes(b"\xff\xfe,,,\nalone\n")
    assert groups("a bug")
    (home / "synonyms.txt").unlink()
    (home / "synonyms.txt").mkdir()
    assert "defect" in added("bug")


def test_a_member_without_any_word_is_left_out(home: Path) -> None:
    (home / "synonyms.txt").write_text("rollout, !!, , shipment\n", "utf-8")
    group = next(group for group, _ in groups("the rollout") if "shipment" in {member.text for member in group})
    assert [member.text for member in group] == ["rollout", "shipment"]
