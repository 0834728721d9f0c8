"""A stand-in for the host: runs the hook process as installed and looks at what is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdmem.install.command import hook_argv
from mdmem.locate import trust
from tests.patience import within

# Events and what may stand in their hookSpecificOutput.
ALLOWED = {
    "SessionStart": {"hookEventName", "additionalContext", "watchPaths"},
    "UserPromptSubmit": {"hookEventName", "additionalContext"},
}
TOP_LEVEL = {"hookSpecificOutput", "systemMessage"}

SESSION = "c0185ced-8f29-463c-b949-ae3179fc6587"


@dataclass
class Done:
    """What a hook process did."""

    code: int
    out: bytes
    err: bytes
    seconds: float

    @property
    def answer(self) -> dict[str, Any] | None:
        """The one JSON object on stdout, None for nothing; fails on anything else."""
        if not self.out:
            return None
        answer = json.loads(self.out)
        assert isinstance(answer, dict)
        assert self.out.startswith(b"{")
        return answer

    @property
    def context(self) -> str:
        """The text put into the agent's context, '' for none."""
        answer = self.answer or {}
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def payload(event: str, cwd: Path | str, **fields: Any) -> dict[str, Any]:
    """Return a payload as the real program sends it."""
    base: dict[str, Any] = {
        "session_id": SESSION,
        "transcript_path": f"/nowhere/{SESSION}.jsonl",
        "cwd": str(cwd),
        "hook_event_name": event,
    }
    if event not in ("SessionStart", "SessionEnd"):
        base["permission_mode"] = "default"
    return {**base, **fields}


SAMPLES: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "SessionEnd": {"reason": "other"},
    "UserPromptSubmit": {"prompt": "which database do we use for billing?"},
    "PreToolUse": {"tool_name": "Write", "tool_input": {"file_path": "a.txt", "content": "x"}, "tool_use_id": "toolu_01"},
    "PostToolUse": {
        "tool_name": "Write",
        "tool_input": {"file_path": "a.txt", "content": "hello\n"},
        "tool_response": {"type": "create", "filePath": "a.txt"},
        "tool_use_id": "toolu_01",
        "duration_ms": 18,
    },
    "PostToolUseFailure": {
        "tool_name": "Bash",
        "tool_input": {"command": "false", "description": "fail"},
        "tool_use_id": "toolu_02",
        "error": "Exit code 1",
        "is_interrupt": False,
    },
    "PostToolBatch": {
        "tool_calls": [
            {"tool_name": "Bash", "tool_input": {"command": "false", "description": "fail"}, "tool_response": "Exit code 1"}
        ]
    },
    "FileChanged": {"file_path": "/nowhere/a.md", "event": "change"},
    "PreCompact": {"trigger": "auto", "custom_instructions": None},
    "PostCompact": {"trigger": "auto", "compact_summary": "We moved billing to PostgreSQL."},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "All done.", "background_tasks": []},
    "SubagentStart": {"agent_id": "a1", "agent_type": "Explore"},
    "SubagentStop": {"agent_id": "a1", "agent_type": "Explore", "last_assistant_message": "Found it."},
    "Notification": {"message": "waiting", "notification_type": "idle_prompt"},
    "CwdChanged": {"old_cwd": "/a", "new_cwd": "/b"},
    "SomethingNew": {"field": 1},
}


def sample(event: str, cwd: Path | str) -> dict[str, Any]:
    """Return the sample payload of an event for a session in `cwd`."""
    return {**payload(event, cwd), **SAMPLES[event]}


def run_hook(
    event: str,
    data: bytes | dict[str, Any],
    *,
    cwd: Path | None = None,
    env: dict[str, str | None] | None = None,
    argv: list[str] | None = None,
) -> Done:
    """Run one hook to its end, with the data on its stdin."""
    stdin = data if isinstance(data, bytes) else json.dumps(data).encode()
    start = time.perf_counter()
    done = subprocess.run(
        argv or hook_argv(event), input=stdin, capture_output=True, cwd=cwd, env=environment(env), timeout=60, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr, time.perf_counter() - start)


def environment(changes: dict[str, str | None] | None = None) -> dict[str, str]:
    """Return the process environment with changes (None removes)."""
    out = dict(os.environ)
    for name, value in (changes or {}).items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = value
    return out


def git(folder: Path, *args: str) -> str:
    """Run git as a person would; returns its output."""
    done = subprocess.run(["git", "-C", str(folder), *args], capture_output=True, text=True, check=True)
    return done.stdout


def make_store(root: Path, *, trusted: bool = True, store_id: str = "st-test") -> Path:
    """Make a dedicated store by hand; returns its root."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q")
    (root / ".mdmem.toml").write_text(f'format = 1\n[store]\nid = "{store_id}"\n')
    (root / "memories").mkdir()
    (root / "memories" / ".keep").write_text("")
    git(root, "add", ".")
    git(root, "commit", "-qm", "start")
    if trusted:
        trust(store_id, "", root)
    return root.resolve()


def spooled(store: Path, session: str = SESSION) -> list[dict[str, Any]]:
    """Return the records that a session left in a dedicated store's spool."""
    path = store / ".git" / "mdmem" / "spool" / f"{session}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def workers_of(folder: Path) -> list[int]:
    """Return the ids of mdmem processes that were started for a path below `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                # Who started it goes on before the kernel has written down its words.
                starting = words == [b""] and "python" in os.readlink(entry / "exe")
            except OSError:
                continue
            ours = any(word.endswith(b".py") and b"mdmem" in word for word in words)
            if starting or (ours and any(word.startswith(str(folder).encode()) for word in words)):
                found.append(int(entry.name))
    return found


def wait_until(condition: Any, seconds: float = 30.0) -> None:
    """Return once `condition()` is true; fails after `seconds`, or later where the machine is slow."""
    began = time.monotonic()
    while not condition():
        within(began, seconds, "waited too long")
        time.sleep(0.02)


PYTHON = sys.executable


def add_note(store: Path, path: str, body: str, **fields: Any) -> Path:
    """Write a note as a person would; returns its file."""
    file = store / path
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"id: {file.stem}-id"]
    for name, value in ({"scope": "shared"} | fields).items():
        lines.append(f"{name}: {json.dumps(value, ensure_ascii=False) if isinstance(value, str) else json.dumps(value)}")
    file.write_text("---\n" + "\n".join(lines) + f"\n---\n{body}\n", encoding="utf-8")
    return file


def index(store: Path) -> None:
    """Bring the words of a store's index up to its files."""
    from mdmem.store import Store

    opened = Store.open(store)
    opened.index.refresh(embed_budget_s=0.0)
    opened.index.catalog.close()
