"""SessionEnd: all hooks together have 1.5 seconds, so the record is closed and the rest is the worker's."""

from __future__ import annotations

from mdmem.hooks.place import find_place
from mdmem.hooks.turns import session_of, spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def session_end(payload: dict[str, Any]) -> None:
    """Close the session's record and hand its note to the worker."""
    place = find_place(payload["cwd"])
    if place is None or not place.settings["capture"]:
        return
    from mdmem.hooks import queue
    from mdmem.memory.spool import keepable

    reason = payload.get("reason")
    record: dict[str, Any] = {"k": "end", "reason": keepable(reason, 40) if isinstance(reason, str) else "other"}
    record["scope"] = place.scope
    transcript = payload.get("transcript_path")
    if isinstance(transcript, str):
        record["transcript"] = transcript
    spool(place, payload, record)
    queue.put(place, {"do": "session", "session": session_of(payload)}, {"do": "push"})
