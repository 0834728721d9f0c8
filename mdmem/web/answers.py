"""What the page asks for: one function an address, from checked parameters to JSON data. Knows no HTTP.

Everything comes from the services that the commands call, so the page sees what this agent may read and nothing else.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mdmem.errors import NotFound, UsageError

if TYPE_CHECKING:
    from mdmem.store import Store

Given = Mapping[str, list[str]]

DRAWN = 800  # notes in the picture of the graph: what a canvas moves smoothly
LISTED = 200
LONGEST = 400_000  # characters of a note's body, or lines of a diff times their length
KEEPS = ("1", "2", "both", "deleted")

FIGURES = {
    "kinds": "SELECT kind AS name, count(*) AS count FROM notes GROUP BY 1 ORDER BY 2 DESC, 1",
    "types": "SELECT coalesce(nullif(type, ''), '-') AS name, count(*) AS count FROM notes WHERE kind = 'memory' "
    "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20",
    "tiers": "SELECT coalesce(nullif(tier, ''), '-') AS name, count(*) AS count FROM notes WHERE kind = 'memory' "
    "GROUP BY 1 ORDER BY 2 DESC, 1",
    "scopes": "SELECT coalesce(nullif(scope, ''), 'shared') AS name, count(*) AS count FROM notes GROUP BY 1 "
    "ORDER BY 2 DESC, 1 LIMIT 20",
    "tags": "SELECT tag AS name, count(*) AS count FROM tags GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20",
    "relations": "SELECT rel AS name, count(*) AS count FROM edges GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 40",
    "growth": "SELECT substr(created, 1, 10) AS day, count(*) AS count FROM notes WHERE created != '' GROUP BY 1 ORDER BY 1",
}


def _one(given: Given, name: str, default: str = "") -> str:
    return given.get(name, [default])[0]


def _number(given: Given, name: str, default: int, most: int) -> int:
    text = _one(given, name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 7 and 1 <= int(text) <= most):
        raise UsageError(f"{name} is a number from 1 to {most}")
    return int(text)


def _reference(given: Given) -> str:
    found = _one(given, "note")
    if not found:
        raise UsageError("no note is named", why="the parameter `note` is missing")
    return found


def overview(store: Store, given: Given) -> dict[str, Any]:
    """Return {status, figures}: the figures of `mdmem status`, counts by field, and new notes by day."""
    from mdmem.memory.overview import overview as status
    from mdmem.recall.sql import queries

    figures = {name: answer.as_dicts() for name, answer in zip(FIGURES, queries(store, list(FIGURES.values())))}
    return {"status": status(store), "figures": figures}


def sessions(store: Store, given: Given) -> dict[str, Any]:
    """Return {sessions}: the latest ones."""
    from mdmem.team.sessions import as_row
    from mdmem.team.sessions import sessions as listed

    return {"sessions": [as_row(row) for row in listed(store, limit=_number(given, "limit", 12, LISTED))]}


def recent(store: Store, given: Given) -> dict[str, Any]:
    """Return {notes}: the notes that changed last."""
    from mdmem.recall.listing import as_row, select
    from mdmem.recall.query import Filters

    return {"notes": [as_row(row) for row in select(store, Filters(), limit=_number(given, "limit", 20, LISTED))]}


def search(store: Store, given: Given) -> dict[str, Any]:
    """Return the answer of `mdmem recall --explain --json` from this store."""
    from mdmem.federation import ask
    from mdmem.recall.query import Query, filters_from

    chosen = {plural: given[name] for name, plural in (("kind", "kinds"), ("type", "types")) if given.get(name)}
    query = Query(
        _one(given, "q")[:2000],
        limit=_number(given, "limit", 10, 50),
        mode=_one(given, "mode", "hybrid"),
        filters=filters_from(chosen),
        explain=True,
    ).checked()
    return ask(store, query, only=True).as_dict()


def note(store: Store, given: Given) -> dict[str, Any]:
    """Return {note, fields, body, related} of one note. Raises NotFound, Ambiguous."""
    from mdmem.graph.nodes import brief
    from mdmem.graph.related import related
    from mdmem.memory.change import read_any
    from mdmem.recall.select import note_by

    reference = _reference(given)
    row = note_by(store, reference)
    found = read_any(store, row["path"])
    body = found.body
    return {
        "note": brief(row),
        "fields": found.doc.fields,
        "body": body[:LONGEST],
        "cut": len(body) > LONGEST,
        "related": related(store, row["path"], limit=60).found,
    }


def timeline(store: Store, given: Given) -> dict[str, Any]:
    """Return {note, events}: what happened to a note, newest first. Raises NotFound, Ambiguous."""
    from mdmem.graph.timeline import timeline as events

    return events(store, _reference(given), limit=_number(given, "limit", 100, 1000))


def diff(store: Store, given: Given) -> dict[str, Any]:
    """Return {rev, lines}: what one commit changed in a note, as a unified diff. A version of a scope that this agent may
    not read counts as absent. Raises NotFound, Ambiguous."""
    from mdmem.notes.note import load
    from mdmem.recall.select import agent_scopes, may_read, note_by, showable_revs
    from mdmem.repo.git import BlobReader
    from mdmem.repo.history import log_of

    row = note_by(store, _reference(given))
    rev = _one(given, "rev")
    log = log_of(store.git, store.to_git(row["path"])) if not row["folder"] else []
    place = next((number for number, change in enumerate(log) if change.rev == rev), None)
    if place is None:
        raise NotFound("this commit did not change this note", hint="mdmem history NOTE")
    patterns = agent_scopes(store)
    texts: list[list[str]] = [[], []]
    with BlobReader(store.git) as blobs:
        for side, change in enumerate((*log[place + 1 : place + 2], log[place])[::-1]):
            data = blobs.read(f"{change.rev}:{change.path}")
            if data is not None and may_read(load(change.path, data).scope, patterns):
                texts[1 - side] = data.decode("utf-8", "replace")[:LONGEST].splitlines()
    subject = log[place].subject if showable_revs(store, [rev]) else ""
    lines = list(difflib.unified_diff(texts[0], texts[1], "before", "after", lineterm="", n=3))
    return {"rev": rev, "date": log[place].date, "subject": subject, "lines": lines[2:5000]}


def graph(store: Store, given: Given) -> dict[str, Any]:
    """Return {nodes, edges, total, edges_total, cut}: the graph, at most DRAWN notes, the most linked first."""
    from collections import Counter

    from mdmem.graph.export import graph as whole
    from mdmem.graph.nodes import THINGS

    kinds = given.get("kind") or [*THINGS, "session"]
    found = whole(
        store,
        kinds=kinds,
        types=given.get("type") or (),
        rel=given.get("rel") or (),
        around=_one(given, "around"),
        depth=_number(given, "depth", 2, 4),
    )
    nodes, edges = found["nodes"], found["edges"]
    most = _number(given, "limit", DRAWN, DRAWN)
    total, edges_total = len(nodes), len(edges)
    if total > most:
        degree = Counter(end for edge in edges for end in (edge["from"], edge["to"]))
        nodes = sorted(nodes, key=lambda node: (-degree[node["name"]], node["path"]))[:most]
        kept = {node["name"] for node in nodes}
        edges = [edge for edge in edges if edge["from"] in kept and edge["to"] in kept]
    return {"nodes": nodes, "edges": edges, "total": total, "edges_total": edges_total, "cut": total > most}


def blockers(store: Store, given: Given) -> dict[str, Any]:
    """Return {blockers, total}: what waits, for what, since when; all of it, however fresh."""
    from mdmem.graph.blockers import blockers as stuck

    found = stuck(store, stale_days=0)
    return {"blockers": found[:LISTED], "total": len(found)}


def conflicts(store: Store, given: Given) -> dict[str, Any]:
    """Return {notes, writable}: each note with conflicts, both versions of each."""
    from mdmem.memory.conflicts import as_data, conflicted

    return {"notes": [as_data(found, open_) for found, open_ in conflicted(store)], "writable": store.trusted}


def devices(store: Store, given: Given) -> dict[str, Any]:
    """Return {agents, git}: who was seen where and when, and how this clone stands to its remote."""
    from mdmem.memory.overview import overview as status
    from mdmem.team.agents import agents

    return {"agents": agents(store)[:LISTED], "git": status(store)["git"]}


def resolve(store: Store, asked: Any) -> dict[str, Any]:
    """Settle the conflicts of a note: {note, keep, field}. The only answer that writes. Raises UsageError, NotFound,
    Refused for a store that is not trusted."""
    from mdmem.memory import conflicts as settling

    names = ("note", "keep", "field")
    if not isinstance(asked, dict) or any(not isinstance(asked.get(name, ""), str) for name in names) or not asked.get("note"):
        raise UsageError("send {note, keep, field} as JSON")
    if set(asked) - set(names) or asked.get("keep") not in KEEPS:
        raise UsageError(f"keep is one of {', '.join(KEEPS)}")
    return settling.resolve(store.writable(), asked["note"], asked["keep"], asked.get("field", "")).as_dict()


READS: dict[str, Callable[[Store, Given], dict[str, Any]]] = {
    "overview": overview,
    "sessions": sessions,
    "recent": recent,
    "search": search,
    "note": note,
    "timeline": timeline,
    "diff": diff,
    "graph": graph,
    "blockers": blockers,
    "conflicts": conflicts,
    "devices": devices,
}
