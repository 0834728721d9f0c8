"""Opening a hit from another repository: `mdmem show`, the tools of MCP; read only, with where it comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mdmem.cli.main import run
from mdmem.errors import Ambiguous, NotFound
from mdmem.mcp.actions import get
from mdmem.memory.sharing import push_store
from mdmem.recall.query import Query
from mdmem.recall.recall import recall
from mdmem.recall.shared_note import read_anywhere
from tests.e2e import shared_scene
from tests.e2e.shared_scene import commit, git, limited, made, opened, write

pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("settings")]
settings = shared_scene.settings


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """One's own store, and another's; both pushed."""
    monkeypatch.setenv("MDMEM_INDEX_SHARE", "others")
    mine, other = made(tmp_path / "mine", 3, seed=1), made(tmp_path / "other", 3, seed=2)
    long = "# Ümläute und 部署\n\n" + "A walrus sings at length. " * 900
    write(other, "long", long, id="mem-long", scope="shared", mood="glad")
    write(other, "plain", "A seal without an id.")
    write(other, "closed", "For another agent alone: narwhal.", id="mem-closed", scope="agent:other")
    for root, url in ((mine, "git@example.org:me/mine.git"), (other, "https://bot:secret@example.org/team/notes.git")):
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", "notes")
        git(root, "remote", "add", "origin", url)
        push_store(opened(root))
    return mine, other


def shown(root: Path, capsys: Any, *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(["-C", str(root), *words])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_a_hit_of_another_repository_is_shown_with_its_origin(both: tuple[Path, Path], capsys: Any) -> None:
    mine, other = both
    code, out, err = shown(mine, capsys, "show", "mem-long")
    assert code == 0 and out == (other / "memories" / "long.md").read_text("utf-8")
    rev = git(other, "rev-parse", "HEAD")
    assert f"from example.org/team/notes, commit {rev[:10]}" in err and "read only" in err
    assert "mdmem clone https://example.org/team/notes.git" in err and "secret" not in err
    data = json.loads(shown(mine, capsys, "show", "mem-long", "--json")[1])
    assert data["origin"] == {
        "repository": "example.org/team/notes",
        "commit": rev,
        "url": "https://example.org/team/notes.git",
        "whole": True,
        "read_only": True,
    }
    assert data["fields"]["mood"] == "glad" and data["path"] == "example.org/team/notes: memories/long.md"
    # What recall names can be opened, with an id and without one.
    for question in ("walrus sings", "seal without an id"):
        hit = next(hit for hit in recall(opened(mine), Query(question, mode="keyword")).results if ": " in hit.path)
        assert shown(mine, capsys, "show", hit.path)[0] == 0
    # One's own is shown as ever, with no origin.
    assert "origin" not in json.loads(shown(mine, capsys, "show", "mem-1-1", "--json")[1])


def test_mcp_opens_it_too(both: tuple[Path, Path]) -> None:
    text = get(opened(both[0]), {"note": "mem-long"})
    assert text.startswith("example.org/team/notes: memories/long.md (from example.org/team/notes, commit ")
    assert "A walrus sings" in text


def test_nothing_there_can_be_changed(both: tuple[Path, Path], capsys: Any) -> None:
    for words in (("set", "mem-long", "mood=sad"), ("forget", "mem-long"), ("edit", "mem-long")):
        assert shown(both[0], capsys, *words)[0] == 3


def test_what_may_not_be_read_is_not_there(both: tuple[Path, Path], capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = both[0]
    assert shown(mine, capsys, "show", "mem-closed")[0] == 0
    limited("shared", "project:*")
    code, out, err = shown(mine, capsys, "show", "mem-closed")
    assert code == 3 and "narwhal" not in out + err
    assert shown(mine, capsys, "show", "example.org/team/notes: memories/closed.md")[0] == 3
    with pytest.raises(NotFound):
        get(opened(mine), {"note": "mem-closed"})
    assert shown(mine, capsys, "show", "mem-long")[0] == 0
    monkeypatch.setenv("MDMEM_INDEX_REPOSITORIES", "example.org/elsewhere/*")
    assert shown(mine, capsys, "show", "mem-long")[0] == 3


def test_an_id_of_two_repositories_is_named_by_its_path(both: tuple[Path, Path], tmp_path: Path) -> None:
    third = made(tmp_path / "third", 0)
    write(third, "long", "Another of this name.", id="mem-long")
    commit(third)
    git(third, "remote", "add", "origin", "git@example.org:team/third.git")
    push_store(opened(third))
    with pytest.raises(Ambiguous, match=r"example.org/team/third: memories/long\.md"):
        read_anywhere(opened(both[0]), "mem-long")
    note, origin = read_anywhere(opened(both[0]), "example.org/team/third: memories/long.md")
    assert "Another" in note.body and origin is not None and origin.url == "git@example.org:team/third.git"


def test_with_the_engine_away_the_error_says_so(both: tuple[Path, Path], capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDMEM_INDEX_URI", "http://127.0.0.1:9")
    code, _, err = shown(both[0], capsys, "show", "mem-long")
    assert code == 3 and "the shared index does not answer" in err
    assert shown(both[0], capsys, "show", "mem-1-1")[0] == 0
