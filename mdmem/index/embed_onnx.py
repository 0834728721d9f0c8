"""The local back end: an ONNX graph run by onnxruntime, with its tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.index.embed import EmbeddingUnavailable, fingerprint, unit_rows
from mdmem.index.embed_files import REPAIR, read_model

if TYPE_CHECKING:
    from mdmem.index.embed import Matrix


class OnnxEmbedder:
    """A model folder. Raises EmbeddingUnavailable on construction when its files are not right."""

    def __init__(self, folder: Path, state_dir: Path, chunking: str = "", threads: int = 1) -> None:
        self.model = read_model(folder, state_dir)
        self.threads = max(1, threads)
        model = self.model
        self.fingerprint = fingerprint(
            "onnx", model.digest, model.dims, model.max_tokens, model.query_prefix, model.passage_prefix, chunking
        )
        self.dims = model.dims

    @cached_property
    def _session(self) -> Any:
        try:
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = self.threads
            options.inter_op_num_threads = 1
            options.log_severity_level = 4
            return onnxruntime.InferenceSession(str(self.model.graph), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise EmbeddingUnavailable("the embedding model cannot be loaded", why=_brief(error), hint=REPAIR) from error

    @cached_property
    def _tokenizer(self) -> Any:
        try:
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(self.model.tokenizer))
            tokenizer.no_padding()
            tokenizer.enable_truncation(self.model.max_tokens)
            return tokenizer
        except Exception as error:
            raise EmbeddingUnavailable("the embedding model cannot be loaded", why=_brief(error), hint=REPAIR) from error

    def count_tokens(self, text: str) -> int:
        """Return the tokens of `text` alone; at most the model's limit."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def passages(self, texts: Sequence[str]) -> Matrix:
        """Return float32 [len(texts), dims] for texts to be found."""
        return self._embed([self.model.passage_prefix + text for text in texts])

    def queries(self, texts: Sequence[str]) -> Matrix:
        """Return float32 [len(texts), dims] for questions."""
        return self._embed([self.model.query_prefix + text for text in texts])

    def _embed(self, texts: list[str]) -> Matrix:
        import numpy as np

        out = np.zeros((len(texts), self.dims), np.float32)
        for row, text in enumerate(texts):
            ids = np.array([self._tokenizer.encode(text).ids], np.int64)
            try:
                (vector,) = self._session.run(
                    None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
                )
            except Exception as error:
                raise EmbeddingUnavailable("the embedding model failed", why=_brief(error), hint=REPAIR) from error
            out[row] = vector[0]
        return unit_rows(out)


def _brief(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
