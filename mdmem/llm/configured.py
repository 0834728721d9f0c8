"""The language model that the user's configuration names, with its daily limit kept in the user's own folder."""

from __future__ import annotations

from pathlib import Path

from mdmem.clock import Clock
from mdmem.config import Config
from mdmem.llm.ledger import Ledger
from mdmem.llm.model import Llm, load_backend


def load_llm(config: Config, data_home: Path, clock: Clock) -> Llm | None:
    """Return the configured model, None for none. Raises UsageError for a back end that is not known."""
    backend = load_backend(config)
    if backend is None:
        return None
    ledger = Ledger(data_home / "llm.json", clock, int(config.get("llm.daily_calls")), float(config.get("llm.daily_cost")))
    return Llm(backend, ledger.allow, ledger.account)
