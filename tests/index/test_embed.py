"""The bundled model, run for real."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mdmem.config import Config
from mdmem.index.embed import load_embedder


def test_bundled_model_finds_by_meaning(tmp_path: Path) -> None:
    embedder = load_embedder(Config(), tmp_path)
    found = embedder.passages(["We chose PostgreSQL as the job queue.", "Lunch is at noon.", "我们用 PostgreSQL 做任务队列。"])
    asked = embedder.queries(["which database holds the background jobs?"])
    assert found.dtype == np.float32 and found.shape == (3, 384)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    scores = (found @ asked.T)[:, 0]
    assert scores[0] > scores[1] and scores[2] > scores[1]
    assert embedder.count_tokens("hello world") == 3


def test_same_text_same_bits(tmp_path: Path) -> None:
    embedder = load_embedder(Config(), tmp_path)
    texts = ["a", "a longer text about git merges and locks", "部署失败的原因是证书过期", "a"]
    together = embedder.passages(texts)
    assert all(np.array_equal(together[row], embedder.passages([text])[0]) for row, text in enumerate(texts))


@pytest.mark.parametrize("backend", ["off", "nonsense"])
def test_no_backend_is_one_typed_error(tmp_path: Path, backend: str) -> None:
    from mdmem.index.embed import EmbeddingUnavailable

    with pytest.raises(EmbeddingUnavailable) as caught:
        load_embedder(Config(values={"embedding.backend": backend}), tmp_path)
    assert caught.value.wanted == (backend == "off")
