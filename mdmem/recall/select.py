"""Which notes may be found: the filters as one SQL condition over the catalog, and the scopes that an agent may read.

Every read path (recall, list, graph, context, MCP, export) goes through `rows` or `allowed`, so that a note of a scope that
the agent may not read is as if it did not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.errors import Locked, NotFound
from mdmem.recall.query import RETIRED, Filters

if TYPE_CHECKING:
    import sqlite3

    from mdmem.index.catalog import Catalog
    from mdmem.repo.history import Commit
    from mdmem.store import Store

_COLUMNS = {"types": "type", "kinds": "kind", "categories": "category", "agents": "agent", "statuses": "status"}
# What the condition asks for without these filters, and these.
_FEW = "kind, status, expires"
_OTHER_COLUMNS = ("types", "categories", "agents", "scopes", "tags", "paths", "since", "until")
_ALLOWED, _HIDDEN = "allowed notes", "hidden notes"
PATIENCE = 5.0  # seconds that a note just saved is waited for
KEPT = 32  # sets of allowed notes that are kept
FOREVER = "~"  # sorts after every date
# An empty status means the first one of its kind.
UNSAID = {"active": ("memory", "entity", "note", "session"), "open": ("task",)}


def _in(column: str, values: Iterable[str], out: list[Any]) -> str:
    """Return `column IN (…)` with its values added to `out`; values are data, never SQL."""
    chosen = list(values)
    out += chosen
    return f"{column} IN ({', '.join('?' * len(chosen))})"


def condition(filters: Filters, now: datetime) -> tuple[str, list[Any]]:
    """Return (SQL condition on `notes n`, its values) for the filters; an empty tuple as a filter fits nothing."""
    parts: list[str] = []
    out: list[Any] = []
    for name, column in _COLUMNS.items():
        values = getattr(filters, name)
        if values is None:
            continue
        part = _in(f"n.{column}", values, out)
        if name == "statuses":
            unsaid = [kind for value in values for kind in UNSAID.get(value, ())]
            if unsaid:
                part = f"({part} OR (COALESCE(n.status, '') = '' AND {_in('n.kind', unsaid, out)}))"
        parts.append(part)
    if filters.scopes is not None:
        parts.append(_in("COALESCE(NULLIF(n.scope, ''), 'shared')", filters.scopes, out))
    if filters.tags is not None:
        for tag in filters.tags:
            parts.append("n.rowid IN (SELECT note FROM tags WHERE tag = ?)")
            out.append(tag)
        if not filters.tags:
            parts.append("0")
    if filters.paths is not None:
        places = []
        for path in filters.paths:
            plain = path.strip("/")
            # substr, not LIKE: `%` and `_` in a path mean themselves.
            places.append("(n.path = ? OR substr(n.path, 1, ?) = ?)" if plain else "1")
            out += [plain, len(plain) + 1, plain + "/"] if plain else []
        parts.append(f"({' OR '.join(places)})" if places else "0")
    if filters.since is not None:
        parts.append("n.updated >= ?")
        out.append(stamp(filters.since))
    if filters.until is not None:
        parts.append("n.updated <= ?")
        out.append(stamp(filters.until))
    if not filters.retired and filters.statuses is None:
        parts.append("NOT (" + _in("COALESCE(n.status, '')", RETIRED, out) + ")")
        parts.append("(COALESCE(n.expires, '') = '' OR n.expires > ?)")
        out.append(stamp(now))
    return " AND ".join(parts) or "1", out


def agent_scopes(store: Store, agent: str = "") -> tuple[str, ...] | None:
    """Return the scope patterns that an agent (by default the one who asks) may read, None for all.

    `[agents.NAME] scopes` of the user's configuration decides; the store's own file may narrow it, never widen.
    """
    name = agent or store.identity.agent
    mine = _patterns(store.config.user, name)
    theirs = _patterns(store.config.repository, name)
    if mine is None or theirs is None:
        return mine if theirs is None else theirs
    # Both speak: what the store allows and the user allows too.
    return tuple(p for p in theirs if any(fnmatchcase(p, own) for own in mine)) + tuple(
        p for p in mine if any(fnmatchcase(p, other) for other in theirs if other != p)
    )


def _patterns(tables: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    agents = tables.get("agents")
    entry = agents.get(name, agents.get("*")) if isinstance(agents, Mapping) else None
    scopes = entry.get("scopes") if isinstance(entry, Mapping) else None
    if not isinstance(scopes, list):
        return None
    return tuple(str(scope) for scope in scopes)


def may_read(scope: str | None, patterns: tuple[str, ...] | None) -> bool:
    """Return whether a note of this scope may be read; a note without one is shared."""
    return patterns is None or any(fnmatchcase(scope or "shared", pattern) for pattern in patterns)


def readable(store: Store) -> set[int] | None:
    """Return the rowids of all notes that this agent may read, whatever their status; None: all of them."""
    patterns = agent_scopes(store)
    if patterns is None:
        return None
    found = store.index.catalog.rows("SELECT rowid, scope FROM notes")
    return {row["rowid"] for row in found if may_read(row["scope"], patterns)}


def hidden(store: Store, catalog: Catalog | None = None) -> frozenset[int]:
    """Return the rowids of the notes that this agent may not read: no figure of the index may count them.

    `catalog`: one of an earlier date; what may not be read today may not be read as it was."""
    patterns = agent_scopes(store)
    if patterns is None:
        return frozenset()
    today = store.index.catalog
    catalog = catalog or today
    kept = catalog.kept()
    key = (_HIDDEN, patterns)
    if key not in kept:
        since = unreadable(store) if catalog is not today else set()
        kept[key] = frozenset(
            row["rowid"]
            for row in catalog.rows("SELECT rowid, id, path, scope FROM notes")
            if not may_read(row["scope"], patterns) or row["path"] in since or row["id"] in since
        )
    closed: frozenset[int] = kept[key]
    return closed


def nameable(store: Store) -> Callable[[str], bool]:
    """Return what tells whether a path of the store may be named to this agent: it is no note, or one that it may read today.

    A note that is gone is not known to be readable, so its path is not named where scopes are restricted."""
    patterns = agent_scopes(store)
    if patterns is None:
        return lambda path: True
    store.index.refresh(embed_budget_s=0.0)
    found = store.index.catalog.rows("SELECT path, scope FROM notes")
    readable_paths = {row["path"] for row in found if may_read(row["scope"], patterns)}
    return lambda path: path in readable_paths or not path.lower().endswith(".md")


def showable(store: Store) -> Callable[[Commit], bool]:
    """Return what tells whether a commit with its entries touches no note that this agent may not read: the subject of
    another one may name such a note."""
    if agent_scopes(store) is None:
        return lambda commit: True
    may_name = nameable(store)

    def shows(commit: Commit) -> bool:
        paths = [store.from_git(name) for entry in commit.entries for name in (entry.path, entry.old) if name]
        return all(path is None or may_name(path) for path in paths)

    return shows


def showable_revs(store: Store, revs: Iterable[str]) -> set[str]:
    """Return those of some commits that showable lets through."""
    from mdmem.repo.history import commits

    wanted = list(revs)
    if agent_scopes(store) is None:
        return set(wanted)
    shows = showable(store)
    out = set()
    for start in range(0, len(wanted), 200):
        some = commits(store.git, "--no-walk=unsorted", "--end-of-options", *wanted[start : start + 200])
        out |= {commit.rev for commit in some if shows(commit)}
    return out


def unreadable(store: Store) -> set[str]:
    """Return ids and paths of today's notes that this agent may not read: nor may it read what they were."""
    patterns = agent_scopes(store)
    if patterns is None:
        return set()
    store.index.refresh(embed_budget_s=0.0)
    closed = [
        row for row in store.index.catalog.rows("SELECT id, path, scope FROM notes") if not may_read(row["scope"], patterns)
    ]
    return {row["path"] for row in closed} | {row["id"] for row in closed if row["id"]}


def note_by(store: Store, reference: str) -> sqlite3.Row:
    """Return the row of the note that a reference names, among those that this agent may read.

    What was saved while another process was writing the index is waited for. Raises NotFound, Ambiguous; Locked where that
    process goes on, since the note may then be there."""
    try:
        return _note_by(store, reference)
    except NotFound:
        if not store.index.behind or not store.index.rebuilds:
            raise
    store.index.refresh(embed_budget_s=0.0, wait_s=PATIENCE)
    try:
        return _note_by(store, reference)
    except NotFound as error:
        if not store.index.behind:
            raise
        why = f"{error}, as far as it goes"
        raise Locked("another mdmem process is writing the index", why=why, hint="try again") from None


def _note_by(store: Store, reference: str) -> sqlite3.Row:
    if agent_scopes(store) is None:
        return store.index.note_by(reference)
    store.index.refresh(embed_budget_s=0.0)
    return store.index.note_by(reference, readable(store))


def rows(store: Store, filters: Filters, order: str = "") -> list[sqlite3.Row]:
    """Return the catalog rows that fit the filters and that this agent may read."""
    sql, values = condition(filters, store.clock.now())
    found = store.index.catalog.rows(f"SELECT n.* FROM notes n WHERE {sql} {order}", values)
    patterns = agent_scopes(store)
    if patterns is None:
        return found
    return [row for row in found if may_read(row["scope"], patterns)]


def allowed(store: Store, filters: Filters, catalog: Catalog | None = None) -> frozenset[int] | None:
    """Return the rowids of the notes that fit the filters and that this agent may read; None: all of them.

    `catalog`: the one to look in, when it is not that of today. The set is kept with the catalog until a row changes or a
    note expires, and is the same object as long."""
    catalog = catalog or store.index.catalog
    now = store.clock.now()
    patterns = agent_scopes(store)
    kept = catalog.kept()
    key = (_ALLOWED, filters, patterns)
    moment = stamp(now)
    before: tuple[str, str, frozenset[int] | None] | None = kept.get(key)
    if before is not None and before[0] <= moment < before[1]:
        return before[2]
    sql, values = condition(filters, now)
    # Nothing but the end of a note's time lets the same filters choose otherwise among the same rows.
    # The usual filters ask for three columns that an index holds: few different rows of them stand for all notes.
    few = all(getattr(filters, name) is None for name in _OTHER_COLUMNS)
    source, notes = (f"(SELECT {_FEW}, count(*) AS notes FROM notes GROUP BY {_FEW})", "n.notes") if few else ("notes", "1")
    counted = f"SELECT total((({sql}) IS NOT 1) * {notes}), min(CASE WHEN n.expires > ? THEN n.expires END) FROM {source} n"
    others, until = catalog.row(counted, [*values, moment]) or (0, None)
    found: frozenset[int] | None = None
    if patterns is not None or others:
        chosen = frozenset(row["rowid"] for row in catalog.rows(f"SELECT n.rowid AS rowid FROM notes n WHERE {sql}", values))
        found = chosen - hidden(store, catalog)
    if len(kept) > KEPT:
        kept.clear()
    kept[key] = (moment, str(until or FOREVER), found)
    return found
