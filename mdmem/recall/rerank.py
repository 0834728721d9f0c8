"""A second, closer look at the best passages by a cross-encoder: a model folder of the user's, or a `/rerank` endpoint.

Only the user's own settings can name one. Whatever goes wrong is a notice, and the order stays as it was."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mdmem.errors import MdmemError

if TYPE_CHECKING:
    from mdmem.config import Config

SHARE = 0.6  # of the judgement beside the score so far (prior art)
_kept: dict[tuple[str, ...], Reranker] = {}


class RerankUnavailable(MdmemError):
    """No judgement can be had now; the order found stays."""

    code, exit_code = "rerank_unavailable", 1


class Reranker(Protocol):
    """One model that reads question and passage together."""

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return one number a passage, more for a better answer; only their order and distances mean something.

        Raises RerankUnavailable."""


def load_reranker(config: Config) -> Reranker:
    """Return what the user's settings name (one is switched on); kept for the life of the process.

    Raises RerankUnavailable when the settings do not make sense or the model cannot be opened."""
    backend = str(config.get("rerank.backend"))
    names = ("path",) if backend == "onnx" else ("base_url", "model", "api_key_env")
    key = (backend, *(str(config.get(f"rerank.{name}")) for name in names))
    if key in _kept:
        return _kept[key]
    made: Reranker
    if backend == "onnx":
        from mdmem.recall.rerank_onnx import OnnxReranker

        if not config.get("rerank.path"):
            raise RerankUnavailable("rerank.path is not set", hint="mdmem config set rerank.path DIR")
        made = OnnxReranker(Path(str(config.get("rerank.path"))).expanduser())
    else:
        from mdmem.recall.rerank_http import HttpReranker

        variable = str(config.get("rerank.api_key_env"))
        if variable and not os.environ.get(variable):
            raise RerankUnavailable(f"the environment variable {variable} has no key", why="rerank.api_key_env names it")
        made = HttpReranker(
            str(config.get("rerank.base_url")),
            str(config.get("rerank.model")),
            os.environ.get(variable, "") if variable else "",
        )
    _kept[key] = made
    return made
