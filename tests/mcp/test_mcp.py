"""The MCP server as a process: both eras, every tool, and input that nobody would send."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mdmem.mcp.check import problem
from mdmem.mcp.protocol import Service, answer_line
from mdmem.mcp.tools import BY_NAME, INSTRUCTIONS, TOOLS
from mdmem.store import Store

ROOT = Path(__file__).resolve().parents[2]


class Client:
    """A client that speaks lines."""

    def __init__(self, cwd: Path) -> None:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "MDMEM_AGENT": "tester", "MDMEM_DEVICE": "laptop"}
        command = [sys.executable, "-m", "mdmem", "mcp"]
        self.process = subprocess.Popen(command, cwd=cwd, env=env, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL)
        self.number = 0

    def raw(self, line: bytes) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, **params: Any) -> Any:
        self.number += 1
        answer = self.raw(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode())
        assert answer["id"] == self.number
        return answer.get("result", answer.get("error"))

    def tool(self, name: str, **arguments: Any) -> tuple[str, bool]:
        result = self.ask("tools/call", name=name, arguments=arguments)
        assert [block["type"] for block in result["content"]] == ["text"] and "structuredContent" not in result
        return result["content"][0]["text"], result["isError"]

    def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture
def client(store: Store) -> Iterator[Client]:
    made = Client(store.root)
    yield made
    if made.process.poll() is None:
        assert made.close() == 0


def test_both_eras_and_every_tool(client: Client) -> None:
    old = client.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
    assert old["protocolVersion"] == "2025-06-18" and old["serverInfo"]["name"] == "mdmem"
    assert client.ask("initialize", protocolVersion="1999-01-01")["protocolVersion"] == "2025-11-25"
    new = client.ask("server/discover", _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"})
    assert "2026-07-28" in new["supportedVersions"] and new["resultType"] == "complete"
    assert client.ask("ping") == {}
    assert client.ask("no/such")["code"] == -32601
    assert len(client.ask("tools/list")["tools"]) == len(TOOLS)

    text, wrong = client.tool("memory_add", text="We deploy on Thursdays before noon.", type="decision", tags=["deploy"])
    assert not wrong and text.startswith("created: `mem-")
    identity = text.split("`")[1]
    assert client.tool("memory_add", text="We deploy on Thursdays before noon.", type="decision")[0].startswith("unchanged")
    assert "taken out" in client.tool("memory_add", text="Login: password=hunter2-and-more")[0]
    assert client.tool("memory_search", query="hunter2", mode="keyword")[0] == "Nothing found."
    found, _ = client.tool("memory_search", query="when do we deploy", mode="keyword")
    assert identity in found and "> We deploy on Thursdays" in found
    assert "We deploy" in client.tool("memory_get", note=identity)[0]
    assert client.tool("memory_update", note=identity, set={"priority": "high"}, add={"tags": ["ops"]})[1] is False
    assert client.tool("memory_update", note=identity, text="We deploy on Fridays.")[1] is False
    whole, _ = client.tool("memory_get", note=identity)
    assert "priority: high" in whole and "- ops" in whole and "Fridays" in whole and "Thursdays" in whole.split("---")[1]
    assert identity in client.tool("memory_list", type="decision")[0]
    assert client.tool("memory_related", note=identity) == ("No relations.", False)
    assert "Fridays" in client.tool("memory_context", query="deploy Fridays", budget=500)[0]
    assert "0.57" in client.tool("memory_feedback", note=identity, rating="useful")[0]
    assert "Upgrade" in client.tool("memory_task", action="add", task="Upgrade")[0]
    assert "active" in client.tool("memory_task", action="start", task="Upgrade")[0]
    assert "Upgrade" in client.tool("memory_task", action="next")[0]
    assert client.tool("memory_message", action="send", to="other", subject="Hello")[0].startswith("sent")
    assert client.tool("memory_message", action="inbox")[0] == "No messages."
    assert '"n": 2' in client.tool("memory_query", sql="SELECT count(*) AS n FROM notes WHERE kind = 'memory'")[0]
    text, wrong = client.tool("memory_handoff", hours=24)
    assert not wrong and "Upgrade" in text
    assert client.tool("memory_sync")[1] is False
    assert identity in client.tool("memory_forget", note=identity)[0]
    assert identity not in client.tool("memory_search", query="deploy Fridays", mode="keyword")[0]


def test_errors_come_as_results_that_help(client: Client) -> None:
    for name, arguments, words in (
        ("memory_get", {"note": "nothing-like-it"}, "try:"),
        ("memory_get", {}, "note is missing"),
        ("memory_search", {"query": "x", "limit": 0}, "from 1 to 50"),
        ("memory_search", {"query": 5}, "query must be of type string"),
        ("memory_search", {"query": "x", "colour": "red"}, "no argument colour"),
        ("memory_search", {"query": " "}, "empty"),
        ("memory_query", {"sql": "DELETE FROM notes"}, "only read"),
        ("memory_task", {"action": "start"}, "name the task"),
        ("memory_update", {"note": "x"}, "nothing to change"),
        ("memory_add", {"text": "x", "scope": "everywhere"}, "not a scope"),
    ):
        text, wrong = client.tool(name, **arguments)
        assert wrong and words in text, (name, text)
    assert client.ask("tools/call", name="no_such", arguments={})["code"] == -32602


def test_resources_and_prompts(client: Client) -> None:
    client.tool("memory_add", text="数据库用 PostgreSQL。", title="数据库")
    listed = client.ask("resources/list")["resources"]
    assert len(listed) == 1 and listed[0]["title"] == "数据库"
    assert "PostgreSQL" in client.ask("resources/read", uri=listed[0]["uri"])["contents"][0]["text"]
    for uri in ("file:///etc/passwd", "mdmem:///../../etc/passwd", "mdmem:///%2e%2e/%2e%2e/etc/passwd", "mdmem:////etc/passwd"):
        assert client.ask("resources/read", uri=uri)["code"] == -32602
    assert client.ask("resources/list", cursor="zzz")["code"] == -32602
    assert {p["name"] for p in client.ask("prompts/list")["prompts"]} == {"handoff", "review"}
    assert "no conflicts" in client.ask("prompts/get", name="review")["messages"][0]["content"]["text"]
    assert client.ask("prompts/get", name="x")["code"] == -32602


def test_without_a_store_each_call_says_what_to_do(tmp_path: Path) -> None:
    client = Client(tmp_path)
    assert client.ask("initialize")["serverInfo"]
    text, wrong = client.tool("memory_search", query="x")
    assert wrong and "mdmem" in text
    assert client.close() == 0


def test_a_store_that_is_named_outright_is_searched_alone(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mdmem.mcp.server import Memory as Answers
    from mdmem.memory.remember import Memory, remember

    team, own = make_store("team"), make_store("own")
    remember(own, Memory("fact", "The printer in Lyon needs darkness 15."))
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "mdmem/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[[stores]]\nname = "own"\npath = "{own.root}"\n')
    for directory, found in ((str(team.root), False), (None, True)):
        monkeypatch.chdir(team.root)
        answer = Answers(directory).call("memory_search", {"query": "printer in Lyon", "mode": "keyword"})
        assert ("darkness 15" in answer["content"][0]["text"]) is found


def test_an_untrusted_store_is_read_and_not_written(store: Store) -> None:
    (store.data_dir / "trusted.json").unlink()
    client = Client(store.root)
    text, wrong = client.tool("memory_add", text="x")
    assert wrong and "not trusted" in text
    assert client.tool("memory_list") == ("No notes.", False)
    assert client.close() == 0


BROKEN = [
    b"",
    b"nonsense",
    b"{",
    b"[]",
    b"null",
    b"5",
    b'"x"',
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"jsonrpc": "2.0", "id": 1}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": true, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": 5}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory_get", "arguments": []}}',
    b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
    b'{"jsonrpc": "2.0", "id": 7, "result": {}}',
]


def test_broken_lines_stop_nothing(store: Store) -> None:
    client = Client(store.root)
    assert client.process.stdin is not None
    for line in BROKEN:
        client.process.stdin.write(line + b"\n")
    client.process.stdin.flush()
    assert client.process.stdout is not None
    while True:
        client.process.stdin.write(b'{"jsonrpc": "2.0", "id": "end", "method": "ping"}\n')
        client.process.stdin.flush()
        if any(json.loads(client.process.stdout.readline()).get("id") == "end" for _ in range(len(BROKEN))):
            break
    assert client.process.poll() is None
    assert client.close() == 0


def test_random_requests_never_raise() -> None:
    rng = random.Random(20261130)

    def fail(*_: Any) -> Any:
        raise RuntimeError("a tool broke")

    service = Service("x", "1", "", lambda: TOOLS, fail, fail, list, fail, list, fail)

    def value(depth: int = 0) -> Any:
        kinds = [None, True, rng.random(), rng.randint(-9, 9), "x" * rng.randint(0, 5), "tools/call", "\ud800"]
        if depth < 3:
            kinds += [[value(depth + 1) for _ in range(rng.randint(0, 3))]]
            kinds += [{rng.choice(["id", "method", "params", "name", "arguments", "uri", "_meta"]): value(depth + 1)}]
        return rng.choice(kinds)

    methods = ["initialize", "server/discover", "tools/call", "tools/list", "resources/list", "resources/read", "x"]
    for _ in range(3000):
        message = {"jsonrpc": "2.0", "id": value(3), "method": rng.choice([*methods, value()]), "params": value()}
        answer = answer_line(service, json.dumps(message).encode())
        assert answer is None or json.dumps(answer)


def test_tools_say_what_a_client_needs() -> None:
    assert len(INSTRUCTIONS) < 2000
    for tool in TOOLS:
        assert set(tool["annotations"]) == {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert len(tool["description"]) < 400 and tool["inputSchema"]["additionalProperties"] is False
    assert problem({"query": "x"}, BY_NAME["memory_search"]["inputSchema"]) == ""


def test_it_starts_without_anything_heavy() -> None:
    code = (
        "import sys\nimport mdmem.mcp.server\n"
        "heavy = {'click', 'numpy', 'whoosh', 'onnxruntime', 'git', 'yaml', 'rich', 'sqlite3', 'asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_it_answers_within_three_starts_of_python(store: Store) -> None:
    def bare() -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        return time.perf_counter() - begin

    def greeted() -> float:
        begin = time.perf_counter()
        client = Client(store.root)
        client.ask("initialize")
        took = time.perf_counter() - begin
        client.close()
        return took

    assert min(greeted() for _ in range(9)) < 3 * min(bare() for _ in range(9))
