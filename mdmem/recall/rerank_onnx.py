"""A cross-encoder in a folder: model.onnx and tokenizer.json, as exported by the usual tools. One pair a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mdmem.recall.rerank import RerankUnavailable

MAX_TOKENS = 512
_GRAPHS = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")


class OnnxReranker:
    """A model folder. Raises RerankUnavailable on construction when it cannot be opened."""

    def __init__(self, folder: Path) -> None:
        graph = next((folder / name for name in _GRAPHS if (folder / name).is_file()), None)
        if graph is None or not (folder / "tokenizer.json").is_file():
            raise RerankUnavailable(f"there is no cross-encoder in {folder}", why="it needs model.onnx and tokenizer.json")
        self.folder = folder
        self._session, self._tokenizer = self._guarded(lambda: self._open(graph))
        self._inputs = {value.name for value in self._session.get_inputs()}

    def _open(self, graph: Path) -> tuple[Any, Any]:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(str(graph.resolve()), options, providers=["CPUExecutionProvider"])
        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS, strategy="only_second")
        return session, tokenizer

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return the logit of `relevant` for each passage. Raises RerankUnavailable."""
        short = question[: 4 * MAX_TOKENS]
        found: list[float] = self._guarded(lambda: [self._score(short, passage) for passage in passages])
        return found

    def _score(self, question: str, passage: str) -> float:
        import numpy as np

        # A lone surrogate is not text that a tokenizer takes.
        pair = [text.encode("utf-8", "replace").decode() for text in (question, passage)]
        coded = self._tokenizer.encode(*pair)
        given = {
            "input_ids": np.array([coded.ids], np.int64),
            "attention_mask": np.array([coded.attention_mask], np.int64),
            "token_type_ids": np.array([coded.type_ids], np.int64),
        }
        found = np.asarray(self._session.run(None, {name: given[name] for name in self._inputs if name in given})[0])
        flat = found.reshape(-1)
        # One number: the logit. Two: (not relevant, relevant).
        score = float(flat[0]) if flat.size == 1 else float(flat[1] - flat[0]) if flat.size == 2 else float("nan")
        if not np.isfinite(score):
            raise ValueError(f"the graph gives {flat.size} numbers for a pair, one or two expected")
        return score

    def _guarded(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:
            why = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            raise RerankUnavailable(f"the cross-encoder in {self.folder} cannot be used", why=why) from error
