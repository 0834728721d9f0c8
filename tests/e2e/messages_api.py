"""A loopback stand-in for the Messages API: records each request, answers with scripted turns. Enough for Claude Code."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Turn = list[dict[str, Any]]
DONE: Turn = [{"type": "text", "text": "All done."}]


def text(words: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": words}


def use(tool: str, **given: Any) -> dict[str, Any]:
    """Return a block that calls a tool."""
    return {"type": "tool_use", "name": tool, "input": given}


@dataclass
class MessagesApi:
    """The server while it runs: `requests` are the bodies that came, in order; `turns` what is answered to those that
    offer tools."""

    turns: list[Turn] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    server: ThreadingHTTPServer | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        assert self.server is not None
        return int(self.server.server_address[1])

    def main_requests(self) -> list[dict[str, Any]]:
        """Return the requests of the conversation itself: those that offer tools."""
        return [request for request in self.requests if request.get("tools")]

    def said(self) -> str:
        """Return everything that reached the model, as text."""
        return "\n".join(json.dumps(request, ensure_ascii=False) for request in self.requests)

    def __enter__(self) -> MessagesApi:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self.server is not None
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request: dict[str, Any]) -> Turn:
        """Return the blocks to answer, and keep the request."""
        with self.lock:
            self.requests.append(request)
            if request.get("tools") and self.turns:
                return self.turns.pop(0)
        return DONE


def _handler(api: MessagesApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            return

        def do_GET(self) -> None:
            self._json({})

        def do_HEAD(self) -> None:
            self._json({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if "/v1/messages" not in self.path:
                self._json({})
            elif "count_tokens" in self.path:
                self._json({"input_tokens": 10})
            else:
                request = json.loads(body)
                self._message(request, api.answer(request))

        def _message(self, request: dict[str, Any], turn: Turn) -> None:
            number = len(api.requests)
            content = [
                {**block, "id": f"toolu_{number:03}_{place}"} if block["type"] == "tool_use" else block
                for place, block in enumerate(turn)
            ]
            reason = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
            message: dict[str, Any] = {
                "id": f"msg_{number:03}",
                "type": "message",
                "role": "assistant",
                "model": request.get("model"),
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 10, "output_tokens": 1},
            }
            if not request.get("stream"):
                self._json({**message, "content": content, "stop_reason": reason})
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self._event("message_start", message=message)
            for place, block in enumerate(content):
                if block["type"] == "text":
                    start: dict[str, Any] = {"type": "text", "text": ""}
                    delta = {"type": "text_delta", "text": block["text"]}
                else:
                    start = {**block, "input": {}}
                    delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                self._event("content_block_start", index=place, content_block=start)
                self._event("content_block_delta", index=place, delta=delta)
                self._event("content_block_stop", index=place)
            end = {"stop_reason": reason, "stop_sequence": None}
            self._event("message_delta", delta=end, usage={"output_tokens": 5})
            self._event("message_stop")
            self.close_connection = True

        def _event(self, kind: str, **fields: Any) -> None:
            self.wfile.write(f"event: {kind}\ndata: {json.dumps({**fields, 'type': kind})}\n\n".encode())

        def _json(self, value: object) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    return Handler
