"""A note of a commit as the shared index keeps it: the engine's rows, one a window. Knows no engine and no git."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mdmem.index.flush import text_rows
from mdmem.index.milvus import PATH, PIECE, SCALARS, SCRIPTS, TAGS, key_of, key_of_row, squeeze, tag_key, weights
from mdmem.index.score import Settings
from mdmem.index.segment import frequencies

if TYPE_CHECKING:
    from mdmem.index.asof import View

_COLUMNS = (
    "id, kind, type, category, title, summary, scope, agent, device, session, status, priority, tier, pinned, importance, "
    "initiative, due, expires, valid_from, valid_until, fact_key, created, updated, sha, state, body_line, path, size, fields"
)
_LEVELS = ("overview", "summary")  # of a note's own fields, those that a context block may show in the place of a passage


def rows_of(
    view: View, repo: str, wanted: dict[str, tuple[str, int, int]], averages: Sequence[float], stored: Any, dims: int
) -> tuple[list[dict[str, Any]], int]:
    """Return the engine's rows of some notes, and how many of them have no vector."""
    names = {rowid: note for note, (_, _, rowid) in wanted.items()}
    ids = json.dumps(list(names))
    inside = "IN (SELECT value FROM json_each(?))"
    notes = {
        row["rowid"]: row for row in view.catalog.rows(f"SELECT rowid, {_COLUMNS} FROM notes WHERE rowid {inside}", (ids,))
    }
    windows = {w["rowid"]: w for w in view.catalog.rows(f"SELECT * FROM windows WHERE note {inside}", (ids,))}
    tags: dict[int, list[str]] = {}
    for tag in view.catalog.rows(f"SELECT note, tag FROM tags WHERE note {inside}", (ids,)):
        tags.setdefault(tag["note"], []).append(tag["tag"])
    keys: dict[int, list[list[Any]]] = {}
    for name in view.catalog.rows(f"SELECT note, key, how FROM names WHERE note {inside}", (ids,)):
        keys.setdefault(name["note"], []).append([name["key"], name["how"]])
    places = stored.rows_of([w["hash"] for w in windows.values()]).tolist() if stored is not None else [-1] * len(windows)
    place_of = dict(zip(windows, places))
    near = [place for place in places if place >= 0]
    vectors = dict(zip(near, stored.get(near).tolist())) if near else {}
    texts = {row["rowid"]: text for row, text in zip(notes.values(), view.texts(row["path"] for row in notes.values()))}
    sizes = Counter(window["note"] for window in windows.values())
    edges: dict[int, list[list[Any]]] = {}
    for edge in view.catalog.rows(f"SELECT src, rel, target, key, last, origin, line FROM edges WHERE src {inside}", (ids,)):
        edges.setdefault(edge["src"], []).append([*edge][1:])
    settings = Settings()
    out, missing = [], 0
    for row in view.catalog.read(lambda connection: text_rows(connection, names)):
        window, note = windows[row.window], notes[row.note]
        place = place_of[row.window]
        missing += place < 0
        content: dict[str, Any] = {
            "repo": repo,
            "heading": window["heading"],
            "text": window["text"],
            "lines": [window["start_line"], window["end_line"]],
            "hash": window["hash"],
            "wide": window["wide"],
            "raw": _slice(texts[row.note], window["ord"], sizes[row.note]),
        }
        if window["ord"] == 0:
            columns = {column: note[column] for column in note.keys() if column != "rowid"}  # noqa: SIM118 - SQLite
            said = json.loads(note["fields"] or "{}")
            columns["fields"] = json.dumps({name: said[name] for name in _LEVELS if isinstance(said.get(name), str)})
            lists = (tags, keys, edges)
            content["note"] = [columns, *(found.get(row.note, []) for found in lists)]
        key = names[row.note]
        lengths = [len(terms) for terms in row.fields]
        values: dict[str, Any] = {scalar: str(note[scalar] or "")[:250] for scalar in SCALARS}
        out.append(
            {
                "pk": key_of_row(key_of(repo), key, window["ord"], wanted[key][0]),
                "repo": key_of(repo),
                "note": key,
                "place": key_of(note["path"]),
                "mark": wanted[key][0],
                **values,
                "scope": values["scope"] or "shared",
                "row": _fitted(content),
                "path": note["path"][:PATH],
                "tags": [tag_key(tag) for tag in tags.get(row.note, [])[:TAGS]],
                "script": SCRIPTS[window["wide"]] if place >= 0 else "",
                "ord": window["ord"],
                "size": sizes[row.note],
                "words": weights(frequencies(row), lengths, averages, settings),
                "meaning": vectors[place] if place >= 0 else [0.0] * dims,
            }
        )
    return out, missing


def _fitted(content: dict[str, Any]) -> str:
    """Return the content of a row as text that the engine takes; of what is too long, the beginnings, marked as `cut`."""
    data = squeeze(content)
    if len(data) <= PIECE:
        return data
    # The text of the note goes first: who wants all of it is told to clone.
    cut = {**content, "raw": None, "cut": True}
    length = 20_000
    while len(data := squeeze(cut)) > PIECE:
        cut["text"], cut["heading"] = content["text"][:length], content["heading"][:length]
        if "note" in content:
            columns, *lists = content["note"]
            short = {name: value[: length // 10] if isinstance(value, str) else value for name, value in columns.items()}
            # A path is what the note goes by, and half of what its fields say is no JSON.
            short |= {"path": columns["path"], "fields": "{}"}
            cut["note"] = [short, *([_short(one, length // 40) for one in some[: length // 400]] for some in lists)]
        length //= 2
    return data


def _short(value: Any, length: int) -> Any:
    """Return a tag, a name or an edge with its texts cut."""
    if isinstance(value, list):
        return [_short(one, length) for one in value]
    return value[:length] if isinstance(value, str) else value


def _slice(text: str, number: int, count: int) -> str:
    """Return one of `count` parts of a text, which are the text when put together in order."""
    length = -(-len(text) // count)
    return text[number * length : (number + 1) * length]
