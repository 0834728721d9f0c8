"""How near a prompt and a passage are in meaning, on scales that mean the same for every prompt, and what kind of prompt it is.

Raw cosines of a small model are of little use as evidence: all of them lie between 0.75 and 0.9, and an unrelated
passage in the prompt's language is nearer than the right one in another. What all questions have in common and what all
passages have in common is taken away first (`plain`), then also the strongest direction in what is left, which is mostly
the language (`near`): "All-but-the-Top" (Mu, Viswanath 2018, arXiv:1702.01417), with one direction, and means of their
own for questions and passages. `plain` ranks better within a language, `near` across languages.

`asks` tells from the prompt alone how much it looks like a question about what a team knows, as opposed to a chore at the
open file, small talk, or a question that any encyclopedia answers: a logistic function of its vector, fitted to the two kinds
of questions in background.txt. The background is embedded once for each model and kept.
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
# Length of a question's direction, and how strongly weights are pulled towards zero, in the fit of `asks`.
SPREAD, PULL = 5.0, 0.1


@dataclass
class Space:
    """The space of one model as one store sees it."""

    fingerprint: str
    windows: int
    question_mean: Any
    passage_mean: Any
    common: Any
    asking: Any

    def nearness(self, question: Any, passages: Any) -> tuple[Any, Any]:
        """Return (near, plain), float [n] from -1 to 1 each, of passages (float32 [n, dims]) to a question (float32 [dims])."""
        import numpy as np

        asked = np.asarray(question)[None] - self.question_mean
        rows = np.asarray(passages) - self.passage_mean
        plain = _unit(rows) @ _unit(asked)[0]
        return _unit(self._without(rows)) @ _unit(self._without(asked))[0], plain

    def asks(self, question: Any) -> float:
        """Return the log odds that a prompt (float32 [dims]) asks for what a team knows."""
        import numpy as np

        return float(_bent(np.asarray(question)[None], self.question_mean)[0] @ self.asking)

    def _without(self, rows: Any) -> Any:
        import numpy as np

        return rows - np.outer(rows @ self.common, self.common)


def _unit(rows: Any) -> Any:
    import numpy as np

    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def _bent(questions: Any, mean: Any) -> Any:
    """Return the features of `asks`, float [n, dims + 1]: a constant, and the direction of each question from the mean."""
    import numpy as np

    return np.hstack([np.ones((len(questions), 1)), SPREAD * _unit(questions - mean)])


def fit_asking(questions: Any, wanted: Any, mean: Any) -> Any:
    """Return the weights [dims + 1] of `asks`: logistic regression with a pull towards zero, by Newton's method."""
    import numpy as np

    x = _bent(questions, mean).astype(np.float64)
    pull = np.r_[1e-6, np.full(x.shape[1] - 1, PULL)]
    weights = np.zeros(x.shape[1])
    for _ in range(15):
        p = 1 / (1 + np.exp(-x @ weights))
        slope = x.T @ (p - wanted) / len(x) + pull * weights
        weights = weights - np.linalg.solve((x.T * (p * (1 - p))) @ x / len(x) + np.diag(pull), slope)
    return weights


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


def _fit(fingerprint: str, windows: int, background: tuple[Any, Any, Any], own: Any) -> Space:
    import numpy as np

    questions, passages, asking = background
    passages = np.vstack([passages, own])
    question_mean, passage_mean = questions.mean(0), passages.mean(0)
    rest = np.vstack([questions - question_mean, passages - passage_mean])
    # The strongest direction: the eigenvector of the largest eigenvalue (eigh sorts them upwards).
    common = np.linalg.eigh(rest.T @ rest)[1][:, -1]
    return Space(fingerprint, windows, question_mean, passage_mean, common, asking)


def background(embedder: Embedder) -> tuple[tuple[list[str], Any], tuple[list[str], Any]] | None:
    """Return the background's (questions, float32 [n, dims]) and (passages, float32 [n, dims]) in a model's space, None when
    not yet embedded."""
    found = _background(embedder, make=False)
    if found is None:
        return None
    lines = BACKGROUND.read_text("utf-8").splitlines()
    asked = [line[2:] for line in lines if line.startswith(("+ ", "- "))]
    return (asked, found[0]), ([line[2:] for line in lines if line.startswith("! ")], found[1])


def _background(embedder: Embedder, make: bool) -> tuple[Any, Any, Any] | None:
    """Return (questions, passages, weights of `asks`) of the background in a model's space, None when not yet made."""
    import zlib

    import numpy as np

    from mdmem.config import data_home

    folder = data_home() / "gate"
    text = BACKGROUND.read_text("utf-8")
    path = folder / f"{embedder.fingerprint}-{zlib.crc32(text.encode()):08x}.npz"
    try:
        with np.load(path, allow_pickle=False) as kept:
            found = kept["questions"], kept["passages"], kept["asking"]
        if found[0].shape[1] == found[1].shape[1] == len(found[2]) - 1 == embedder.dims:
            return found
    except (OSError, ValueError, KeyError, EOFError, IndexError):
        pass
    except Exception:
        # Whatever a damaged archive raises: it is made again.
        pass
    if not make:
        return None
    lines = text.splitlines()
    asked = [line for line in lines if line.startswith(("+ ", "- "))]
    questions = embedder.queries([line[2:] for line in asked])
    passages = embedder.passages([line[2:] for line in lines if line.startswith("! ")])
    wanted = np.array([line.startswith("+") for line in asked], np.float64)
    asking = fit_asking(questions, wanted, questions.mean(0))
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(temporary, questions=questions, passages=passages, asking=asking)
        os.replace(temporary, path)
    except OSError:
        # Only time is lost.
        pass
    return questions, passages, asking
