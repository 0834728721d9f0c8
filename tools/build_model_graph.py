"""Write the encoder as an ONNX graph with 4-bit weights: nothing is lost against the source.

Inputs: input_ids, attention_mask, token_type_ids, int64 [batch, length]. Output: sentence_embedding,
float32 [batch, hidden], the mean over the mask, of length 1. Linear layers are MatMulNBits, the
word table is GatherBlockQuantized (onnxruntime's own operators).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from build_model_weights import BLOCK, WORDS, Quantised, Source
from onnx import ModelProto, TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
ACCURACY_LEVEL = 4  # activations in int8, block by block


class Graph:
    """Nodes and weights under way; each method returns the name of what it made."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[TensorProto] = []
        self._count = 0

    def weight(self, name: str, values: np.ndarray) -> str:
        """Add a constant."""
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def floats(self, name: str, values: Any) -> str:
        """Add a float32 constant."""
        return self.weight(name, np.array(values, np.float32))

    def integers(self, name: str, values: Any) -> str:
        """Add an int64 constant."""
        return self.weight(name, np.array(values, np.int64))

    def node(self, operator: str, inputs: list[str], domain: str = "", output: str = "", **attributes: Any) -> str:
        """Add a node with one output."""
        self._count += 1
        output = output or f"{operator}_{self._count}"
        name = f"n{self._count}_{operator}"
        self.nodes.append(helper.make_node(operator, inputs, [output], name=name, domain=domain, **attributes))
        return output

    def model(self, name: str, inputs: list[Any], outputs: list[Any]) -> ModelProto:
        """Return the finished model."""
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.weights)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="mdmem-research")


def pack(values: np.ndarray) -> np.ndarray:
    """Return 4-bit values two to a byte, neighbours together, the first in the low half."""
    return (values[..., 0::2] | (values[..., 1::2] << 4)).astype(np.uint8)


def word_table(graph: Graph, words: Quantised, ids: str) -> str:
    """Add the look-up of word vectors in a 4-bit table."""
    signed = (values := words.values.astype(np.int16) - 8) & 15
    raw = pack(signed.astype(np.uint8)).tobytes()
    graph.weights.append(helper.make_tensor("emb.q4", TensorProto.INT4, list(values.shape), raw, raw=True))
    scale = graph.weight("emb.scale", words.scales)
    inputs = ["emb.q4", ids, scale]
    return graph.node("GatherBlockQuantized", inputs, MICROSOFT, gather_axis=0, quantize_axis=1, block_size=BLOCK)


def build_exact(source: Source, keep: np.ndarray) -> ModelProto:
    """Return the model with the word vectors of `keep` (indices of pieces) in that order."""
    shape = source.shape
    width = shape.hidden // shape.heads
    graph = Graph()

    def linear(x: str, name: str) -> str:
        matrix = source.matrices[name]
        out, into = matrix.values.shape
        packed = graph.weight(name + ".q4", pack(matrix.values).reshape(out, into // BLOCK, BLOCK // 2))
        scale = graph.weight(name + ".scale", matrix.scales.reshape(-1))
        sizes = {"K": into, "N": out, "bits": 4, "block_size": BLOCK, "accuracy_level": ACCURACY_LEVEL}
        product = graph.node("MatMulNBits", [x, packed, scale], MICROSOFT, **sizes)
        return graph.node("Add", [product, graph.weight(name + ".bias", source.plain[name + ".bias"])])

    def norm(x: str, name: str, short: str) -> str:
        gain = graph.weight(short + ".w", source.plain[name + ".weight"])
        shift = graph.weight(short + ".b", source.plain[name + ".bias"])
        return graph.node("LayerNormalization", [x, gain, shift], axis=-1, epsilon=shape.epsilon)

    split = graph.integers("c_split", [0, 0, shape.heads, width])
    merge = graph.integers("c_merge", [0, 0, shape.hidden])
    one, zero = graph.integers("c_1", [1]), graph.integers("c_0", [0])
    word = word_table(graph, source.matrices[WORDS].rows(keep), "input_ids")
    kinds = graph.weight("embeddings.type", source.plain["embeddings.token_type_embeddings.weight"])
    kind = graph.node("Gather", [kinds, "token_type_ids"])
    sizes = graph.node("Shape", ["input_ids"])
    length = graph.node("Gather", [sizes, one])
    places = graph.weight("embeddings.pos", source.plain["embeddings.position_embeddings.weight"])
    place = graph.node("Slice", [places, zero, length, zero])
    x = graph.node("Add", [graph.node("Add", [word, kind]), place])
    x = norm(x, "embeddings.LayerNorm", "eln")
    mask = graph.node("Cast", ["attention_mask"], to=TensorProto.FLOAT)
    wide = graph.node("Unsqueeze", [mask, graph.integers("c_ax12", [1, 2])])
    absent = graph.node("Sub", [graph.floats("c_onef", 1.0), wide])
    masked = graph.node("Mul", [absent, graph.floats("c_neg", -10000.0)])
    scale, root2 = graph.floats("c_isqrt", 1 / np.sqrt(width)), graph.floats("c_sqrt2", np.sqrt(2.0))
    half, unit = graph.floats("c_half", 0.5), graph.floats("c_onef2", 1.0)
    for layer in range(shape.layers):
        prefix = f"encoder.layer.{layer}."
        query, key, value = (linear(x, prefix + f"attention.self.{name}") for name in ("query", "key", "value"))
        query = graph.node("Transpose", [graph.node("Reshape", [query, split])], perm=[0, 2, 1, 3])
        key = graph.node("Transpose", [graph.node("Reshape", [key, split])], perm=[0, 2, 3, 1])
        value = graph.node("Transpose", [graph.node("Reshape", [value, split])], perm=[0, 2, 1, 3])
        scores = graph.node("Mul", [graph.node("MatMul", [query, key]), scale])
        scores = graph.node("Add", [scores, masked])
        mixed = graph.node("MatMul", [graph.node("Softmax", [scores], axis=-1), value])
        mixed = graph.node("Reshape", [graph.node("Transpose", [mixed], perm=[0, 2, 1, 3]), merge])
        mixed = linear(mixed, prefix + "attention.output.dense")
        x = norm(graph.node("Add", [mixed, x]), prefix + "attention.output.LayerNorm", prefix + "aln")
        inner = linear(x, prefix + "intermediate.dense")
        erf = graph.node("Erf", [graph.node("Div", [inner, root2])])
        inner = graph.node("Mul", [graph.node("Mul", [inner, graph.node("Add", [erf, unit])]), half])
        inner = linear(inner, prefix + "output.dense")
        x = norm(graph.node("Add", [inner, x]), prefix + "output.LayerNorm", prefix + "oln")
    column = graph.node("Unsqueeze", [mask, graph.integers("c_ax2", [2])])
    total = graph.node("ReduceSum", [graph.node("Mul", [x, column]), one], keepdims=0)
    count = graph.node("ReduceSum", [column, one], keepdims=0)
    mean = graph.node("Div", [total, graph.node("Max", [count, graph.floats("c_tiny", 1e-9)])])
    size = graph.node("ReduceL2", [mean], axes=[-1], keepdims=1)
    size = graph.node("Max", [size, graph.floats("c_tiny2", 1e-12)])
    graph.nodes.append(helper.make_node("Div", [mean, size], ["sentence_embedding"]))
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"]) for name in names]
    output = helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", shape.hidden])
    return graph.model("bert", inputs, [output])
