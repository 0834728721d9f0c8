"""A stand-in for what a Milvus server has and milvus-lite lacks: it speaks the protocol, looks at the token, keeps what each
request asked for, and hands everything on to a real engine behind it. It can also be slow, broken or silent.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from pymilvus.grpc_gen import milvus_pb2

# The name of the request of each call that names a collection.
ASKING = {"Search": "dsl", "Query": "expr", "Delete": "expr"}
OTHERS = ("DescribeCollection", "HasCollection", "Upsert", "Insert", "Flush", "LoadCollection", "CreateCollection")


@dataclass(frozen=True)
class Call:
    """One request: the method, the token it came with, the collection and the filter."""

    method: str
    token: str
    collection: str
    condition: str


@dataclass
class Relay:
    """`rights`: token → collections (None: whoever asks may do everything); `mute`: methods that are never answered;
    `broken`: methods that are answered with an error."""

    behind: str
    rights: dict[str, set[str]] | None = None
    mute: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    calls: list[Call] = field(default_factory=list)
    uri: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    def answer(self, method: str, request: bytes, context: Any) -> bytes:
        """Answer one call."""
        said = dict(context.invocation_metadata()).get("authorization", "")
        token = base64.b64decode(said).decode() if said else ""
        collection, condition = _read(method, request)
        self.calls.append(Call(method, token, collection, condition))
        if method in self.mute:
            self.over.wait(60)
        if method in self.broken:
            context.abort(grpc.StatusCode.INTERNAL, "out of order")
        if self.rights is not None:
            if token not in self.rights:
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "auth check failure, please check username and password")
            if collection and collection not in self.rights[token]:
                context.abort(grpc.StatusCode.PERMISSION_DENIED, f"{method}: permission deny")
        try:
            with grpc.insecure_channel(self.behind) as channel:
                done: bytes = channel.unary_unary(f"/milvus.proto.milvus.MilvusService/{method}")(request, timeout=30)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
        return done

    def service(self, details: Any) -> Any:
        """Return the handler of a method, as grpc asks for it."""
        method = details.method.rsplit("/", 1)[1]
        return grpc.unary_unary_rpc_method_handler(lambda request, context: self.answer(method, request, context))


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, relay: Relay) -> None:
        self.relay = relay

    def service(self, handler_call_details: Any) -> Any:
        return self.relay.service(handler_call_details)


def _read(method: str, request: bytes) -> tuple[str, str]:
    """Return (collection, filter) of a request."""
    if method not in ASKING and method not in OTHERS:
        return "", ""
    name = "DescribeCollection" if method == "HasCollection" else method
    read = getattr(milvus_pb2, f"{name}Request").FromString(request)
    collection = read.collection_names[0] if method == "Flush" else read.collection_name
    return str(collection), str(getattr(read, ASKING[method])) if method in ASKING else ""


@contextmanager
def relayed(behind: str, **given: Any) -> Iterator[Relay]:
    """Give a relay to an engine at `http://HOST:PORT`."""
    relay = Relay(behind.removeprefix("http://"), **given)
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((_Handler(relay),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    relay.uri = f"http://127.0.0.1:{port}"
    try:
        yield relay
    finally:
        relay.over.set()
        server.stop(0)
