"""SQL over the notes: what it answers, what it refuses, and that it shows no scope that the agent may not read."""

from __future__ import annotations

import pytest

from mdmem.errors import MdmemError, UsageError
from mdmem.memory.remember import Memory, remember
from mdmem.recall.sql import NotAllowed, query, with_note
from mdmem.store import Store
from mdmem.team import messages, tasks


@pytest.fixture
def filled(store: Store) -> Store:
    remember(store, Memory("decision", "We deploy on Thursdays before noon.", tags=["deploy"], title="Deploy day"))
    remember(store, Memory("fact", "The proxy listens on port 8443.", title="Proxy port"))
    remember(store, Memory("fact", "Salaries are paid monthly.", title="Pay", scope="agent:boss"))
    tasks.add(store, "Upgrade", priority="high")
    messages.send(store, ["all"], "Hello")
    return store


def test_counts_filters_and_full_text_in_one_statement(filled: Store) -> None:
    answer = query(
        filled,
        "SELECT title, bm25('deploy Thursdays') AS score FROM notes WHERE bm25('deploy Thursdays') > 0 AND kind = 'memory' "
        "ORDER BY score * decay(updated) DESC",
    )
    assert answer.columns == ["title", "score"] and answer.rows[0][0] == "Deploy day" and answer.rows[0][1] > 0
    joined = "SELECT n.title FROM notes n JOIN tags t USING (note) WHERE bm25('noon', n.note) > 0 AND t.tag = 'deploy'"
    assert query(filled, joined).rows == [("Deploy day",)]
    assert query(filled, "SELECT title, priority FROM tasks").rows == [("Upgrade", "high")]
    assert query(filled, "SELECT count(*) FROM messages").rows == [(1,)]
    history = query(filled, "SELECT subject, agent FROM history WHERE path LIKE 'memories/deploy%'")
    assert history.rows == [("remember: Deploy day", "tester")]
    inside = "SELECT value FROM notes, json_each(notes.fields, '$.tags') WHERE title = 'Deploy day'"
    assert query(filled, inside).rows == [("deploy",)]
    counting = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT * FROM c"
    assert query(filled, counting).rows[-1] == (3,)


REFUSED = (
    "DELETE FROM notes",
    "INSERT INTO tags VALUES (1, 'x')",
    "UPDATE main.notes SET title = 'x'",
    "DROP TABLE main.notes",
    "SELECT * FROM main.notes",
    "SELECT count(*) FROM main.notes",
    "SELECT count(*) FROM main.tags",
    "SELECT * FROM windows",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM temp.sqlite_master",
    "PRAGMA table_info(notes)",
    "ATTACH DATABASE '/tmp/x.db' AS x",
    "SELECT load_extension('x')",
    "SELECT writefile('/tmp/x', 'y')",
    "VACUUM INTO '/tmp/x.db'",
    "SELECT 1; DELETE FROM notes",
    "CREATE TABLE x (a)",
    "BEGIN",
    "nonsense",
    "",
    "SELECT '",
)


def test_nothing_but_reading_the_views(filled: Store) -> None:
    before = query(filled, "SELECT count(*) FROM notes").rows
    for statement in REFUSED:
        with pytest.raises(UsageError) as caught:
            query(filled, statement)
        assert caught.value.exit_code == 2, statement
    assert query(filled, "SELECT count(*) FROM notes").rows == before


def test_it_ends_in_time(filled: Store) -> None:
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
    with pytest.raises(MdmemError, match="did not end") as caught:
        query(filled, endless, seconds=0.2)
    assert caught.value.code == "timeout"


def test_a_scope_that_may_not_be_read_is_not_there(filled: Store) -> None:
    filled.config.user["agents"] = {"tester": {"scopes": ["shared", "project:*"]}}
    titles = {row[0] for row in query(filled, "SELECT title FROM notes").rows}
    assert "Deploy day" in titles and "Pay" not in titles
    for statement in (
        "SELECT text FROM passages WHERE text LIKE '%Salaries%'",
        "SELECT bm25('Salaries') FROM notes WHERE bm25('Salaries') > 0",
        "SELECT subject FROM history WHERE subject LIKE '%Pay%'",
    ):
        assert query(filled, statement).rows == []
    with pytest.raises(NotAllowed):
        query(filled, "SELECT title FROM main.notes")


def test_one_argument_calls_get_their_note() -> None:
    assert with_note("SELECT bm25('a') FROM notes") == "SELECT bm25('a', note) FROM notes"
    mixed = "SELECT BM25 ( lower('a,b') ), similar('x', n.note)"
    assert with_note(mixed) == "SELECT BM25 ( lower('a,b') , note), similar('x', n.note)"
    for text in ("SELECT 'bm25(1)'", "-- bm25('x')\nSELECT 1", "SELECT (((", ")))"):
        assert with_note(text) == text
