"""A `/rerank` endpoint in the shape that Jina's has (SiliconFlow, vLLM, TEI): one request, a short time limit, no retry.

Someone waits for the answer, and has one already."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from typing import Any

from mdmem.recall.rerank import RerankUnavailable

TIMEOUT = 5.0  # seconds
MAX_ANSWER = 4 << 20  # bytes


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class HttpReranker:
    """One endpoint and model. Raises RerankUnavailable when the address is none."""

    def __init__(self, base_url: str, model: str, key: str = "", timeout: float = TIMEOUT) -> None:
        parts = urllib.parse.urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RerankUnavailable(
                "rerank.base_url is not an http address", hint="mdmem config set rerank.base_url http://localhost:8080/v1"
            )
        self.url = base_url.rstrip("/") + "/rerank"
        self.place = parts.hostname
        self.model, self.key, self.timeout = model, key, timeout
        self._opener = urllib.request.build_opener(_NoRedirect())

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return one number a passage. Raises RerankUnavailable; its text has no key in it."""
        asked: dict[str, Any] = {
            "query": question,
            "documents": list(passages),
            "top_n": len(passages),
            "return_documents": False,
        }
        if self.model:
            asked["model"] = self.model
        status, answer = self._post(asked)
        if status in (400, 422):
            # TEI's own form has another name for the passages.
            status, answer = self._post({"query": question, "texts": list(passages)})
        if status != 200:
            raise self._failed(f"it answered {status}")
        return self._read(answer, len(passages))

    def _post(self, asked: dict[str, Any]) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "mdmem"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            request = urllib.request.Request(self.url, json.dumps(asked).encode(), headers, method="POST")
            with self._opener.open(request, timeout=self.timeout) as answer:
                received: bytes = answer.read(MAX_ANSWER + 1)
                status: int = answer.status
        except urllib.error.HTTPError as error:
            error.close()
            return error.code, b""
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise self._failed("it did not answer in time") from None
            raise self._failed(getattr(reason, "strerror", None) or type(reason).__name__) from None
        if len(received) > MAX_ANSWER:
            raise self._failed("its answer is too large")
        return status, received

    def _read(self, answer: bytes, expected: int) -> list[float]:
        found: dict[int, float] = {}
        try:
            data = json.loads(answer)
            for item in data["results"] if isinstance(data, dict) else data:
                found[int(item["index"])] = float(item["relevance_score"] if "relevance_score" in item else item["score"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            raise self._failed("its answer is not in the form of a /rerank endpoint") from None
        if set(found) != set(range(expected)) or not all(math.isfinite(score) for score in found.values()):
            raise self._failed(f"it judged {len(found)} of {expected} passages")
        return [found[number] for number in range(expected)]

    def _failed(self, why: str) -> RerankUnavailable:
        return RerankUnavailable(f"the rerank service at {self.place} cannot be used", why=why)
