"""How fast the embedding model is, in each form it can take, and how far each form is from float32.

    python benchmarks/embedding.py [--forms] [--rounds 5] [--json]

Each form is loaded in processes of its own; the forms take turns, and the best round counts. Times
are processor times of one thread, which a busy machine disturbs least. `--forms` adds those that
were tried and left out (needs the package onnx). The last column is mdmem's whole way from text to
vector over plain onnxruntime with the same graph on the same batches (one text each, cut into
tokens beforehand); the goal is 80%.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mdmem.config import Config  # noqa: E402
from mdmem.index.embed import BUNDLED, load_embedder  # noqa: E402
from mdmem.index.embed_onnx import OnnxEmbedder  # noqa: E402

QUESTION = "where do we keep the job queue of the billing service and who looks after it when nobody is there at night"
RAW = "integers, plain onnxruntime"
OURS = "integers, mdmem (as shipped)"
START = """
import sys, time
began = time.process_time()
sys.path.insert(0, sys.argv[1])
from pathlib import Path
{body}
print((time.process_time() - began) * 1000)
"""
SHIPPED = """
from mdmem.config import Config
from mdmem.index.embed import load_embedder
load_embedder(Config(), Path(sys.argv[3])).queries(["where do we keep the job queue?"])
"""
PLAIN = """
import numpy, onnxruntime
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[2] + "/tokenizer.json")
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[3], options)
ids = numpy.array([tokenizer.encode("query: where do we keep the job queue?").ids])
given = {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)}
session.run(None, {value.name: given[value.name] for value in session.get_inputs()})
"""


def windows() -> list[str]:
    """Return texts of about 160 words or 260 CJK characters: what an index is made of."""
    text = (ROOT / "tools" / "build_model_texts.txt").read_text("utf-8")
    out, room = [""], 1.0
    for part in text.split("\n\n"):
        cjk = sum(character > "\u2e80" for character in part)
        share = cjk / 260 + len(part.split()) / 160
        if share > room and out[-1]:
            out.append("")
            room = 1.0
        out[-1] += part + "\n"
        room -= share
    return out


def feed(rows: list[list[int]]) -> dict[str, Any]:
    """Return the inputs of a graph for rows of ids, filled up to the longest."""
    width = max(map(len, rows))
    ids = np.ones((len(rows), width), np.int64)
    mask = np.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def runner(graph: Path, rows: list[list[int]], batch: int, threads: int = 1) -> Callable[[], Any]:
    """Return a function that embeds all rows with plain onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    parts = [order[start : start + batch] for start in range(0, len(order), batch)]

    def run() -> Any:
        out = np.zeros((len(rows), 384), np.float32)
        for part in parts:
            given = feed([rows[number] for number in part])
            out[part] = session.run(["sentence_embedding"], {name: given[name] for name in names})[0]
        return out

    return run


def cold(body: str, *words: str) -> float:
    """Return the processor ms of a process until its first question has a vector."""
    code = START.format(body=body)
    done = subprocess.run([sys.executable, "-c", code, str(ROOT), *words], capture_output=True, text=True, check=True)
    return float(done.stdout)


def questions(embedder: OnnxEmbedder, rounds: int) -> list[dict[str, float]]:
    """Return {tokens, ms} of questions of some lengths, the best of several runs: one run of the model each."""
    found = []
    for words in (5, 12, 22):
        text = " ".join(QUESTION.split()[:words])
        best = 1e9
        for _ in range(10 * rounds):
            began = time.process_time()
            embedder.queries([text])
            best = min(best, time.process_time() - began)
        found.append({"tokens": len(embedder._encode("query: " + text)), "ms": best * 1000})
    return found


def other_forms(folder: Path) -> dict[str, Path]:
    """Write the exact graph with other operators for its linear layers; returns the files by name."""
    import onnx
    from onnx import helper, numpy_helper

    found = {}
    for level in (0, 1):
        model = onnx.load(BUNDLED / "model.onnx")
        for node in model.graph.node:
            for attribute in node.attribute:
                if attribute.name == "accuracy_level":
                    attribute.i = level
        found[f"4-bit, accuracy level {level}"] = folder / f"level{level}.onnx"
        onnx.save(model, folder / f"level{level}.onnx")
    model = onnx.load(BUNDLED / "model.onnx")
    weights = {weight.name: weight for weight in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "MatMulNBits":
            packed, scale = (numpy_helper.to_array(weights[name]) for name in node.input[1:3])
            values = np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:2], 32).astype(np.float32) - 8
            plain = (values * scale.reshape(*packed.shape[:2], 1)).reshape(len(packed), -1).T
            weights[node.input[1]].CopyFrom(numpy_helper.from_array(np.ascontiguousarray(plain), node.input[1]))
            node.CopyFrom(helper.make_node("MatMul", node.input[:2], node.output, node.name))
    onnx.save(model, folder / "float32.onnx")
    return {**found, "float32": folder / "float32.onnx"}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forms", action="store_true", help="also the forms that were left out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", dest="as_json")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        embedder = load_embedder(Config(), folder)
        assert isinstance(embedder, OnnxEmbedder)
        texts = windows()
        rows = [embedder._encode("passage: " + text) for text in texts]
        exact = BUNDLED / "model.onnx"
        forms = {"4-bit, accuracy level 4 (as published)": exact, **(other_forms(folder) if words.forms else {})}
        work = {name: runner(path, rows, 1) for name, path in forms.items()}
        work["the same, batches of 8"] = runner(exact, rows, 8)
        work[RAW] = runner(BUNDLED / "int8.onnx", rows, 1)
        work[OURS] = lambda: embedder.passages(texts)
        vectors = {name: run() for name, run in work.items()}
        best = dict.fromkeys(work, 1e9)
        first = dict.fromkeys(work, 1e9)
        for _ in range(words.rounds):
            for name, run in work.items():
                began = time.process_time()
                run()
                best[name] = min(best[name], time.process_time() - began)
                if name == OURS:
                    first[name] = min(first[name], cold(SHIPPED, "", str(folder)))
                elif "batches" not in name:
                    graph = forms.get(name, BUNDLED / "int8.onnx")
                    first[name] = min(first[name], cold(PLAIN, str(BUNDLED), str(graph)))
        asked = questions(embedder, words.rounds)
        reference = "float32" if words.forms else next(iter(work))
        tokens = sum(map(len, rows))
        forms_found = []
        for name in work:
            cosine = (vectors[name] * vectors[reference]).sum(1)
            forms_found.append(
                {
                    "name": name,
                    "windows_per_s": len(texts) / best[name],
                    "ratio": best[next(iter(work))] / best[name],
                    "tokens_per_s": tokens / best[name],
                    "first_ms": first[name] if first[name] < 1e9 else None,
                    "cosine_mean": float(cosine.mean()),
                    "cosine_min": float(cosine.min()),
                    "of_raw": best[RAW] / best[OURS] if name == OURS else None,
                }
            )
        if words.as_json:
            out = {"windows": len(texts), "tokens": tokens, "forms": forms_found, "questions": asked}
            print(json.dumps(out, indent=1))
            return
        print(f"{len(texts)} windows, {tokens} tokens; onnxruntime {onnxruntime.__version__}; cosine to: {reference}")
        print("questions: " + ", ".join(f"{one['tokens']} tokens {one['ms']:.1f} ms" for one in asked))
        print(f"{'':42}{'windows/s':>10}{'ratio':>7}{'tokens/s':>10}{'first ms':>10}{'cosine':>20}{'of raw':>8}")
        for form in forms_found:
            start = f"{form['first_ms']:.0f}" if form["first_ms"] else ""
            of_raw = f"{form['of_raw']:.0%}" if form["of_raw"] else ""
            print(
                f"{form['name']:42}{form['windows_per_s']:10.1f}{form['ratio']:7.2f}{form['tokens_per_s']:10.0f}{start:>10}"
                f"{form['cosine_mean']:12.6f} ≥{form['cosine_min']:.4f}{of_raw:>8}"
            )


if __name__ == "__main__":
    main()
