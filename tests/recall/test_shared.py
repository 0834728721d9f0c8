"""The shared index as recall sees it, without an engine: its filter language, and what happens when it cannot be had."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from datetime import date, datetime
from typing import Any

import pytest

from mdmem.clock import UTC
from mdmem.config import Config, user_file
from mdmem.errors import Refused
from mdmem.index import milvus
from mdmem.index.milvus import (
    PIECE,
    SharedDown,
    Target,
    dimension,
    key_of,
    mark_of,
    piece_of,
    squeeze,
    stretch,
    tag_key,
    target_of,
    weights,
)
from mdmem.index.milvus_rows import _fitted
from mdmem.index.score import Corpus, Settings
from mdmem.index.segment import Row, frequencies, memory
from mdmem.memory.sharing import push_store
from mdmem.recall import shared
from mdmem.recall.query import Filters, Query
from mdmem.recall.recall import recall
from mdmem.recall.shared import NOTHING, _in_any_year, expression
from mdmem.recall.when import Period
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


@pytest.mark.parametrize("uri", ["nonsense", "127.0.0.1:19530", "shared.db", "./a/shared.db", "/tmp", "/tmp/shared"])
def test_what_is_neither_an_address_nor_the_whole_path_of_a_file_is_named(uri: str) -> None:
    """`127.0.0.1:19530 does not exist`, it said; and a relative path was another file in every folder."""
    config = Config(values={"index.engine": "milvus", "index.uri": uri})
    with pytest.raises(SharedDown, match="neither a server's address") as error:
        target_of(config)
    assert uri in str(error.value)
    for fine in ("http://host:19530", "tcp://host", "/srv/shared.db", "~/shared.db"):
        assert target_of(Config(values={"index.engine": "milvus", "index.uri": fine})) is not None


def test_days_and_places_in_the_engines_language() -> None:
    def of(**filters: tuple[str, ...]) -> str:
        return expression(Filters(**filters), None, ["r"], NOW)  # type: ignore[arg-type]

    key = tag_key('a" or b')
    assert f'array_contains_all(tags, ["{key}"])' in of(tags=('a" or b',)) and len(key) == 12
    assert '(path == "a%_" or (path >= "a%_/" and path < "a%_0"))' in of(paths=("/a%_/",))
    assert of(paths=()).count(NOTHING) == 1 and of(tags=()).count(NOTHING) == 1
    assert f'(repo == "{key_of("example.org/x")}" and (path == "b" or' in of(paths=("example.org/x: b",))
    assert '(status in ["open"] or (status == "" and kind in ["task"]))' in of(statuses=("open",))
    assert 'expires > "2026-11-30T00:00:00Z"' in of() and "expires" not in of(statuses=("done",))
    day = Period(date(2024, 5, 4), date(2024, 5, 4), any_year=True)
    month = Period(date(2024, 5, 1), date(2024, 5, 31), any_year=True)
    assert _in_any_year(day) == '(created like "____-05-04%")' and _in_any_year(month) == '(created like "____-05-%")'


def test_a_row_that_is_too_long_for_the_engine_keeps_its_beginnings() -> None:
    """A summary of a megabyte made the engine refuse the row, and the push with it, each time anew."""
    rng = random.Random(1)

    def noise(count: int) -> str:
        return "".join(chr(rng.randint(0x4E00, 0x9FA0)) for _ in range(count))

    columns = {"id": "mem-1", "path": "a/b.md", "title": "T", "summary": noise(400_000), "size": 3, "fields": noise(90_000)}
    note = [
        columns,
        [noise(300) for _ in range(2_000)],
        [[noise(300), 1]] * 9,
        [["rel", noise(99), noise(99), "x", "f", 1]] * 99,
    ]
    for content in (
        {"repo": "r", "heading": noise(400), "text": "walrus " + noise(60_000), "raw": noise(90_000), "note": note},
        {"repo": "r", "heading": "", "text": "walrus " + noise(99_000), "raw": noise(9)},
    ):
        data = _fitted(content)
        kept = stretch(data)
        assert len(data) <= PIECE and kept["cut"] and kept["raw"] is None and kept["text"].startswith("walrus ")
        if "note" in content:
            assert kept["note"][0] | {"summary": ""} == columns | {"summary": "", "fields": "{}"}
            assert kept["note"][0]["summary"] and len(kept["note"]) == 4 and kept["note"][2][0][1] == 1
    short = {"repo": "r", "text": "walrus", "raw": "walrus"}
    assert stretch(_fitted(short)) == short


def test_what_the_shared_index_does_not_know_is_answered_here_and_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    (store.root / "memories").mkdir(exist_ok=True)
    (store.root / "memories" / "a.md").write_text("A walrus was seen.\n")
    monkeypatch.setenv("MDMEM_INDEX_ENGINE", "milvus")
    monkeypatch.setenv("MDMEM_INDEX_URI", "http://127.0.0.1:9")
    answer = recall(Store.open(store.root), Query("wal*", mode="keyword", query_syntax=True))
    assert [hit.path for hit in answer.results] == ["memories/a.md"]
    assert [text for text in answer.notices if "--query-syntax" in text and "local index alone" in text]


def test_p8_scopes_that_an_agent_may_not_read_are_neither_asked_for_nor_counted(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How often a word stands in notes that nobody here may read would show in the scores of those that one may."""
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text('[agents.tester]\nscopes = ["shared", "project:*"]\n')
    made = make_store()
    store = Store.open(made.root, cwd=made.root, options={"agent": "tester", "device": "laptop"})
    counted = {"windows": 3}
    held = {"model": "", "scopes": {"shared": counted, "user:ann": counted, "project:x": counted, "agent:other": counted}}
    seen: list[tuple[str, dict[str, Any]]] = []

    class Asked(Exception):
        pass

    def view(engine: object, condition: str, scopes: dict[str, Any], pool: int) -> None:
        seen.append((condition, scopes))
        raise Asked

    monkeypatch.setattr(shared, "connected", lambda store, target: nullcontext())
    monkeypatch.setattr(shared, "states_of", lambda *args: {"host/repo": held})
    monkeypatch.setattr(shared, "SharedView", view)
    with pytest.raises(Asked):
        shared.ask(store, Query("word", mode="keyword"), None, Target("http://127.0.0.1:9", "c"), True, set(), [])
    condition, scopes = seen[0]
    assert sorted(scopes["host/repo"]) == ["project:x", "shared"]
    assert "shared" in condition and "user:ann" not in condition
