"""The graph stream: named entities, what joins, what lifts; and that it does nothing while it is off."""

from __future__ import annotations

from collections.abc import Callable

from mdmem.recall.graph_stream import named
from mdmem.recall.query import Query
from mdmem.recall.recall import recall
from mdmem.store import Store


def fill(store: Store) -> None:
    files = {
        "entities/project/apollo.md": "id: project-apollo\ntitle: Apollo\naliases: [The Lander]\n---\nA project.",
        "entities/system/db.md": "id: system-db\ntitle: Orders DB\npart_of: project-apollo\n---\nPostgres 16 behind a proxy.",
        "memories/far.md": "id: mem-far\ntitle: Lunch\n---\nWho eats where, a project of its own.",
        "memories/port.md": "id: mem-port\ntitle: Port\nrelates_to: system-db\n---\nThe proxy listens on 8443.",
    }
    for path, text in files.items():
        target = store.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"---\n{text}\n")
    store.index.refresh()


def titles(store: Store, text: str) -> list[str]:
    return [hit.title for hit in recall(store, Query(text, mode="keyword")).results]


def test_a_question_names_entities_by_title_alias_and_id(store: Store) -> None:
    fill(store)
    catalog = store.index.catalog

    def found(text: str, wanted: set[int] | None = None) -> list[str]:
        rows = {row["rowid"]: row["title"] for row in catalog.rows("SELECT rowid, title FROM notes")}
        return [rows[note] for note in named(catalog, text, wanted)]

    assert found("What is Apollo's state?") == ["Apollo"]
    assert found("who runs THE LANDER, and the orders db?") == ["Apollo", "Orders DB"]
    assert found("project-apollo") == ["Apollo"]
    assert found("the port and lunch") == []
    assert found("Apollo", set()) == []


def test_a_chinese_name_is_found_inside_its_sentence(store: Store) -> None:
    for name, lines in {
        "gateway": "title: 支付网关\naliases: [结算服务, Apollo 网关]",
        "pay": "title: 支付",
        "wang": "title: 王伟",
        "one": "title: 网",
        "apollo": "title: Apollo",
    }.items():
        target = store.root / f"entities/system/{name}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"---\nid: system-{name}\n{lines}\n---\nText.\n")
    store.index.refresh()
    rows = {row["rowid"]: row["id"].removeprefix("system-") for row in store.index.catalog.rows("SELECT rowid, id FROM notes")}
    number = {name: rowid for rowid, name in rows.items()}

    def found(text: str, wanted: set[int] | None = None) -> list[str]:
        return [rows[note] for note in named(store.index.catalog, text, wanted)]

    assert found("请问支付网关的负责人是谁？") == ["gateway"]  # the longest name alone, not 支付 inside it
    assert found("支付网关和支付有什么区别") == ["gateway", "pay"]
    assert found("王伟负责结算服务吗") == ["gateway", "wang"]
    assert found("Apollo 网关现在如何") == ["gateway"]  # not Apollo, which is a part of it
    assert found("请问Apollo的进展") == ["apollo"]  # a border between scripts is one between words
    assert found("请问Apollox的进展") == found("上网很慢") == []  # no part of a word, no single character
    # What may not be read takes no place from what may.
    assert found("请问支付网关的负责人是谁？", {number["pay"]}) == ["pay"]


def test_what_belongs_to_a_named_entity_joins(make_store: Callable[..., Store]) -> None:
    plain = {"recall.synonyms": "off"}  # a DB is a database: words alone would find it
    off, on = make_store("off", **{"recall.graph": "off"}, **plain), make_store("on", **plain)
    fill(off)
    fill(on)
    assert "Orders DB" not in titles(off, "which database has the lander")
    assert "Orders DB" in titles(on, "which database has the lander")
    # A question that names nothing is answered as before, but for related hits that lift each other.
    assert set(titles(on, "proxy")) == set(titles(off, "proxy"))
    explained = recall(on, Query("proxy", mode="keyword", explain=True)).results[0]
    assert dict(explained.steps)["graph"] == 0.3


def test_no_way_leads_over_a_hidden_scope(make_store: Callable[..., Store]) -> None:
    store = make_store("on", **{"recall.graph": "on"})
    fill(store)
    file = store.root / "entities/system/db.md"
    file.write_text(file.read_text().replace("title: Orders DB", "title: Orders DB\nscope: agent:other"))
    store.config.user["agents"] = {"tester": {"scopes": ["shared"]}}
    assert titles(store, "which database has the lander") and "Orders DB" not in titles(store, "which database has the lander")


def test_a_question_is_parted_where_scripts_meet() -> None:
    from mdmem.recall.graph_stream import _parted

    assert _parted("谁管理api网关") == "谁管理 api 网关"
    assert _parted("テスト・a_b 1月") == "テスト・ a_b 1 月"
    assert _parted("who owns it") == "who owns it" and _parted("") == ""
