"""The language model's back ends against a real HTTP server on loopback and a real program."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mdmem.clock import FixedClock
from mdmem.llm.anthropic import Anthropic
from mdmem.llm.command import Command
from mdmem.llm.http import Post
from mdmem.llm.ledger import Ledger
from mdmem.llm.model import Answer, Llm, LlmRefused, LlmUnavailable, misfit, read_json
from mdmem.llm.openai import OpenAI

SCHEMA = {"type": "object", "properties": {"facts": {"type": "array", "items": {"type": "string"}}}, "required": ["facts"]}
GOOD = json.dumps({"facts": ["one"]})


class Server:
    """Answers scripted (status, body, headers) in order, the last one again and again; keeps the requests."""

    def __init__(self) -> None:
        self.script: list[tuple[int, Any, dict[str, str]]] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None: ...

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                outer.requests.append(json.loads(raw))
                outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                status, body, headers = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


def post(naps: list[float] | None = None, **more: Any) -> Post:
    return Post(timeout=2, sleep=(naps if naps is not None else []).append, rng=random.Random(1), **more)


def chat(text: str | None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text, **more}}], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


def test_openai_answers_and_accounts(server: Server, tmp_path: Path) -> None:
    server.script = [(200, chat(GOOD), {})]
    ledger = Ledger(tmp_path / "ledger.json", FixedClock(datetime(2026, 11, 30, tzinfo=timezone.utc)))
    llm = Llm(OpenAI(server.url, "m", "key-1", post=post()), ledger.allow, ledger.account)
    assert llm.complete("be brief", "what?", SCHEMA) == {"facts": ["one"]}
    assert server.headers[0]["authorization"] == "Bearer key-1"
    assert server.requests[0]["response_format"]["json_schema"]["schema"] == SCHEMA
    assert ledger.today() == {"calls": 1, "tokens_in": 7, "tokens_out": 3, "cost": 0.0}


def test_openai_takes_the_other_name_of_the_limit(server: Server) -> None:
    server.script = [(400, {"error": "unknown field max_completion_tokens"}, {}), (200, chat(GOOD), {})]
    backend = OpenAI(server.url, "m", post=post())
    assert Llm(backend).complete("s", "p", SCHEMA) == {"facts": ["one"]}
    assert "max_tokens" in server.requests[1] and "max_completion_tokens" not in server.requests[1]


def test_openai_server_without_schema_support(server: Server) -> None:
    server.script = [(400, {"error": "response_format is not supported"}, {}), (200, chat("```json\n" + GOOD + "\n```"), {})]
    assert Llm(OpenAI(server.url, "m", post=post())).complete("s", "p", SCHEMA) == {"facts": ["one"]}


def test_one_repair_round_then_refused(server: Server) -> None:
    server.script = [(200, chat("sorry, here you go"), {}), (200, chat(GOOD), {})]
    assert Llm(OpenAI(server.url, "m", post=post())).complete("s", "p", SCHEMA) == {"facts": ["one"]}
    assert "not usable" in server.requests[1]["messages"][1]["content"]
    server.script = [(200, chat('{"facts": "no list"}'), {})]
    with pytest.raises(LlmRefused, match="not of type array"):
        Llm(OpenAI(server.url, "m", post=post())).complete("s", "p", SCHEMA)


def test_429_and_5xx_are_tried_again_with_growing_pauses(server: Server) -> None:
    naps: list[float] = []
    server.script = [(429, {}, {"retry-after": "7"}), (503, {}, {}), (529, {}, {}), (200, chat(GOOD), {})]
    assert Llm(OpenAI(server.url, "m", post=post(naps))).complete("s", "p", SCHEMA) == {"facts": ["one"]}
    assert naps[0] == 7 and len(naps) == 3 and naps[2] > naps[1] / 2
    server.script = [(500, {"error": "down"}, {})]
    with pytest.raises(LlmUnavailable, match="answered 500"):
        Llm(OpenAI(server.url, "m", post=post([]))).complete("s", "p", SCHEMA)


def test_one_that_is_down_is_not_waited_for_again_and_again(server: Server, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.json", FixedClock(datetime(2026, 11, 30, tzinfo=timezone.utc)))
    llm = Llm(OpenAI(server.url, "m", post=post(tries=1)), ledger.allow, ledger.account, ledger.give_back)
    server.script = [(500, {}, {}), (200, chat(GOOD), {}), (500, {}, {})]
    for _ in range(2):
        with pytest.raises(LlmUnavailable, match="answered 500"):
            llm.complete("s", "p", SCHEMA)
        if not server.requests[1:]:
            assert llm.complete("s", "p", SCHEMA) == {"facts": ["one"]}  # an answer in between: it is there again
    with pytest.raises(LlmUnavailable, match="answered 500"):
        llm.complete("s", "p", SCHEMA)
    asked = len(server.requests)
    with pytest.raises(LlmUnavailable, match="no more in this run"):
        llm.complete("s", "p", SCHEMA)
    assert len(server.requests) == asked and ledger.today()["calls"] == 1


def test_all_of_it_takes_as_long_as_somebody_waits(server: Server) -> None:
    naps: list[float] = []
    server.script = [(429, {}, {"retry-after": "20"}), (200, chat(GOOD), {})]
    with pytest.raises(LlmUnavailable, match="429"):
        Llm(OpenAI(server.url, "m", post=post(naps, within=3.0))).complete("s", "p", SCHEMA)
    assert not naps


def test_401_is_not_tried_again_and_names_no_key(server: Server) -> None:
    server.script = [(401, {"error": "bad key"}, {})]
    with pytest.raises(LlmUnavailable) as caught:
        Llm(OpenAI(server.url, "m", "key-secret", post=post())).complete("s", "p", SCHEMA)
    assert len(server.requests) == 1 and "key-secret" not in str(caught.value)


def test_a_redirect_is_not_followed(server: Server) -> None:
    server.script = [(302, b"", {"location": "http://127.0.0.1:9/"})]
    with pytest.raises(LlmUnavailable, match="302"):
        Llm(OpenAI(server.url, "m", "key", post=post())).complete("s", "p", SCHEMA)


@pytest.mark.parametrize("body", [b"", b"not json", b"[]", b'{"choices": []}', b'{"choices": [{}]}', b'{"choices": [null]}'])
def test_garbage_is_a_known_error(server: Server, body: bytes) -> None:
    server.script = [(200, body, {})]
    with pytest.raises((LlmRefused, LlmUnavailable)):
        Llm(OpenAI(server.url, "m", post=post([]))).complete("s", "p", SCHEMA)


def test_nobody_listens() -> None:
    with pytest.raises(LlmUnavailable, match="could not be reached"):
        Llm(OpenAI("http://127.0.0.1:9", "m", post=post([]))).complete("s", "p", SCHEMA)


def test_refusals(server: Server) -> None:
    server.script = [(200, chat(None, refusal="no"), {})]
    with pytest.raises(LlmRefused, match="refused"):
        Llm(OpenAI(server.url, "m", post=post())).complete("s", "p", SCHEMA)
    server.script = [(200, {"content": [], "stop_reason": "refusal"}, {})]
    with pytest.raises(LlmRefused, match="refused"):
        Llm(Anthropic(server.url, "m", "k", post=post())).complete("s", "p", SCHEMA)


def test_anthropic_answers(server: Server) -> None:
    answer = {"content": [{"type": "thinking"}, {"type": "text", "text": GOOD}], "stop_reason": "end_turn"}
    server.script = [(400, {"error": "output_config: unknown"}, {}), (200, {**answer, "usage": {"input_tokens": 5}}, {})]
    assert Llm(Anthropic(server.url, "m", "k", post=post())).complete("s", "p", SCHEMA) == {"facts": ["one"]}
    assert server.headers[0]["x-api-key"] == "k" and server.headers[0]["anthropic-version"] == "2023-06-01"
    assert server.requests[0]["max_tokens"] and server.requests[0]["system"].startswith("s")


def program(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "program.py"
    path.write_text(text)
    return [sys.executable, str(path)]


def test_command_reads_stdin_and_carries_the_marker(tmp_path: Path) -> None:
    words = program(
        tmp_path,
        "import os, sys, json\ntext = sys.stdin.read()\n"
        "assert 'what?' in text and os.environ['MDMEM_HOOK'] == '1' and os.listdir('.') == []\n"
        "print(json.dumps({'type': 'result', 'is_error': False, 'result': '```json\\n{\"facts\": [\"one\"]}\\n```'}))\n",
    )
    assert Llm(Command(words)).complete("s", "what?", SCHEMA) == {"facts": ["one"]}


def test_command_failures(tmp_path: Path) -> None:
    with pytest.raises(LlmUnavailable, match="exit code 3"):
        Llm(Command(program(tmp_path, "import sys; sys.exit(3)"))).complete("s", "p", SCHEMA)
    with pytest.raises(LlmUnavailable, match="no answer within"):
        Llm(Command(program(tmp_path, "import time; time.sleep(30)"), timeout=0.3)).complete("s", "p", SCHEMA)
    with pytest.raises(LlmUnavailable, match="cannot start"):
        Llm(Command(["/no/such/program"])).complete("s", "p", SCHEMA)
    with pytest.raises(LlmRefused, match="reports an error"):
        Llm(Command(program(tmp_path, "print('{\"type\": \"result\", \"is_error\": true}')"))).complete("s", "p", SCHEMA)


def test_the_daily_limit_is_hard_and_ends_at_midnight(tmp_path: Path) -> None:
    clock = FixedClock(datetime(2026, 11, 30, 23, 59, tzinfo=timezone.utc))
    ledger = Ledger(tmp_path / "ledger.json", clock, max_calls=2)
    for _ in range(2):
        ledger.allow()
        ledger.account("x", Answer("", 1, 1, 0.5))
    with pytest.raises(LlmUnavailable, match="limit"):
        ledger.allow()
    clock.advance(minutes=2)
    ledger.allow()
    costly = Ledger(tmp_path / "other.json", clock, max_cost=0.4)
    costly.account("x", Answer("", cost=0.5))
    with pytest.raises(LlmUnavailable):
        costly.allow()


def test_schema_check() -> None:
    assert misfit({"facts": []}, SCHEMA) == ""
    assert "missing" in misfit({}, SCHEMA)
    assert "not one of" in misfit("x", {"enum": ["a"]})
    assert "not of type number" in misfit(True, {"type": "number"})
    assert "too long" in misfit("abc", {"type": "string", "maxLength": 2})
    assert "out of range" in misfit(2, {"type": "number", "maximum": 1})
    assert read_json("[" * 100_000, SCHEMA)[0] is None
