"""Requests that nobody would send, to the real server over a real store: no crash, nothing read or written outside of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mdmem.mcp.protocol import INTERNAL, answer_line
from mdmem.mcp.server import Memory, service_of
from mdmem.mcp.tools import TOOLS
from mdmem.store import Store
from tests.examples import examples
from tests.injected import count
from tests.mcp.test_mcp import ROOT, Client

CANARY = "canary-7f3a outside of the store"
AWAY = [
    "../canary.md",
    "memories/../../canary.md",
    "/etc/passwd",
    "~/canary.md",
    "..\\canary.md",
    "C:\\canary.md",
    "\\\\host\\share\\x.md",
    "%2e%2e/canary.md",
    "memories/link.md",
    "memories/folder/canary.md",
    ".git/config",
    ".git/hooks/post-commit",
    ".mdmem.toml",
    ".gitattributes",
    "con.md",
    "a\x00b.md",
    "-rf",
    "--upload-pack=touch x",
    "HEAD:memories",
    "\ud800",
    "‮",
]
WORDS = st.one_of(
    st.sampled_from([*AWAY, "", " ", "decision", "mem-", "Deploy day", "shared", "local", "agent:x", "7d", "2026-13-45"]),
    st.text(max_size=12),
    st.sampled_from(["x" * 100_000, "数" * 3000, "---\nid: x\n---\n", "[[" * 500, "a: &b [*b]", "SELECT * FROM notes, notes"]),
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values that mostly fit a schema."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if kind == "integer":
        return st.integers(schema.get("minimum", 0), min(schema.get("maximum", 9), 9))
    if kind == "boolean":
        return st.booleans()
    if kind == "array":
        return st.lists(WORDS, max_size=3)
    if kind == "object":
        more = schema.get("additionalProperties")
        fields = st.sampled_from(["tags", "status", "id", "kind", "scope", "title", "expires", "relates_to", "x", "", "a: b"])
        return st.dictionaries(fields | WORDS, fitting(more if isinstance(more, dict) else {"type": "string"}), max_size=2)
    return WORDS


def calls() -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """Return (tool, arguments), each argument there or not, now and then of any type at all."""

    def of(tool: dict[str, Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
        schema = tool["inputSchema"]
        fields = {name: fitting(below) | ANY for name, below in schema["properties"].items()}
        needed = {name: fields.pop(name) for name in schema.get("required", ())}
        return st.tuples(st.just(tool["name"]), st.fixed_dictionaries(needed, optional=fields))

    return st.one_of([of(tool) for tool in TOOLS])


def outside(store: Store) -> dict[str, tuple[int, bytes]]:
    """Return every file beside the store and in HOME, but what is mdmem's own state there."""
    state = (store.data_dir, Path(os.environ["XDG_RUNTIME_DIR"]))
    found = {}
    for top in (store.root.parent, Path(os.environ["HOME"])):
        for path in top.rglob("*"):
            if path.is_file() and store.root not in path.parents and not any(one in path.parents for one in state):
                found[str(path)] = (path.stat().st_mode, path.read_bytes())
    return found


@pytest.fixture
def memory(make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch) -> tuple[Store, Memory]:
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "off")
    monkeypatch.setenv("MDMEM_AGENT", "tester")
    monkeypatch.setenv("MDMEM_DEVICE", "laptop")
    store = make_store()
    (store.root.parent / "canary.md").write_text(CANARY)
    (Path(os.environ["HOME"]) / "canary.md").write_text(CANARY)
    (store.root / "memories").mkdir(exist_ok=True)
    (store.root / "memories/link.md").symlink_to(store.root.parent / "canary.md")
    (store.root / "memories/folder").symlink_to(store.root.parent)
    memory = Memory(str(store.root))
    memory.call("memory_add", {"text": "We deploy on Thursdays.", "title": "Deploy day"})
    return store, memory


def test_no_call_crashes_or_leaves_the_store(memory: tuple[Store, Memory]) -> None:
    store, answers = memory
    service = service_of(answers)
    before, settings_before = outside(store), (store.root / ".mdmem.toml").read_bytes()
    git_before = (store.root / ".git/config").read_bytes()

    @settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
    @given(calls(), ANY)
    @example(("memory_get", {"note": "memories/link.md"}), 1)
    @example(("memory_update", {"note": "memories/link.md", "text": "x"}), 1)
    @example(("memory_update", {"note": "Deploy day", "set": {"id": "../../x"}}), 1)
    @example(("memory_add", {"text": "x", "title": "../../../canary", "scope": "local"}), 1)
    @example(("memory_task", {"action": "add", "task": "../../canary", "blocked_by": ["../x"]}), 1)
    @example(("memory_message", {"action": "send", "to": "../x", "subject": "../../y"}), 1)
    @example(("memory_query", {"sql": "ATTACH '/etc/passwd' AS x"}), 1)
    @example(("memory_get", {"note": "Deploy day", "at": "--output=x"}), 1)
    def run(call: tuple[str, dict[str, Any]], identity: Any) -> None:
        count("examples in mcp/test_fuzz.py")
        name, arguments = call
        params = {"name": name, "arguments": arguments}
        line = json.dumps({"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params}).encode()
        answer = answer_line(service, line)
        text = json.dumps(answer)
        assert CANARY not in text and "root:x:" not in text
        if "error" in answer:
            assert answer["error"]["code"] != INTERNAL, answer
        else:
            assert "unexpected" not in answer["result"]["content"][0]["text"][:20], answer

    run()
    for uri in AWAY:
        for form in (uri, uri.replace("/", "%2f").replace(".", "%2E")):
            params = {"uri": f"mdmem:///{form}"}
            message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params}
            answer = answer_line(service, json.dumps(message).encode())
            assert CANARY not in json.dumps(answer) and ("error" in answer or ".md" in uri), (uri, answer)
    assert not list((store.data_dir / "log").glob("crash-*"))
    assert outside(store) == before
    assert (store.root / ".mdmem.toml").read_bytes() == settings_before
    assert (store.root / ".git/config").read_bytes() == git_before
    assert not (store.root / ".git/hooks/post-commit").exists()


def test_any_message_gets_an_answer_that_is_one(memory: tuple[Store, Memory]) -> None:
    service = service_of(memory[1])
    methods = st.sampled_from(
        ["initialize", "server/discover", "tools/list", "resources/list", "resources/read", "prompts/get", "ping"]
    )
    message = st.fixed_dictionaries({}, optional={"jsonrpc": ANY, "id": ANY, "method": methods | WORDS | ANY, "params": ANY})
    version = "io.modelcontextprotocol/protocolVersion"

    @settings(max_examples=examples(200), suppress_health_check=list(HealthCheck))
    @given(message | ANY | st.lists(message, max_size=4))
    @example({"id": 1, "method": "tools/list", "params": {"_meta": {version: ["x"]}}})
    @example({"id": 1, "method": "prompts/get", "params": {"name": "handoff", "arguments": {"hours": "²"}}})
    @example({"id": 1, "method": "prompts/get", "params": {"name": "handoff", "arguments": {"hours": "9" * 5000}}})
    @example({"id": 1, "method": "resources/list", "params": {"cursor": "²"}})
    def run(sent: Any) -> None:
        count("examples in mcp/test_fuzz.py")
        answer = answer_line(service, json.dumps(sent).encode())
        for one in answer if isinstance(answer, list) else [answer]:
            assert one is None or (one["jsonrpc"] == "2.0" and ("error" in one) != ("result" in one))
            assert one is None or one.get("error", {}).get("code") != INTERNAL, one

    run()


def test_bytes_and_lengths_that_are_no_message(memory: tuple[Store, Memory]) -> None:
    service = service_of(memory[1])

    @settings(max_examples=examples(200))
    @given(st.binary(max_size=200))
    @example(b'{"id":1,"method":"ping","params":{"x":' + b"9" * 5000 + b"}}")
    @example(b'{"id":1e999,"method":"ping"}')
    @example(b'{"id":NaN,"method":"ping"}')
    @example(b'{"id":"\\ud800","method":"ping"}')
    @example(b"\x00" * 50)
    def run(line: bytes) -> None:
        count("examples in mcp/test_fuzz.py")
        answer = answer_line(service, line)
        assert answer is None or json.dumps(answer)

    run()


def test_a_line_that_never_ends_is_refused_and_the_next_is_answered(store: Store) -> None:
    client = Client(store.root)
    huge = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"y" * 9_000_000 + b'"}}'
    assert client.raw(huge)["error"]["code"] == -32600
    assert client.ask("ping") == {}
    text, wrong = client.tool("memory_add", text="z" * 1_000_001)
    assert wrong and "longer than" in text
    assert client.close() == 0


def test_servers_that_write_at_once_lose_nothing(store: Store) -> None:
    clients = [Client(store.root) for _ in range(4)]
    for turn in range(3):
        for number, client in enumerate(clients):
            params = {"name": "memory_add", "arguments": {"text": f"Fact {turn} of server {number}."}}
            line = json.dumps({"jsonrpc": "2.0", "id": turn, "method": "tools/call", "params": params})
            assert client.process.stdin is not None
            client.process.stdin.write(line.encode() + b"\n")
            client.process.stdin.flush()
    for client in clients:
        assert client.process.stdout is not None
        for _ in range(3):
            answer = json.loads(client.process.stdout.readline())
            assert not answer["result"]["isError"], answer
        assert client.close() == 0
    command = [sys.executable, "-m", "mdmem", "list", "--limit", "50", "--json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    listed = subprocess.run(command, cwd=store.root, capture_output=True, text=True, env=env)
    assert len(list((store.root / "memories").glob("*.md"))) == 12
    assert len(json.loads(listed.stdout)["notes"]) == 12, listed.stderr
