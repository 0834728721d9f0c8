"""One JSON POST with a time limit and retries; standard library only."""

from __future__ import annotations

import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mdmem.llm.model import LlmUnavailable

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
    """How to post: `timeout` seconds a try, at most `tries`, pauses that double from `pause` with jitter."""

    timeout: float = 60.0
    tries: int = 4
    pause: float = 1.0
    longest: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    rng: random.Random = field(default_factory=random.Random)

    def __call__(self, url: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON object that the server answers. Raises HttpFailed or LlmUnavailable."""
        data = json.dumps(body).encode()
        opener = urllib.request.build_opener(_NoRedirect)
        failure: LlmUnavailable = LlmUnavailable("the language model could not be reached")
        for attempt in range(self.tries):
            wait = min(self.pause * 2**attempt, self.longest) * (0.5 + self.rng.random())
            request = urllib.request.Request(url, data, {"content-type": "application/json", **headers}, method="POST")
            try:
                with opener.open(request, timeout=self.timeout) as response:
                    value = json.loads(response.read(MAX_BODY))
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
            except OSError as error:
                reason = getattr(error, "reason", error)
                failure = LlmUnavailable("the language model could not be reached", why=str(reason)[:200])
            if attempt + 1 < self.tries:
                self.sleep(wait)
        raise failure
