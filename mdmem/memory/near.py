"""How near a prompt and a passage are in meaning, on a scale that means the same for every prompt.

Raw cosines of a small model are of little use as evidence: all of them lie between 0.75 and 0.9, and an unrelated
passage in the prompt's language is nearer than the right one in another. What all questions have in common, what all
passages have in common, and the strongest direction in what is left (mostly the language) are taken away first: "All-
but-the-Top" (Mu, Viswanath 2018, arXiv:1702.01417), with one direction, and means of their own for questions and
passages. Both means come from background.txt, embedded once for each model and kept, and from a sample of the store's
own passages.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mdmem.index.embed import Embedder
    from mdmem.store import Store

BACKGROUND = Path(__file__).with_name("background.txt")
# Passages of the store that its mean is taken from.
SAMPLE = 256


@dataclass
class Space:
    """The space of one model as one store sees it."""

    fingerprint: str
    windows: int
    question_mean: Any
    passage_mean: Any
    common: Any

    def nearness(self, question: Any, passages: Any) -> Any:
        """Return float [n] from -1 to 1: how near each passage (float32 [n, dims]) is to a question (float32 [dims])."""
        import numpy as np

        asked = self._moved(np.asarray(question)[None], self.question_mean)[0]
        return self._moved(np.asarray(passages), self.passage_mean) @ asked

    def _moved(self, rows: Any, mean: Any) -> Any:
        import numpy as np

        rows = rows - mean
        rows = rows - np.outer(rows @ self.common, self.common)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def space_of(store: Store, make: bool) -> Space | None:
    """Return the space of a store's model, None without a model or vectors, or (unless `make`) before the background texts
    were embedded. It is kept with the index object until the store has grown by a tenth."""
    dense = store.index.dense
    embedder = dense.embedder()
    vectors = dense.vectors()
    if embedder is None or vectors is None or not len(vectors):
        return None
    kept = _SPACES.get(id(dense))
    if kept is not None and kept.fingerprint == embedder.fingerprint and abs(kept.windows - len(vectors)) <= kept.windows // 10:
        return kept
    background = _background(embedder, make)
    if background is None:
        return None
    rows = store.index.catalog.rows("SELECT hash FROM windows ORDER BY hash LIMIT ?", (SAMPLE,))
    made = _fit(embedder.fingerprint, len(vectors), background, vectors_of(store, [row["hash"] for row in rows])[1])
    if len(_SPACES) > 50:
        _SPACES.clear()
    _SPACES[id(dense)] = made
    return made


_SPACES: dict[int, Space] = {}


def vectors_of(store: Store, hashes: list[str]) -> tuple[list[int], Any]:
    """Return (positions in `hashes` that have a vector, float32 [n, dims] of them)."""
    vectors = store.index.dense.vectors()
    assert vectors is not None
    rows = vectors.rows_of(hashes)
    have = [place for place, row in enumerate(rows) if row >= 0]
    return have, vectors.get(rows[have])


def _fit(fingerprint: str, windows: int, background: tuple[Any, Any], own: Any) -> Space:
    import numpy as np

    questions, passages = background
    passages = np.vstack([passages, own])
    question_mean, passage_mean = questions.mean(0), passages.mean(0)
    rest = np.vstack([questions - question_mean, passages - passage_mean])
    # The strongest direction: the eigenvector of the largest eigenvalue (eigh sorts them upwards).
    common = np.linalg.eigh(rest.T @ rest)[1][:, -1]
    return Space(fingerprint, windows, question_mean, passage_mean, common)


def _background(embedder: Embedder, make: bool) -> tuple[Any, Any] | None:
    import numpy as np

    from mdmem.config import data_home

    folder = data_home() / "gate"
    text = BACKGROUND.read_text("utf-8")
    path = folder / f"{embedder.fingerprint}-{len(text)}.npz"
    try:
        with np.load(path, allow_pickle=False) as kept:
            found = kept["questions"], kept["passages"]
        if found[0].shape[1] == found[1].shape[1] == embedder.dims:
            return found
    except (OSError, ValueError, KeyError, EOFError, IndexError):
        pass
    except Exception:
        # Whatever a damaged archive raises: it is made again.
        pass
    if not make:
        return None
    lines = text.splitlines()
    questions = embedder.queries([line[2:] for line in lines if line.startswith("? ")])
    passages = embedder.passages([line[2:] for line in lines if line.startswith("! ")])
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(temporary, questions=questions, passages=passages)
        os.replace(temporary, path)
    except OSError:
        # Only time is lost.
        pass
    return questions, passages
