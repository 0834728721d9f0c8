"""The Claude Code plugin, checked by the real program, and its parts against what the installer writes."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mdmem import __version__
from mdmem.install.claude import wanted

ROOT = Path(__file__).resolve().parents[2]
# Read before a test's own environment hides it.
NAMED = os.environ.get("MDMEM_TEST_CLAUDE", "")


def claude() -> Path:
    """Return the real program: MDMEM_TEST_CLAUDE, or the one in the package claude-agent-sdk; skips without."""
    if NAMED:
        return Path(NAMED)
    found = importlib.util.find_spec("claude_agent_sdk")
    program = Path(found.origin).parent / "_bundled" / "claude" if found and found.origin else Path("/nowhere")
    if not program.exists():
        pytest.skip("set MDMEM_TEST_CLAUDE, or install claude-agent-sdk")
    return program


@pytest.mark.e2e
def test_claude_plugin_validate_accepts_it(tmp_path: Path) -> None:
    copy = tmp_path / "plugin"
    for name in (".claude-plugin", "hooks", "skills"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "CLAUDE_CONFIG_DIR": str(tmp_path / "config"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "HTTPS_PROXY": "http://127.0.0.1:9",
    }
    command = [str(claude()), "plugin", "validate", str(copy), "--strict"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    for event in wanted():
        assert f"hooks: {event} " in done.stdout
    for skill in ("recall", "remember", "handoff"):
        assert f"mdmem:{skill}" in done.stdout


def test_the_plugin_has_the_events_and_limits_of_the_installer() -> None:
    data = json.loads((ROOT / "hooks" / "hooks.json").read_text("utf-8"))["hooks"]
    installed = wanted()
    assert list(data) == list(installed)
    for event, groups in installed.items():
        for ours, theirs in zip(groups, data[event]):
            assert ours.get("matcher") == theirs.get("matcher")
            for one, two in zip(ours["hooks"], theirs["hooks"]):
                assert (two["command"], two["args"][1:]) == ("sh", ["hook", event])
                assert {k: v for k, v in one.items() if k not in ("command", "args")} == {
                    k: v for k, v in two.items() if k not in ("command", "args")
                }


def test_versions_agree() -> None:
    plugin = json.loads((ROOT / ".claude-plugin" / "plugin.json").read_text("utf-8"))
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text("utf-8"))
    assert plugin["version"] == market["plugins"][0]["version"] == __version__


def run(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", str(ROOT / "hooks" / "run-mdmem"), *args], capture_output=True, text=True, env=env, timeout=30)


def test_the_program_is_found_with_a_short_path(tmp_path: Path) -> None:
    home = tmp_path / "ho me"
    program = home / ".local" / "bin" / "mdmem"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    assert run("hook", "Stop", PATH="/usr/bin:/bin", HOME=str(home)).stdout == "hook Stop\n"
    assert run("hook", "Stop", PATH=f"{program.parent}:/usr/bin:/bin", HOME="/nowhere").stdout == "hook Stop\n"
    assert run("hook", "Stop", PATH="/usr/bin:/bin", HOME=str(home), MDMEM_HOOK="1").stdout == ""


def test_a_missing_program_is_told_once_and_disturbs_nothing() -> None:
    bare = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}
    start = run("hook", "SessionStart", **bare)
    assert start.returncode == 0 and "pipx install mdmem" in json.loads(start.stdout)["systemMessage"]
    for event in ("UserPromptSubmit", "Stop", "PreCompact"):
        done = run("hook", event, **bare)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert run("mcp", **bare).returncode == 127
