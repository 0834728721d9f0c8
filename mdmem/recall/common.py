"""What all questions and all passages have in common in a model's space: it says nothing of which passage answers which.

A general passage is near every question, and every passage is near to all in its own language, so that both come before the
answer. Of the bundled model the means are in its folder (tools/build_model_common.py makes them from the lines of
memory/background.txt); of another one they are those of the relevance gate's background, once that was embedded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.index.language import Common

if TYPE_CHECKING:
    from mdmem.index.embed import Embedder
    from mdmem.store import Store

FILE = "common.npy"
_KNOWN: dict[str, Common] = {}


def common_of(store: Store) -> Common | None:
    """Return the means of a store's model; None without a model, or before they are known."""
    embedder = store.index.dense.embedder()
    if embedder is None:
        return None
    known = _KNOWN.get(embedder.fingerprint)
    if known is None:
        known = _shipped(embedder) or _from_background(embedder)
        if known is not None:
            _KNOWN[embedder.fingerprint] = known
    return known


def _shipped(embedder: Embedder) -> Common | None:
    import numpy as np

    folder = getattr(getattr(embedder, "model", None), "folder", None)
    if not isinstance(folder, Path):
        return None
    try:
        means = np.load(folder / FILE, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if means.shape != (4, embedder.dims) or not np.isfinite(means).all():
        return None
    return Common({False: means[0], True: means[1]}, {False: means[2], True: means[3]})


def _from_background(embedder: Embedder) -> Common | None:
    from mdmem.memory.near import background

    found = background(embedder)
    return None if found is None else means_of(*found)


def means_of(questions: tuple[Any, Any], passages: tuple[Any, Any]) -> Common:
    """Return the means of (texts, float32 [n, dims]) of questions and of passages; a script without any has that of all."""
    import numpy as np

    from mdmem.index.language import wide

    parts: list[dict[bool, Any]] = []
    for texts, rows in (questions, passages):
        written = np.array([wide(text) for text in texts], bool)
        chosen = {script: rows[written == script] for script in (False, True)}
        parts.append({script: (mine if len(mine) else rows).mean(0) for script, mine in chosen.items()})
    return Common(*parts)
