"""SQL over the notes: what it answers, what it refuses, and that it shows no scope that the agent may not read."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mdmem.errors import MdmemError, UsageError
from mdmem.memory.remember import Memory, remember
from mdmem.recall.sql import NotAllowed, as_json_lines, query, with_note
from mdmem.store import Store
from mdmem.team import messages, tasks
from tests.patience import within


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


DOCS = Path(__file__).resolve().parents[2] / "docs" / "query.md"


def test_each_table_and_column_is_documented(filled: Store) -> None:
    from mdmem.recall.sql import MADE, TABLES

    rows = re.findall(r"(?m)^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", DOCS.read_text("utf-8"))
    said = {name: re.findall(r"`(\w+)`", columns) for name, columns in rows}
    for name, columns in said.items():
        if columns and columns[0] == "notes" and name != "agents":
            said[name] = [*said["notes"], *columns[1:]]
    actual = {name: query(filled, f"SELECT * FROM {name} LIMIT 1").columns for name in (*TABLES, *MADE)}
    assert said == actual


def test_the_statements_of_its_page_are_answered(filled: Store) -> None:
    statements = re.findall(r'(?m)^mdmem query "(.+?)"(?: --format \w+)?$', DOCS.read_text("utf-8"))
    assert len(statements) == 6
    for statement in statements:
        query(filled, statement)


def test_usage_says_how_notes_were_rated(filled: Store) -> None:
    from mdmem.memory.feedback import rate

    rate(filled, "Deploy day", "useful")
    rate(filled, "Deploy day", "useful")
    joined = "SELECT n.title, u.weight, u.ratings, u.last_rated FROM usage u JOIN notes n USING (note)"
    assert query(filled, joined).rows == [("Deploy day", 0.63875, 2, "2026-11-30T09:00:00Z")]


ESCAPES = (
    "WITH x AS (SELECT * FROM main.notes) SELECT * FROM x",
    "SELECT (SELECT path FROM main.notes LIMIT 1)",
    "SELECT * FROM (SELECT * FROM notes UNION SELECT * FROM main.notes)",
    "SELECT * FROM notes WHERE EXISTS (SELECT 1 FROM main.tags)",
    "SELECT * FROM allowed",
    "SELECT * FROM temp.allowed",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_table_info('notes')",
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM sqlite_temp_master",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM generate_series(1, 5), main.notes",
    "EXPLAIN SELECT * FROM main.notes",
    "PRAGMA writable_schema = 1",
    "PRAGMA hard_heap_limit = 0",
    "ATTACH ':memory:' AS x",
    "ATTACH DATABASE 'file:/etc/passwd?mode=ro' AS x",
    "DETACH main",
    "SELECT load_extension('/tmp/x.so', 'init')",
    "SELECT \"load_extension\"('x')",
    "SELECT fts3_tokenizer('simple', x'00')",
    "SELECT printf('%.*c', 900000000, 'x')",
    "SELECT format('%.*c', 900000000, 'x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT edit('x')",
    "REINDEX",
    "ANALYZE",
    "SAVEPOINT x",
    "COMMIT",
    "INSERT INTO temp.usage VALUES (1, 'x', 1, 1, 'x')",
    "CREATE TEMP TRIGGER t AFTER INSERT ON tags BEGIN SELECT 1; END",
    "CREATE TEMP VIEW v AS SELECT * FROM main.notes",
    "SELECT 1; SELECT 2",
    "WITH c AS (SELECT 1) INSERT INTO tags SELECT 1, 'x'",
    "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    "SELECT '" + "x" * 30_000 + "'",
    "SELECT \x00 1",
    "SELECT 1 FROM notes, \ud800",
)


@pytest.mark.parametrize("statement", ESCAPES, ids=lambda text: ascii(text)[1:50])
def test_nothing_else_can_be_reached(filled: Store, statement: str) -> None:
    before = {path: path.read_bytes() for path in filled.root.rglob("*.md")}
    with pytest.raises(UsageError):
        query(filled, statement)
    assert {path: path.read_bytes() for path in filled.root.rglob("*.md")} == before
    assert query(filled, "SELECT count(*) FROM usage").rows == [(0,)]


ALL_NUMBERS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) "


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT randomblob(900000000) FROM notes",
        "SELECT replace(hex(zeroblob(20000000)), '0', 'xxxxxxxx')",
        ALL_NUMBERS + "SELECT group_concat(n) FROM c",
        ALL_NUMBERS + "SELECT count(*) FROM c, c, c",
        ALL_NUMBERS + "SELECT n FROM c ORDER BY n",
        "SELECT max(length(a.text || b.text)) FROM passages a, passages b, passages c, notes d, notes e, notes f, notes g, "
        "notes h, notes i, notes j, notes k, notes l, notes m",
    ],
)
def test_a_bomb_ends_in_time_with_an_error(filled: Store, statement: str) -> None:
    begin = time.monotonic()
    with pytest.raises(MdmemError) as caught:
        query(filled, statement, seconds=0.3)
    assert caught.value.code in ("timeout", "usage", "too_large")
    within(begin, 20)


def test_a_huge_answer_is_cut_and_says_so(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem.recall import sql

    monkeypatch.setattr(sql, "MAX_BYTES", 1_000_000)
    answer = query(filled, ALL_NUMBERS + "SELECT zeroblob(100000) FROM c")
    assert answer.cut and len(answer.rows) == 10
    monkeypatch.setattr(sql, "MAX_ROWS", 50)
    answer = query(filled, ALL_NUMBERS + "SELECT n FROM c")
    assert answer.cut and len(answer.rows) == 50


def test_memory_is_bounded() -> None:
    """A sort of blobs, in a process of its own: the bound is the process's."""
    code = (
        "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('PRAGMA temp_store = MEMORY')\n"
        "c.execute('PRAGMA hard_heap_limit = 50000000')\n"
        "try:\n"
        "    c.execute('WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 200) "
        "SELECT randomblob(1000000) AS b FROM c ORDER BY b').fetchall()\n"
        "except MemoryError:\n    print('bounded')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "bounded", done.stderr


def test_a_join_must_say_which_note_is_scored(filled: Store) -> None:
    with pytest.raises(UsageError, match="which note") as caught:
        query(filled, "SELECT bm25('noon') FROM notes n JOIN tags t ON n.note = t.note")
    assert "n.note" in caught.value.hint
    assert query(filled, "SELECT bm25('', note), bm25('   ', note) FROM notes LIMIT 1").rows == [(0.0, 0.0)]


def test_what_is_wrong_with_no_note_is_hidden_from_who_reads_some_scopes(filled: Store) -> None:
    (filled.root / "memories" / "bad.md").write_bytes(b"---\na: 1\na: 2\n---\n")
    (filled.root / "memories" / "folder.md").mkdir()
    everything = query(filled, "SELECT path FROM problems").rows
    filled.config.user["agents"] = {"tester": {"scopes": ["shared"]}}
    some = query(filled, "SELECT path FROM problems").rows
    assert ("memories/folder.md",) in everything and ("memories/folder.md",) not in some


def test_answers_of_any_kind_can_be_printed(filled: Store) -> None:
    answer = query(filled, "SELECT x'00ff' AS a, 1e999 AS a, 1.5 AS a, NULL AS b")
    assert as_json_lines(answer) == '{"a": "00ff", "a_2": null, "a_3": 1.5, "b": null}'


def test_a_statement_without_an_end_is_refused_and_so_is_a_very_long_one(filled: Store) -> None:
    with pytest.raises(UsageError, match="cannot be run"):
        query(filled, "SELECT '")
    with pytest.raises(UsageError, match="longer than"):
        query(filled, "SELECT 1 " + " " * 2_000_000)


def test_similar_scores_by_meaning(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.index.refresh(embed_budget_s=None)
    rows = query(filled, "SELECT title, similar('which port does the proxy use') AS s FROM notes ORDER BY s DESC").rows
    assert rows[0][0] == "Proxy port" and 0 < rows[0][1] <= 1.0
