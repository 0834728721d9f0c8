"""The remote back end against a real server on the loopback interface."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdmem.config import Config
from mdmem.index.embed import EmbeddingUnavailable, load_embedder
from mdmem.index.embed_http import CLOSED_FOR, HttpEmbedder, Service
from mdmem.index.vectors import Vectors

KEY = "test-key-synthetic-000"


class Endpoint:
    """Answers with vectors of `dims` numbers; `script` holds what to do instead, one entry a request."""

    def __init__(self) -> None:
        self.dims = 8
        self.script: list[Any] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.release = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append({**body, "path": self.path})
                endpoint.keys.append(self.headers.get("Authorization"))
                self.answer(body, endpoint.script.pop(0) if endpoint.script else None)

            def answer(self, body: dict[str, Any], step: Any) -> None:
                if step == "hang":
                    endpoint.release.wait(30)
                    return
                if step == "close":
                    return
                if isinstance(step, tuple):
                    code, headers = step
                    self.send_response(code)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                data = step if isinstance(step, bytes) else json.dumps({"data": endpoint.vectors(body)}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def vectors(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Return vectors that are not of length 1, last first, as some services do."""
        rows = [np.random.default_rng(len(text)).random(self.dims) * 9 for text in body["input"]]
        return [{"index": i, "embedding": list(row)} for i, row in reversed(list(enumerate(rows)))]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    served = Endpoint()
    yield served
    served.release.set()
    served.server.shutdown()
    served.server.server_close()


class Time:
    """A clock that moves when someone sleeps."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def connect(endpoint: Endpoint, state: Path, clock: Time | None = None, **more: Any) -> HttpEmbedder:
    clock = clock or Time()
    service = Service(endpoint.url, "some-model", key=KEY, **more)
    return HttpEmbedder(service, state, "1", sleep=clock.sleep, now=lambda: clock.now, rng=random.Random(1))


def test_prefix_task_dimensions_and_key_are_sent_and_rows_come_back_in_order(endpoint: Endpoint, tmp_path: Path) -> None:
    embedder = connect(
        endpoint, tmp_path, dims=8, query_prefix="q: ", passage_prefix="p: ", query_task="ask", passage_task="keep"
    )
    assert not endpoint.requests  # a known length needs no probe
    rows = embedder.passages(["one", "fourteen", "yes"])
    assert rows.dtype == np.float32 and rows.shape == (3, 8)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)  # I-16: normalised by us
    assert np.array_equal(rows[0], rows[2]) and not np.array_equal(rows[0], rows[1])
    embedder.queries(["what?"])
    first, second = endpoint.requests
    assert first["path"] == "/v1/embeddings" and first["model"] == "some-model" and first["dimensions"] == 8
    assert (first["input"][0], first["task"]) == ("p: one", "keep")
    assert (second["input"], second["task"]) == (["q: what?"], "ask")
    assert endpoint.keys == [f"Bearer {KEY}"] * 2


def test_long_lists_are_sent_in_parts(endpoint: Endpoint, tmp_path: Path) -> None:
    rows = connect(endpoint, tmp_path, dims=8).passages(["x" * (n % 7 + 1) for n in range(150)] + ["字" * 8000] * 2)
    assert rows.shape == (152, 8)
    assert [len(request["input"]) for request in endpoint.requests] == [64, 64, 23, 1]
    assert connect(endpoint, tmp_path, dims=8).passages([]).shape == (0, 8)


@pytest.mark.parametrize("step", [(429, {}), (500, {}), (503, {}), "close"])
def test_what_may_pass_is_tried_again(endpoint: Endpoint, tmp_path: Path, step: Any) -> None:
    clock = Time()
    endpoint.script = [step, step]
    assert connect(endpoint, tmp_path, clock, dims=8).passages(["a"]).shape == (1, 8)
    assert len(endpoint.requests) == 3 and 0.25 <= clock.slept[0] <= 0.75 and 0.5 <= clock.slept[1] <= 1.5


def test_the_service_says_how_long_to_wait(endpoint: Endpoint, tmp_path: Path) -> None:
    clock = Time()
    endpoint.script = [(429, {"Retry-After": "4"})]
    connect(endpoint, tmp_path, clock, dims=8).passages(["a"])
    assert len(clock.slept) == 1 and 2 <= clock.slept[0] <= 6
    endpoint.script = [(429, {"Retry-After": "3600"})]
    with pytest.raises(EmbeddingUnavailable):
        connect(endpoint, tmp_path, clock, dims=8).passages(["a"])
    assert len(clock.slept) == 1


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ((401, {}), "401"),
        ((302, {"Location": "http://127.0.0.1:1/"}), "302"),
        (b"<html>", "form of the OpenAI"),
        (b'{"data": 3}', "form of the OpenAI"),
        (b'{"data": [{"embedding": ["x"]}]}', "form of the OpenAI"),
        (b'{"data": [{"index": 7, "embedding": [1]}]}', "form of the OpenAI"),
        (b'{"data": []}', "0 vectors for 1"),
        (b'{"data": [{"embedding": [0, 0, 0, 0, 0, 0, 0, 0]}]}', "zero"),
        (b'{"data": [{"embedding": [NaN, 0, 0, 0, 0, 0, 0, 1]}]}', "not finite"),
        (b'{"data": [{"embedding": [1, 2]}]}', "vectors of 2"),
        (b"[" * 100_000, "form of the OpenAI"),
    ],
)
def test_a_wrong_answer_is_one_typed_error(endpoint: Endpoint, tmp_path: Path, step: Any, why: str) -> None:
    embedder = connect(endpoint, tmp_path, dims=8)
    before = embedder.fingerprint
    endpoint.script = [step]
    with pytest.raises(EmbeddingUnavailable) as caught:
        embedder.passages(["a"])
    assert why in caught.value.why and "127.0.0.1" in str(caught.value)
    assert KEY not in repr(caught.value.as_dict()) + repr(embedder.service)
    assert embedder.fingerprint == before and len(endpoint.requests) == 1


def test_a_silent_service_costs_one_time_limit_and_then_none(endpoint: Endpoint, tmp_path: Path) -> None:
    clock = Time()
    endpoint.script = ["hang"]
    with pytest.raises(EmbeddingUnavailable) as caught:
        connect(endpoint, tmp_path, clock, dims=8, query_timeout=0.2).queries(["a"])
    assert "in time" in caught.value.why
    # The next process does not call: the circuit is open, and says for how long.
    with pytest.raises(EmbeddingUnavailable) as caught:
        connect(endpoint, tmp_path, clock, dims=8).queries(["a"])
    assert "30 s" in caught.value.why and len(endpoint.requests) == 1
    clock.now += CLOSED_FOR + 1
    assert connect(endpoint, tmp_path, clock, dims=8).queries(["a"]).shape == (1, 8)
    # A clock that was set back does not keep it closed for ever.
    endpoint.script = [(401, {})]
    with pytest.raises(EmbeddingUnavailable):
        connect(endpoint, tmp_path, clock, dims=8).queries(["a"])
    clock.now -= 1_000_000
    assert connect(endpoint, tmp_path, clock, dims=8).queries(["a"]).shape == (1, 8)


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingUnavailable) as caught:
        HttpEmbedder(Service("http://user:secret@127.0.0.1:9/v1", "m", dims=4), tmp_path).queries(["a"])
    assert "secret" not in str(caught.value.as_dict())


def test_i12_a_failed_probe_is_not_a_model_change(endpoint: Endpoint, tmp_path: Path) -> None:
    """3072 → 1536 → 3072 numbers: each a change that starts the vectors again; a dead service changes nothing."""
    seen = []
    for dims in (3072, 1536, 3072):
        endpoint.dims = dims
        state = tmp_path / "state"
        clock = Time()
        if seen:
            with pytest.raises(EmbeddingUnavailable) as caught:  # noticed by the first call with the old length
                connect(endpoint, state, clock).queries(["a"])
            assert caught.value.code == "embedding_changed"
        embedder = connect(endpoint, state, clock)
        assert embedder.dims == dims
        store = Vectors(tmp_path / "vectors", embedder.fingerprint, embedder.dims)
        assert len(store) == 0
        store.add(["ab" * 16], embedder.passages(["a"]))
        seen.append(embedder.fingerprint)
        endpoint.script = [(500, {})]
        with pytest.raises(EmbeddingUnavailable):
            embedder.queries(["a"])
        again = connect(endpoint, state, clock)  # while the circuit is open: no probe, the same model
        assert again.fingerprint == embedder.fingerprint and again.dims == dims
        assert len(Vectors(tmp_path / "vectors", again.fingerprint, again.dims)) == 1
        clock.now += 10_000
        connect(endpoint, state, clock).queries(["a"])
    assert seen[0] == seen[2] != seen[1]


def test_i12_no_answer_and_nothing_remembered(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.script = [(500, {})]
    with pytest.raises(EmbeddingUnavailable):
        connect(endpoint, tmp_path)


def settings(endpoint: Endpoint, **more: Any) -> Config:
    values = {"backend": "openai", "base_url": endpoint.url, "model": "m", "dimensions": 8, **more}
    return Config(values={f"embedding.{name}": value for name, value in values.items()})


def test_the_settings_choose_the_service(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    config = settings(endpoint, api_key_env="SOME_KEY", query_prefix="q: ")
    embedder = load_embedder(config, tmp_path, "1")
    embedder.queries(["a"])
    assert endpoint.keys == [f"Bearer {KEY}"] and endpoint.requests[0]["input"] == ["q: a"]
    other = load_embedder(settings(endpoint, query_prefix="Q: ", backend="http"), tmp_path, "1")
    assert len({embedder.fingerprint, other.fingerprint, load_embedder(config, tmp_path, "2").fingerprint}) == 3


@pytest.mark.parametrize(
    "more", [{"base_url": "file:///etc/passwd"}, {"base_url": ""}, {"model": ""}, {"api_key_env": "UNSET"}]
)
def test_settings_that_do_not_fit(endpoint: Endpoint, tmp_path: Path, more: dict[str, str]) -> None:
    with pytest.raises(EmbeddingUnavailable):
        load_embedder(settings(endpoint, **more), tmp_path)
    assert not endpoint.requests
