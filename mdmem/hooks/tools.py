"""Tool events: an edited note goes to the worker, everything else leaves one observation in the spool."""

from __future__ import annotations

import os
import re

from mdmem.hooks.place import find_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mdmem.hooks.place import Place

WRITERS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})

# Characters kept of a description, and of an error of a tool other than the shell.
DESCRIPTION = 200
ERROR = 300
# Files named in one observation.
FILES = 20

# Words before the program in a shell command.
_BEFORE = frozenset({"sudo", "env", "time", "nohup", "exec", "command", "nice", "timeout", "then", "do", "if", "while", "!"})
_PROGRAM = re.compile(r"[A-Za-z][\w.+-]{0,30}$")
_EXIT = re.compile(r"(?:Error: )?Exit code (\d{1,5})")


def tool_used(payload: dict[str, Any]) -> None:
    """PostToolUse and PostToolUseFailure."""
    place = find_place(payload["cwd"])
    if place is not None:
        failed = payload["hook_event_name"] == "PostToolUseFailure"
        _take(place, payload, [_call(payload, failed, payload.get("error"))])


def tool_batch(payload: dict[str, Any]) -> None:
    """PostToolBatch: the same calls as above, for hosts that send only this; repeats are dropped by the spool."""
    place = find_place(payload["cwd"])
    calls = payload.get("tool_calls")
    if place is None or not isinstance(calls, list):
        return
    found = []
    for call in calls:
        if isinstance(call, dict):
            answer = call.get("tool_response")
            exited = _EXIT.match(answer) if isinstance(answer, str) else None
            failed = exited is not None or (isinstance(answer, str) and answer.lstrip().startswith("<tool_use_error>"))
            found.append(_call(call, failed, answer if failed else None))
    _take(place, payload, found)


def file_changed(payload: dict[str, Any]) -> None:
    """FileChanged: an editor or a pull changed a watched file."""
    path = payload.get("file_path")
    place = find_place(payload["cwd"])
    if place is not None and isinstance(path, str) and path:
        _notes(place, payload, [path])


def _call(call: dict[str, Any], failed: bool, error: object) -> dict[str, Any]:
    given = call.get("tool_input")
    return {
        "tool": call.get("tool_name") if isinstance(call.get("tool_name"), str) else "",
        "input": given if isinstance(given, dict) else {},
        "failed": failed,
        "error": error if isinstance(error, str) else "",
    }


def _take(place: Place, payload: dict[str, Any], calls: list[dict[str, Any]]) -> None:
    edited = []
    for call in calls:
        files = _files(call["input"], payload["cwd"])
        if call["tool"] in WRITERS and not call["failed"]:
            notes = [path for path in files if place.inside(path) or place.indexed_outside(path)]
            if notes:
                edited += notes
                continue
        if place.settings["capture"] and call["tool"] and not call["tool"].startswith("mcp__mdmem"):
            _observe(place, payload, call, files)
    if edited:
        _notes(place, payload, edited)


def _files(given: dict[str, Any], cwd: str) -> list[str]:
    names = [given.get(key) for key in ("file_path", "notebook_path", "path")]
    return [os.path.join(cwd, os.path.expanduser(name)) for name in names if isinstance(name, str) and name][:FILES]


def _notes(place: Place, payload: dict[str, Any], paths: list[str]) -> None:
    from mdmem.hooks import queue

    session = payload.get("session_id")
    items = []
    for path in dict.fromkeys(paths):
        relative = place.inside(path)
        if relative is not None:
            items.append({"do": "note", "path": relative, "session": session if isinstance(session, str) else ""})
        elif place.indexed_outside(path):
            items.append({"do": "note", "path": "", "session": ""})
    if items:
        queue.put(place, *items)


def _observe(place: Place, payload: dict[str, Any], call: dict[str, Any], files: list[str]) -> None:
    from mdmem.hooks.turns import spool
    from mdmem.memory.spool import keepable

    record: dict[str, Any] = {"k": "tool", "tool": keepable(call["tool"], 80)}
    if files:
        # Redacted as it came: tidying a path takes the second slash out of `scheme://user:password@host`.
        record["files"] = [_short(keepable(path, 300), payload["cwd"]) for path in files]
    if call["tool"] == "Bash":
        what = call["input"].get("description")
        if isinstance(what, str) and what.strip():
            record["what"] = keepable(what.strip(), DESCRIPTION)
        name = program(call["input"].get("command"))
        if name:
            record["program"] = keepable(name, 40)
    record["ok"] = not call["failed"]
    if call["failed"]:
        exited = _EXIT.match(call["error"])
        if call["tool"] != "Bash":
            record["error"] = keepable(call["error"].strip(), ERROR)
        elif exited:
            # The rest of a shell's error repeats what was typed.
            record["error"] = f"exit code {exited[1]}"
    spool(place, payload, record)


def _short(path: str, cwd: str) -> str:
    path = os.path.normpath(path)
    return path[len(cwd) + 1 :] if path.startswith(cwd + os.sep) else path


def program(command: object) -> str:
    """Return the name of the first program in a shell command, '' when it is not plain to see."""
    if not isinstance(command, str):
        return ""
    for part in re.split(r"&&|\|\||[;|\n]", command[:2000]):
        words = part.split()
        while words and (words[0] in _BEFORE or re.match(r"[A-Za-z_]\w*=\S*$", words[0])):
            words.pop(0)
        if not words or words[0] in ("cd", "export", "set", "source", "."):
            continue
        name = words[0].rsplit("/", 1)[-1]
        return name if _PROGRAM.match(name) else ""
    return ""
