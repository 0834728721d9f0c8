"""The remote back end: an OpenAI-compatible `/embeddings` endpoint (OpenAI, Jina, Ollama, …).

A service that fails says nothing about its model: the fingerprint stays, stored vectors stay, and
for a while no further call is tried (a circuit breaker whose state outlives the process). The
address and the name of the variable with the key come from the user's own settings only.
"""

from __future__ import annotations

import json
import math
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem import tokens
from mdmem.index.embed import EmbeddingUnavailable, fingerprint, unit_rows
from mdmem.index.embed_files import read_json, write_json

if TYPE_CHECKING:
    from mdmem.index.embed import Matrix

REMEMBERED = "embedding-service.json"
BATCH_TOKENS = 8192  # by mdmem's own count
BATCH_TEXTS = 64
MAX_ANSWER = 64 << 20  # bytes
RETRY = frozenset({408, 409, 429, 500, 502, 503, 504})
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0  # seconds between tries, before jitter
CLOSED_FOR, CLOSED_AT_MOST = 30.0, 900.0  # seconds without a call after a failure; doubles with each


@dataclass(frozen=True)
class Service:
    """What the user's settings say. `dims` is 0 when the service is to tell."""

    base_url: str
    model: str
    dims: int = 0
    query_prefix: str = ""
    passage_prefix: str = ""
    query_task: str = ""
    passage_task: str = ""
    key: str = ""
    timeout: float = 20.0  # seconds for one request
    query_timeout: float = 5.0  # someone waits for this one, and is answered by words without it
    tries: int = 3  # for passages; a query is tried once

    def __repr__(self) -> str:
        return f"Service({self.model} at {self.place})"

    @property
    def place(self) -> str:
        """Return the host for messages: no user name, no password, no query."""
        return urllib.parse.urlsplit(self.base_url).hostname or "?"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class HttpEmbedder:
    """One service and model. `sleep`, `now` (seconds) and `rng` are injected by tests."""

    def __init__(
        self,
        service: Service,
        state_dir: Path,
        chunking: str = "",
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        """Raises EmbeddingUnavailable when the settings do not fit, or when the length of the vectors is
        neither set nor remembered and the service does not answer."""
        parts = urllib.parse.urlsplit(service.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise EmbeddingUnavailable(
                "embedding.base_url is not an http address",
                hint="mdmem config set embedding.base_url http://localhost:11434/v1",
            )
        if not service.model:
            raise EmbeddingUnavailable("embedding.model is not set", hint="mdmem config set embedding.model NAME")
        self.service = service
        self._sleep, self._now, self._rng = sleep, now, rng or random.Random()
        self._remembered = state_dir / REMEMBERED
        self._opener = urllib.request.build_opener(_NoRedirect())
        self._identity = fingerprint(
            "http", service.base_url.rstrip("/"), service.model, service.dims,
            service.query_prefix, service.passage_prefix, service.query_task, service.passage_task,
        )  # fmt: skip
        known = self._state().get("dims", 0)
        self._dims = service.dims or (known if isinstance(known, int) else 0)
        self._chunking = chunking
        if not self._dims:
            self._embed(["dimensions"], "", "", hurry=True)

    @property
    def dims(self) -> int:
        """Return the length of a vector: as set, as remembered, or as the service answered."""
        return self._dims

    @property
    def fingerprint(self) -> str:
        """Return 16 hex digits over address, model, prefixes, tasks, length and chunking; never over the key."""
        return fingerprint(self._identity, self._dims, self._chunking)

    def count_tokens(self, text: str) -> int:
        """Return mdmem's own estimate: the service's tokenizer is not known."""
        return tokens.count_tokens(text)

    def passages(self, texts: Sequence[str]) -> Matrix:
        """Return float32 [len(texts), dims] for texts to be found."""
        return self._embed(texts, self.service.passage_prefix, self.service.passage_task)

    def queries(self, texts: Sequence[str]) -> Matrix:
        """Return float32 [len(texts), dims] for questions."""
        return self._embed(texts, self.service.query_prefix, self.service.query_task, hurry=True)

    def _embed(self, texts: Sequence[str], prefix: str, task: str, hurry: bool = False) -> Matrix:
        import numpy as np

        rows: list[Any] = []
        for batch in batches(texts):
            body: dict[str, Any] = {"model": self.service.model, "input": [prefix + text for text in batch]}
            if self.service.dims:
                body["dimensions"] = self.service.dims
            if task:
                body["task"] = task
            rows.extend(self._ask(body, len(batch), hurry))
        return unit_rows(np.array(rows, np.float32).reshape(len(texts), self._dims))

    def _ask(self, body: dict[str, Any], expected: int, hurry: bool) -> list[list[float]]:
        """Return one list of numbers for each input, in order; remembers success and failure."""
        state = self._state()
        closed_until = state.get("closed_until", 0)
        if isinstance(closed_until, (int, float)) and self._now() < closed_until <= self._now() + CLOSED_AT_MOST:
            raise self._failed(f"it failed a moment ago and is tried again in {math.ceil(closed_until - self._now())} s")
        try:
            rows = _rows(self._post(json.dumps(body).encode(), hurry), expected)
        except _Failure as error:
            failures = state.get("failures", 0) + 1 if isinstance(state.get("failures", 0), int) else 1
            pause = min(CLOSED_FOR * 2 ** min(failures - 1, 10), CLOSED_AT_MOST)
            self._remember({**state, "failures": failures, "closed_until": self._now() + pause})
            raise self._failed(str(error)) from None
        length = len(rows[0]) if rows else self._dims
        if any(len(row) != length for row in rows) or (self.service.dims and length != self.service.dims):
            raise self._failed(f"it sent vectors of {length} numbers, {self.service.dims or 'all alike'} expected")
        fresh = {"identity": self._identity, "dims": length}
        if state != fresh:
            self._remember(fresh)
        if self._dims and length != self._dims:
            # A real change of the model. The next command opens with the new length and embeds again.
            raise self._failed(f"its vectors now have {length} numbers, not {self._dims}", code="embedding_changed")
        self._dims = length
        return rows

    def _post(self, data: bytes, hurry: bool) -> bytes:
        """Return the body of a 200 answer; tries again after what may pass. Raises _Failure."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "mdmem"}
        if self.service.key:
            headers["Authorization"] = f"Bearer {self.service.key}"
        url = self.service.base_url.rstrip("/") + "/embeddings"
        tries, timeout = (1, self.service.query_timeout) if hurry else (self.service.tries, self.service.timeout)
        for attempt in range(1, tries + 1):
            wait = min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE)
            try:
                request = urllib.request.Request(url, data, headers, method="POST")
                with self._opener.open(request, timeout=timeout) as answer:
                    received: bytes = answer.read(MAX_ANSWER + 1)
                if len(received) > MAX_ANSWER:
                    raise _Failure("its answer is too large")
                return received
            except urllib.error.HTTPError as error:
                error.close()
                failure = _Failure(f"it answered {error.code}")
                if error.code not in RETRY:
                    raise failure from None
                asked = error.headers.get("Retry-After", "")
                if asked.isdigit():
                    wait = int(asked)
                    if wait > LONGEST_PAUSE:
                        raise failure from None
            except (OSError, HTTPException, ValueError) as error:
                reason = getattr(error, "reason", error)
                failure = _Failure("it did not answer in time" if isinstance(reason, TimeoutError) else _words(reason))
            if attempt == tries:
                raise failure
            self._sleep(wait * (0.5 + self._rng.random()))
        raise _Failure("no request was made")

    def _state(self) -> dict[str, Any]:
        state = read_json(self._remembered)
        return state if state.get("identity") == self._identity else {"identity": self._identity}

    def _remember(self, state: dict[str, Any]) -> None:
        write_json(self._remembered, state)

    def _failed(self, why: str, code: str | None = None) -> EmbeddingUnavailable:
        return EmbeddingUnavailable(f"the embedding service at {self.service.place} cannot be used", why=why, code=code)


class _Failure(Exception):
    """The service did not give what was asked; the text has no address and no key."""


def batches(texts: Sequence[str]) -> list[list[str]]:
    """Return the texts in order, cut so that no part has too many texts or tokens."""
    parts: list[list[str]] = []
    room = 0
    for text in texts:
        size = tokens.count_tokens(text)
        if not parts or size > room or len(parts[-1]) == BATCH_TEXTS:
            parts.append([])
            room = BATCH_TOKENS
        parts[-1].append(text)
        room -= size
    return parts


def _rows(answer: bytes, expected: int) -> list[list[float]]:
    try:
        data = json.loads(answer)["data"]
        rows: list[list[float] | None] = [None] * expected
        for position, item in enumerate(data):
            rows[item.get("index", position)] = [float(number) for number in item["embedding"]]
        full = [row for row in rows if row]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        raise _Failure("its answer is not in the form of the OpenAI interface") from None
    if len(full) != expected or len(data) != expected:
        raise _Failure(f"it sent {len(data)} vectors for {expected} texts")
    if not all(math.isfinite(number) for row in full for number in row) or not all(any(row) for row in full):
        raise _Failure("it sent vectors that are zero or not finite")
    return full


def _words(reason: object) -> str:
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return type(reason).__name__
