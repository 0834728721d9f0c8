"""The local back end: an ONNX graph run by onnxruntime, with its tokenizer.

One text a run. On one thread, batches are no faster from some twenty tokens on, and need padding,
memory, and care that a vector does not depend on its neighbours; several threads take a text each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.index.embed import EmbeddingUnavailable, fingerprint, unit_rows
from mdmem.index.embed_files import REPAIR, read_model
from mdmem.index.embed_pieces import Pieces

if TYPE_CHECKING:
    from mdmem.index.embed import Matrix

# Tokens after which the tokenizers package has paid for its start; it then holds some 80 MB.
PIECES_UNTIL = 16_000
# Tokens of a text from which on what its run took is given back, where memory counts: 50 MB after 500 tokens.
LONG = 64


class OnnxEmbedder:
    """A model folder. Raises EmbeddingUnavailable on construction when its files are not right."""

    def __init__(self, folder: Path, state_dir: Path, chunking: str = "", threads: int = 1) -> None:
        self.model = model = read_model(folder, state_dir)
        self.threads = threads if threads > 0 else min(4, os.cpu_count() or 1)
        self.fingerprint = fingerprint(
            "onnx", model.digest, model.dims, model.max_tokens, model.query_prefix, model.passage_prefix, chunking
        )
        self.dims = model.dims
        self._fast = bool(model.fast)
        self._session: Any = None
        self._inputs: list[str] = []
        self._output = ""
        self._for_long = False  # the session has its weights laid out for many runs
        self._tokens = 0
        self._spare = False
        self._long: Any = None  # options of a run after which memory is given back

    @property
    def ready(self) -> bool:
        """Whether the graph is loaded for many runs: texts can then be embedded from several threads."""
        return self._session is not None and (self._for_long or not self._fast)

    def spare(self) -> None:
        """Hold no more memory than needed from now on, for some percent of speed with long texts: a process that lives on."""
        self._spare = True

    def count_tokens(self, text: str) -> int:
        """Return the tokens of `text` alone; at most the model's limit."""
        return len(self._encode(text)) - 2

    def passages(self, texts: Sequence[str]) -> Matrix:
        """Return float32 [len(texts), dims] for texts to be found."""
        return self._embed([self.model.passage_prefix + text for text in texts])

    def queries(self, texts: Sequence[str]) -> Matrix:
        """Return float32 [len(texts), dims] for questions."""
        return self._embed([self.model.query_prefix + text for text in texts])

    def _embed(self, texts: list[str]) -> Matrix:
        import numpy as np

        out = np.zeros((len(texts), self.dims), np.float32)
        if not texts:
            return out
        rows = _guarded(lambda: [np.array([self._encode(text)], np.int64) for text in texts])
        # The first text of a process is often the only one, such as a question from the command line.
        known = self._prepare(many=self._session is not None or len(texts) > 1, ids=rows[0])
        if known is not None:
            out[0] = known

        def run(number: int) -> None:
            out[number] = self._vector(rows[number])

        left = range(0 if known is None else 1, len(texts))
        if self.threads == 1 or len(left) < 2:
            _guarded(lambda: list(map(run, left)))
        else:
            from concurrent.futures import ThreadPoolExecutor

            longest_first = sorted(left, key=lambda number: -rows[number].size)
            with ThreadPoolExecutor(self.threads) as pool:
                _guarded(lambda: list(pool.map(run, longest_first)))
        return unit_rows(out)

    def _prepare(self, many: bool, ids: Any) -> Any:
        """Open the session where needed; one for `many` runs takes longer to open and less for each run, with the same
        results. Returns the vector of `ids` when the fast graph had to be tried with them, else None."""
        if self._session is not None and (self._for_long or not many or not self._fast):
            return None
        self._for_long = many
        if self._fast:
            name, expected = self.model.check
            try:
                self._open()
                vector, found = self._session.run([self._output, name], {"input_ids": ids})
                if found.size == 1 and found.flat[0] == expected:
                    return vector[0]
            except Exception:
                pass
            # Integer products saturate on this processor, or this onnxruntime does not read the graph. The exact one
            # needs neither.
            self._fast = False
        _guarded(self._open)
        return None

    def _open(self) -> None:
        # Newer versions write a device id to ~/.cache and report to their maker on import, unless this is set before.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        if self._fast:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # was done by hand
        if self._fast and not self._for_long:
            # Integers give the same sums either way; the exact graph's floats would not.
            options.add_session_config_entry("session.disable_prepacking", "1")
        # Resolved, because the graph's weights must lie in its own folder also where an installer made links.
        graph = (self.model.folder / self.model.fast if self._fast else self.model.graph).resolve()
        session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        self._inputs = [value.name for value in session.get_inputs()]
        outputs = [value.name for value in session.get_outputs()]
        self._output = "sentence_embedding" if "sentence_embedding" in outputs else outputs[0]
        self._session = session

    def _vector(self, ids: Any) -> Any:
        """Return the vector [dims] of one row of ids [1, length]."""
        import numpy as np

        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        options = self._frugal() if self._spare and ids.size > LONG else None
        (found,) = self._session.run([self._output], {name: given[name] for name in self._inputs}, options)
        found = found[0]
        if found.ndim == 2:
            found = found[0] if self.model.pooling == "cls" else found.mean(axis=0)
        if found.shape != (self.dims,):
            raise ValueError(f"the graph gives {found.shape[-1]} numbers, model.json says {self.dims}")
        return found

    def _frugal(self) -> Any:
        if self._long is None:
            import onnxruntime

            self._long = onnxruntime.RunOptions()
            self._long.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        return self._long

    def _encode(self, text: str) -> list[int]:
        """Return the ids of a text with the model's marks, cut to its limit."""
        text = text.encode("utf-8", "replace").decode()
        ids = None
        if self._pieces is not None and (self._spare or self._tokens < PIECES_UNTIL):
            ids = self._pieces.encode(text)
        if ids is None:
            found: list[int] = self._tokenizer.encode(text).ids
            return found
        self._tokens += len(ids)
        limit = self.model.max_tokens
        return ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]]

    @cached_property
    def _pieces(self) -> Pieces | None:
        return _guarded(lambda: Pieces(self.model.folder / self.model.pieces)) if self.model.pieces else None

    @cached_property
    def _tokenizer(self) -> Any:
        def load() -> Any:
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(self.model.tokenizer))
            tokenizer.no_padding()
            tokenizer.enable_truncation(self.model.max_tokens)
            return tokenizer

        return _guarded(load)


def _guarded(work: Callable[[], Any]) -> Any:
    """Return what `work` returns. Raises EmbeddingUnavailable for whatever the libraries raise."""
    try:
        return work()
    except EmbeddingUnavailable:
        raise
    except Exception as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise EmbeddingUnavailable("the embedding model cannot be used", why=why, hint=REPAIR) from error
