"""The shared index as recall sees it, without an engine: its filter language, and what happens when it cannot be had."""

from __future__ import annotations

import subprocess
from datetime import datetime

import pytest

from mdmem.clock import UTC
from mdmem.config import Config
from mdmem.errors import Refused
from mdmem.index import milvus
from mdmem.index.milvus import SharedDown, dimension, key_of, mark_of, piece_of, squeeze, stretch, target_of, weights
from mdmem.index.score import Corpus, Settings
from mdmem.index.segment import Row, frequencies, memory
from mdmem.memory.sharing import push_store
from mdmem.recall.query import Filters, Query
from mdmem.recall.recall import recall
from mdmem.recall.shared import expression
from mdmem.store import Store

NOW = datetime(2026, 11, 30, tzinfo=UTC)

def test_the_inner_product_of_both_sparse_vectors_is_the_score_of_bm25f() -> None:
    rows = [
        Row(1, 1, (["walrus", "walrus", "部署", "sea"], ["walrus"], [], ["t"])),
        Row(2, 2, (["sea"] * 40, [], ["sea"], [])),
        Row(3, 3, (["walrus"], [], [], ["sea", "t"])),
    ]
    corpus = Corpus([memory(rows)])
    asked = [("walrus", 1.0), ("sea", 0.5), ("部署", 1.0), ("absent", 1.0)]
    hits = corpus.search(asked, None, 10)
    question = {dimension(term.text): term.weight * term.idf for term in hits.terms}
    for hit in hits.hits:
        row = rows[hit.window - 1]
        vector = weights(frequencies(row), [len(terms) for terms in row.fields], corpus.averages, Settings())
        assert sum(vector.get(place, 0.0) * value for place, value in question.items()) == pytest.approx(hit.score)


def test_a_filter_is_data_in_the_engines_language() -> None:
    said = 'a" or repo != "'
    filters = Filters(types=(said,), scopes=("agent:x",), since=datetime(2026, 5, 4, tzinfo=UTC))
    text = expression(filters, ("shared", "project:*", "user:100%*", "a[bc]"), ["r1"], NOW)
    assert text.startswith('repo in ["r1"] and (scope == ') and 'kind in ["memory", "entity", "note", "session"]' in text
    assert '"a\\" or repo != \\""' in text and 'updated >= "2026-05-04T00:00:00Z"' in text
    # What the engine's `like` would read as a mark is cut off: the catalog looks at what comes back.
    assert 'scope == "shared" or scope like "project:%" or scope like "user:100%" or scope like "a%"' in text
    assert expression(Filters(), (), ["r1"], NOW).startswith('repo in ["r1"] and scope == "" and ')
    assert 'updated <= "2026-05-04T00:00:00Z"' in expression(Filters(until=datetime(2026, 5, 4, tzinfo=UTC)), None, [], NOW)
    assert "status not in" in expression(Filters(), None, [], NOW) and "status not in" not in expression(
        Filters(retired=True), None, [], NOW
    )


def test_terms_and_marks_have_fixed_places() -> None:
    """They are stored by one machine and read by others."""
    assert dimension("walrus") == 1484639032
    assert piece_of("walrus", "shared", 256) == f"terms:{key_of('shared')}:256:{1484639032 % 256}"
    assert mark_of("sha", "a.md", "m") != mark_of("sha", "b.md", "m") != mark_of("sha", "b.md", "n")
    assert stretch(squeeze({"部署": [1, None]})) == {"部署": [1, None]}


def test_p8_a_secret_that_no_remote_has_is_not_pushed_to_the_shared_index(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MDMEM_INDEX_ENGINE", "milvus")
    monkeypatch.setenv("MDMEM_INDEX_URI", "http://127.0.0.1:9")
    monkeypatch.setattr(milvus, "find_spec", lambda name: None)
    (store.root / "memories").mkdir(exist_ok=True)
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (store.root / "memories" / "a.md").write_text(f"The token is {token}\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["add", "-A"], ["commit", "-qm", "notes"]):
        subprocess.run([*git, *words], cwd=store.root, check=True)
    with pytest.raises(Refused, match=r"memories/a\.md") as refused:
        push_store(Store.open(store.root))
    assert token not in str(refused.value) and refused.value.code == "secret_found"
    with pytest.raises(SharedDown):  # it passes the gate, and meets the engine
        push_store(Store.open(store.root), allow=["memories/a.md"])


def test_without_an_address_or_the_extra_the_local_index_answers_and_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    (store.root / "memories").mkdir(exist_ok=True)
    (store.root / "memories" / "a.md").write_text("A walrus was seen.\n")
    monkeypatch.setenv("MDMEM_INDEX_ENGINE", "milvus")
    for uri, told in (("", "index.uri is empty"), ("http://127.0.0.1:9", "pymilvus, which is not installed")):
        monkeypatch.setenv("MDMEM_INDEX_URI", uri)
        monkeypatch.setattr(milvus, "find_spec", lambda name: None)
        answer = recall(Store.open(store.root), Query("walrus", mode="keyword"))
        assert [hit.path for hit in answer.results] == ["memories/a.md"]
        assert any("answered from the local index" in text for text in answer.notices), told
        assert told in Store.open(store.root).index.status()["shared"]
    config = Config(values={"index.engine": "milvus", "index.uri": ""})
    with pytest.raises(SharedDown):
        target_of(config)
    assert target_of(Config()) is None
