"""A recall by way of the warm process: a query as JSON, the answer as JSON, and back."""

from __future__ import annotations

import dataclasses
import os
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mdmem.clock import read_stamp, stamp

if TYPE_CHECKING:
    from mdmem.recall.hit import Recall
    from mdmem.recall.query import Query
    from mdmem.store import Store

# Seconds that a command waits for the warm process's answer before it searches by itself.
PATIENCE = 15.0
# Whether this process has waited for an answer in vain: it does not wait a second time.
given_up = False


def recall_warm(store: Store, query: Query) -> Recall | None:
    """Return the answer of the warm process, None when it cannot be had or is no help (then recall in this process).

    Not asked: questions about the past, which read git, and processes with a clock of their own."""
    from mdmem.warm import client

    if query.as_of is not None or "MDMEM_NOW" in os.environ or not store.trusted or given_up:
        return None
    if not client.allowed(str(store.config.get("serve"))):
        return None
    answer = client.ask({"op": "recall", **of_store(store), "query": query_data(query)}, PATIENCE)
    if answer is None or "recall" not in answer:
        return None
    return recall_from(answer["recall"], query)


def of_store(store: Store) -> dict[str, Any]:
    """Return what names a store and the settings in force here, for a request."""
    from mdmem.config import user_file

    return {
        "root": str(store.root),
        "cwd": str(store.cwd),
        "user_file": str(user_file()),
        "options": {**store.config.values, "agent": store.identity.agent, "device": store.identity.device},
    }


def query_data(query: Query) -> dict[str, Any]:
    """Return a query as JSON data."""
    data = dataclasses.asdict(query)
    filters = data["filters"]
    for name in ("since", "until"):
        if isinstance(filters[name], datetime):
            filters[name] = stamp(filters[name])
    data.pop("as_of")
    return data


def query_from(data: dict[str, Any]) -> Query:
    """Return the query in JSON data. Raises TypeError or KeyError for what is none."""
    from mdmem.recall.query import Filters, Query

    given = dict(data["filters"])
    for name, value in given.items():
        if name in ("since", "until"):
            given[name] = read_stamp(value) if value else None
        elif isinstance(value, list):
            given[name] = tuple(value)
    return Query(**{**data, "filters": Filters(**given)})


def answer_recall(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """Return {recall: …} for a request. As in a command, the files are looked over first."""
    from mdmem.recall.recall import recall

    found = recall(store, query_from(request["query"]))
    data = dataclasses.asdict(found)
    data.pop("query")
    return {"recall": data}


def recall_from(data: dict[str, Any], query: Query) -> Recall:
    """Return the answer in JSON data."""
    from mdmem.recall.hit import Hit, Recall

    hits = [Hit(**{**hit, "steps": [(name, value) for name, value in hit["steps"]]}) for hit in data["results"]]
    return Recall(query, hits, data["mode"], data["notices"], data["context"], data["explained"])
