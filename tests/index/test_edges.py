"""Edges as people write them: found, resolved, kept right while files come and go, walked quickly."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from notes_at_hand import write

from mdmem.index.index import Index
from mdmem.index.links import edges_of
from mdmem.notes.note import load
from mdmem.store import Store


def edges(index: Index) -> set[tuple[str, str, str | None, str]]:
    """Return (source, rel, destination path, state) of every edge."""
    index.refresh(embed_budget_s=0.0)
    rows = index.catalog.rows(
        "SELECT s.path AS src, e.rel, d.path AS dst, e.state FROM edges e JOIN notes s ON s.rowid = e.src "
        "LEFT JOIN notes d ON d.rowid = e.dst"
    )
    return {(row["src"], row["rel"], row["dst"], row["state"]) for row in rows}


TARGET = "entities/project/target.md"


@pytest.mark.parametrize(
    "field",
    [
        "blocked_by: project-target",
        "blocked_by: entities/project/target.md",
        "blocked_by: entities/project/target",
        "blocked_by: project/target",
        "blocked_by: target",
        "blocked_by: target.md",
        "blocked_by: The Target",
        "blocked_by: the target",
        "blocked_by: goal",
        'blocked_by: "[[target]]"',
        "blocked_by: [[target]]",
        'blocked_by: "[[The Target|label]]"',
        'blocked_by: "[[target#part]]"',
        "blocked_by: [project-target]",
        "blocked_by:\n  - project-target",
        'blocked_by:\n  - "[[target]]"',
        "metadata:\n  blocked_by: project-target",
    ],
)
def test_every_way_to_name_a_target(root: Path, opened: Callable[[], Store], field: str) -> None:
    write(root, TARGET, "x", id="project-target", title="The Target", aliases="[goal]")
    (root / "a.md").write_text(f"---\ntitle: A\n{field}\n---\n\nbody\n")
    assert edges(opened().index) == {("a.md", "blocked_by", TARGET, "ok")}


@pytest.mark.parametrize(
    ("body", "targets"),
    [
        ("see [[target]] and [[Other|x]]", ["target", "Other"]),
        ("see [text](../b/c.md) and [more](c.md#part)", ["b/c.md", "a/c.md"]),
        ("[site](https://example.org/x.md) [mail](mailto:a@b.md) ![pic](x.png) ![[pic.png]]", []),
        ("![[embedded]]", ["embedded"]),
        ("`[[code]]` and ``[[more]] code``", []),
        ("```\n[[code]]\n```\n[[after]]", ["after"]),
        ("[enc](a%20b.md)", ["a/a b.md"]),
        ("[[]] [[ ]] [[a\nb]] [](x) [x]()", []),
        ("- [x] done [[t]]", ["t"]),
        ("[24:33.098 - 24:41.260] and - Added [[X]]", ["X"]),
    ],
)
def test_links_in_the_body(body: str, targets: list[str]) -> None:
    note = load("a/n.md", (body + "\n").encode())
    assert [edge.target for edge in edges_of(note, "a/n.md")] == targets


def test_link_patterns_are_linear_on_hostile_text() -> None:
    for unit in ("[[", "[", "](", "[a](", "[[a|", "`", "![[a#", "[a](b", "](<"):
        start = time.process_time()
        edges_of(load("a.md", (unit * (60_000 // len(unit))).encode()), "a.md")
        assert time.process_time() - start < 3, unit


def test_dangling_ambiguous_and_self_edges_are_kept_as_problems(root: Path, opened: Callable[[], Store]) -> None:
    write(root, "a/twin.md", "x")
    write(root, "b/twin.md", "x y")
    write(root, "c/one.md", "x", relates_to="twin")
    write(root, "c/two.md", "x", relates_to="nowhere")
    write(root, "c/three.md", "x", relates_to="three")
    write(root, "a/near.md", "x", relates_to="twin")
    index = opened().index
    assert edges(index) == {
        ("c/one.md", "relates_to", None, "ambiguous"),
        ("c/two.md", "relates_to", None, "dangling"),
        ("c/three.md", "relates_to", None, "self"),
        ("a/near.md", "relates_to", "a/twin.md", "ok"),
    }
    problems = {(row["path"], row["code"]) for row in index.catalog.edge_problems()}
    assert problems == {("c/one.md", "ambiguous"), ("c/two.md", "dangling"), ("c/three.md", "self")}


def test_n22_a_path_link_resolves_to_that_path_first(root: Path, opened: Callable[[], Store]) -> None:
    write(root, "a/x.md", "same")
    write(root, "b/a/x.md", "same")
    write(root, "c.md", "[[a/x]] and [[b/a/x]]")
    index = opened().index
    assert edges(index) == {("c.md", "links_to", "a/x.md", "ok"), ("c.md", "links_to", "b/a/x.md", "ok")}
    write(root, "a/x.md", "edited one")
    write(root, "b/a/x.md", "edited two")
    assert index.refresh(embed_budget_s=0.0).changed == 2
    (root / "a/x.md").unlink()
    assert ("c.md", "links_to", "b/a/x.md", "ok") in edges(index)


def test_edges_follow_files_that_come_move_and_go(root: Path, opened: Callable[[], Store]) -> None:
    index = opened().index
    write(root, "a.md", "x", blocked_by="project-later")
    assert edges(index) == {("a.md", "blocked_by", None, "dangling")}
    write(root, "entities/project/later.md", "x", id="project-later", title="Later")
    assert edges(index) == {("a.md", "blocked_by", "entities/project/later.md", "ok")}
    (root / "entities/project/later.md").rename(root / "moved.md")
    assert edges(index) == {("a.md", "blocked_by", "moved.md", "ok")}
    write(root, "moved.md", "x", id="project-other", title="Later")
    assert edges(index) == {("a.md", "blocked_by", None, "dangling")}
    write(root, "moved.md", "x", id="project-later", title="Later")
    (root / "moved.md").unlink()
    assert edges(index) == {("a.md", "blocked_by", None, "dangling")}
    assert index.catalog.value("SELECT count(*) FROM notes") == 1


def test_folders_outside_are_read_in_place_with_their_kind_and_types(
    root: Path, opened: Callable[[], Store], tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    write(docs, "adr/0001.md", "we choose the walrus", title="Choice")
    write(docs, "guide/start.md", "see [choice](../adr/0001.md)", title="Start", kind="memory")
    write(root, "a.md", "x", depends_on="Choice")
    store = opened()
    store.config.user["folders"] = [{"path": str(docs), "kind": "entity", "type": "page", "types": {"adr": "decision"}}]
    index = store.index
    found = edges(index)
    assert ("a.md", "depends_on", f"{docs}/adr/0001.md", "ok") in found
    assert (f"{docs}/guide/start.md", "links_to", f"{docs}/adr/0001.md", "ok") in found
    rows = {row["title"]: (row["folder"], row["kind"], row["type"]) for row in index.catalog.rows("SELECT * FROM notes")}
    assert rows["Choice"] == (str(docs), "entity", "decision") and rows["Start"] == (str(docs), "memory", "page")
    assert index.read_bytes(index.note_by("Choice")) == (docs / "adr/0001.md").read_bytes()
    del store.config.user["folders"]
    again = opened().index
    assert again.refresh(embed_budget_s=0.0).removed == 2


def chain(root: Path, pairs: list[tuple[int, int]], count: int) -> None:
    targets: dict[int, list[str]] = {}
    for src, dst in pairs:
        targets.setdefault(src, []).append(f"e-{dst}")
    for number in range(count):
        write(
            root,
            f"e/{number}.md",
            "x",
            id=f"e-{number}",
            title=f"E{number}",
            blocked_by=f"[{', '.join(targets.get(number, []))}]",
        )


def test_walking_ends_in_cycles_and_gives_the_way(root: Path, opened: Callable[[], Store]) -> None:
    chain(root, [(0, 1), (1, 2), (2, 0), (2, 3), (4, 0)], 6)
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    by = {row["rowid"]: row["id"] for row in index.catalog.rows("SELECT rowid, id FROM notes")}
    start = index.note_by("e-0")["rowid"]

    def reached(**options: object) -> dict[str, int]:
        return {by[found.note]: found.depth for found in index.neighbours(start, **options)}  # type: ignore[arg-type]

    assert reached(depth=1) == {"e-1": 1, "e-2": 1, "e-4": 1}
    assert reached(depth=9) == {"e-1": 1, "e-2": 1, "e-4": 1, "e-3": 2}
    assert reached(depth=9, direction="out") == {"e-1": 1, "e-2": 2, "e-3": 3}
    assert reached(depth=9, direction="in") == {"e-2": 1, "e-4": 1, "e-1": 2}
    assert reached(depth=2, rel=["depends_on"]) == {}
    assert len(reached(depth=9, limit=2)) == 2
    far = next(found for found in index.neighbours(start, 9, direction="out") if by[found.note] == "e-3")
    assert [(by[step.src], by[step.dst], step.forward) for step in far.steps] == [
        ("e-0", "e-1", True), ("e-1", "e-2", True), ("e-2", "e-3", True),
    ]  # fmt: skip
    assert index.path_between(start, index.note_by("e-5")["rowid"]) is None
    assert len(index.path_between(start, index.note_by("e-3")["rowid"]) or ()) == 2


def test_depth_two_over_many_edges_is_quick(root: Path, opened: Callable[[], Store]) -> None:
    """10,000 entities and 50,000 edges, written straight into the catalog: reading files is not what is measured."""
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    rng = random.Random(1)
    with index.catalog.writing() as connection:
        connection.executemany("INSERT INTO notes (rowid, path) VALUES (?, ?)", [(n, f"x{n}.md") for n in range(1, 10_001)])
        values = [
            (rng.randint(1, 10_000), "blocked_by", "t", f"k{n}", f"k{n}", rng.randint(1, 10_000), "field", None, "ok")
            for n in range(50_000)
        ]
        connection.executemany("INSERT INTO edges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    from mdmem.index.edges import neighbours

    times = []
    for number in range(1, 40):
        start = time.process_time()
        found = neighbours(index.catalog, [number * 200], 2)
        times.append(time.process_time() - start)
        assert found
    # The goal is 20 ms at the median; the bound here is loose, since tests share the machine.
    assert sorted(times)[len(times) // 2] < 0.1
