"""What comes out of recall: hits and the answer that holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mdmem.recall.query import Query

_SHOWN = ("id", "path", "store", "kind", "type", "title", "score", "snippet", "start_line", "end_line")
_ORIGIN = ("created", "updated", "scope", "agent", "tags")


@dataclass
class Hit:
    """One note that was found, with its best passage.

    The evidence is raw: `cosine` of the nearest window and `bm25` of the best one (None: not found by that stream),
    `share` of the question's weight in words that stands in the note (0…1), `matched` its rarest words that do.
    `steps` tells what each stage made of the score."""

    id: str
    path: str
    store: str
    kind: str
    type: str
    title: str
    score: float
    snippet: str
    start_line: int
    end_line: int
    created: str
    updated: str
    scope: str
    agent: str
    tags: list[str]
    text: str = ""
    cosine: float | None = None
    bm25: float | None = None
    share: float = 0.0
    matched: list[str] = field(default_factory=list)
    steps: list[tuple[str, Any]] = field(default_factory=list)

    def as_dict(self, explain: bool = False) -> dict[str, Any]:
        """Return the JSON form."""
        out: dict[str, Any] = {name: getattr(self, name) for name in (*_SHOWN, *_ORIGIN)}
        out["score"] = round(self.score, 6)
        if explain:
            out["explain"] = dict(self.steps)
        return out


@dataclass
class Recall:
    """The answer to one query. `mode` is what was really done: `keyword` when no vectors could be used."""

    query: Query
    results: list[Hit]
    mode: str
    notices: list[str] = field(default_factory=list)
    context: str = ""
    explained: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return {query, mode, results, notices}; with a budget also the context block, with explain the pipeline."""
        out: dict[str, Any] = {"query": self.query.text, "mode": self.mode}
        out["results"] = [hit.as_dict(self.query.explain) for hit in self.results]
        out["notices"] = self.notices
        if self.query.budget is not None:
            out["context"] = self.context
        if self.query.explain:
            out["explain"] = self.explained
        return out
