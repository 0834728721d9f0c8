"""Synonyms: the list that ships, and the user's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mdmem.recall.expand import MOST, expanded, groups
from mdmem.recall.words import terms_of


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "mdmem").mkdir()
    return tmp_path / "mdmem"


def added(text: str) -> set[str]:
    return {term for term, _ in expanded(text, terms_of(text))}


def test_the_shipped_list_knows_both_languages() -> None:
    assert "defect" in added("a bug in checkout")
    assert "认证" in added("auth flow")
    assert "auth" in added("认证方式")
    assert added("nothing of the kind") == set()


def test_what_is_asked_already_is_not_added_and_the_number_is_bounded() -> None:
    assert "bug" not in added("bug and defect")
    assert len(expanded("bug auth config deploy release cache log", [])) <= 3 * MOST


def test_a_word_inside_another_one_is_no_match() -> None:
    assert added("authors of the debugger") == set()


def test_the_users_file_adds_groups_and_is_read_again_when_it_changes(home: Path) -> None:
    path = home / "synonyms.txt"
    path.write_text("# mine\nflux, 助焊剂, soldering paste\n", "utf-8")
    assert added("flux") >= {"助焊", "焊剂", "solder", "past"}
    assert "defect" in added("bug")
    path.write_text("!only\nflux, rosin\n", "utf-8")
    os.utime(path, ns=(1, 1))
    assert added("flux") == {"rosin"}
    assert added("bug") == set()


def test_a_broken_file_adds_nothing(home: Path) -> None:
    (home / "synonyms.txt").write_bytes(b"\xff\xfe,,,\nalone\n")
    assert groups()
    (home / "synonyms.txt").unlink()
    (home / "synonyms.txt").mkdir()
    assert "defect" in added("bug")
