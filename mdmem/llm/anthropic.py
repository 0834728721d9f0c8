"""Anthropic's messages API."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mdmem.config import Config
from mdmem.errors import UsageError
from mdmem.llm.http import HttpFailed, Post
from mdmem.llm.model import KEY_TIMEOUT, Answer, LlmRefused, LlmUnavailable, api_key


@dataclass
class Anthropic:
    """One model at one address, by key or by bearer token."""

    base_url: str
    model: str
    key: str = ""
    token: str = ""
    max_tokens: int = 2000
    post: Post = field(default_factory=Post)
    name: str = "anthropic"
    enforce: bool = True

    @classmethod
    def configured(cls, config: Config, key_timeout: float = KEY_TIMEOUT) -> Anthropic:
        """Return the back end that the user's configuration describes. Raises UsageError or LlmUnavailable."""
        base = str(config.get("llm.base_url")) or os.environ.get("ANTHROPIC_BASE_URL", "") or "https://api.anthropic.com"
        model = str(config.get("llm.model"))
        if not model:
            raise UsageError("no language model is named", hint="mdmem config set llm.model NAME")
        key, token = api_key(config, "ANTHROPIC_API_KEY", key_timeout), os.environ.get("ANTHROPIC_AUTH_TOKEN", "")
        if not key and not token:
            raise LlmUnavailable("no key for Anthropic", hint="export ANTHROPIC_API_KEY=…")
        post = Post(timeout=float(config.get("llm.timeout")))
        return cls(base.rstrip("/"), model, key, token, int(config.get("llm.max_tokens")), post)

    def preview(self, system: str, prompt: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        return {"url": f"{self.base_url}/v1/messages", "body": self._body(system, prompt, schema)}

    def _body(self, system: str, prompt: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "system": system,
            "messages": [{"role": "user", "content": prompt}],
        }
        if self.enforce:
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return body

    def ask(self, system: str, prompt: str, schema: Mapping[str, Any]) -> Answer:
        headers = {"anthropic-version": "2023-06-01"}
        headers |= {"x-api-key": self.key} if self.key else {"authorization": f"Bearer {self.token}"}
        url = f"{self.base_url}/v1/messages"
        try:
            data = self.post(url, self._body(system, prompt, schema), headers)
        except HttpFailed as error:
            if error.status != 400 or "output_config" not in error.text or not self.enforce:
                raise
            self.enforce = False
            data = self.post(url, self._body(system, prompt, schema), headers)
        if data.get("stop_reason") == "refusal":
            raise LlmRefused("the language model refused to answer")
        blocks = data.get("content")
        if not isinstance(blocks, list):
            raise LlmRefused("the language model's server answered in an unknown form")
        text = "".join(str(b.get("text", "")) for b in blocks if isinstance(b, dict) and b.get("type") == "text")
        usage = data.get("usage") or {}
        return Answer(text, int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0))
