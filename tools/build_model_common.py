"""Write what mdmem knows of words and texts in general in a model's space, beside the model.

    python tools/build_model_common.py mdmem/models/e5-small-q4-enzh

common.npy, float32 [4, dims]: the means of the questions and then of the passages in mdmem/memory/background.txt, of each
first those in other scripts, then those in a CJK script. synonyms-CRC.npy: see mdmem/recall/wordvectors.py. Beside the list
itself, synonyms.json: see mdmem/recall/expand.py. Needed again when the model or one of the two lists changes.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from mdmem.index.embed_onnx import OnnxEmbedder
from mdmem.index.language import wide
from mdmem.memory.near import BACKGROUND
from mdmem.recall import expand
from mdmem.recall.common import FILE, means_of
from mdmem.recall.wordvectors import UNIT, file_name, members, shipped_list


def means(embedder: OnnxEmbedder) -> np.ndarray:
    """Return the four means of a model."""
    lines = BACKGROUND.read_text("utf-8").splitlines()
    asked = [line[2:] for line in lines if line.startswith(("+ ", "- "))]
    told = [line[2:] for line in lines if line.startswith("! ")]
    common = means_of((asked, embedder.queries(asked)), (told, embedder.passages(told)))
    rows = [common.questions[False], common.questions[True], common.passages[False], common.passages[True]]
    return np.stack(rows).astype(np.float32)


def words(embedder: OnnxEmbedder, names: list[str]) -> np.ndarray:
    """Return the members' vectors as questions, less the mean of their script, int8."""
    rows = embedder.queries(names).astype(np.float64)
    written = np.array([wide(name) for name in names])
    for script in (False, True):
        rows[written == script] -= rows[written == script].mean(0)
    return np.clip(np.rint(rows * UNIT), -127, 127).astype(np.int8)


def main(folder: Path) -> None:
    """Write the three files."""
    with tempfile.TemporaryDirectory() as state:
        embedder = OnnxEmbedder(folder, Path(state))
        np.save(folder / FILE, means(embedder))
        data = shipped_list()
        for old in folder.glob("synonyms-*.npy"):
            old.unlink()
        names = members(data)
        np.save(folder / file_name(data), words(embedder, names))
        Path(expand.__file__).with_name(expand.TABLE).write_text(table(data, names), "utf-8")


def table(data: bytes, names: list[str]) -> str:
    """Return the text of synonyms.json."""
    return json.dumps(expand.table_of(data, names), ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
