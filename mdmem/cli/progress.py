"""A progress bar on stderr: only on a terminal, and only for work that lasts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Tell = Callable[[int, int, str], None]
AFTER_SECONDS = 1.0


@contextmanager
def progress(title: str) -> Iterator[Tell]:
    """Yield `tell(done, total, what)`; the bar appears once the work has lasted a second."""
    if not sys.stderr.isatty():
        yield lambda done, total, what: None
        return
    began = time.monotonic()
    bar: Any = None
    task: Any = None

    def tell(done: int, total: int, what: str) -> None:
        nonlocal bar, task
        if bar is None:
            if time.monotonic() - began < AFTER_SECONDS:
                return
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            bar = Progress(*columns, console=Console(stderr=True), transient=True)
            bar.start()
            task = bar.add_task(title, total=total or None)
        bar.update(task, completed=done, total=total or None, description=f"{title} {what}".strip())

    try:
        yield tell
    finally:
        if bar is not None:
            bar.stop()
