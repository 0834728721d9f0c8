"""Related, path, export, search, health and reconcile on notes as people write them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from graph.conftest import commit, git, put
from mdmem.cli.main import run
from mdmem.errors import NotFound
from mdmem.graph.export import dot, graph, mermaid
from mdmem.graph.health import health
from mdmem.graph.reconcile import reconcile
from mdmem.graph.related import path, related
from mdmem.graph.search import search
from mdmem.store import Store


def team(root: Path) -> None:
    put(root, "entities/project/apollo.md", "See [[Hosting]].", id="project-apollo", title="Apollo", aliases="[The Lander]")
    put(root, "entities/decision/hosting.md", id="decision-hosting", title="Hosting", status="open")
    put(root, "entities/task/deploy.md", title="Deploy it", blocked_by="[[The Lander]]", part_of="apollo")
    put(root, "entities/person/ada.md", "Knows [the deploy](../task/deploy.md).", title="Ada", relates_to="project-apollo")
    put(root, "entities/person/bob.md", title="Bob")


def test_related_with_the_way_that_led_there(store: Store) -> None:
    team(store.root)
    found = related(store, "Apollo")
    assert {(row["title"], row["via"][0]["rel"], row["via"][0]["forward"]) for row in found.found} == {
        ("Hosting", "links_to", True),
        ("Ada", "relates_to", False),
        ("Deploy it", "blocked_by", False),
    }
    far = related(store, "decision-hosting", depth=2, limit=0)
    assert [(row["title"], row["depth"]) for row in far.found] == [("Apollo", 1), ("Deploy it", 2), ("Ada", 2)]
    assert [(s["rel"], s["forward"]) for s in far.found[1]["via"]] == [("links_to", False), ("blocked_by", False)]
    assert [row["title"] for row in related(store, "Apollo", rel=["blocked_by"]).found] == ["Deploy it"]
    assert [row["title"] for row in related(store, "Apollo", direction="out").found] == ["Hosting"]
    short = related(store, "Apollo", limit=1)
    assert len(short.found) == 1 and short.cut
    with pytest.raises(NotFound):
        related(store, "nobody")


def test_path(store: Store) -> None:
    team(store.root)
    found = path(store, "Ada", "Hosting")
    assert found["found"] and found["length"] == 2
    assert [row["title"] for row in found["notes"]] == ["Ada", "Apollo", "Hosting"]
    assert not path(store, "Ada", "Bob")["found"]
    assert path(store, "Ada", "Ada")["length"] == 0


def test_export(store: Store) -> None:
    team(store.root)
    put(store.root, "entities/project/odd.md", title=r"'Say \"a\\b\" [x] #1 <b>'", part_of="apollo")
    data = graph(store)
    assert {row["title"] for row in data["nodes"]} >= {"Apollo", "Hosting", "Deploy it", "Ada"}
    assert "Bob" not in {row["title"] for row in data["nodes"]}
    assert "Bob" in {row["title"] for row in graph(store, isolated=True)["nodes"]}
    assert {(edge["from"], edge["rel"], edge["to"]) for edge in data["edges"]} >= {
        ("project-apollo", "links_to", "decision-hosting"),
        ("entities/task/deploy.md", "blocked_by", "project-apollo"),
    }
    picture = dot(data)
    assert '"entities/task/deploy.md" -> "project-apollo" [label="blocked_by"];' in picture
    assert r"\"a\\\\b\"" in picture or r"\\\"a" in picture
    drawn = mermaid(data)
    assert "-->|blocked_by|" in drawn and "<b>" not in drawn
    around = graph(store, around="Hosting", depth=1)
    assert {row["title"] for row in around["nodes"]} == {"Apollo", "Hosting"}
    json.dumps(data)


def test_search_finds_entities_alone(store: Store) -> None:
    team(store.root)
    put(store.root, "memories/m.md", title="Hosting is dear", id="mem-a")
    found = search(store, "hosting")
    assert next(row["title"] for row in found["results"]) == "Hosting"
    assert "memory" not in {row["kind"] for row in found["results"]}
    put(store.root, "entities/decision/hosting.md", title="Hosting", updated="2020-01-01T00:00:00Z")
    assert "Hosting" not in [row["title"] for row in search(store, "hosting")["results"]]
    assert "Hosting" in [row["title"] for row in search(store, "hosting", days=None)["results"]]


def test_health_names_rings_of_waiting(store: Store) -> None:
    team(store.root)
    assert health(store)["healthy"]
    put(store.root, "tasks/a.md", title="A", blocked_by="B")
    put(store.root, "tasks/b.md", title="B", depends_on="C")
    put(store.root, "tasks/c.md", title="C", blocked_by="[[A]]", relates_to="nothing at all")
    found = health(store)
    assert [sorted(ring) for ring in found["rings"]] == [["tasks/a.md", "tasks/b.md", "tasks/c.md"]]
    assert found["states"]["dangling"] == 1 and not found["healthy"]
    assert found["isolated"] == 1 and found["relations"]["blocked_by"] == 3


def test_reconcile_reports_and_touches_nothing(store: Store) -> None:
    team(store.root)
    put(store.root, "entities/project/gemini.md", "And [[Apolo]].", title="Gemini", part_of="Gemini")
    put(store.root, "entities/team/bob.md", title="Bob")
    put(store.root, "entities/project/x.md", title="X", relates_to="Bob")
    before = {file: file.read_bytes() for file in store.root.rglob("*.md")}
    found = reconcile(store)
    states = {(row["state"], row["target"]): row["candidates"] for row in found.edges}
    assert states[("dangling", "Apolo")][0] == "entities/project/apollo.md"
    assert states[("ambiguous", "Bob")] == ["entities/person/bob.md", "entities/team/bob.md"]
    assert ("self", "Gemini") in states
    assert {row["title"] for row in found.orphans} == {"Bob", "Gemini", "X"}
    assert {file: file.read_bytes() for file in store.root.rglob("*.md")} == before


def test_a_renamed_note_keeps_its_edges_or_gets_its_old_name_back(store: Store) -> None:
    root = store.root
    team(root)
    put(root, "memories/m.md", "See [[deploy]] and [it](../entities/task/deploy.md).", title="M", relates_to="Deploy it")
    commit(root, "2026-11-01T09:00:00 +0000", "all")
    assert related(store, "memories/m.md").found[0]["title"] == "Deploy it"
    git(root, "mv", "entities/task/deploy.md", "entities/task/launch.md")
    for committed in (False, True):
        if committed:
            commit(root, "2026-11-02T09:00:00 +0000", "renamed")
        report = reconcile(store)
        # By title the edge holds; by file name and path it dangles, and git knows why.
        assert [row["title"] for row in related(store, "memories/m.md").found] == ["Deploy it"]
        (renamed,) = report.renamed
        assert renamed["path"] == "entities/task/launch.md"
        assert renamed["called"] == ["deploy", "entities/task/deploy.md"]
        assert report.gone == []
    body = (root / "memories/m.md").read_bytes()
    fixed = reconcile(store, fix=True)
    assert fixed.fixed[0]["aliases"] == ["deploy", "entities/task/deploy.md"]
    assert reconcile(store).renamed == [] and (root / "memories/m.md").read_bytes() == body
    rels = {row["rel"] for row in reconcile(store).edges}
    assert not rels, rels


def test_an_id_that_moved_with_a_rename(store: Store) -> None:
    root = store.root
    text = "\n".join(f"line {n}" for n in range(20))
    put(root, "entities/project/apollo.md", text, id="project-apollo", title="Apollo")
    put(root, "tasks/t.md", id="task-t", title="T", part_of="project-apollo")
    commit(root, "2026-11-01T09:00:00 +0000", "all")
    git(root, "mv", "entities/project/apollo.md", "entities/project/artemis.md")
    put(root, "entities/project/artemis.md", text, id="project-artemis", title="Artemis")
    commit(root, "2026-11-02T09:00:00 +0000", "renamed")
    (renamed,) = reconcile(store).renamed
    assert renamed["called"] == ["project-apollo"]
    reconcile(store, fix=True)
    assert related(store, "task-t").found[0]["title"] == "Artemis"


def test_deletion_leaves_a_reported_edge_and_nothing_else(store: Store) -> None:
    root = store.root
    team(root)
    commit(root, "2026-11-01T09:00:00 +0000", "all")
    before = {(e["from"], e["rel"], e["to"]) for e in graph(store)["edges"]}
    (root / "entities/decision/hosting.md").unlink()
    report = reconcile(store)
    assert [(row["path"], row["target"], row["state"]) for row in report.edges] == [
        ("entities/project/apollo.md", "Hosting", "dangling")
    ]
    assert [row["id"] for row in report.gone] == ["decision-hosting"]
    after = {(e["from"], e["rel"], e["to"]) for e in graph(store)["edges"]}
    assert before - after == {("project-apollo", "links_to", "decision-hosting")} and after < before


def test_two_files_with_one_id(store: Store) -> None:
    put(store.root, "memories/a.md", id="mem-x", title="A")
    put(store.root, "memories/b.md", id="mem-x", title="B")
    assert reconcile(store).twins == [
        {"id": "mem-x", "paths": ["memories/a.md", "memories/b.md"], "do": "mdmem sync joins them"}
    ]


def test_a_thousand_entities_in_rings(store: Store) -> None:
    """Edges by id, path, file name, title, alias and wikilink, single, inline and block; every tenth closes a ring."""
    root, count = store.root, 1000
    forms = [
        lambda n: f"blocked_by: project-{n}",
        lambda n: f"depends_on: entities/project/number-{n}.md",
        lambda n: f"part_of: [number-{n}]",
        lambda n: f'relates_to:\n  - "[[Number {n}]]"',
        lambda n: f"relates_to: [[The {n}th]]",
        lambda n: f"blocks: ./entities/project/number-{n}",
    ]
    folder = root / "entities" / "project"
    folder.mkdir(parents=True)
    for n in range(count):
        # Rings of ten: 0 → 1 → … → 9 → 0; the last of each also points at the next ring.
        after = n - 9 if n % 10 == 9 else n + 1
        lines = [f"id: project-{n}", f"title: Number {n}", f"aliases: [The {n}th]", forms[n % len(forms)](after)]
        body = f"See [[number-{(n + 1) % count}]] next." if n % 10 == 9 else ""
        (folder / f"number-{n}.md").write_text("---\n" + "\n".join(lines) + f"\n---\n{body}\n")
    found = health(store)
    assert (found["entities"], found["edges"], found["states"]["ok"]) == (count, 1100, 1100)
    ring = related(store, "project-0", depth=1000, direction="out", limit=0)
    assert len(ring.found) == count - 1
    assert {row["depth"] for row in ring.found if row["id"] in {f"project-{n}" for n in range(1, 10)}} == set(range(1, 10))
    assert path(store, "Number 0", "Number 5")["length"] == 5
    assert path(store, "Number 3", "The 23th", depth=100)["found"]
    assert len(related(store, "number-3", depth=1).found) == 2


def test_reconcile_says_what_to_do(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """Each finding comes with the nearest names, or with what to do."""
    put(store.root, "entities/system/gateway.md", "See [[支付网]] and [runbook](docs/none.md).", title="支付网关")
    commit(store.root, "2026-11-28T12:00:00 +0000", "one")
    put(store.root, "memories/it's gone.md", "x", id="mem-gone", title="It's gone")
    commit(store.root, "2026-11-29T12:00:00 +0000", "two")
    (store.root / "memories/it's gone.md").unlink()
    assert run(["-C", str(store.root), "graph", "reconcile"]) == 0
    out = capsys.readouterr().out
    assert "mend the name, or write the note" in out
    line = next(line for line in out.splitlines() if "git checkout" in line)
    assert shlex.split(line.partition(",")[0]) == ["git", "checkout", "--", "memories/it's gone.md"]
