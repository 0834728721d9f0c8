"""Bringing one repository's commit into the shared index: what lacks is written, what the commit does not hold is deleted.

What is pushed is a commit, never the work tree, and a commit only after those before it: an older one changes nothing, one of
another history needs `everything`. A note's windows carry the mark of its content; new ones are written before old ones go, and
the list of terms and the commit come last, so that a killed push is finished by the next one. The caller holds the lease.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mdmem.errors import Locked, RefusedState
from mdmem.index.flush import text_rows
from mdmem.index.milvus import (
    BUCKETS,
    KEYS,
    PIECE,
    PLAIN_DIMS,
    SCALARS,
    SMALL,
    Engine,
    key_of,
    key_of_row,
    mark_of,
    piece_of,
    quoted,
    squeeze,
    stretch,
)
from mdmem.index.milvus import weights as sparse
from mdmem.index.score import Settings
from mdmem.index.segment import frequencies

if TYPE_CHECKING:
    from mdmem.index.asof import View
    from mdmem.index.changes import Tell
    from mdmem.index.index import Index

NOTES = 200  # notes written between two looks at the lease
STATE = "commit"
_COLUMNS = (
    "id, kind, type, category, title, summary, scope, agent, device, session, status, priority, tier, pinned, importance, "
    "initiative, due, expires, valid_from, valid_until, fact_key, created, updated, sha, state, body_line, path, size, fields"
)
_LEVELS = ("overview", "summary")  # of a note's own fields, those that a context block may show in the place of a passage


class Overtaken(Locked):
    """Another writer has pushed meanwhile."""

    code = "shared_index_overtaken"


@dataclass
class Pushed:
    """What a push did. `rev`: the commit that the engine now holds; `older`: it held a later one already."""

    repo: str
    rev: str
    written: int = 0
    deleted: int = 0
    unchanged: int = 0
    without_vectors: int = 0
    older: bool = False
    seconds: float = 0.0
    notices: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(self.__dict__)

    def line(self) -> str:
        """Return one line for a person."""
        if self.older:
            return f"{self.repo}: the shared index holds a later commit already"
        parts = [f"{self.written} notes written", f"{self.deleted} deleted", f"{self.unchanged} unchanged"]
        if self.without_vectors:
            parts.append(f"{self.without_vectors} passages without a vector")
        return f"{self.repo}: {', '.join(parts)}, commit {self.rev[:10]}"


def state_of(engine: Engine, repo: str) -> dict[str, Any]:
    """Return what was recorded of a repository last; {} when it was never pushed to the end."""
    rows = engine.few(engine.state, f"repo == {json.dumps(key_of(repo))} and pk == {json.dumps(_pk(repo, STATE))}", ["blob"])
    found: dict[str, Any] = stretch(rows[0]["blob"]) if rows else {}
    return found


def push(
    index: Index,
    engine: Engine,
    repo: str,
    rev: str,
    descends: Callable[[str], bool | None],
    everything: bool = False,
    keep_lease: Callable[[], None] = lambda: None,
    tell: Tell | None = None,
    url: str = "",
) -> Pushed:
    """Make the engine hold exactly the notes of a commit of this repository, and say what was done.

    `descends(earlier)`: whether the commit comes after (or is) an earlier one; False: it comes before; None: neither, or
    unknown. `keep_lease` is called between batches. `url`: where the repository may be cloned from. Raises SharedDown,
    RefusedState, LeaseHeld, Overtaken."""
    began = time.monotonic()
    view = index.as_of(rev)
    dense = index.dense
    stored = dense.vectors()
    model = stored.fingerprint if stored is not None else ""
    dims = engine.create(stored.dims if stored is not None else PLAIN_DIMS)
    if stored is not None and stored.dims != dims:
        raise RefusedState(
            "the shared index was made with a model of another length",
            why=f"{dims} numbers a vector, not {stored.dims}",
            hint="use the same embedding settings, or another index.collection",
            code="shared_index_model",
        )
    known = state_of(engine, repo)
    out = Pushed(repo, rev)
    if known and not everything:
        after = descends(known["rev"])
        if after is False:
            out.older, out.rev = True, known["rev"]
            return out
        if after is None:
            raise RefusedState(
                f"the shared index holds commit {known['rev'][:10]} of {repo}, which is not before {rev[:10]} in this clone",
                why="deleting what only the other history has would need its word",
                hint="mdmem sync, then mdmem index push; after a rewritten history: mdmem index push --all",
                code="shared_index_order",
            )
    wanted = _wanted(view, model)
    there = _there(engine, repo)
    fits = {note for note, (mark, count, _) in wanted.items() if there.get(note) == Counter({mark: count})}
    lacking = [note for note in wanted if everything or note not in fits]
    gone = [note for note in there if note not in wanted]
    out.unchanged = len(wanted) - len(lacking)
    averages = view.corpus().averages
    for start in range(0, len(lacking), NOTES):
        keep_lease()
        part = lacking[start : start + NOTES]
        rows, missing = _rows(view, repo, {note: wanted[note] for note in part}, averages, stored, dims)
        engine.put(engine.windows, rows)
        out.without_vectors += missing
        for some in _pieces([note for note in part if note in there]):
            marks = [wanted[note][0] for note in some]
            engine.delete(engine.windows, f"{_repo(repo)} and note in {quoted(some)} and mark not in {quoted(marks)}")
        out.written += len(part)
        if tell is not None:
            tell(out.written, len(lacking), "notes pushed")
    keep_lease()
    _alone(engine, repo, known)
    for some in _pieces(gone):
        engine.delete(engine.windows, f"{_repo(repo)} and note in {quoted(some)}")
    out.deleted = len(gone)
    if lacking or gone or known.get("rev") != rev:
        state = {"rev": rev, "dims": dims, "model": model, "notes": len(wanted), "url": url, "turn": secrets.token_hex(8)}
        _record(engine, view, repo, state, known, keep_lease)
        engine.flush()
    out.seconds = time.monotonic() - began
    return out


def _pk(repo: str, name: str) -> str:
    return f"{name}:{key_of(repo)}" if name == STATE else f"{key_of(repo)}:{name}"


def _repo(repo: str) -> str:
    return f"repo == {json.dumps(key_of(repo))}"


def _pieces(notes: Sequence[str]) -> Iterable[Sequence[str]]:
    return (notes[start : start + KEYS] for start in range(0, len(notes), KEYS))


def _wanted(view: View, model: str) -> dict[str, tuple[str, int, int]]:
    """Return {note: (mark, windows, rowid)} of the commit; a note goes by its id, a second one of the same id by its path."""
    found: dict[str, tuple[str, int, int]] = {}
    sql = (
        "SELECT n.rowid, n.id, n.path, n.sha, (SELECT count(*) FROM windows w WHERE w.note = n.rowid) AS size FROM notes n "
        "WHERE n.folder = '' AND coalesce(n.scope, '') != 'local' ORDER BY n.path"
    )
    for row in view.catalog.rows(sql):
        name = key_of(f"id {row['id']}") if row["id"] else ""
        if not name or name in found:
            name = key_of(f"path {row['path']}")
        if row["size"]:
            found[name] = (mark_of(row["sha"], row["path"], model), row["size"], row["rowid"])
    return found


def _there(engine: Engine, repo: str) -> dict[str, Counter[str]]:
    """Return {note: {mark: windows}} that the engine holds of the repository."""
    found: dict[str, Counter[str]] = {}
    for row in engine.rows(engine.windows, _repo(repo), ["note", "mark"]):
        found.setdefault(row["note"], Counter())[row["mark"]] += 1
    return found


def _rows(
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
            "near": place >= 0,
            "raw": _slice(texts[row.note], window["ord"], sizes[row.note]),
        }
        if window["ord"] == 0:
            columns = {column: note[column] for column in note.keys() if column != "rowid"}  # noqa: SIM118 - SQLite
            said = json.loads(note["fields"] or "{}")
            columns["fields"] = json.dumps({name: said[name] for name in _LEVELS if isinstance(said.get(name), str)})
            content["note"] = [columns, tags.get(row.note, []), keys.get(row.note, [])]
        data = squeeze(content)
        if len(data) > PIECE:
            # The text of the note goes first: who wants all of it is told to clone.
            if window["ord"] == 0:
                content["note"] = [{**columns, "fields": "{}"}, tags.get(row.note, [])[:50], keys.get(row.note, [])[:50]]
            data = squeeze({**content, "text": window["text"][:20_000], "raw": None})
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
                "row": data,
                "ord": window["ord"],
                "size": sizes[row.note],
                "words": sparse(frequencies(row), lengths, averages, settings),
                "meaning": vectors[place] if place >= 0 else [0.0] * dims,
            }
        )
    return out, missing


def _slice(text: str, number: int, count: int) -> str:
    """Return one of `count` parts of a text, which are the text when put together in order."""
    length = -(-len(text) // count)
    return text[number * length : (number + 1) * length]


def _alone(engine: Engine, repo: str, known: dict[str, Any]) -> None:
    """Raise LeaseHeld when another writer has finished since this one began: where the remote takes no leases, they hold on
    one machine only. Its next push puts right what both wrote."""
    now = state_of(engine, repo)
    if (now.get("rev"), now.get("turn")) != (known.get("rev"), known.get("turn")):
        hint = "run it again; a remote that takes leases, or a CI job that runs alone, prevents it"
        raise Overtaken("another writer has pushed this repository meanwhile", hint=hint)


def _record(
    engine: Engine, view: View, repo: str, state: dict[str, Any], known: dict[str, Any], keep_lease: Callable[[], None]
) -> None:
    """Write the lists of terms, a scope each, then the commit; what is left of earlier lists goes last.

    Lists are named by the turn that wrote them and the commit names its turn, so that a writer that was overtaken or killed
    changes no list in use. Those of the turn before stay: a reader may have read its commit a moment ago."""
    turn = state["turn"]
    scopes: dict[str, dict[str, Any]] = {}
    pieces: dict[str, dict[str, list[int]]] = {}
    for scope, (counted, terms) in _counted(view).items():
        number = 1 if len(terms) <= SMALL else BUCKETS
        scopes[scope] = {**counted, "pieces": number, "turn": turn}
        for term, entry in terms.items():
            pieces.setdefault(f"{turn}:{piece_of(term, scope, number)}", {})[term] = entry
    keep_lease()
    engine.put(engine.state, [_state_row(repo, name, piece) for name, piece in pieces.items()])
    keep_lease()
    _alone(engine, repo, known)
    engine.put(engine.state, [_state_row(repo, STATE, {**state, "repo": repo, "scopes": scopes})])
    keys = {_pk(repo, name) for name in (*pieces, STATE)}
    before = _pk(repo, f"{known.get('turn', '')}:")
    there = [row["pk"] for row in engine.rows(engine.state, _repo(repo), ["pk"])]
    old = [pk for pk in there if pk not in keys and not pk.startswith(before)]
    for some in _pieces(old):
        engine.delete(engine.state, f"{_repo(repo)} and pk in {quoted(some)}")


def _counted(view: View) -> dict[str, tuple[dict[str, Any], dict[str, list[int]]]]:
    """Return {scope: (windows, notes and lengths in all, {term: [windows, notes]})} of a commit."""
    scope_of = {row["rowid"]: row["scope"] or "shared" for row in view.catalog.rows("SELECT rowid, scope FROM notes")}
    corpus = view.corpus()
    fields = len(corpus.averages)
    found: dict[str, tuple[dict[str, Any], dict[str, list[int]]]] = {
        scope: ({"windows": 0, "notes": 0, "lengths": [0] * fields}, {}) for scope in sorted(set(scope_of.values()))
    }
    for scope in scope_of.values():
        found[scope][0]["notes"] += 1
    for part in corpus.parts:
        owners, dead = part.segment.notes, part.dead
        scopes = [scope_of.get(note, "shared") for note in owners]
        for doc, scope in enumerate(scopes):
            if doc not in dead:
                counted = found.setdefault(scope, ({"windows": 0, "notes": 0, "lengths": [0] * fields}, {}))[0]
                counted["windows"] += 1
                for number, column in enumerate(part.segment.lengths):
                    counted["lengths"][number] += column[doc]
        for term, held in part.segment.every():
            docs: dict[str, list[int]] = {}
            if len(found) == 1:
                docs[next(iter(found))] = [doc for doc in held.docs if doc not in dead] if dead else list(held.docs)
            else:
                for doc in held.docs:
                    if doc not in dead:
                        docs.setdefault(scopes[doc], []).append(doc)
            for scope, mine in docs.items():
                if mine:
                    entry = found[scope][1].setdefault(term, [0, 0])
                    entry[0] += len(mine)
                    # A note's windows stand in one segment, so that none is counted twice.
                    entry[1] += len({owners[doc] for doc in mine})
    return found


def _state_row(repo: str, name: str, value: Any) -> dict[str, Any]:
    blob = squeeze(value)
    while len(blob) > PIECE and name != STATE:
        # A repository of millions of terms: the rarest are left out, and count as standing where they are seen.
        value = dict(sorted(value.items(), key=lambda entry: -entry[1][0])[: len(value) * 3 // 4])
        blob = squeeze(value)
    return {"pk": _pk(repo, name), "repo": key_of(repo), "blob": blob, "meaning": [1.0] * PLAIN_DIMS}
