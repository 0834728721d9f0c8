"""The language model that the user's configuration names, with its daily limit kept in the user's own folder."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from mdmem.clock import Clock
from mdmem.config import Config
from mdmem.llm.ledger import Ledger
from mdmem.llm.model import KEY_TIMEOUT, Llm, load_backend
from mdmem.locate import write_private

# Seconds for which somebody who waits asks no more after an answer that did not come.
REST = 60.0


def load_llm(config: Config, data_home: Path, clock: Clock, within: float = 0.0) -> Llm | None:
    """Return the configured model, None for none. Raises UsageError for a back end that is not known.

    `within`: somebody waits, so an answer that takes longer than so many seconds is none."""
    backend = load_backend(config, min(within, KEY_TIMEOUT)) if within else load_backend(config)
    if backend is None:
        return None
    if within:
        _hurried(backend, within)
    ledger = Ledger(data_home / "llm.json", clock, int(config.get("llm.daily_calls")), float(config.get("llm.daily_cost")))
    return Llm(backend, ledger.allow, ledger.account, ledger.give_back)


def _hurried(backend: Any, seconds: float) -> None:
    post = getattr(backend, "post", None)
    if post is None:
        backend.timeout = min(backend.timeout, seconds)
    else:
        backend.post = replace(post, timeout=min(post.timeout, seconds), within=seconds, tries=min(post.tries, 2))


def rests(data_home: Path) -> bool:
    """Tell whether the model gave no answer a moment ago (real seconds: it is about waiting)."""
    try:
        return 0 <= time.time() - (data_home / "llm-rests").stat().st_mtime < REST
    except OSError:
        return False


def let_rest(data_home: Path) -> None:
    """Note that the model gave no answer. Losing it costs a wait, so failures are silent."""
    try:
        write_private(data_home / "llm-rests", b"")
    except OSError:
        return
