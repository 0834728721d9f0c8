"""Recall from the shared index: filters in its language, its candidates as one more store, and the local index when it
is down."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.index import milvus_down
from mdmem.index.language import wide
from mdmem.index.milvus import (
    LAYOUT,
    Engine,
    SharedDown,
    Target,
    key_of,
    load_client,
    other_version,
    quoted,
    stretch,
    tag_key,
    targets_of,
    unreadable,
)
from mdmem.index.milvus_view import SharedView
from mdmem.index.segment import FIELDS
from mdmem.locate import repository_name
from mdmem.recall import meaning
from mdmem.recall.query import RETIRED, Filters, Query
from mdmem.recall.select import UNSAID, agent_scopes, allowed, hidden, may_read
from mdmem.recall.speakers import may_name
from mdmem.recall.streams import DAYS, POOL, Streams, aims, asked_vector, by_words, candidates, gather, searched
from mdmem.recall.when import Period, periods
from mdmem.recall.words import terms_of

if TYPE_CHECKING:
    from mdmem.recall.expand import Concept
    from mdmem.store import Store

_FIELDS = {"kinds": "kind", "types": "type", "categories": "category", "agents": "agent", "scopes": "scope"}
EMBEDDED = 10  # times as long may the engine in this process take, which has to read its file first
SLOW = 0.5  # an engine that took longer to fail is not asked again for a while
NOTHING = 'repo == ""'  # fits no row
FRESH = 5.0  # seconds that the list of pushed repositories is kept
# Connections to servers are kept; the embedded engine's file belongs to one process at a time and is given back.
_open: dict[Target, Engine] = {}
_lists: dict[Target, tuple[float, list[dict[str, Any]]]] = {}


def gather_both(store: Store, query: Query, vector: Any = None, beside: Sequence[Store] = ()) -> list[Streams]:
    """Return what this store has locally and what the shared index has of other repositories, or all of it from there
    (`index.share = all`). The stores `beside` answer for themselves. When the engine cannot be asked: the local index
    alone, with a notice; of several collections, what the others have."""
    notices: list[str] = []
    if vector is None and query.mode != "keyword":
        vector = asked_vector(store, query, notices)
    everything = store.config.get("index.share") == "all"
    # One that cannot be opened has no location.
    local_too = [place for one in beside if (place := getattr(one, "location", None)) is not None]
    apart = {repository_name(place) for place in local_too}
    shared: list[Streams] = []
    down: list[str] = []
    try:
        for target in targets_of(store.config):
            try:
                shared.append(ask(store, query, vector, target, everything, apart, notices))
            except SharedDown as error:
                down.append(str(error))
    except SharedDown as error:
        down.append(str(error))
    if everything and not down:
        return shared
    local = gather(store, query, vector)
    alone = everything or not shared  # what a collection has of this store must not be there twice
    local.notices += [f"{line}; answered from the local index{' alone' if alone else ' and the rest'}" for line in down]
    return [local] if alone else [local, *shared]


def ask(
    store: Store, query: Query, vector: Any, target: Target, everything: bool, apart: set[str], notices: list[str]
) -> Streams:
    """Return what one collection has. Raises SharedDown, after `index.wait` at most; at once when it took long a moment ago."""
    with connected(store, target) as engine:
        states = states_of(engine, store, apart if everything else {*apart, repository_name(store.location)})
        if everything and not states:
            raise SharedDown("the shared index holds none of these repositories")
        mine = store.index.dense.loaded
        if vector is not None and any(state["model"] != (mine.fingerprint if mine else "") for state in states.values()):
            notices.append("the shared index was pushed with another model; searched there by words only")
            vector = None
        patterns = agent_scopes(store)
        condition = expression(query.filters, patterns, [key_of(repo) for repo in states], store.clock.now())
        scopes = {
            repo: {scope: counted for scope, counted in state["scopes"].items() if may_read(scope, patterns)}
            for repo, state in states.items()
        }
        view = SharedView(engine, condition, scopes, POOL)
        # The engine has looked at the paths; there they have no repository before them.
        query = replace(query, filters=replace(query.filters, paths=None))
        aimed = _found(store, query, view, vector) if states else ([], None)
        view.settle()
        return candidates(store, query, view, vector, notices, aimed)


def _found(store: Store, query: Query, view: SharedView, vector: Any) -> tuple[list[str], Any]:
    """Get what the engine has for a question: by words and days first, since they tell how to search by meaning. Returns whom
    of a conversation the question names, and the vector to search with then; see meaning.aim. Raises SharedDown."""
    words, concepts = _words(store, query, view) if query.mode != "semantic" else ([], [])
    view.find(words, [] if query.plain else _days(store, query), vector is not None)
    if vector is None:
        return [], None
    plan = Streams(store, view, [], concepts=concepts)
    if aims(store, query) and may_name(view.texts(), query.text):
        # Only then are the notes looked through twice.
        view.settle()
        plan.hidden = hidden(store, view.catalog)
        wanted = allowed(store, searched(query.filters), view.catalog)
        by_words(plan, query, wanted, {})
        meaning.aim(plan, query, wanted, vector)
    meaning.turn(plan, query, None, vector)
    asked = wide(query.text)
    two = plan.aim is None and not query.plain and store.config.get("recall.languages") and view.mixed()
    view.find_near(plan.turned, (asked, not asked) if two else (None,))
    return plan.speakers, plan.aim


@contextmanager
def connected(store: Store, target: Target) -> Iterator[Engine]:
    """Give an engine to which something was pushed, for `index.wait` seconds. Raises SharedDown."""
    # Not the time of loading the client's library.
    load_client()
    began = time.monotonic()
    wait = float(store.config.get("index.wait")) * (EMBEDDED if "://" not in target.uri else 1)
    folder = store.common_state_dir
    milvus_down.check(folder, target, store.clock.now())
    engine = _open.get(target)
    try:
        engine = engine or Engine(target, wait)
        engine.limit(wait - (time.monotonic() - began))
        if not engine.there():
            raise SharedDown("nothing was pushed to the shared index yet", hint="mdmem index push")
        yield engine
    except BaseException as error:
        _open.pop(target, None)
        if isinstance(error, SharedDown) and time.monotonic() - began > SLOW:
            milvus_down.note(folder, target, store.clock.now(), str(error))
        if engine is not None:
            engine.close()
        raise
    milvus_down.clear(folder, target)
    if engine.embedded:
        engine.close()
    else:
        _open[target] = engine


def _words(store: Store, query: Query, view: SharedView) -> tuple[list[tuple[str, float]], list[Concept]]:
    """Return the (term, weight) pairs to ask for, the question's and those of synonyms that stand there, and of these the
    concepts; see streams.by_words."""
    words = terms_of(query.text)
    concepts: list[Concept] = []
    if not query.plain and store.config.get("recall.synonyms"):
        from mdmem.recall.expand import alike, expanded, held

        concepts = alike(query.text)
    view.learn(
        [
            *(term for term, _ in words),
            *(term for one in concepts for member in (*one.others, *one.asked) for term in member.terms),
        ]
    )
    if not concepts:
        return words, []
    concepts = held(concepts, lambda terms: {term: df for term in terms if (df := view.known[term][0])})
    return [*words, *expanded(concepts, words)], concepts


def _days(store: Store, query: Query) -> list[str]:
    """Return the days that a question names, each as a condition on when a note was created."""
    named = [one for one in periods(query.text, query.as_of or store.clock.now()) if one.days <= DAYS]
    return [_in_any_year(one) if one.any_year else _between(one.first.isoformat(), one.last.isoformat()) for one in named]


def _between(first: str, last: str) -> str:
    return f"created >= {_text(first)} and created <= {_text(last + '~')}"


def _in_any_year(period: Period) -> str:
    """Return the condition for days of whichever year: the year is any four characters."""
    days = [(period.first + timedelta(days=number)).isoformat()[5:] for number in range(period.days)]
    # A month is the only one that is longer than a day; each day of it begins in the same way.
    begins = {day[:3] for day in days} if period.days > 1 else days
    likes = (_text(f"____-{begin}%") for begin in sorted(begins))
    return f"({' or '.join(f'created like {like}' for like in likes)})"


def states_of(engine: Engine, store: Store, apart: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return {repository: what was recorded of it} of the repositories to ask: all that are configured but those `apart`.

    Raises SharedDown, also when another version of mdmem has pushed one of them."""
    kept = _lists.get(engine.target)
    if kept is None or engine.embedded or time.monotonic() - kept[0] > FRESH:
        rows = engine.few(engine.state, 'pk like "commit:%"', ["blob"])
        kept = _lists[engine.target] = time.monotonic(), [stretch(row["blob"]) for row in rows]
    patterns = [part.strip() for part in str(store.config.get("index.repositories")).split(",") if part.strip()]
    found = {}
    for state in kept[1]:
        if not isinstance(state, dict) or not isinstance(state.get("repo"), str):
            raise unreadable(TypeError("a record without a repository"))
        repo = state["repo"]
        wanted = not patterns or any(fnmatchcase(repo, pattern) for pattern in patterns)
        if wanted and repo not in apart:
            found[repo] = state
    if any(state.get("layout") != LAYOUT for state in found.values()):
        raise other_version(engine.target)
    for state in found.values():
        _check(state)
    return found


def _check(state: dict[str, Any]) -> None:
    """Raise SharedDown for a record that is not as we write it."""
    try:
        sound = isinstance(state["model"], str)
        for scope, one in state["scopes"].items():
            numbers = [one["windows"], one["notes"], one["pieces"], *one["lengths"], *one["scripts"]]
            sound &= isinstance(scope, str) and isinstance(one["turn"], str) and all(type(n) is int and n >= 0 for n in numbers)
            sound &= (len(one["lengths"]), len(one["scripts"]), one["pieces"] > 0) == (len(FIELDS), 2, True)
    except (LookupError, TypeError, AttributeError) as error:
        raise unreadable(error) from error
    if not sound:
        raise unreadable(ValueError("counts of another kind"))


def expression(filters: Filters, patterns: tuple[str, ...] | None, repositories: list[str], now: datetime) -> str:
    """Return the filters in the engine's language: the candidates are drawn from what fits, however few that are.

    Of scopes it may let in more than a pattern with marks inside does, which a later look at the catalog leaves out; it never
    lets in a repository that may not be read."""
    parts = bounds(patterns, repositories)
    chosen = searched(filters)
    for name, column in _FIELDS.items():
        values = getattr(chosen, name)
        if values is not None:
            parts.append(f"{column} in {quoted(values)}")
    if filters.statuses is not None:
        parts.append(_statuses(filters.statuses))
    if filters.tags is not None:
        parts.append(f"array_contains_all(tags, {quoted(map(tag_key, filters.tags))})" if filters.tags else NOTHING)
    if filters.paths is not None:
        parts.append(f"({' or '.join(map(_path, filters.paths))})" if filters.paths else NOTHING)
    if filters.since is not None:
        parts.append(f"updated >= {json.dumps(stamp(filters.since))}")
    if filters.until is not None:
        parts.append(f"updated <= {json.dumps(stamp(filters.until))}")
    if not filters.retired and filters.statuses is None:
        parts.append(f"status not in {quoted(RETIRED)}")
        parts.append(f'(expires == "" or expires > {json.dumps(stamp(now))})')
    return " and ".join(parts)


def _statuses(values: Sequence[str]) -> str:
    """Return which statuses fit; an empty one means the first of its kind, see select.condition."""
    fits = f"status in {quoted(values)}"
    unsaid = [kind for value in values for kind in UNSAID.get(value, ())]
    return f'({fits} or (status == "" and kind in {quoted(unsaid)}))' if unsaid else fits


def _path(path: str) -> str:
    """Return which notes a path means: a file or a folder of every repository, `REPOSITORY: PATH` of one."""
    plain = path.strip("/")
    repo, mark, inner = plain.partition(": ")
    if not plain:
        return 'repo != ""'
    # "0" comes after "/": what begins with the folder's name and a slash, whatever stands in it.
    here = f"path == {_text(plain)} or (path >= {_text(plain + '/')} and path < {_text(plain + '0')})"
    if not mark:
        return here
    return f"{here} or (repo == {_text(key_of(repo))} and ({_path(inner)}))"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def bounds(patterns: tuple[str, ...] | None, repositories: list[str]) -> list[str]:
    """Return what every request is bound to: the repositories to ask, and the scopes that may be read."""
    parts = [f"repo in {quoted(repositories)}"]
    if patterns is not None:
        scopes = [_scope(pattern) for pattern in patterns]
        parts.append(f"({' or '.join(scopes)})" if scopes else 'scope == ""')
    return parts


def _scope(pattern: str) -> str:
    """Return one scope pattern; of one with marks other than a star at its end, the plain beginning."""
    plain = pattern
    for mark in "*?[%_\\":  # what has a meaning there or in the engine's `like`
        plain = plain.split(mark, 1)[0]
    if plain == pattern:
        return f"scope == {json.dumps(plain, ensure_ascii=False)}"
    return f"scope like {json.dumps(plain + '%', ensure_ascii=False)}"
