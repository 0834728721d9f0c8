"""The server with the official Python SDK as its client, in both eras of the protocol, and its results against the schemas
of every version that the SDK knows."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mdmem.mcp.tools import TOOLS
from mdmem.store import Store
from tests.mcp.test_mcp import Client as Lines

anyio = pytest.importorskip("anyio", reason="the MCP SDK is not installed (pip install 'mdmem[test]')")
sdk = pytest.importorskip("mcp.client.client", reason="the MCP SDK is not installed (pip install 'mdmem[test]')")
ROOT = Path(__file__).resolve().parents[2]
ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


def with_client(store: Store, mode: str, work: Callable[[Any], Awaitable[None]]) -> None:
    """Run `work` with a connected client."""
    from mcp.client.stdio import StdioServerParameters

    env = {**os.environ, "PYTHONPATH": str(ROOT), "MDMEM_AGENT": "tester", "MDMEM_DEVICE": "laptop"}
    server = StdioServerParameters(command=sys.executable, args=["-m", "mdmem", "mcp"], env=env, cwd=str(store.root))

    async def main() -> None:
        async with sdk.Client(server, mode=mode) as client:
            await work(client)

    anyio.run(main)


async def said(client: Any, tool: str, **given: Any) -> tuple[str, bool]:
    """Return (text, is it an error) of a call; nothing but one text may come."""
    result = await client.call_tool(tool, given)
    assert [block.type for block in result.content] == ["text"] and result.structured_content is None
    return result.content[0].text, bool(result.is_error)


@pytest.mark.parametrize("mode", ERAS)
def test_every_tool_resource_and_prompt(store: Store, mode: str) -> None:
    called = set()

    async def work(client: Any) -> None:
        async def ok(tool: str, **given: Any) -> str:
            called.add(tool)
            text, wrong = await said(client, tool, **given)
            assert not wrong, (tool, text)
            return text

        assert client.protocol_version == ERAS[mode]
        if mode != "2026-07-28":  # without asking first, a client knows nothing of the server
            assert client.server_info.name == "mdmem" and "memory_search" in client.instructions
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {tool["name"] for tool in TOOLS} and len(tools) == 14
        assert tools["memory_search"].annotations.read_only_hint and tools["memory_forget"].annotations.destructive_hint

        identity = (await ok("memory_add", text="We deploy on Thursdays.", type="decision")).split("`")[1]
        assert identity in await ok("memory_search", query="when do we deploy", mode="keyword")
        assert "Thursdays" in await ok("memory_get", note=identity)
        await ok("memory_update", note=identity, add={"tags": ["ops"]})
        assert identity in await ok("memory_list", tag="ops")
        assert await ok("memory_related", note=identity) == "No relations."
        assert "Thursdays" in await ok("memory_context", query="deploy")
        await ok("memory_feedback", note=identity, rating="useful")
        await ok("memory_task", action="add", task="Upgrade")
        assert "Upgrade" in await ok("memory_handoff", hours=1)
        await ok("memory_message", action="send", to="all", subject="Hello")
        await ok("memory_sync")
        assert "decision" in await ok("memory_query", sql="SELECT type FROM notes WHERE kind = 'memory'")
        text, wrong = await said(client, "memory_get", note="nothing-like-it")
        assert wrong and "try:" in text
        text, wrong = await said(client, "memory_search", query="x", colour="red")
        assert wrong and "colour" in text

        listed = (await client.list_resources()).resources
        found = await client.read_resource(next(one.uri for one in listed if one.name == identity))
        assert "Thursdays" in found.contents[0].text and found.contents[0].mime_type == "text/markdown"
        assert len((await client.list_resource_templates()).resource_templates) == 1
        assert {prompt.name for prompt in (await client.list_prompts()).prompts} == {"handoff", "review"}
        assert "Upgrade" in (await client.get_prompt("handoff", {"hours": "1"})).messages[0].content.text
        with pytest.raises(Exception, match="mdmem:///"):
            await client.read_resource("file:///etc/passwd")
        with pytest.raises(Exception, match="no tool is named"):
            await client.call_tool("no_such", {})
        await ok("memory_forget", note=identity)

    with_client(store, mode, work)
    assert called == {tool["name"] for tool in TOOLS}


def test_each_version_gets_results_of_its_own_schema(store: Store) -> None:
    from mcp_types.methods import validate_server_result
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

    asked: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {}),
        ("tools/call", {"name": "memory_add", "arguments": {"text": "We deploy on Thursdays."}}),
        ("tools/call", {"name": "memory_get", "arguments": {"note": "nothing-like-it"}}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "review"}),
    ]
    for version in HANDSHAKE_PROTOCOL_VERSIONS:
        client = Lines(store.root)
        first = client.ask("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "t", "version": "1"})
        assert first["protocolVersion"] == version
        validate_server_result("initialize", version, first)
        for method, params in asked:
            answer = client.ask(method, **params)
            validate_server_result(method, version, answer)
            assert not {"ttlMs", "resultType", "_meta"} & set(answer)
        assert client.close() == 0
    for version in MODERN_PROTOCOL_VERSIONS:
        client = Lines(store.root)
        meta = {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        for method, params in [("server/discover", {}), *asked]:
            answer = client.ask(method, **params, _meta=meta)
            validate_server_result(method, version, answer)
            assert answer["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "mdmem"
        late = client.ask("tools/list", _meta={**meta, "io.modelcontextprotocol/protocolVersion": "2031-01-01"})
        assert late["code"] == -32022 and version in late["data"]["supported"] and late["data"]["requested"] == "2031-01-01"
        assert client.close() == 0
