"""Whoosh's query language over our own postings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from notes_at_hand import write

from mdmem.errors import UsageError
from mdmem.index.index import Index
from mdmem.store import Store

NOTES = {
    "a.md": ("PostgreSQL choice", "We deploy the database with node.js tools."),
    "b.md": ("Walrus", "The database is not deployed by the walrus team."),
    "c.md": ("Penguin", "Colour of the walrus: grey. 数据库部署流程"),
    "d.md": ("Deploy", "nothing else here"),
}


@pytest.fixture
def index(root: Path, opened: Callable[[], Store]) -> Index:
    for path, (title, body) in NOTES.items():
        write(root, path, body, title=title)
    found = opened().index
    found.refresh(embed_budget_s=0.0)
    return found


def paths(index: Index, query: str) -> set[str]:
    rows = {row["rowid"]: row["path"] for row in index.catalog.rows("SELECT rowid, path FROM notes")}
    return {rows[hit.note] for hit in index.syntax_hits(query).hits}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("database walrus", {"b.md"}),
        ("database OR penguin", {"a.md", "b.md", "c.md"}),
        ("database NOT walrus", {"a.md"}),
        ("title:deploy", {"d.md"}),
        ("title:walrus OR body:grey", {"b.md", "c.md"}),
        ('"the walrus"', {"b.md", "c.md"}),
        ('"walrus the"', set()),
        ('"database tools"~5', {"a.md"}),
        ("post*", {"a.md"}),
        ("w?lrus", {"b.md", "c.md"}),
        ("databse~1", {"a.md", "b.md"}),
        ("databse~1 penguin", set()),
        ("node.js", {"a.md"}),
        ("数据库", {"c.md"}),
        ('"数据库部署"', {"c.md"}),
        ("(database OR grey) AND walrus", {"b.md", "c.md"}),
        ("walrus^3 OR database", {"a.md", "b.md", "c.md"}),
        ("*", {"a.md", "b.md", "c.md", "d.md"}),
        ("absent", set()),
        ("http://x", set()),
    ],
)
def test_the_language_is_understood(index: Index, query: str, expected: set[str]) -> None:
    assert paths(index, query) == expected


def test_filters_and_evidence_are_those_of_the_literal_search(index: Index) -> None:
    one = index.note_by("b.md")["rowid"]
    hits = index.syntax_hits("walrus OR database", {one}, 5)
    assert [hit.note for hit in hits.hits] == [one]
    assert {hits.terms[number].text for number in hits.hits[0].matched} == {"walrus", "databas"}
    assert index.syntax_hits("walrus").hits[0].score == pytest.approx(index.text_hits("walrus").hits[0].score)


@pytest.mark.parametrize("query", ["((", '"', "AND", "NOT", "a:b:c:", "[a TO", "~", "^^", "title:", "'", "* * *", "\\"])
def test_odd_queries_give_an_answer_or_a_usage_error(index: Index, query: str) -> None:
    try:
        index.syntax_hits(query)
    except UsageError:
        pass


@pytest.mark.parametrize("query", ["AND", "*", "a:b", '"quoted', "(", "NOT walrus", "foo OR", "^", "~"])
def test_the_same_text_is_literal_without_the_switch(index: Index, query: str) -> None:
    assert isinstance(index.text_search(query), list)
