"""Texts to unit vectors: the interface, and the choice of a back end by the user's settings.

Knows nothing of notes, windows or stores. Heavy imports (numpy, onnxruntime, tokenizers) happen
when the first text is embedded, so that asking for a fingerprint costs two small files.
"""

from __future__ import annotations

import hashlib
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
BACKENDS = ("bundled", "onnx", "http", "off")


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


def load_embedder(config: Config, state_dir: Path, chunking: str = "") -> Embedder:
    """Return the embedder that the settings name; `chunking` is the version of the window cutter.

    `state_dir` keeps what was verified before. Raises EmbeddingUnavailable when the model is
    missing or damaged, when the settings do not make sense, or when embeddings are switched off.
    """
    backend = config.get("embedding.backend")
    if backend == "off":
        raise EmbeddingUnavailable("embeddings are switched off", code="embedding_off")
    if backend in ("bundled", "onnx"):
        from mdmem.index.embed_onnx import OnnxEmbedder

        folder = BUNDLED
        if backend == "onnx":
            if not config.get("embedding.path"):
                raise EmbeddingUnavailable("embedding.path is not set", hint="mdmem config set embedding.path DIR")
            folder = Path(config.get("embedding.path")).expanduser()
        return OnnxEmbedder(folder, state_dir, chunking=chunking, threads=config.get("embedding.threads"))
    raise EmbeddingUnavailable(
        f"embedding.backend cannot be {backend!r}",
        why=f"it is one of {', '.join(BACKENDS)}",
        hint="mdmem config set embedding.backend bundled",
    )
