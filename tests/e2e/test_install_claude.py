"""What the installer writes, run by the real Claude Code against a server on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mdmem.install.claude import install_hooks
from tests.e2e.test_plugin import claude

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

HERE = Path(__file__).resolve()


def fixtures() -> Path:
    """Return the folder of the stand-in server; skips where it is absent."""
    for parent in HERE.parents:
        if (parent / "shared" / "fixtures" / "fake_anthropic_server.py").is_file():
            return parent / "shared" / "fixtures"
    pytest.skip("the stand-in server is not beside this checkout")


def test_h13_the_entries_run_in_exec_form_with_the_payload_on_stdin(tmp_path: Path) -> None:
    """The interpreter is a recorder in a folder with a space, a quote and a dollar sign in its name."""
    program, server = claude(), fixtures() / "fake_anthropic_server.py"
    odd = tmp_path / "a b's $HOME"
    odd.mkdir()
    recorder = odd / "python"
    recorder.write_text(f'#!/bin/sh\nfor last; do :; done\ncat > "{tmp_path}/seen-$last-$$"\n')
    recorder.chmod(0o755)
    project = tmp_path / "project"
    project.mkdir()
    install_hooks(project / ".claude" / "settings.local.json", python=str(recorder))
    out = tmp_path / "req"
    out.mkdir()
    loopback = subprocess.Popen([sys.executable, str(server), "--out", str(out)])
    try:
        port = out / "port"
        deadline = time.monotonic() + 30
        while not port.exists() and time.monotonic() < deadline:
            os.sched_yield()
        env = {
            "PATH": "/usr/bin:/bin",
            "SANDBOX": str(tmp_path / "box"),
            "CWD": str(project),
            "PORT": port.read_text().strip(),
            "CLAUDE_BIN": str(program),
            "LIMIT": "200",
        }
        script = ["sh", str(fixtures() / "run_isolated.sh"), "-p", "hello"]
        done = subprocess.run(script, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=220)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        loopback.terminate()
        loopback.wait()
    seen = {path.name.split("-")[1]: json.loads(path.read_text()) for path in tmp_path.glob("seen-*")}
    assert {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"} <= set(seen)
    for event, payload in seen.items():
        assert payload["hook_event_name"] == event
    assert seen["UserPromptSubmit"]["prompt"] == "hello"
