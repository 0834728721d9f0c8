"""A program of the user's: prompt on stdin, answer on stdout. `claude -p`, `llm`, `ollama run` and the like."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mdmem.config import Config
from mdmem.errors import UsageError
from mdmem.llm.model import MAX_ANSWER, Answer, LlmRefused, LlmSlow, LlmUnavailable

# `claude` alone means this: no tools, no hooks, no memory, nothing kept; the schema goes into the prompt.
CLAUDE = (
    "claude -p --output-format json --tools '' --no-session-persistence --strict-mcp-config --setting-sources ''"
)


@dataclass
class Command:
    """One program. It runs in an empty folder, in its own process group, with the recursion marker set."""

    words: list[str]
    timeout: float = 120.0
    name: str = "command"

    @classmethod
    def configured(cls, config: Config) -> Command:
        """Return the back end that the user's configuration describes. Raises UsageError when no program is named."""
        line = str(config.get("llm.command")).strip()
        model = str(config.get("llm.model"))
        if line == "claude":
            line = CLAUDE + (f" --model {shlex.quote(model)}" if model else "")
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"llm.command cannot be read: {error}") from error
        if not words:
            raise UsageError("no program is named", hint='mdmem config set llm.command "ollama run qwen3"')
        return cls(words, float(config.get("llm.timeout")))

    def preview(self, system: str, prompt: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        return {"command": self.words, "stdin": f"{system}\n\n{prompt}"}

    def ask(self, system: str, prompt: str, schema: Mapping[str, Any]) -> Answer:
        env = dict(os.environ, MDMEM_HOOK="1", CLAUDE_CODE_DISABLE_AUTO_MEMORY="1")
        with tempfile.TemporaryDirectory(prefix="mdmem-llm-") as empty:
            try:
                process = subprocess.Popen(
                    self.words,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=empty,
                    env=env,
                    start_new_session=True,
                )
            except OSError as error:
                raise LlmUnavailable(f"cannot start {self.words[0]}", why=error.strerror or "") from error
            try:
                out, err = process.communicate(f"{system}\n\n{prompt}".encode(), timeout=self.timeout)
            except subprocess.TimeoutExpired as error:
                _end(process)
                raise LlmSlow(f"{self.words[0]} gave no answer within {self.timeout:g} s") from error
            except BaseException:
                _end(process)
                raise
        if process.returncode != 0:
            why = err.decode("utf-8", "replace").strip()[-300:]
            raise LlmUnavailable(f"{self.words[0]} ended with exit code {process.returncode}", why=why)
        return unwrap(out[: 4 * MAX_ANSWER].decode("utf-8", "replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (OSError, AttributeError):
        process.kill()
    process.communicate()


def unwrap(text: str) -> Answer:
    """Return the answer inside Claude Code's result object, or the text itself for any other program."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return Answer(text)
    if not isinstance(data, dict) or data.get("type") != "result":
        return Answer(text)
    if data.get("is_error"):
        raise LlmRefused("the program reports an error", why=str(data.get("result", ""))[:300])
    structured = data.get("structured_output")
    answer = json.dumps(structured) if isinstance(structured, dict) else str(data.get("result", ""))
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    assert isinstance(usage, dict)
    tokens = (int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0))
    return Answer(answer, *tokens, cost=float(data.get("total_cost_usd") or 0.0))
