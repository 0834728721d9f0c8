"""The page: its files, and the whole of it with its data as one file that works without a server."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import secrets
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.errors import MdmemError, UsageError, WriteFailed
from mdmem.web import answers

if TYPE_CHECKING:
    import sqlite3

    from mdmem.store import Store

SCRIPTS = ("words.js", "dom.js", "source.js", "charts.js", "graph.js", "notes.js", "app.js")
FILES = {"/": "index.html", "/style.css": "style.css", "/icon.svg": "icon.svg", **{f"/{name}": name for name in SCRIPTS}}
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
MARK = "<!-- mdmem dashboard -->"
MAX_NOTES = 2000  # with their text, in the exported file; the others are only counted
MAX_TEXT = 8_000_000  # characters of all texts together
MAX_TIMELINES = 150


def static(name: str) -> tuple[bytes, str]:
    """Return (bytes, media type) of one of our files."""
    return files("mdmem.web").joinpath("static", name).read_bytes(), _KINDS[name.rpartition(".")[2]]


def _text(name: str) -> str:
    return static(name)[0].decode("utf-8")


def snapshot(store: Store) -> dict[str, Any]:
    """Return what the exported page shows. Notes that are this user's alone (`scope: local`) and those of other folders
    are left out, names and counts too, as is where the store lies: the file is made to be given away."""
    from mdmem.recall.query import Filters
    from mdmem.recall.select import rows

    out = {
        name: answers.READS[name](store, {}) for name in ("overview", "sessions", "graph", "blockers", "conflicts", "devices")
    }
    every = [row for row in rows(store, Filters(retired=True), "ORDER BY n.updated DESC, n.path") if row["folder"] == ""]
    known = {row["path"] for row in every} | {row["id"] for row in every if row["id"]}
    found = [row for row in rows(store, Filters(), "ORDER BY n.updated DESC, n.path") if row["folder"] == ""]
    notes: dict[str, Any] = {}
    size = 0
    for row in found[:MAX_NOTES]:
        try:
            entry = answers.note(store, {"note": [row["path"]]})
        except MdmemError:
            continue
        size += len(entry["body"])
        if size > MAX_TEXT:
            break
        entry["related"] = [other for other in entry["related"] if other["path"] in known]
        notes[row["path"]] = entry
    timelines = {}
    for path in list(notes)[:MAX_TIMELINES]:
        past = answers.timeline(store, {"note": [path], "limit": ["20"]})
        timelines[path] = {**past, "events": [event for event in past["events"] if event.get("from", path) in known]}
    out["overview"]["figures"] = _figures(store, every)
    needs = [text.replace(str(store.root), store.root.name) for text in out["overview"]["status"]["needs"]]
    out["overview"]["status"] = {"store": store.root.name, "needs": needs}
    out["sessions"]["sessions"] = [one for one in out["sessions"]["sessions"] if one["path"] in known]
    out["recent"] = {"notes": [entry["note"] for entry in list(notes.values())[:20]]}
    out["graph"] = _public(out["graph"], known)
    out["blockers"] = _waiting(out["blockers"], known)
    return {
        "made": stamp(store.clock.now()),
        "left_out": len(found) - len(notes),
        "notes": notes,
        "timelines": timelines,
        **out,
    }


def _figures(store: Store, every: list[sqlite3.Row]) -> dict[str, Any]:
    """Return the figures of the overview over these notes alone."""
    kept = {row["rowid"] for row in every}
    memories = [row for row in every if row["kind"] == "memory"]
    tags = (row["tag"] for row in store.index.catalog.rows("SELECT note, tag FROM tags") if row["note"] in kept)
    rels = (row["rel"] for row in store.index.catalog.rows("SELECT src, rel FROM edges") if row["src"] in kept)
    days = Counter((row["created"] or "")[:10] for row in every)
    counted = {
        "kinds": Counter(row["kind"] for row in every),
        "types": Counter(row["type"] or "-" for row in memories),
        "tiers": Counter(row["tier"] or "-" for row in memories),
        "scopes": Counter(row["scope"] or "shared" for row in every),
        "tags": Counter(tags),
        "relations": Counter(rels),
    }
    out = {name: [{"name": word, "count": n} for word, n in found.most_common(20)] for name, found in counted.items()}
    return {**out, "growth": [{"day": day, "count": days[day]} for day in sorted(days) if day]}


def _public(graph: dict[str, Any], known: set[str]) -> dict[str, Any]:
    nodes = [node for node in graph["nodes"] if node["path"] in known]
    names = {node["name"] for node in nodes}
    edges = [edge for edge in graph["edges"] if edge["from"] in names and edge["to"] in names]
    return {**graph, "nodes": nodes, "edges": edges, "total": graph["total"] - len(graph["nodes"]) + len(nodes)}


def _waiting(data: dict[str, Any], known: set[str]) -> dict[str, Any]:
    kept = [one for one in data["blockers"] if one["path"] in known]
    for one in kept:
        for side in ("by", "blocks"):
            one[side] = [other for other in one[side] if not other.get("id") or other["id"] in known]
    return {"blockers": kept, "total": data["total"] - len(data["blockers"]) + len(kept)}


def data_block(data: Any) -> str:
    """Return JSON that can stand inside a script element: no character of it can end the element or open a comment."""
    text = json.dumps(data, default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def single_file(data: dict[str, Any]) -> str:
    """Return the page with data, style and scripts in it; its own policy names them by hash, so nothing else can run."""
    style, script = _text("style.css"), "\n".join(_text(name) for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"
    )
    page = _text("index.html")
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>'
    page = re.sub(r'<link rel="(?:icon|stylesheet)"[^>]*>\n?', "", page)
    page = re.sub(r"<script [^>]*></script>\n?", "", page)
    page = page.replace("<!doctype html>", f"<!doctype html>\n{MARK}", 1).replace("</head>", f"{head}\n</head>", 1)
    block = f'<script type="application/json" id="data">{data_block(data)}</script>\n<script>{script}</script>'
    before, _, after = page.rpartition("</body>")
    return f"{before}{block}\n</body>{after}"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def export(store: Store, target: Path) -> dict[str, Any]:
    """Write the page of a store to a file; returns {path, bytes, notes, left_out}. Replaces an earlier export only.

    Raises UsageError for another file that is there, WriteFailed."""
    if target.is_dir():
        raise UsageError(f"{target} is a folder", hint="name a file: --export memory.html")
    if target.exists() or target.is_symlink():
        try:
            with target.open("rb") as file:
                ours = MARK.encode() in file.read(200)
        except OSError:
            ours = False
        if not ours:
            raise UsageError(f"{target} exists and is no export of ours", hint="name another file")
    data = snapshot(store)
    text = single_file(data).encode("utf-8")
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
        os.replace(fresh, target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise WriteFailed(f"{target} could not be written", why=error.strerror or str(error)) from None
    return {"path": str(target), "bytes": len(text), "notes": len(data["notes"]), "left_out": data["left_out"]}
