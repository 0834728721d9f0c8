"""What recall prints, for a command line that click has read and for one that the quick way has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mdmem.cli.printing import clean, emit, note, say

if TYPE_CHECKING:
    from mdmem.recall.hit import Recall
    from mdmem.store import Store


def show(store: Store, found: Recall, as_json: bool) -> None:
    """Print an answer, its notices last, and note what an agent's session was shown."""
    emit(found.as_dict(), as_json, lambda: _print(found))
    _given(store, found)
    for text in found.notices:
        note(f"note: {text}")


def _given(store: Store, found: Recall) -> None:
    """Inside an agent's session: note what it was shown, so that what it cites later counts as useful."""
    session = os.environ.get("CLAUDE_CODE_SESSION_ID") or os.environ.get("MDMEM_SESSION") or ""
    if session and store.trusted:
        from mdmem.memory import shown

        own = [hit for hit in found.results if not hit.store and hit.scope != "local"]
        shown.add(str(store.common_state_dir), session, [shown.line(hit.id or hit.path, hit.path, hit.title) for hit in own])


def _print(found: Recall) -> None:
    if found.query.budget is not None:
        if found.context:
            say(found.context)
        return
    if not found.results:
        say("Nothing found.")
    for hit in found.results:
        place = f"{hit.store}: " if hit.store else ""
        name = f"  [{clean(hit.id)}]" if hit.id else ""
        say(f"[{clean(hit.type or hit.kind)}] {clean(hit.title)}{name}")
        say(f"    {place}{clean(hit.path)}:{hit.start_line}-{hit.end_line}")
        for line in hit.snippet.splitlines():
            say(f"    > {clean(line)}")
        if found.query.explain:
            for step, value in hit.steps:
                say(f"      {step}: {value}")
        say("")
