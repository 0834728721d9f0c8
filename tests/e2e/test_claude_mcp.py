"""With the real Claude Code program: it starts our MCP server from its own configuration, lists the tools and calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.claude import Box
from tests.e2e.messages_api import MessagesApi, text, use

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
TOP = Path(__file__).resolve().parents[2]
SEARCH, ADD = "mcp__mdmem__memory_search", "mcp__mdmem__memory_add"


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with MessagesApi() as running:
        yield running


@pytest.fixture
def box(tmp_path: Path, api: MessagesApi) -> Box:
    made = Box(tmp_path / "a", api)
    made.extra = {"MDMEM_SERVE": "off", "MDMEM_EMBEDDING_BACKEND": "off", "PYTHONPATH": str(TOP)}
    (made.home / ".gitconfig").write_text("[user]\n\tname = Test\n\temail = test@example.org\n")
    return made


def mdmem(box: Box, *words: str) -> Any:
    command = [sys.executable, "-m", "mdmem", *words, "--json"]
    done = subprocess.run(command, cwd=box.project, env=box.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def results(api: MessagesApi) -> list[str]:
    """Return what the program told the model about the tools that it called."""
    found = []
    for request in api.main_requests():
        for message in request["messages"]:
            blocks = message["content"] if isinstance(message["content"], list) else []
            found += [json.dumps(block["content"]) for block in blocks if block.get("type") == "tool_result"]
    return found


def test_the_program_searches_and_adds_through_the_server(box: Box, api: MessagesApi) -> None:
    store = box.root / "memory"
    mdmem(box, "init", str(store))
    mdmem(box, "config", "set", "default_store", str(store))
    mdmem(box, "remember", "decision", "Billing stays on PostgreSQL 16.", "--scope", "shared")
    mdmem(box, "install", "mcp", "claude")
    api.turns[:] = [
        [use(SEARCH, query="billing database", mode="keyword")],
        [use(ADD, text="The label printer in Lyon needs darkness 15.", type="fact", scope="shared")],
        [use(SEARCH, query="", limit=5)],
        [text("Done.")],
    ]
    box.claude("what is billing on?", "--allowedTools", f"{SEARCH},{ADD}")
    told = results(api)
    assert any("Billing stays on PostgreSQL 16" in one for one in told), told
    assert any("created: `mem-" in one for one in told), told
    assert any("empty" in one for one in told), told  # an error is a result that the model can read
    (found,) = mdmem(box, "recall", "label printer", "--keyword")["results"]
    assert "darkness 15" in found["snippet"]
    offered = {tool["name"] for request in api.main_requests() for tool in request["tools"]}
    assert SEARCH in offered or SEARCH in api.said()
