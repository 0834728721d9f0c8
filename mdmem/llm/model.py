"""One interface to a language model: complete(system, prompt, schema) -> dict. Chosen by the user alone.

Everything in mdmem works with none. What comes back is untrusted text: it is checked against the schema,
repaired once, and refused otherwise.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from mdmem.config import Config
from mdmem.errors import MdmemError, UsageError


class LlmUnavailable(MdmemError):
    """No model is configured, it cannot be reached, or the day's limit is spent."""

    code = "llm_unavailable"


class LlmSlow(LlmUnavailable):
    """No answer within the time: what was asked may have been worked on, and paid for."""


class LlmRefused(MdmemError):
    """The model answered, and not with what was asked: no JSON, a wrong shape, a refusal."""

    code = "llm_answer"


@dataclass(frozen=True)
class Answer:
    """One raw answer: its text and, where the back end tells, tokens in and out and the cost in dollars."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0


class Backend(Protocol):
    """What a back end offers: one request, one answer. Raises LlmUnavailable or LlmRefused."""

    name: str

    def ask(self, system: str, prompt: str, schema: Mapping[str, Any]) -> Answer:
        """Return the model's answer to one prompt."""

    def preview(self, system: str, prompt: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `ask` would send, without keys."""


PATIENCE = 2


@dataclass
class Llm:
    """A configured model. `allow` takes one of the day's calls and raises LlmUnavailable at the limit; `account` is told what
    an answer took; `give_back` is called for a call that nobody answered. One that gave no answer PATIENCE times in a row is
    asked no more: whatever a run had to ask goes by rules then, and does not wait out each time limit."""

    backend: Backend
    allow: Callable[[], None] = lambda: None
    account: Callable[[str, Answer], None] = lambda name, answer: None
    give_back: Callable[[], None] = lambda: None
    calls: int = field(default=0)
    missed: int = 0

    def complete(self, system: str, prompt: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a dict that fits `schema`; one repair round. Raises LlmUnavailable or LlmRefused."""
        asked = f"{system}\n\nAnswer with one JSON object and nothing else. Its JSON Schema:\n{json.dumps(schema)}"
        text = self._ask(asked, prompt, schema)
        value, why = read_json(text, schema)
        if value is not None:
            return value
        again = f"{prompt}\n\nYour last answer was not usable ({why}). Answer again, with the JSON object alone."
        value, why = read_json(self._ask(asked, again, schema), schema)
        if value is None:
            raise LlmRefused("the language model's answer was not usable", why=why)
        return value

    def _ask(self, system: str, prompt: str, schema: Mapping[str, Any]) -> str:
        if self.missed >= PATIENCE:
            raise LlmUnavailable("the language model gave no answer before, and is asked no more in this run")
        self.allow()
        self.missed += 1
        try:
            answer = self.backend.ask(system, prompt, schema)
        except LlmSlow:
            raise
        except LlmUnavailable:
            self.give_back()
            raise
        self.missed = 0
        self.calls += 1
        self.account(self.backend.name, answer)
        return answer.text


_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
MAX_ANSWER = 1_000_000


def read_json(text: str, schema: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return (object, '') for an answer that holds one JSON object of this schema, else (None, why)."""
    if len(text) > MAX_ANSWER:
        return None, "the answer is too long"
    candidates = [text.strip(), *(match.strip() for match in _FENCE.findall(text))]
    first, last = text.find("{"), text.rfind("}")
    if 0 <= first < last:
        candidates.append(text[first : last + 1])
    why = "there is no JSON object in it"
    for candidate in candidates:
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            problem = misfit(value, schema)
            if not problem:
                return value, ""
            why = problem
    return None, why


_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def misfit(value: Any, schema: Mapping[str, Any], where: str = "$") -> str:
    """Return why a value does not fit a schema ('' when it fits). Knows type, properties, required, items, enum,
    maxLength, maxItems, minimum, maximum: what our own schemas use."""
    kind = schema.get("type")
    if kind:
        expected = _TYPES[kind]
        if not isinstance(value, expected) or (isinstance(value, bool) and kind in ("integer", "number")):
            return f"{where} is not of type {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is not one of {schema['enum']}"
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        return f"{where} is too long"
    if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{where} is out of range"
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            return f"{where} has too many items"
        for number, item in enumerate(value):
            problem = misfit(item, schema.get("items", {}), f"{where}[{number}]")
            if problem:
                return problem
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                return f"{where}.{name} is missing"
        for name, below in schema.get("properties", {}).items():
            if name in value:
                problem = misfit(value[name], below, f"{where}.{name}")
                if problem:
                    return problem
    return ""


# Seconds that the program which prints the key may take: it may ask its user.
KEY_TIMEOUT = 20.0


def api_key(config: Config, default_variable: str, timeout: float = KEY_TIMEOUT) -> str:
    """Return the key from the environment variable or command that the user's configuration names; '' when none."""
    variable = str(config.get("llm.api_key_env")) or default_variable
    if os.environ.get(variable):
        return os.environ[variable].strip()
    command = str(config.get("llm.key_command"))
    if not command:
        return ""
    try:
        done = subprocess.run(
            shlex.split(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=True, text=True
        )
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        why = type(error).__name__
        raise LlmUnavailable("the key command failed", why, hint="mdmem config get llm.key_command") from error
    return done.stdout.strip()


def load_backend(config: Config, key_timeout: float = KEY_TIMEOUT) -> Backend | None:
    """Return the back end that the user's configuration names, None for none. Raises UsageError for an unknown one."""
    name = str(config.get("llm.backend"))
    if name in ("", "none", "off"):
        return None
    if name == "openai":
        from mdmem.llm.openai import OpenAI

        return OpenAI.configured(config, key_timeout)
    if name == "anthropic":
        from mdmem.llm.anthropic import Anthropic

        return Anthropic.configured(config, key_timeout)
    if name == "command":
        from mdmem.llm.command import Command

        return Command.configured(config)
    raise UsageError(f"no language model back end is named {name!r}", hint="none, openai, anthropic or command")
