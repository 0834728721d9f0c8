"""Checks of the agent's side: hooks in Claude Code's settings, capture that has stopped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mdmem.doctor.finding import ERROR, NOTE, OK, WARNING, Finding, Look

FREEZES_BEFORE = "2.0.76"
SCOPES = ("user", "project", "local")


def hooks(look: Look) -> Iterator[Finding]:
    """Our hook entries in the settings call a program that is there, each with its own time limit."""
    from mdmem.install.claude import is_ours, settings_path

    found = 0
    for scope in SCOPES:
        path = settings_path(scope, look.store.cwd)
        for event, hook in _entries(path):
            if not is_ours(hook):
                continue
            found += 1
            program = str(hook.get("command", ""))
            if not (Path(program).is_file() or shutil.which(program)):
                text = f"{path}: the hook of {event} calls {program}, which is not there"
                yield Finding("hook-program", ERROR, text, f"mdmem install claude-code --{scope}")
            if not isinstance(hook.get("args"), list):
                text = f"{path}: the hook of {event} goes through a shell, whose profile may print before our JSON"
                yield Finding("hook-shell", WARNING, text, f"mdmem install claude-code --{scope}")
            if not isinstance(hook.get("timeout"), int) or not 0 < hook["timeout"] <= 120:
                text = f"{path}: the hook of {event} has no sensible time limit (it is in seconds)"
                yield Finding("hook-timeout", WARNING, text, f"mdmem install claude-code --{scope}")
    on = [path for path in (settings_path(scope, look.store.cwd) for scope in SCOPES) if _plugin_on(path)]
    if found and on:
        text = f"the mdmem plugin ({on[0]}) and hooks in Claude Code's settings are both on: each event starts two processes"
        yield Finding("hooks-twice", WARNING, text, "mdmem uninstall claude-code, or claude plugin disable mdmem")
    if found:
        yield Finding("hooks", OK, f"{found} hook entries in Claude Code's settings")
        note = f"versions of Claude Code before {FREEZES_BEFORE} are known to freeze on Windows with a session-start hook"
        yield Finding("claude-version", NOTE, note, "claude --version")
    elif on:
        yield Finding("hooks", OK, f"hooks come from the mdmem plugin ({on[0]})")
    else:
        yield Finding("hooks", NOTE, "no hooks in Claude Code's settings", "mdmem install claude-code")


def _plugin_on(path: Path) -> bool:
    """Return whether a settings file switches the mdmem plugin on (`enabledPlugins`: name@marketplace)."""
    try:
        data = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return False
    plugins = data.get("enabledPlugins") if isinstance(data, dict) else None
    return isinstance(plugins, dict) and any(str(name).split("@")[0] == "mdmem" and on for name, on in plugins.items())


def _entries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        data = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return
    events = data.get("hooks") if isinstance(data, dict) else None
    for event, groups in events.items() if isinstance(events, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            for hook in group.get("hooks", ()) if isinstance(group, dict) else ():
                if isinstance(hook, dict):
                    yield str(event), hook


def broken_settings(look: Look) -> Iterator[Finding]:
    """Claude Code's settings files are JSON."""
    from mdmem.install.claude import settings_path

    for scope in SCOPES:
        path = settings_path(scope, look.store.cwd)
        try:
            json.loads(path.read_text("utf-8-sig"))
        except OSError:
            continue
        except (ValueError, RecursionError) as error:
            yield Finding("claude-settings", ERROR, f"{path} is not JSON: {error}", "mend it in an editor")


def mcp_servers(look: Look) -> Iterator[Finding]:
    """Our server in the configuration of programs that speak MCP calls a program that is there."""
    from mdmem.install.mcp import CLIENTS, named

    found = []
    for client in CLIENTS:
        for scope in ("user", "project") if client != "codex" else ("user",):
            server = named(client, scope, look.store.cwd)
            if server is None:
                continue
            found.append(f"{client} ({scope})")
            program = str(server.get("command", ""))
            if not (Path(program).is_file() or shutil.which(program)):
                again = f"mdmem install mcp {client}" + (" --project" if scope == "project" else "")
                yield Finding("mcp-program", ERROR, f"{client} would start {program}, which is not there", again)
    if found:
        yield Finding("mcp", OK, f"MCP server named for {', '.join(found)}")


CHECKS = (broken_settings, hooks, mcp_servers)
