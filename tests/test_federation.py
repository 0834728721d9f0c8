"""Several stores of one user: searched together, named in each hit, and a private note never in a shared one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mdmem.config import user_file
from mdmem.errors import NotFound, Refused
from mdmem.federation import ask, searched, target
from mdmem.memory.remember import Memory, remember
from mdmem.recall.query import Query
from mdmem.recall.recall import recall_many
from mdmem.store import Store

Stores = dict[str, Store]


@pytest.fixture
def stores(make_store: Callable[..., Store], tmp_path: Path) -> Stores:
    made = {name: make_store(name) for name in ("own", "team")}
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(
        f'[[stores]]\nname = "own"\npath = "{made["own"].root}"\n\n'
        f'[[stores]]\nname = "team"\npath = "{made["team"].root}"\nshared = true\nscopes = ["project:apollo"]\n\n'
        f'[[stores]]\nname = "gone"\npath = "{tmp_path / "nowhere"}"\n'
    )
    remember(made["own"], Memory("fact", "My editor is vim; deploy days are mine to choose.", title="Mine"))
    remember(made["team"], Memory("fact", "The team deploys on Thursdays, deploy window at noon.", title="Team"))
    return {name: Store.open(store.root, cwd=store.root, clock=store.clock) for name, store in made.items()}


def test_all_are_searched_and_named(stores: Stores) -> None:
    found = ask(stores["own"], Query("deploy", mode="keyword"))
    assert {hit.store: hit.title for hit in found.results} == {"own": "Mine", "team": "Team"}
    assert any("gone" in text for text in stores["own"].notices)
    only = ask(stores["own"], Query("deploy", mode="keyword"), ("team",))
    assert [hit.title for hit in only.results] == ["Team"]
    here = ask(stores["own"], Query("deploy", mode="keyword"), only=True)
    assert [hit.title for hit in here.results] == ["Mine"]
    with pytest.raises(NotFound, match="no store is named"):
        ask(stores["own"], Query("deploy"), ("nonsense",))


def test_stores_of_one_model_load_it_once_and_embed_a_question_once(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem.index.embed_onnx import OnnxEmbedder

    question = Query("when does the team deploy?")
    for store in stores.values():
        store.index.refresh(embed_budget_s=None)
    opened = {name: Store.open(store.root, cwd=store.root, clock=store.clock) for name, store in stores.items()}
    asked: list[str] = []
    models: list[int] = []
    queries, open_one = OnnxEmbedder.queries, OnnxEmbedder._open
    monkeypatch.setattr(OnnxEmbedder, "queries", lambda self, texts: (asked.extend(texts), queries(self, texts))[1])
    monkeypatch.setattr(OnnxEmbedder, "_open", lambda self: (models.append(id(self)), open_one(self))[1])
    found = ask(opened["own"], question)
    assert asked == [question.text] and len(set(models)) == 1
    assert found.results[0].title == "Team" and found.mode == "hybrid"
    alone = {name: ask(stores[name], question, only=True).results[0] for name in ("own", "team")}
    for hit in found.results:
        assert hit.title == alone[hit.store].title
    # Another model has other vectors.
    other = Store.open(stores["team"].root, cwd=stores["team"].root, options={"embedding.threads": 2})
    asked.clear()
    recall_many([("own", opened["own"]), ("team", other)], question)
    assert asked == [question.text] * 2


def test_one_that_is_not_trusted_is_left_out(stores: Stores) -> None:
    from mdmem.locate import trusted_file

    trusted_file().write_text(trusted_file().read_text().replace(stores["team"].location.store_id, "other"))
    names = [name for name, _ in searched(stores["own"])]
    assert names == ["own"] and any("not trusted" in text for text in stores["own"].notices)


def test_where_a_note_goes(stores: Stores) -> None:
    own = stores["own"]
    assert target(own, "shared")[0] == "own"
    assert target(own, "project:apollo")[0] == "team"
    assert target(own, "shared", "team")[1].root == stores["team"].root
    assert target(stores["team"], "shared")[0] == "team"


@pytest.mark.parametrize("scope", ["user:mei", "agent:claude", "local"])
def test_a_private_note_is_never_written_to_a_shared_store(stores: Stores, scope: str) -> None:
    with pytest.raises(Refused) as caught:
        target(stores["own"], scope, "team")
    assert caught.value.code == "private_note"
    assert target(stores["team"], scope)[0] == "own"


def test_no_other_way_of_writing_puts_a_private_note_into_a_shared_store(stores: Stores, tmp_path: Path) -> None:
    from mdmem.memory.change import set_fields
    from mdmem.memory.importing import import_markdown
    from mdmem.memory.remember import Memory, remember
    from mdmem.team import tasks

    team, own = stores["team"], stores["own"]
    before = {path.name for path in team.root.rglob("*.md")}
    kept = remember(team, Memory("fact", "we deploy on Fridays", scope="shared"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("---\nid: mem-a\ntype: fact\nscope: user:mei\n---\nmine alone\n")
    with pytest.raises(Refused):
        remember(team, Memory("fact", "mine alone", scope="user:mei"))
    with pytest.raises(Refused):
        set_fields(team, kept.id, {"scope": "agent:claude"})
    with pytest.raises(Refused):
        tasks.add(team, "mine alone", "", scope="user:mei")
    assert import_markdown(team, tmp_path / "notes").failed
    after = {path.name for path in team.root.rglob("*.md")}
    assert len(after - before) == 1 and not [p for p in team.root.rglob("*.md") if "mine alone" in p.read_text()]
    set_fields(own, remember(own, Memory("fact", "mine", scope="shared")).id, {"scope": "user:mei"})
