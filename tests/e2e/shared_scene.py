"""What the tests of the shared index share: stores as a person fills them, an engine, in a file and as a server."""

from __future__ import annotations

import hashlib
import os
import random
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdmem.clock import UTC, FixedClock
from mdmem.index import dense
from mdmem.index.milvus import Engine, Target
from mdmem.locate import at, trust
from mdmem.recall.recall import Recall
from mdmem.setup import ensure_identity, init
from mdmem.store import Store

ROOT = Path(__file__).resolve().parent.parent.parent
NOW = datetime(2026, 11, 30, tzinfo=UTC)
WORDS = [f"word{number}" for number in range(60)] + ["部署", "计费", "v1.2.3"]
QUESTIONS = ["word3 word17 部署", "计费", "v1.2.3 word5", "word8", "what was decided on 4 May 2026", "nothing-of-this-kind"]


loader = dense.load_embedder


class FakeEmbedder:
    """Vectors of hashed words."""

    fingerprint, dims = "fake1", 64

    def passages(self, texts: Sequence[str]) -> Any:
        rows = np.full((len(texts), self.dims), 1e-3)
        for row, text in zip(rows, texts):
            for word in text.lower().split():
                row[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big") % self.dims] += 1
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    queries = passages

    def count_tokens(self, text: str) -> int:
        return len(text.split())


def git(root: Path, *words: str) -> str:
    named = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    return subprocess.run(["git", *named, *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def write(root: Path, name: str, text: str, **fields: str) -> None:
    head = "".join(f"{key}: {value}\n" for key, value in fields.items())
    (root / "memories").mkdir(exist_ok=True)
    (root / "memories" / f"{name}.md").write_text(f"---\n{head}---\n\n{text}\n", encoding="utf-8")


def commit(root: Path) -> str:
    git(root, "add", "-A")
    git(root, "commit", "--allow-empty", "-qm", "notes")
    return git(root, "rev-parse", "HEAD")


def made(root: Path, count: int = 60, seed: int = 1) -> Path:
    init(root)
    rng = random.Random(seed)
    for number in range(count):
        text = " ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 400)))
        day = f"2026-{number % 11 + 1:02d}-04T00:00:00Z"
        fields = {
            "id": f"mem-{seed}-{number}",
            "title": " ".join(rng.sample(WORDS, 3)),
            "type": "fact",
            "tags": f"[t{number % 3}]",
        }
        scope = "agent:other" if number % 5 == 0 else "shared"
        write(root, f"n{number}", text, **fields, scope=scope, created=day, updated=day)
    commit(root)
    return root


def opened(root: Path) -> Store:
    return Store.open(root, clock=FixedClock(NOW))


def seen(answer: Recall) -> list[Any]:
    def one(hit: Any) -> tuple[Any, ...]:
        cosine = None if hit.cosine is None else round(hit.cosine, 12)
        return hit.id, hit.bm25, cosine, hit.share, round(hit.score, 12), hit.start_line, hit.snippet, hit.tags, hit.matched

    return [one(hit) for hit in answer.results]


def target(collection: str = "mdmem") -> Target:
    """Return where the tests' index is."""
    return Target(os.environ["MDMEM_INDEX_URI"], collection=collection)


def held(tmp_path: Path, collection: str = "mdmem") -> Counter[tuple[str, str]]:
    """Return how many windows of each (repository, note) the engine holds."""
    engine = Engine(target(collection))
    try:
        assert engine.there()
        return Counter((row["repo"], row["note"]) for row in engine.rows(engine.windows, 'repo != ""', ["repo", "note"]))
    finally:
        engine.close()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "load_embedder", lambda config, state_dir, chunking="": FakeEmbedder())
    monkeypatch.setattr("mdmem.setup._driver", lambda *_: None)
    monkeypatch.setenv("MDMEM_INDEX_ENGINE", "milvus")
    monkeypatch.setenv("MDMEM_INDEX_URI", str(tmp_path / "shared.db"))
    monkeypatch.setenv("MDMEM_INDEX_SHARE", "all")
    monkeypatch.setenv("MDMEM_INDEX_WAIT", "60")  # a busy machine is no engine that is down


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An engine that several processes may use at once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = (
        "import sys; from milvus_lite.adapter.grpc.server import start_server_in_thread as s; "
        f"kept = s({str(tmp_path / 'engine')!r}, port={port}); print('ready', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline().strip() == "ready"
    monkeypatch.setenv("MDMEM_INDEX_URI", f"http://127.0.0.1:{port}")
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.wait()


def trusted(root: Path) -> Path:
    """Trust a clone, as `mdmem trust` does."""
    place = at(root.resolve())
    trust(ensure_identity(place), place.remote, place.git.top)
    return root


def cloned(url: str | Path, root: Path, *words: str) -> Path:
    """Clone a store with git, and trust it."""
    git(root.parent, "clone", "-q", *words, str(url), str(root))
    return trusted(root)


def limited(*scopes: str) -> None:
    """Let every agent read these scopes only."""
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "mdmem" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[agents."*"]\nscopes = [{", ".join(repr(scope) for scope in scopes)}]\n')
