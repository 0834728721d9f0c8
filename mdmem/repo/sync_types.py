"""What a sync is asked for and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mdmem.errors import MdmemError
from mdmem.repo.gate import Held
from mdmem.repo.tree_merge import PathConflict

STATES = ("clean", "committed", "pushed", "merged", "conflict", "offline", "refused")


@dataclass(frozen=True)
class SyncOptions:
    """`commit`, `push`: whether to (an embedded store: only when asked by name). `join`: accept unrelated or rewritten
    history. `timeout`: seconds for each exchange with the remote; `wait`: seconds for another sync to end;
    `attempts`: how often a lost race is run again; `allow`: paths whose secrets a person let pass."""

    dry_run: bool = False
    commit: bool = True
    push: bool = True
    allow_deletions: bool = False
    join: bool = False
    timeout: float = 60.0
    wait: float = 10.0
    attempts: int = 8
    allow: frozenset[str] = frozenset()


@dataclass
class SyncResult:
    """The outcome. `reason` and `hint` say why a state is what it is and what to type; `pulled` and `pushed` count commits,
    `waiting` those that the remote lacks; `counts` are notes: committed, written, removed, merged here."""

    state: str = "clean"
    reason: str = ""
    hint: str = ""
    pulled: int = 0
    pushed: int = 0
    waiting: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    conflicts: list[PathConflict] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    regenerate: list[str] = field(default_factory=list)
    heads: dict[str, str] = field(default_factory=dict)
    dry_run: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "state": self.state,
            "reason": self.reason,
            "hint": self.hint,
            "pulled": self.pulled,
            "pushed": self.pushed,
            "waiting": self.waiting,
            "counts": self.counts,
            "conflicts": [{"path": c.path, "kind": c.kind, "field": c.field} for c in self.conflicts],
            "held": [{"path": h.path, "kind": h.kind, "line": h.line} for h in self.held],
            "notices": self.notices,
            "heads": self.heads,
            "dry_run": self.dry_run,
        }


class Refusal(MdmemError):
    """A state that is not known to be safe. The message is its name; nothing was changed."""

    code, exit_code = "refused", 6
