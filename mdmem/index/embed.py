"""Texts to unit vectors: the interface, and the choice of a back end by the user's settings.

Knows nothing of notes, windows or stores. Heavy imports (numpy, onnxruntime, tokenizers) happen
when the first text is embedded, so that asking for a fingerprint costs two small files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mdmem.errors import MdmemError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mdmem.config import Config

    Matrix = NDArray[np.float32]

BUNDLED = Path(__file__).resolve().parent.parent / "models" / "e5-small-q4-enzh"
BACKENDS = ("bundled", "onnx", "openai", "none")
ALSO = {"http": "openai", "off": "none"}


class EmbeddingUnavailable(MdmemError):
    """No vectors can be made now; search by words goes on. Never means that the model changed."""

    code, exit_code = "embedding_unavailable", 1

    @property
    def wanted(self) -> bool:
        """Return True when the user chose to have no embeddings: nothing to tell."""
        return self.code == "embedding_off"


class Embedder(Protocol):
    """One model with its prefixes. Equal texts give bit-identical rows, whatever else is in the call."""

    @property
    def fingerprint(self) -> str:
        """Return what a stored vector depends on, as 16 hex digits: model, prefixes, dimensions, chunking."""

    @property
    def dims(self) -> int:
        """Return the length of a vector."""

    def passages(self, texts: Sequence[str]) -> Matrix:
        """Return float32 [len(texts), dims], rows of length 1, for texts to be found. Raises EmbeddingUnavailable."""

    def queries(self, texts: Sequence[str]) -> Matrix:
        """Return float32 [len(texts), dims], rows of length 1, for questions. Raises EmbeddingUnavailable."""

    def count_tokens(self, text: str) -> int:
        """Return how many model tokens `text` takes, without prefix and end marks. Raises EmbeddingUnavailable."""


def fingerprint(*parts: object) -> str:
    """Return 16 hex digits over the parts, in order."""
    return hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).hexdigest()[:16]


def unit_rows(matrix: Matrix) -> Matrix:
    """Return the rows scaled to length 1; a zero row stays zero. Raises EmbeddingUnavailable on NaN or infinity."""
    import numpy as np

    if not np.isfinite(matrix).all():
        raise EmbeddingUnavailable("the embedding model gave numbers that are not finite")
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    scaled: Matrix = (matrix / np.maximum(norms, 1e-12)[:, None]).astype(np.float32)
    return scaled


def load_embedder(config: Config, state_dir: Path, chunking: str = "") -> Embedder:
    """Return the embedder that the settings name; `chunking` is the version of the window cutter.

    `state_dir` keeps what was verified before. Raises EmbeddingUnavailable when the model is
    missing or damaged, when the settings do not make sense, or when embeddings are switched off.
    """
    backend = config.get("embedding.backend")
    backend = ALSO.get(backend, backend)
    if backend == "none":
        raise EmbeddingUnavailable("embeddings are switched off", code="embedding_off")
    if backend in ("bundled", "onnx"):
        from mdmem.index.embed_onnx import OnnxEmbedder

        folder = BUNDLED
        if backend == "onnx":
            if not config.get("embedding.path"):
                raise EmbeddingUnavailable("embedding.path is not set", hint="mdmem config set embedding.path DIR")
            folder = Path(config.get("embedding.path")).expanduser()
        return OnnxEmbedder(folder, state_dir, chunking=chunking, threads=config.get("embedding.threads"))
    if backend == "openai":
        from mdmem.index.embed_http import HttpEmbedder, Service

        variable = config.get("embedding.api_key_env")
        key = os.environ.get(variable, "") if variable else ""
        if variable and not key:
            raise EmbeddingUnavailable(f"the environment variable {variable} has no key", why="embedding.api_key_env names it")
        service = Service(
            base_url=config.get("embedding.base_url"),
            model=config.get("embedding.model"),
            dims=max(0, config.get("embedding.dimensions")),
            query_prefix=config.get("embedding.query_prefix"),
            passage_prefix=config.get("embedding.passage_prefix"),
            query_task=config.get("embedding.query_task"),
            passage_task=config.get("embedding.passage_task"),
            key=key,
        )
        return HttpEmbedder(service, state_dir, chunking=chunking)
    raise EmbeddingUnavailable(
        f"embedding.backend cannot be {backend!r}",
        why=f"it is one of {', '.join(BACKENDS)}",
        hint="mdmem config set embedding.backend bundled",
    )
