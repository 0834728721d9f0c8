"""The real Claude Code program in a box of its own: own HOME, dummy key, no network but loopback."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.messages_api import MessagesApi

LIMIT = 120
# Read now: each test starts with an environment of its own.
NAMED = os.environ.get("MDMEM_TEST_CLAUDE", "")


def program() -> str:
    """Return the path of the program: MDMEM_TEST_CLAUDE, or the one inside claude-agent-sdk; skips without."""
    if NAMED:
        return NAMED
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        pytest.skip("claude-agent-sdk is not installed (or set MDMEM_TEST_CLAUDE to the program)")
    return str(Path(spec.origin).parent / "_bundled" / "claude")


class Box:
    """One machine: a HOME with Claude Code's configuration in it, and a project."""

    def __init__(self, root: Path, api: MessagesApi) -> None:
        self.root, self.api = root, api
        self.home = root / "home"
        self.config = root / "config"
        self.project = root / "shop"
        for folder in (self.home, self.config, self.project):
            folder.mkdir(parents=True, exist_ok=True)
        self.extra: dict[str, str] = {}

    def environment(self) -> dict[str, str]:
        """Return the whole environment of a process in the box."""
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "CLAUDE_CONFIG_DIR": str(self.config),
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.api.port}",
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1,localhost",
            **self.extra,
        }

    def claude(self, prompt: str, *options: str) -> str:
        """Run one `claude -p`; returns what it printed. Fails when it failed."""
        words = [program(), "-p", prompt, "--permission-mode", "acceptEdits", *options]
        done = subprocess.run(
            words,
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def transcripts(self) -> list[Path]:
        """Return the transcripts that the program has written."""
        return sorted(self.config.rglob("*.jsonl"))

    def hook_output(self) -> list[dict[str, object]]:
        """Return the records of hooks in the transcripts: what the program made of our output."""
        found = []
        for path in self.transcripts():
            for line in path.read_text("utf-8").splitlines():
                record = json.loads(line)
                if isinstance(record.get("attachment"), dict) and str(record["attachment"].get("type", "")).startswith("hook"):
                    found.append(record["attachment"])
        return found
