"""Recall from the shared index: filters in its language, its candidates as one more store, and the local index when it
is down."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.index.milvus import Engine, SharedDown, Target, key_of, quoted, stretch, target_of
from mdmem.index.milvus_view import SharedView
from mdmem.locate import repository_name
from mdmem.recall.query import RETIRED, Filters, Query
from mdmem.recall.select import agent_scopes, may_read
from mdmem.recall.streams import POOL, Streams, asked_vector, candidates, gather, searched
from mdmem.recall.when import periods
from mdmem.recall.words import terms_of

if TYPE_CHECKING:
    from mdmem.store import Store

_FIELDS = {"kinds": "kind", "types": "type", "categories": "category", "agents": "agent", "scopes": "scope"}
# Connections to servers are kept; the embedded engine's file belongs to one process at a time and is given back.
_open: dict[Target, Engine] = {}


def gather_both(store: Store, query: Query, vector: Any = None, beside: Sequence[Store] = ()) -> list[Streams]:
    """Return what this store has locally and what the shared index has of other repositories, or all of it from there
    (`index.share = all`). The stores `beside` answer for themselves. When the engine cannot be asked: the local index
    alone, with a notice."""
    notices: list[str] = []
    if vector is None and query.mode != "keyword":
        vector = asked_vector(store, query, notices)
    everything = store.config.get("index.share") == "all"
    try:
        target = target_of(store.config)
        assert target is not None
        # One that cannot be opened has no location.
        local_too = [place for one in beside if (place := getattr(one, "location", None)) is not None]
        apart = {repository_name(place) for place in local_too}
        shared = _ask(store, query, vector, target, everything, apart, notices)
    except SharedDown as error:
        why = f" ({error.why})" if error.why else ""
        local = gather(store, query, vector)
        local.notices.append(f"{error}{why}; answered from the local index alone")
        return [local]
    return [shared] if everything else [gather(store, query, vector), shared]


def _ask(
    store: Store, query: Query, vector: Any, target: Target, everything: bool, apart: set[str], notices: list[str]
) -> Streams:
    engine = _open.get(target) or Engine(target)
    if "://" in target.uri:
        _open[target] = engine
    try:
        if not engine.there():
            raise SharedDown("nothing was pushed to the shared index yet", hint="mdmem index push")
        states = _states(engine, store, apart if everything else {*apart, repository_name(store.location)})
        if everything and not states:
            raise SharedDown("the shared index holds none of these repositories")
        mine = store.index.dense.loaded
        if vector is not None and any(state["model"] != (mine.fingerprint if mine else "") for state in states.values()):
            notices.append("the shared index was pushed with another model; searched there by words only")
            vector = None
        patterns = agent_scopes(store)
        condition = expression(query.filters, patterns, [key_of(repo) for repo in states])
        scopes = {
            repo: {scope: counted for scope, counted in state["scopes"].items() if may_read(scope, patterns)}
            for repo, state in states.items()
        }
        view = SharedView(engine, condition, scopes, POOL)
        if states:
            days = [] if query.plain else _days(store, query)
            view.fetch(terms_of(query.text) if query.mode != "semantic" else [], vector, days)
        else:
            view.fetch([], None, [])
        return candidates(store, query, view, vector, notices, aim=False)
    except SharedDown:
        _open.pop(target, None)
        raise
    finally:
        if "://" not in target.uri:
            engine.close()


def _days(store: Store, query: Query) -> list[tuple[str, str]]:
    """Return the days that a question names, as far as the engine can look for them: those of a known year."""
    named = periods(query.text, query.as_of or store.clock.now())
    return [(one.first.isoformat(), one.last.isoformat()) for one in named if one.days <= 31 and not one.any_year]


def _states(engine: Engine, store: Store, apart: set[str]) -> dict[str, dict[str, Any]]:
    """Return {repository: what was recorded of it} of the repositories to ask: all that are configured but those `apart`."""
    patterns = [part.strip() for part in str(store.config.get("index.repositories")).split(",") if part.strip()]
    found = {}
    for row in engine.few(engine.state, 'pk like "%:commit"', ["blob"]):
        state = stretch(row["blob"])
        repo = str(state["repo"])
        wanted = not patterns or any(fnmatchcase(repo, pattern) for pattern in patterns)
        if wanted and repo not in apart:
            found[repo] = state
    return found


def expression(filters: Filters, patterns: tuple[str, ...] | None, repositories: list[str]) -> str:
    """Return the filters in the engine's language, as far as it has the fields; the rest is looked at afterwards.

    What it leaves out must be what a later look at the catalog leaves in or out; it never lets in a repository or a scope
    that may not be read."""
    parts = [f"repo in {quoted(repositories)}"]
    chosen = searched(filters)
    for name, column in _FIELDS.items():
        values = getattr(chosen, name)
        if values is not None:
            parts.append(f"{column} in {quoted(values)}")
    if filters.since is not None:
        parts.append(f"updated >= {json.dumps(stamp(filters.since))}")
    if filters.until is not None:
        parts.append(f"updated <= {json.dumps(stamp(filters.until))}")
    if not filters.retired and filters.statuses is None:
        parts.append(f"status not in {quoted(RETIRED)}")
    if patterns is not None:
        scopes = [_scope(pattern) for pattern in patterns]
        parts.append(f"({' or '.join(scopes)})" if scopes else 'scope == ""')
    return " and ".join(parts)


def _scope(pattern: str) -> str:
    """Return one scope pattern; of one with marks other than a star at its end, the plain beginning."""
    plain = pattern
    for mark in "*?[%_\\":  # what has a meaning there or in the engine's `like`
        plain = plain.split(mark, 1)[0]
    if plain == pattern:
        return f"scope == {json.dumps(plain, ensure_ascii=False)}"
    return f"scope like {json.dumps(plain + '%', ensure_ascii=False)}"
