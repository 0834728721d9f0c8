"""The files of a local model: its description, and the proof that they are what it names.

A file is hashed once per size, mtime and inode; what was found is remembered in a small file.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdmem.index.embed import EmbeddingUnavailable

REMEMBERED = "model-checks.json"
REPAIR = "install mdmem again, or set embedding.backend"


@dataclass(frozen=True)
class ModelFiles:
    """What model.json says, with absolute paths. `digest` covers the hashes of every file."""

    folder: Path
    name: str
    dims: int
    max_tokens: int
    query_prefix: str
    passage_prefix: str
    digest: str
    pooling: str  # what to do with one vector a token: mean or cls
    fast: str  # the graph to prefer, "" when there is one only
    check: tuple[str, int]  # an output of the fast graph and what it is where the fast graph computes rightly
    pieces: str  # the tokenizer's table for short texts, "" when there is none

    @property
    def graph(self) -> Path:
        """Return the path of the ONNX graph."""
        return self.folder / "model.onnx"

    @property
    def tokenizer(self) -> Path:
        """Return the path of the tokenizer."""
        return self.folder / "tokenizer.json"


def read_model(folder: Path, state_dir: Path) -> ModelFiles:
    """Return the verified model in `folder`. Raises EmbeddingUnavailable when a file is missing or differs."""
    try:
        described = json.loads((folder / "model.json").read_bytes())
        hashes = {str(name): str(digest) for name, digest in described["files"].items()}
        fast = described.get("fast", {})
        model = ModelFiles(
            folder=folder,
            name=str(described["name"]),
            dims=int(described["dimensions"]),
            max_tokens=int(described.get("max_tokens", 512)),
            query_prefix=str(described.get("query_prefix", "")),
            passage_prefix=str(described.get("passage_prefix", "")),
            digest=hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest(),
            pooling="cls" if "cls" in str(described.get("pooling", "")).lower() else "mean",
            fast=str(fast.get("graph", "")),
            check=(str(fast["check"]["output"]), int(fast["check"]["value"])) if fast else ("", 0),
            pieces=str(described.get("pieces", "")),
        )
    except FileNotFoundError as error:
        raise EmbeddingUnavailable(f"there is no model in {folder}", why="model.json is missing", hint=REPAIR) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise EmbeddingUnavailable(f"cannot read the model in {folder}", why=why, hint=REPAIR) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbeddingUnavailable(f"{folder / 'model.json'} is damaged", why=str(error), hint=REPAIR) from error
    needed = {"model.onnx", "tokenizer.json", model.fast, model.pieces} - {""}
    if not needed <= hashes.keys() or any(os.path.basename(name) != name for name in hashes):
        why = f"its files must be {', '.join(sorted(needed))}, each with its sha256"
        raise EmbeddingUnavailable(f"{folder / 'model.json'} is damaged", why=why, hint=REPAIR)
    verify(folder, hashes, state_dir / REMEMBERED)
    return model


def verify(folder: Path, hashes: dict[str, str], remembered: Path) -> None:
    """Check each file against its sha256. Raises EmbeddingUnavailable naming the first that differs."""
    known = read_json(remembered)
    fresh = dict(known)
    for name, expected in sorted(hashes.items()):
        path = folder / name
        try:
            found = os.stat(path)
            stamp = [found.st_size, found.st_mtime_ns, found.st_ino, expected]
            if known.get(str(path)) == stamp:
                continue
            with open(path, "rb") as stream:
                actual = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise EmbeddingUnavailable(
                f"the model file {path} cannot be read", why=error.strerror or str(error), hint=REPAIR
            ) from error
        if actual != expected:
            raise EmbeddingUnavailable(
                f"the model file {path} is damaged", why=f"its sha256 is {actual[:12]}…, not {expected[:12]}…", hint=REPAIR
            )
        fresh[str(path)] = stamp
    if fresh != known:
        write_json(remembered, fresh)


def read_json(path: Path) -> dict[str, Any]:
    """Return what `write_json` left, {} when there is nothing that can be read."""
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def write_json(path: Path, value: Any) -> None:
    """Replace `path` in one step; a disk that refuses is no error, because the file only saves work."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(value, stream)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError:
        pass
