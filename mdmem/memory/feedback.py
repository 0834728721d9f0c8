"""What a note was worth to who found it: a weight per note, moved a little by each rating. Kept on this device.

w ← w + 0.15·(signal − w), from 0.5 (prior art: an exponential moving average); useful is 1, ignored 0.25, wrong 0.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mdmem.clock import stamp
from mdmem.errors import UsageError
from mdmem.locate import write_private
from mdmem.locks import FileLock
from mdmem.recall.select import note_by

if TYPE_CHECKING:
    from mdmem.store import Store

ALPHA = 0.15
START = 0.5
SIGNALS = {"useful": 1.0, "ignored": 0.25, "wrong": 0.0}


def ratings(store: Store) -> dict[str, dict[str, Any]]:
    """Return {note id or path: {weight, count, last}}; {} when nothing was rated or the file is damaged."""
    try:
        data = json.loads((store.common_state_dir / "feedback.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    rows = data.items() if isinstance(data, dict) else ()
    return {key: row for key, row in rows if isinstance(row, dict) and _whole(row)}


def _whole(row: dict[str, Any]) -> bool:
    """Return whether a row holds the numbers that it should."""
    return type(row.get("weight")) in (int, float) and type(row.get("count")) is int


def rate(store: Store, reference: str, rating: str) -> dict[str, Any]:
    """Rate a note; returns {id, path, rating, weight, count}. The note is not written to. Raises UsageError, NotFound."""
    if rating not in SIGNALS:
        raise UsageError(f"no rating is named {rating!r}", why=f"it is one of {', '.join(SIGNALS)}")
    row = note_by(store, reference)
    key = str(row["id"] or row["path"])
    path = store.common_state_dir / "feedback.json"
    with FileLock(path.with_name("feedback.lock")):
        kept = ratings(store)
        entry = kept.get(key, {"weight": START, "count": 0})
        weight = float(entry.get("weight", START))
        weight += ALPHA * (SIGNALS[rating] - weight)
        kept[key] = {
            **entry,
            "weight": round(weight, 6),
            "count": int(entry.get("count", 0)) + 1,
            "last": stamp(store.clock.now()),
        }
        write_private(path, json.dumps(kept, indent=1).encode())
    return {"id": row["id"] or "", "path": row["path"], "rating": rating, **kept[key]}
