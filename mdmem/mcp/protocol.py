"""The Model Context Protocol over stdio: one JSON-RPC message a line, both eras of the protocol.

Knows messages, not memories. Requests are answered in order; a notification is never answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO

LATEST_WITH_INITIALIZE = "2025-11-25"
KNOWN = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
MAX_LINE = 8_000_000

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
UNSUPPORTED_VERSION = -32022

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
# Results that say how long they hold in the newer era. What is listed here is fixed while the process runs; notes are not.
_HOLDS_MS = {
    "server/discover": 300_000,
    "tools/list": 300_000,
    "prompts/list": 300_000,
    "resources/templates/list": 300_000,
    "resources/list": 0,
    "resources/read": 0,
}


class BadParams(Exception):
    """The parameters of a request do not fit; the text says why."""


@dataclass
class Service:
    """What a server offers; each function gets the request's params."""

    name: str
    version: str
    instructions: str
    tools: Callable[[], list[dict[str, Any]]]
    call: Callable[[str, dict[str, Any]], dict[str, Any]]
    resources: Callable[[dict[str, Any]], dict[str, Any]]
    templates: Callable[[], list[dict[str, Any]]]
    read: Callable[[str], dict[str, Any]]
    prompts: Callable[[], list[dict[str, Any]]]
    prompt: Callable[[str, dict[str, Any]], dict[str, Any]]
    log: Callable[[str], None] = lambda text: None


def run(service: Service, source: BinaryIO, sink: BinaryIO) -> int:
    """Answer requests until the input ends; returns the exit code. Writes nothing to `sink` but messages."""
    while True:
        line = source.readline(MAX_LINE + 1)
        if not line:
            return 0
        if len(line) > MAX_LINE:
            while line and not line.endswith(b"\n"):
                line = source.readline(MAX_LINE)
            answer: Any = _error(None, INVALID_REQUEST, f"a message may have {MAX_LINE} bytes")
        elif not line.strip():
            continue
        else:
            answer = answer_line(service, line)
        if answer is None:
            continue
        try:
            sink.write(_encoded(answer) + b"\n")
            sink.flush()
        except (BrokenPipeError, ValueError):
            return 0


def _encoded(answer: Any) -> bytes:
    # Escaped: U+2028 and lone surrogates then cannot break a line or the encoding.
    return json.dumps(answer).encode("ascii")


def answer_line(service: Service, line: bytes) -> Any:
    """Return what one line is answered with: a message, a list of them for a batch, None for nothing."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "not JSON")
    if isinstance(message, list):
        if not message:
            return _error(None, INVALID_REQUEST, "an empty batch")
        answers = [found for found in (_answer(service, item) for item in message[:1000]) if found is not None]
        return answers or None
    return _answer(service, message)


def _error(identity: Any, code: int, text: str, data: Any = None) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": identity, "error": error}


def _answer(service: Service, message: Any) -> dict[str, Any] | None:
    if not isinstance(message, dict):
        return _error(None, INVALID_REQUEST, "a message is an object")
    method, identity = message.get("method"), message.get("id")
    if not isinstance(method, str):
        # A response to something that we never asked.
        return None if "result" in message or "error" in message else _error(identity, INVALID_REQUEST, "no method")
    if "id" not in message:
        return None
    if not isinstance(identity, (str, int)) or isinstance(identity, bool):
        return _error(None, INVALID_REQUEST, "an id is a string or a number")
    params = message.get("params")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        return _error(identity, INVALID_PARAMS, "params is an object")
    meta = params.get("_meta")
    asked = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    if asked is not None and asked != STATELESS:
        known = {"supported": [STATELESS], "requested": str(asked)}
        return _error(identity, UNSUPPORTED_VERSION, f"a request of its own version is one of {STATELESS}", known)
    try:
        result = _result(service, method, params)
    except BadParams as error:
        return _error(identity, INVALID_PARAMS, str(error))
    except Exception as error:
        service.log(f"{method}: {type(error).__name__}: {error}")
        return _error(identity, INTERNAL, f"{type(error).__name__} while answering {method}")
    if result is None:
        return _error(identity, NO_METHOD, f"no method {method}")
    if asked is not None or method == "server/discover":
        result = _stateless(service, method, result)
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def _stateless(service: Service, method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result with what the newer era wants in each: its type, who answers, how long it holds."""
    holds = {"ttlMs": _HOLDS_MS[method], "cacheScope": "private"} if method in _HOLDS_MS else {}
    info = {"name": service.name, "version": service.version}
    return {"resultType": "complete", **holds, **result, "_meta": {SERVER_KEY: info}}


def _text(params: dict[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise BadParams(f"{name} is a string")
    return value


def _arguments(params: dict[str, Any]) -> dict[str, Any]:
    value = params.get("arguments")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadParams("arguments is an object")
    return value


CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}


def _result(service: Service, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    info = {"name": service.name, "version": service.version}
    if method == "initialize":
        asked = params.get("protocolVersion")
        version = asked if asked in KNOWN else LATEST_WITH_INITIALIZE
        about = {"serverInfo": info, "instructions": service.instructions}
        return {"protocolVersion": version, "capabilities": CAPABILITIES, **about}
    if method == "server/discover":
        versions = [STATELESS, *reversed(KNOWN)]
        return {"supportedVersions": versions, "capabilities": CAPABILITIES, "instructions": service.instructions}
    if method in ("ping", "logging/setLevel"):
        return {}
    if method == "tools/list":
        return _listed("tools", service.tools())
    if method == "tools/call":
        return service.call(_text(params, "name"), _arguments(params))
    if method == "resources/list":
        return _listed("resources", **service.resources(params))
    if method == "resources/templates/list":
        return _listed("resourceTemplates", service.templates())
    if method == "resources/read":
        return service.read(_text(params, "uri"))
    if method == "prompts/list":
        return _listed("prompts", service.prompts())
    if method == "prompts/get":
        return service.prompt(_text(params, "name"), _arguments(params))
    return None


def _listed(name: str, items: Iterable[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {name: list(items), **more}
