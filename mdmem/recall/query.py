"""What is asked: the words, the mode, and the filters. All filter values are literal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime

from mdmem.errors import UsageError

MODES = ("hybrid", "keyword", "semantic")
FUSIONS = ("minmax", "rrf")
# Searched unless --kind says otherwise; tasks, messages and agents answer other questions.
DEFAULT_KINDS = ("memory", "entity", "note", "session")
# A memory with one of these is no longer what is true; shown when asked for by status.
RETIRED = ("superseded", "forgotten", "archived")


@dataclass(frozen=True)
class Filters:
    """Which notes may be found. None: no filter. An empty tuple: nothing fits."""

    types: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None  # each of them must be on the note
    scopes: tuple[str, ...] | None = None
    agents: tuple[str, ...] | None = None
    statuses: tuple[str, ...] | None = None
    paths: tuple[str, ...] | None = None  # a file, or a folder and all below it
    since: datetime | None = None  # last change at or after
    until: datetime | None = None  # last change at or before
    retired: bool = False  # also superseded, forgotten, archived and expired ones

    def given(self) -> dict[str, object]:
        """Return the filters that are set, by name, for `--explain`."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) not in (None, False)}


@dataclass(frozen=True)
class Query:
    """One question to one or more stores."""

    text: str
    limit: int = 5
    mode: str = "hybrid"
    filters: Filters = field(default_factory=Filters)
    fusion: str = ""  # "": as configured
    weight: float | None = None  # share of the words in the min-max sum; None: as configured
    decay: bool = True
    explain: bool = False
    as_of: datetime | None = None
    budget: int | None = None  # tokens of a context block
    query_syntax: bool = False  # the engine's own language instead of literal words
    plain: bool = False  # the streams and their fusion alone: no other evidence (for measuring)

    def checked(self) -> Query:
        """Return self; raises UsageError when a part makes no sense."""
        if not self.text.strip():
            raise UsageError("the query is empty", hint='mdmem recall "which database do we use"')
        if self.limit < 1:
            raise UsageError(f"the limit is {self.limit}", why="it must be 1 or more")
        if self.budget is not None and self.budget < 1:
            raise UsageError(f"the budget is {self.budget} tokens", why="it must be 1 or more")
        if self.mode not in MODES:
            raise UsageError(f"no mode is named {self.mode!r}", why=f"it is one of {', '.join(MODES)}")
        if self.fusion and self.fusion not in FUSIONS:
            raise UsageError(f"no fusion is named {self.fusion!r}", why=f"it is one of {', '.join(FUSIONS)}")
        return self


def filters_from(options: Mapping[str, object]) -> Filters:
    """Return Filters from lists of option values; an absent or empty option is no filter."""
    known = {f.name for f in fields(Filters)}
    picked: dict[str, object] = {}
    for name, value in options.items():
        if name not in known or value in (None, (), []):
            continue
        picked[name] = tuple(value) if isinstance(value, list) else value
    return Filters(**picked)  # type: ignore[arg-type]
