"""Asks one peer: load a folder of notes, ask the questions, write the answers. Runs in the peer's own environment.

    python driver.py PEER NOTES QUESTIONS.json OUT.json [EMBEDDINGS-ADDRESS]

Needs nothing but the peer. OUT holds index_s, answers (the first ten file names of each question), ms of each, and memory_mb.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

DEPTH = 10
WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")
Answers = tuple[list[list[str]], list[float]]


def memory_mb() -> float:
    """Return the resident memory of this process, or of the largest one that it started, in MB."""
    mine = int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])
    return max(mine, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024


def first(names: list[str]) -> list[str]:
    """Return the first DEPTH file names, each once."""
    return list(dict.fromkeys(Path(name).stem for name in names))[:DEPTH]


async def ask_all(questions: list[str], ask: object) -> Answers:
    """Return answers and milliseconds of `ask(question)`, a coroutine that returns file names."""
    answers, took = [], []
    for question in questions:
        began = time.perf_counter()
        found = await ask(question)  # type: ignore[operator]
        took.append((time.perf_counter() - began) * 1000)
        answers.append(first(found))
    return answers, took


async def grep(notes: Path, questions: list[str], address: str) -> tuple[float, Answers]:
    """Rank files by how many of the question's words stand in them, each found by `grep -r`."""

    async def ask(question: str) -> list[str]:
        held: dict[str, int] = {}
        for word in dict.fromkeys(WORD.findall(question.lower())):
            done = subprocess.run(["grep", "-rliF", "--", word, str(notes)], capture_output=True, text=True, check=False)
            for name in done.stdout.splitlines():
                held[name] = held.get(name, 0) + 1
        return sorted(held, key=lambda name: (-held[name], name))

    return 0.0, await ask_all(questions, ask)


async def memsearch(notes: Path, questions: list[str], address: str) -> tuple[float, Answers]:
    """Milvus-lite with BM25 and vectors; the vectors from the given address, since its model cannot be downloaded."""
    from memsearch.core import MemSearch

    memory = MemSearch(
        [notes],
        embedding_provider="openai",
        embedding_model="e5-small",
        embedding_base_url=address,
        embedding_api_key="none",
        milvus_uri=str(Path(os.environ["HOME"]) / "milvus.db"),
    )
    began = time.perf_counter()
    await memory.index()
    spent = time.perf_counter() - began

    async def ask(question: str) -> list[str]:
        found = await memory.search(question, top_k=3 * DEPTH)
        return [row["source"] for row in found]

    return spent, await ask_all(questions, ask)


async def mcp_memory_service(notes: Path, questions: list[str], address: str) -> tuple[float, Answers]:
    """sqlite-vec; one memory a note; the vectors from the given address."""
    os.environ["MCP_EXTERNAL_EMBEDDING_URL"] = address + "/embeddings"
    os.environ["MCP_EXTERNAL_EMBEDDING_MODEL"] = "e5-small"
    from mcp_memory_service.models.memory import Memory
    from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
    from mcp_memory_service.utils.hashing import generate_content_hash

    storage = SqliteVecMemoryStorage(str(Path(os.environ["HOME"]) / "memory.db"))
    await storage.initialize()
    began = time.perf_counter()
    for path in sorted(notes.iterdir()):
        text = path.read_text("utf-8")
        memory = Memory(text, generate_content_hash(text + path.name), tags=["note"], metadata={"file": path.name})
        stored, why = await storage.store(memory, skip_semantic_dedup=True)
        if not stored:
            raise SystemExit(f"{path.name}: {why}")
    spent = time.perf_counter() - began

    async def ask(question: str) -> list[str]:
        found = await storage.retrieve(question, n_results=DEPTH)
        return [row.memory.metadata["file"] for row in found]

    return spent, await ask_all(questions, ask)


async def basic_memory(notes: Path, questions: list[str], address: str) -> tuple[float, Answers]:
    """Its MCP server over stdio, as an agent uses it; words only where its model cannot be downloaded."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    program = str(Path(sys.executable).parent / "basic-memory")
    began = time.perf_counter()
    for words in (["project", "add", "peers", str(notes)], ["reindex", "--search", "-p", "peers"]):
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stdout[-500:] + done.stderr[-500:])
    spent = time.perf_counter() - began
    server = StdioServerParameters(command=program, args=["mcp", "--project", "peers"], env=dict(os.environ))
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()

        async def ask(question: str) -> list[str]:
            given = {"query": question, "page_size": DEPTH, "output_format": "json"}
            answer = await session.call_tool("search_notes", given)
            text = "".join(part.text for part in answer.content if hasattr(part, "text"))
            try:
                return [row["file_path"] for row in json.loads(text).get("results", [])]
            except (ValueError, AttributeError):
                return re.findall(r'"?file_path"?: "?([^\s",]+\.md)', text)

        return spent, await ask_all(questions, ask)


async def mdmem(notes: Path, questions: list[str], address: str) -> tuple[float, Answers]:
    """Indexed in place, asked in a process that keeps the store open."""
    from mdmem.recall.query import Query
    from mdmem.recall.recall import recall
    from mdmem.setup import init
    from mdmem.store import Store

    init(notes)
    store = Store.open(notes, need="write", cwd=notes)
    began = time.perf_counter()
    store.index.refresh(embed_budget_s=None)
    spent = time.perf_counter() - began

    async def ask(question: str) -> list[str]:
        return [hit.path for hit in recall(store, Query(question, limit=DEPTH)).results]

    return spent, await ask_all(questions, ask)


def main() -> int:
    """Ask the peer that is named first."""
    peer, notes, questions, out = sys.argv[1], Path(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text()), Path(sys.argv[4])
    address = sys.argv[5] if len(sys.argv) > 5 else ""
    work = {f.__name__: f for f in (grep, memsearch, mcp_memory_service, basic_memory, mdmem)}[peer.replace("-", "_")]
    spent, (answers, took) = asyncio.run(work(notes, questions, address))
    out.write_text(json.dumps({"index_s": spent, "answers": answers, "ms": took, "memory_mb": memory_mb()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
