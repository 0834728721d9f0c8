"""The vectors of the shipped synonyms: they fit the list and the model, and turn a question towards what its words mean."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mdmem.index.embed import BUNDLED
from mdmem.index.embed_onnx import OnnxEmbedder
from mdmem.recall import wordvectors
from mdmem.recall.expand import Concept, Member, alike

TOOL = Path(__file__).parents[2] / "tools" / "build_model_common.py"


def store_of(embedder: Any) -> Any:
    return SimpleNamespace(index=SimpleNamespace(dense=SimpleNamespace(embedder=lambda: embedder)))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> OnnxEmbedder:
    return OnnxEmbedder(BUNDLED, tmp_path_factory.mktemp("state"))


def test_the_shipped_vectors_are_of_this_list_and_this_model(model: OnnxEmbedder) -> None:
    """After a change of synonyms.txt: python tools/build_model_common.py mdmem/models/e5-small-q4-enzh"""
    spec = importlib.util.spec_from_file_location("build_model_common", TOOL)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    data = wordvectors.shipped_list()
    rows = np.load(BUNDLED / wordvectors.file_name(data))
    assert [path.name for path in BUNDLED.glob("synonyms-*.npy")] == [wordvectors.file_name(data)]
    made = tool.words(model, wordvectors.members(data))
    assert made.shape == rows.shape
    assert np.abs(made.astype(int) - rows).max() <= 2


def test_the_other_words_point_to_a_passage_that_says_them(model: OnnxEmbedder) -> None:
    passages = model.passages(["回滚方案：保留最近五个镜像。", "会议室周三下午留给面试。"])
    added = wordvectors.direction(store_of(model), alike("how do we roll back"))
    near = passages.astype(np.float64) @ added
    assert near[0] > near[1] + 0.01


def test_words_without_a_vector_and_models_without_vectors_add_nothing(model: OnnxEmbedder, tmp_path: Path) -> None:
    own = [Concept((Member("soldering paste", ("solder", "past")),), ())]
    assert wordvectors.direction(store_of(model), own) is None
    assert wordvectors.direction(store_of(None), alike("rollback")) is None
    assert wordvectors.direction(store_of(SimpleNamespace(dims=384)), alike("rollback")) is None
    other = SimpleNamespace(dims=384, model=SimpleNamespace(folder=tmp_path))
    assert wordvectors.direction(store_of(other), alike("rollback")) is None


@pytest.mark.parametrize("damage", ["cut", "kind", "length"])
def test_damaged_vectors_are_left_out(damage: str, tmp_path: Path) -> None:
    data = wordvectors.shipped_list()
    path = tmp_path / wordvectors.file_name(data)
    size = len(wordvectors.members(data))
    if damage == "cut":
        np.save(path, np.zeros((size, 384), np.int8))
        path.write_bytes(path.read_bytes()[:1000])
    else:
        np.save(path, np.zeros((size - (damage == "length"), 384), np.float32 if damage == "kind" else np.int8))
    other = SimpleNamespace(dims=384, model=SimpleNamespace(folder=tmp_path))
    assert wordvectors.direction(store_of(other), alike("rollback")) is None
