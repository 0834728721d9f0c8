"""The graph as a picture or as data: DOT, Mermaid, JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mdmem.graph.nodes import ENDED, THINGS, WAITING, brief, links, name_of, ready
from mdmem.recall.query import Filters
from mdmem.recall.select import note_by, rows

if TYPE_CHECKING:
    from mdmem.store import Store

FORMATS = ("dot", "mermaid", "json")


def graph(
    store: Store,
    *,
    kinds: Sequence[str] = THINGS,
    types: Sequence[str] = (),
    rel: Sequence[str] = (),
    around: str = "",
    depth: int = 2,
    isolated: bool = False,
) -> dict[str, Any]:
    """Return {nodes, edges} for the agent that asks: every node once, every edge that has both ends among them.

    `around`: only the notes within `depth` of this one. Notes without an edge are left out unless `isolated`.
    Raises NotFound, Ambiguous."""
    among = ready(store)
    found = rows(store, Filters(kinds=tuple(kinds) or None, types=tuple(types) or None, retired=True), "ORDER BY n.path")
    kept = {row["rowid"]: row for row in found}
    if around:
        start = note_by(store, around)["rowid"]
        near = {start, *(one.note for one in store.index.neighbours(start, depth, rel or None, among=among))}
        kept = {note: row for note, row in kept.items() if note in near}
    edges = [link for link in links(store, among, rel or None) if link.src in kept and link.dst in kept]
    if not isolated and not around:
        used = {link.src for link in edges} | {link.dst for link in edges}
        kept = {note: row for note, row in kept.items() if note in used}
    return {
        "nodes": [{**brief(row), "name": name_of(row)} for row in kept.values()],
        "edges": [
            {"from": name_of(kept[link.src]), "rel": link.rel, "to": name_of(kept[link.dst]), "origin": link.origin}
            for link in edges
            if link.dst is not None
        ],
    }


_SHAPES = {"task": "note", "memory": "ellipse"}


def dot(data: dict[str, Any]) -> str:
    """Return the graph in Graphviz's language."""
    lines = ["digraph mdmem {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    for node in data["nodes"]:
        label = _plain(node["title"]) + (f"\\n{_plain(node['status'])}" if node["status"] else "")
        more = f", shape={_SHAPES[node['kind']]}" if node["kind"] in _SHAPES else ""
        more += ", color=red" if node["status"] in WAITING else ", color=gray" if node["status"] in ENDED else ""
        lines.append(f'  "{_plain(node["name"])}" [label="{label}"{more}];')
    for edge in data["edges"]:
        lines.append(f'  "{_plain(edge["from"])}" -> "{_plain(edge["to"])}" [label="{_plain(edge["rel"])}"];')
    return "\n".join([*lines, "}"])


def _plain(text: str) -> str:
    """Return text for the inside of a quoted DOT string."""
    return " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')


def mermaid(data: dict[str, Any]) -> str:
    """Return the graph in Mermaid's language; nodes are numbered, because its names allow few characters."""
    names = {node["name"]: f"n{place}" for place, node in enumerate(data["nodes"])}
    lines = ["graph LR"]
    for node in data["nodes"]:
        status = f"<br/>{_escaped(node['status'])}" if node["status"] else ""
        lines.append(f'  {names[node["name"]]}["{_escaped(node["title"])}{status}"]')
    for edge in data["edges"]:
        lines.append(f"  {names[edge['from']]} -->|{_escaped(edge['rel'])}| {names[edge['to']]}")
    waiting = [names[node["name"]] for node in data["nodes"] if node["status"] in WAITING]
    if waiting:
        lines += ["  classDef waiting stroke:#c00,stroke-width:2px", f"  class {','.join(waiting)} waiting"]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Return text with Mermaid's own characters as entity codes."""
    return re.sub(r'[#"<>|\[\]{}()`;&]', lambda found: f"#{ord(found[0])};", " ".join(text.split()))
