"""Write the same encoder for speed: linear layers in 8-bit integers, one text a run.

Activations are quantised row by row (one row is one token) while the graph runs, weights column by
column beforehand, so that a product of integers is exact and a text's vector does not depend on
what else is embedded. Channels that are large in the activations are divided by a power of two
that the weights are multiplied with (SmoothQuant, Xiao et al. 2023, with alpha 0.5).

Input: input_ids int64 [1, length]. Outputs: sentence_embedding float32 [1, hidden] of length 1, and
`widest`, an integer product that is EXACT only where the processor's instructions do not saturate.

What costs nothing is folded: the bias of the keys drops out of the softmax, the bias of the values
goes into the next layer's, 1/sqrt(width) into the queries, the type vector into the positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from build_model_graph import MICROSOFT, Graph, word_table
from build_model_weights import WORDS, Source
from onnx import ModelProto, TensorProto, helper, numpy_helper

WIDEST_ROW = 256
EXACT = WIDEST_ROW * 255 * 127
# GELU is never below -0.17, so that most of the range of a byte is left for what is above zero.
GELU_LOW, GELU_ZERO = 0.17, 16


@dataclass(frozen=True)
class _Bytes:
    """A matrix of bytes [tokens, channels] with the scale of each row, as a vector and as a column."""

    values: str
    column: str
    zero: str


def smoothing(activations: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the powers of two [channels] to divide activations by, from the largest of each channel and of each row
    of weights [channels, out]."""
    wanted = np.sqrt(activations / np.abs(weights).max(1))
    return np.exp2(np.round(np.log2(wanted / np.exp(np.log(wanted).mean())))).astype(np.float32)


def quantised(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return int8 [in, out] in -127..127 and float32 [out] scales."""
    scale = np.abs(weights).max(0) / np.float32(127)
    return np.clip(np.round(weights / scale), -127, 127).astype(np.int8), scale.astype(np.float32)


def build_int8(source: Source, keep: np.ndarray, largest: dict[str, np.ndarray]) -> ModelProto:
    """Return the model; `largest` holds the largest absolute activation [hidden] after each LayerNorm by its name."""
    shape = source.shape
    width = shape.hidden // shape.heads
    graph = Graph()
    plain = source.plain
    zero, one, last = graph.integers("c_0", [0]), graph.integers("c_1", [1]), graph.integers("c_-1", [-1])
    split, merge = graph.integers("c_split", [-1, shape.heads, width]), graph.integers("c_merge", [-1, shape.hidden])
    unit, per_byte = graph.floats("c_unit", 1.0), graph.floats("c_1/127", 1 / 127)
    middle, low = graph.weight("c_128", np.array(128, np.uint8)), graph.weight("c_low", np.array(GELU_ZERO, np.uint8))
    above = graph.floats("c_above", 1 / (255 - GELU_ZERO))
    least = graph.floats("c_least", GELU_LOW / GELU_ZERO)

    def norm(x: str, name: str, short: str) -> str:
        gain, shift = graph.weight(short + ".w", plain[name + ".weight"]), graph.weight(short + ".b", plain[name + ".bias"])
        return graph.node("LayerNormalization", [x, gain, shift], axis=-1, epsilon=shape.epsilon)

    def repeated(value: int) -> str:
        filled = numpy_helper.from_array(np.array([value], np.uint8))
        return graph.node("ConstantOfShape", [length], value=filled)

    def to_bytes(x: str, gelu: bool = False) -> _Bytes:
        if gelu:
            most = graph.node("ReduceMax", [x], axes=[1], keepdims=0)
            scale = graph.node("Max", [graph.node("Mul", [most, above]), least])
        else:
            most = graph.node("ReduceMax", [graph.node("Abs", [x])], axes=[1], keepdims=0)
            scale = graph.node("Mul", [most, per_byte])
        values = graph.node("QuantizeLinear", [x, scale, lows if gelu else middles], axis=0)
        return _Bytes(values, graph.node("Unsqueeze", [scale, one]), low if gelu else middle)

    def linear(x: _Bytes, name: str, factor: Any = 1.0) -> str:
        """The product without a bias; `factor` is a number, or one for each input channel."""
        values, scale = quantised(source.matrices[name].floats().T * np.float32(factor))
        inputs = [x.values, graph.weight(name + ".int8", values), unit, graph.weight(name + ".scale", scale), x.zero]
        return graph.node("Mul", [graph.node("MatMulIntegerToFloat", inputs, MICROSOFT), x.column])

    def smooth(x: str, after: str, name: str) -> tuple[_Bytes, np.ndarray]:
        factors = smoothing(largest[after], source.matrices[name].floats().T)
        return to_bytes(graph.node("Mul", [x, graph.weight(name + ".smooth", 1 / factors)])), factors[:, None]

    def heads(x: str, order: list[int]) -> str:
        return graph.node("Transpose", [graph.node("Reshape", [x, split])], perm=order)

    length = graph.node("Gather", [graph.node("Shape", ["input_ids"]), one])
    middles, lows = repeated(128), repeated(GELU_ZERO)
    ids = graph.node("Reshape", ["input_ids", last])
    word = word_table(graph, source.matrices[WORDS].rows(keep), ids)
    places = plain["embeddings.position_embeddings.weight"] + plain["embeddings.token_type_embeddings.weight"][0]
    place = graph.node("Slice", [graph.weight("embeddings.pos+type", places), zero, length, zero])
    after = "eln"
    x = norm(graph.node("Add", [word, place]), "embeddings.LayerNorm", after)
    for layer in range(shape.layers):
        prefix = f"encoder.layer.{layer}."
        attention, output = prefix + "attention.self.", prefix + "attention.output.dense"
        inside, factors = smooth(x, after, attention + "value")
        factor = np.float32(1 / np.sqrt(width))
        bias = graph.weight(attention + "query.bias", plain[attention + "query.bias"] * factor)
        query = heads(graph.node("Add", [linear(inside, attention + "query", factors * factor), bias]), [1, 0, 2])
        key = heads(linear(inside, attention + "key", factors), [1, 2, 0])
        value = heads(linear(inside, attention + "value", factors), [1, 0, 2])
        scores = graph.node("Softmax", [graph.node("MatMul", [query, key])], axis=-1)
        mixed = graph.node("Transpose", [graph.node("MatMul", [scores, value])], perm=[1, 0, 2])
        mixed = graph.node("Reshape", [mixed, merge])
        folded = plain[output + ".bias"] + source.matrices[output].floats() @ plain[attention + "value.bias"]
        mixed = graph.node("Add", [linear(to_bytes(mixed), output), x])
        mixed = graph.node("Add", [mixed, graph.weight(output + ".bias", folded.astype(np.float32))])
        x = norm(mixed, prefix + "attention.output.LayerNorm", prefix + "aln")
        name = prefix + "intermediate.dense"
        inside, factors = smooth(x, prefix + "aln", name)
        inner = graph.node("Add", [linear(inside, name, factors), graph.weight(name + ".bias", plain[name + ".bias"])])
        inner = graph.node("Gelu", [inner], MICROSOFT)
        name = prefix + "output.dense"
        inner = graph.node("Add", [linear(to_bytes(inner, gelu=True), name), x])
        inner = graph.node("Add", [inner, graph.weight(name + ".bias", plain[name + ".bias"])])
        after = prefix + "oln"
        x = norm(inner, prefix + "output.LayerNorm", after)
    mean = graph.node("ReduceMean", [x], axes=[0], keepdims=1)
    graph.node("LpNormalization", [mean], output="sentence_embedding", axis=1, p=2)
    most = graph.weight("c_255s", np.full((1, WIDEST_ROW), 255, np.uint8))
    weights = graph.weight("c_127s", np.full((WIDEST_ROW, 1), 127, np.int8))
    graph.node("MatMulInteger", [most, weights], output="widest")
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "length"])]
    outputs = [
        helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, [1, shape.hidden]),
        helper.make_tensor_value_info("widest", TensorProto.INT32, [1, 1]),
    ]
    return graph.model("bert-int8", inputs, outputs)
