"""How near texts are in meaning, as evidence for the write decision: from the warm process, or a model that is loaded already.

What cosine means "these two may be one" differs from model to model, so the limit is measured: calibration.tsv holds pairs
that say the same and pairs that do not; its threshold for the model in force is kept by the model's fingerprint.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mdmem.index.embed import Embedder
    from mdmem.store import Store

# How many of the nearest notes are looked at, and seconds that the warm process may take.
NEAREST, PATIENCE = 6, 1.0
Near = tuple[dict[int, float], float]


def nearest(store: Store, title: str, text: str, load: bool) -> Near | None:
    """Return ({rowid of note: cosine}, limit) for the notes nearest to a text; None where no model is at hand.

    Unless `load`, a model that is not loaded is not loaded for this: the warm process is asked."""
    if load or store.index.dense.loaded is not None:
        return measured(store, title, text)
    from mdmem.warm import client

    if not store.trusted or not client.allowed(str(store.config.get("serve"))):
        return None
    from mdmem.warm.recalling import of_store

    answer = client.ask({"op": "near", **of_store(store), "title": title, "text": text}, PATIENCE)
    if not answer or not isinstance(answer.get("near"), list):
        return None
    return {int(note): float(cosine) for note, cosine in answer["near"]}, float(answer["limit"])


def measured(store: Store, title: str, text: str) -> Near | None:
    """Return what `nearest` says, by the model of this process; None without one."""
    from mdmem.errors import MdmemError
    from mdmem.index.rows import embed_text

    embedder = store.index.dense.embedder()
    if embedder is None:
        return None
    try:
        vector = embedder.passages([embed_text(title, "", text)])[0]
        found: dict[int, float] = {}
        windows = store.index.vector_search(vector, None, 4 * NEAREST)
        rows = store.index.catalog.rows(
            f"SELECT rowid, note FROM windows WHERE rowid IN ({', '.join('?' * len(windows))})", [w for w, _ in windows]
        )
        note_of = {row["rowid"]: row["note"] for row in rows}
        for window, cosine in windows:
            note = note_of.get(window)
            if note is not None and len(found) < NEAREST:
                found.setdefault(note, cosine)
        return found, limit_of(embedder)
    except MdmemError:
        return None


def limit_of(embedder: Embedder) -> float:
    """Return the cosine from which two texts may be one, for this model. Measured once, then kept."""
    from mdmem.config import data_home
    from mdmem.locate import write_private

    pairs = calibration()
    path = data_home() / "learn" / f"{embedder.fingerprint}-{len(pairs)}.json"
    try:
        return float(json.loads(path.read_text("utf-8"))["limit"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    limit = threshold(*cosines(embedder, pairs))
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(path, json.dumps({"limit": limit}).encode())
    except OSError:
        pass  # only time is lost
    return limit


def calibration() -> list[tuple[str, str, str]]:
    """Return the (class, text, text) rows of the calibration file."""
    lines = Path(__file__).with_name("calibration.tsv").read_text("utf-8").splitlines()
    rows = [tuple(line.split("\t")) for line in lines if line and not line.startswith("#")]
    return [(row[0], row[1], row[2]) for row in rows if len(row) == 3]


def cosines(embedder: Any, pairs: list[tuple[str, str, str]]) -> tuple[list[float], list[float]]:
    """Return (cosines of pairs that say the same, cosines of the others)."""
    one = embedder.passages([pair[1] for pair in pairs])
    two = embedder.passages([pair[2] for pair in pairs])
    values = (one * two).sum(1).tolist()
    return (
        [value for pair, value in zip(pairs, values, strict=True) if pair[0] == "same"],
        [value for pair, value in zip(pairs, values, strict=True) if pair[0] != "same"],
    )


def threshold(same: list[float], other: list[float]) -> float:
    """Return the limit with the best share of both classes on its right side; the middle of the gap around it."""
    points = sorted({*same, *other})
    best, limit = -1.0, 1.0
    for low, high in zip(points, [*points[1:], 1.0], strict=True):
        middle = (low + high) / 2
        right = sum(v >= middle for v in same) / len(same) + sum(v < middle for v in other) / len(other)
        if right >= best:
            best, limit = right, middle
    return limit
