"""What was asked of the language model today: calls, tokens, cost; and the hard daily limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdmem.clock import Clock
from mdmem.llm.model import Answer, LlmUnavailable
from mdmem.locate import write_private
from mdmem.locks import FileLock

KEEP_DAYS = 60
NOTHING = {"calls": 0, "tokens_in": 0, "tokens_out": 0, "cost": 0.0}


@dataclass
class Ledger:
    """A JSON file of {day: {calls, tokens_in, tokens_out, cost}} in the user's own folder."""

    path: Path
    clock: Clock
    max_calls: int = 200
    max_cost: float = 0.0

    def _read(self) -> dict[str, dict[str, Any]]:
        """Return {day: row}; a row that is damaged counts as none."""
        try:
            data = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        rows = data.items() if isinstance(data, dict) else ()
        return {day: row for day, row in rows if _whole(row)}

    def today(self) -> dict[str, Any]:
        """Return today's row (UTC)."""
        return self._read().get(self.clock.now().strftime("%Y-%m-%d")) or dict(NOTHING)

    def allow(self) -> None:
        """Take one of today's calls, before it is made: what is under way counts. Raises LlmUnavailable when none is left."""
        with self._row() as row:
            if row["calls"] >= self.max_calls or (self.max_cost and row["cost"] >= self.max_cost):
                raise LlmUnavailable(
                    "today's limit for the language model is spent",
                    why=f"{row['calls']} calls, ${row['cost']:.2f}",
                    hint="mdmem config set llm.daily_calls 500",
                )
            row["calls"] += 1

    def give_back(self) -> None:
        """Give back a call that reached nobody, or that was turned away: it cost nothing."""
        with self._row() as row:
            row["calls"] = max(0, row["calls"] - 1)

    def account(self, name: str, answer: Answer) -> None:
        """Add what one answer took to today's row."""
        with self._row() as row:
            row["tokens_in"] += answer.tokens_in
            row["tokens_out"] += answer.tokens_out
            row["cost"] = round(row["cost"] + answer.cost, 6)

    @contextmanager
    def _row(self) -> Iterator[dict[str, Any]]:
        """Give today's row to be changed, under the lock; it is kept unless the change raises."""
        with FileLock(self.path.with_name(self.path.name + ".lock")):
            data = self._read()
            day = self.clock.now().strftime("%Y-%m-%d")
            row = data.get(day) or dict(NOTHING)
            yield row
            data[day] = row
            kept = dict(sorted(data.items())[-KEEP_DAYS:])
            write_private(self.path, json.dumps(kept, indent=1).encode())


def _whole(row: Any) -> bool:
    """Return whether a row holds the numbers that it should."""
    return isinstance(row, dict) and all(type(row.get(name)) in (int, float) for name in NOTHING)
