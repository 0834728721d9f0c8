"""Any server that speaks OpenAI's chat completions: OpenAI, Ollama, LM Studio, llama.cpp, vLLM, OpenRouter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mdmem.config import Config
from mdmem.errors import UsageError
from mdmem.llm.http import HttpFailed, Post
from mdmem.llm.model import KEY_TIMEOUT, Answer, LlmRefused, api_key


@dataclass
class OpenAI:
    """One server and model. `limit_name` and `enforce` adapt to what the server takes."""

    base_url: str
    model: str
    key: str = ""
    max_tokens: int = 2000
    post: Post = field(default_factory=Post)
    name: str = "openai"
    limit_name: str = "max_completion_tokens"
    enforce: bool = True

    @classmethod
    def configured(cls, config: Config, key_timeout: float = KEY_TIMEOUT) -> OpenAI:
        """Return the back end that the user's configuration describes. Raises UsageError when no model is named."""
        base = str(config.get("llm.base_url")) or os.environ.get("OPENAI_BASE_URL", "") or "https://api.openai.com/v1"
        model = str(config.get("llm.model"))
        if not model:
            raise UsageError("no language model is named", hint="mdmem config set llm.model NAME")
        post = Post(timeout=float(config.get("llm.timeout")))
        key = api_key(config, "OPENAI_API_KEY", key_timeout)
        return cls(base.rstrip("/"), model, key, int(config.get("llm.max_tokens")), post)

    def preview(self, system: str, prompt: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        return {"url": f"{self.base_url}/chat/completions", "body": self._body(system, prompt, schema)}

    def _body(self, system: str, prompt: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
            self.limit_name: self.max_tokens,
        }
        if self.enforce:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        return body

    def ask(self, system: str, prompt: str, schema: Mapping[str, Any]) -> Answer:
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        url = f"{self.base_url}/chat/completions"
        for _ in range(3):
            try:
                data = self.post(url, self._body(system, prompt, schema), headers)
                break
            except HttpFailed as error:
                # Servers differ in two names; their own error text says which one they did not know.
                if error.status not in (400, 422):
                    raise
                if "max_completion_tokens" in error.text and self.limit_name == "max_completion_tokens":
                    self.limit_name = "max_tokens"
                elif "max_tokens" in error.text and self.limit_name == "max_tokens":
                    self.limit_name = "max_completion_tokens"
                elif "response_format" in error.text and self.enforce:
                    self.enforce = False
                else:
                    raise
        else:
            raise LlmRefused("the language model's server takes neither form of the request")
        try:
            message = data["choices"][0]["message"]
            text = message.get("content") or ""
            if message.get("refusal"):
                raise LlmRefused("the language model refused to answer")
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise LlmRefused("the language model's server answered in an unknown form") from error
        usage = data.get("usage") or {}
        return Answer(str(text), int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0))
