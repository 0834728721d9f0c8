"""One JSON POST with a time limit and retries; standard library only."""

from __future__ import annotations

import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from mdmem.llm.model import LlmSlow, LlmUnavailable

RETRY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
MAX_BODY = 20_000_000


class HttpFailed(LlmUnavailable):
    """The server answered with an error: `status` and the start of its text, without our key."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"the language model's server answered {status}", why=text[:300])
        self.status = status
        self.text = text


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@dataclass
class Post:
    """How to post: `timeout` seconds a try, at most `tries`, pauses that double from `pause` with jitter. With `within`, all of
    it takes so many seconds at most."""

    timeout: float = 60.0
    tries: int = 4
    pause: float = 1.0
    longest: float = 30.0
    within: float = 0.0
    sleep: Callable[[float], None] = time.sleep
    rng: random.Random = field(default_factory=random.Random)

    def __call__(self, url: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON object that the server answers. Raises HttpFailed or LlmUnavailable."""
        data = json.dumps(body).encode()
        opener = urllib.request.build_opener(_NoRedirect)
        failure: LlmUnavailable = LlmUnavailable("the language model could not be reached")
        begin = time.monotonic()
        for attempt in range(self.tries):
            left = self.within - (time.monotonic() - begin) if self.within else self.timeout
            if left <= 0:
                break
            wait = min(self.pause * 2**attempt, self.longest) * (0.5 + self.rng.random())
            request = urllib.request.Request(url, data, {"content-type": "application/json", **headers}, method="POST")
            try:
                with opener.open(request, timeout=min(self.timeout, left)) as response:
                    value = json.loads(_read(response, begin + self.within if self.within else None))
                if not isinstance(value, dict):
                    raise ValueError("not an object")
                return value
            except urllib.error.HTTPError as error:
                failure = HttpFailed(error.code, error.read(2000).decode("utf-8", "replace"))
                if error.code not in RETRY:
                    raise failure from None
                after = error.headers.get("retry-after", "")
                if after.isdigit():
                    wait = min(float(after), self.longest)
            except ValueError:
                failure = LlmUnavailable("the language model's server answered no JSON")
            except (OSError, HTTPException) as error:
                reason = getattr(error, "reason", error)
                kind = LlmSlow if isinstance(reason, TimeoutError) else LlmUnavailable
                failure = kind("the language model could not be reached", why=str(reason)[:200])
            if attempt + 1 < self.tries:
                if self.within and time.monotonic() - begin + wait >= self.within:
                    break
                self.sleep(wait)
        raise failure


def _read(response: Any, until: float | None) -> bytes:
    """Return the body of an answer. Raises TimeoutError where it drips in for too long."""
    parts, size = [], 0
    while size < MAX_BODY and (part := response.read1(min(1 << 16, MAX_BODY - size))):
        parts.append(part)
        size += len(part)
        if until is not None and time.monotonic() > until:
            raise TimeoutError("the answer took too long")
    return b"".join(parts)
