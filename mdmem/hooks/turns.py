"""The events inside a session that only leave a line in the spool. Stop comes every turn and must cost next to nothing."""

from __future__ import annotations

import os
import time

from mdmem.hooks.place import find_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mdmem.hooks.place import Place

# Characters kept of the last message of a turn, and of Claude's own summary at a compaction.
SAID = 4000
SUMMARY = 8000


def stopped(payload: dict[str, Any]) -> None:
    """Stop and SubagentStop: the transcript may not be flushed yet, the payload has the last message. Which of the notes that
    the session was shown it cites is noted here, since the spool keeps a part of a long message only."""
    text = payload.get("last_assistant_message")
    place = _text(payload, "said", text, SAID)
    if place is not None:
        from mdmem.memory.shown import cite

        cite(place.common, session_of(payload), str(text))


def compacting(payload: dict[str, Any]) -> None:
    """PreCompact: what it printed would be appended to the compaction's instructions, so it only takes note."""
    place = find_place(payload["cwd"])
    if place is not None and place.settings["capture"]:
        spool(place, payload, {"k": "compact", "trigger": "manual" if payload.get("trigger") == "manual" else "auto"})


def compacted(payload: dict[str, Any]) -> None:
    """PostCompact: a summary that somebody else paid for."""
    _text(payload, "summary", payload.get("compact_summary"), SUMMARY)


def subagent_started(payload: dict[str, Any]) -> None:
    """SubagentStart."""
    place = find_place(payload["cwd"])
    if place is not None and place.settings["capture"]:
        spool(place, payload, {"k": "sub"})


def _text(payload: dict[str, Any], kind: str, text: object, limit: int) -> Place | None:
    if not isinstance(text, str) or not text.strip():
        return None
    place = find_place(payload["cwd"])
    if place is None or not place.settings["capture"]:
        return None
    from mdmem.memory.spool import keepable

    spool(place, payload, {"k": kind, "text": keepable(text.strip(), limit)})
    return place


def session_of(payload: dict[str, Any]) -> str:
    """Return the session's id, `unknown` when the payload has none."""
    session = payload.get("session_id")
    return session if isinstance(session, str) and session else "unknown"


def now() -> float:
    """Return seconds since the epoch by the clock in force."""
    if "MDMEM_NOW" in os.environ:
        from mdmem.clock import SystemClock

        return SystemClock().now().timestamp()
    return time.time()


def spool(place: Place, payload: dict[str, Any], record: dict[str, Any]) -> None:
    """Append a record to the session's spool, tagged with the subagent when there is one. Raises OSError."""
    from mdmem.memory.beats import beat
    from mdmem.memory.spool import add, keepable

    moment = now()
    beat(place.common, f"{place.agent}@{place.device}", session_of(payload), moment)
    agent = payload.get("agent_type") or payload.get("agent_id")
    if isinstance(agent, str) and agent and payload.get("agent_id"):
        record["a"] = keepable(agent, 80)
    add(place.common, session_of(payload), record, moment)
