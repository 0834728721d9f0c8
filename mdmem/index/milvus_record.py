"""What the shared index has recorded of each repository: the commit that was pushed last, and the words of writers at work."""

from __future__ import annotations

import json
import re
from typing import Any

from mdmem.index.milvus import LAYOUT, Engine, key_of, stretch
from mdmem.index.versions import ANALYZER, PARSER, WINDOWS

STATE, BEGUN = "commit", "begun"
_HEX = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?")


def of_repo(repo: str) -> str:
    """Return the condition for the rows of a repository."""
    return f"repo == {json.dumps(key_of(repo))}"


def state_pk(repo: str) -> str:
    """Return the key of a repository's record."""
    return f"{STATE}:{key_of(repo)}"


def begun_pk(repo: str) -> str:
    """Return how the keys of the words of a repository's writers begin."""
    return f"{BEGUN}:{key_of(repo)}:"


def begun(engine: Engine, repo: str) -> dict[str, float]:
    """Return the words of writers that began and did not end, and when each was last at work (seconds since 1970)."""
    condition = f"{of_repo(repo)} and pk like {json.dumps(begun_pk(repo) + '%')}"
    return {row["pk"]: float(stretch(row["blob"])["at"]) for row in engine.few(engine.state, condition, ["pk", "blob"])}


def state_of(engine: Engine, repo: str) -> dict[str, Any]:
    """Return what was recorded of a repository last; {} when it was never pushed to the end, or the record is none."""
    rows = engine.few(engine.state, f"{of_repo(repo)} and pk == {json.dumps(state_pk(repo))}", ["blob"])
    found: Any = stretch(rows[0]["blob"]) if rows else {}
    # Whoever may write there writes it, and git is asked for its commit.
    sound = isinstance(found, dict) and _HEX.fullmatch(str(found.get("rev"))) and isinstance(found.get("scopes"), dict)
    return found if sound else {}


def recorded(engine: Engine) -> list[dict[str, Any]]:
    """Return what was recorded of each repository."""
    return [stretch(row["blob"]) for row in engine.few(engine.state, f"pk like {json.dumps(STATE + ':%')}", ["blob"])]


def kind_of(model: str) -> str:
    """Return what all rows of a repository have in common, and what makes all of them new when it changes."""
    return f"{LAYOUT} {PARSER} {WINDOWS} {ANALYZER} {model}"


def untouched(engine: Engine, repo: str, model: str) -> dict[str, Any]:
    """Return what was recorded of a repository, when the engine holds exactly that and with this model; else {}."""
    known = state_of(engine, repo)
    if not known or known.get("kind") != kind_of(model) or known.get("lacking") or begun(engine, repo):
        return {}
    # The embedded engine, which one process has for itself, counts all its rows much faster than some.
    if engine.embedded and engine.count("") == sum(one.get("rows", 0) for one in recorded(engine)):
        return known
    return known if engine.count(of_repo(repo)) == known.get("rows") else {}
