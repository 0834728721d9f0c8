"""Who may read what in the shared index: the token goes along, every request is bound to repositories and scopes, and a token
for one team's collection finds nothing of another's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mdmem.index.milvus import SharedDown, key_of
from mdmem.memory.sharing import push_store
from mdmem.recall.query import Query
from mdmem.recall.recall import recall
from mdmem.recall.shared_note import read_anywhere
from tests.e2e import shared_scene
from tests.e2e.shared_scene import commit, git, limited, made, opened, write

pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("settings")]
settings, server = shared_scene.settings, shared_scene.server


def two(tmp_path: Path) -> tuple[Path, Path]:
    roots = []
    for number in (1, 2):
        root = made(tmp_path / f"store{number}", 8, seed=number)
        git(root, "remote", "add", "origin", f"https://example.org/team{number}/notes.git")
        roots.append(root)
    return roots[0], roots[1]


def test_a_token_that_may_read_one_teams_collection_finds_nothing_of_another(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.e2e.shared_relay import relayed

    one, two_ = two(tmp_path)
    rights = {"root:all": {"one", "one_state", "two", "two_state"}, "ann:secret": {"one", "one_state"}}
    with relayed(server, rights=rights) as relay:
        monkeypatch.setenv("MDMEM_INDEX_URI", relay.uri)
        monkeypatch.setenv("MDMEM_INDEX_TOKEN_ENV", "TEAM_TOKEN")
        monkeypatch.setenv("TEAM_TOKEN", "root:all")
        for name, root in (("one", one), ("two", two_)):
            monkeypatch.setenv("MDMEM_INDEX_COLLECTION", name)
            assert push_store(opened(root)).written == 8
        monkeypatch.setenv("TEAM_TOKEN", "ann:secret")
        monkeypatch.setenv("MDMEM_INDEX_COLLECTION", "one, two")
        monkeypatch.setenv("MDMEM_INDEX_SHARE", "others")
        relay.calls.clear()
        # Asked from a third store, so that nothing is answered locally.
        third = made(tmp_path / "third", 0)
        answer = recall(opened(third), Query("word8 word9 word3", limit=50))
        assert {hit.path.split(": ")[0] for hit in answer.results} == {"example.org/team1/notes"}
        assert any("permission" in text for text in answer.notices), answer.notices
        with pytest.raises(Exception, match="mem-2-1"):
            read_anywhere(opened(third), "mem-2-1")
        assert read_anywhere(opened(third), "mem-1-1")[0].id == "mem-1-1"
        assert relay.calls and all(call.token == "ann:secret" for call in relay.calls if call.collection)
        # Nor can it write there.
        monkeypatch.setenv("MDMEM_INDEX_COLLECTION", "two")
        write(two_, "more", "A walrus.", id="mem-more")
        commit(two_)
        with pytest.raises(SharedDown, match="permission"):
            push_store(opened(two_))
        # A wrong token is told apart from an engine that is away.
        monkeypatch.setenv("TEAM_TOKEN", "nobody")
        monkeypatch.setattr("mdmem.recall.shared._open", {})
        assert any("local index" in text for text in recall(opened(one), Query("word8")).notices)


def test_every_request_of_a_reader_is_bound_to_its_repositories_and_scopes(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.e2e.shared_relay import relayed

    for root in two(tmp_path):
        push_store(opened(root))
    limited("shared", "project:*")
    monkeypatch.setenv("MDMEM_INDEX_REPOSITORIES", "example.org/team2/*")
    with relayed(server) as relay:
        monkeypatch.setenv("MDMEM_INDEX_URI", relay.uri)
        store = opened(tmp_path / "store1")
        answer = recall(store, Query("word8 word9 on 4 May 2026", limit=50))
        assert answer.results and {hit.path.split(": ")[0] for hit in answer.results} == {"example.org/team2/notes"}
        assert read_anywhere(store, "mem-2-1")[1] is not None
        with pytest.raises(Exception, match="no note"):
            read_anywhere(store, "mem-2-0")  # scope agent:other
        asked = [call for call in relay.calls if call.method in ("Search", "Query")]
        windows = [call.condition for call in asked if call.collection == os.environ.get("MDMEM_INDEX_COLLECTION", "mdmem")]
        assert len(windows) >= 4
        bound = f'repo in ["{key_of("example.org/team2/notes")}"]'
        for condition in windows:
            assert bound in condition and '(scope == "shared" or scope like "project:%")' in condition, condition
        for call in asked:
            if call.collection == "mdmem_state":
                assert call.condition == 'pk like "commit:%"' or bound in call.condition, call
        assert not [call for call in relay.calls if call.method in ("Upsert", "Insert", "Delete", "Flush", "CreateCollection")]
