"""What the doctor finds, and how a check is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mdmem.store import Store

OK, NOTE, WARNING, ERROR = "ok", "note", "warning", "error"
RANK = {ERROR: 0, WARNING: 1, NOTE: 2, OK: 3}


@dataclass
class Finding:
    """One finding: a stable code, how bad, what, and the command that mends it. `fix` does it, when that is safe."""

    code: str
    severity: str
    message: str
    command: str = ""
    fix: Callable[[], str] | None = None
    fixed: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        out = {"code": self.code, "severity": self.severity, "message": self.message, "command": self.command}
        return {**out, "fixed": self.fixed} if self.fixed else out


@dataclass(frozen=True)
class Look:
    """What the checks may use: the store, and whether the network may be asked and slow checks run."""

    store: Store
    network: bool = True
    deep: bool = False


Check = Callable[[Look], Iterator[Finding]]
