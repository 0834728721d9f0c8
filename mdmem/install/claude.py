"""Puts mdmem's hooks into Claude Code's settings and takes them out again; everything else in the file stays as it is.

An entry is ours by the command that it runs, wherever a person moved it. Installing twice changes nothing.
"""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mdmem.errors import NotFound, Refused
from mdmem.install.command import hook_argv
from mdmem.install.json_text import JsonText, load
from mdmem.install.record import Record, load_record, save_record
from mdmem.install.settings_file import SettingsFile, read_settings
from mdmem.install.template import template
from mdmem.repo.layout import find_top

SCOPES = ("user", "project", "local")
MEMORY_KEY = "autoMemoryDirectory"


@dataclass
class Installed:
    """What an install or uninstall did to one file: `diff` is the change, also when nothing was written."""

    file: str
    changed: bool
    written: bool
    events: list[str] = field(default_factory=list)
    diff: str = ""
    notices: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(self.__dict__)


def config_folder() -> Path:
    """Return Claude Code's configuration folder of this user."""
    named = os.environ.get("CLAUDE_CONFIG_DIR", "")
    return Path(named).expanduser() if named else Path.home() / ".claude"


def settings_path(scope: str, cwd: Path) -> Path:
    """Return the settings file of a scope: the user's, the project's shared one, or this machine's for the project."""
    if scope == "user":
        return config_folder() / "settings.json"
    folder = (find_top(cwd) or cwd) / ".claude"
    return folder / ("settings.json" if scope == "project" else "settings.local.json")


def wanted(python: str = "") -> dict[str, list[dict[str, Any]]]:
    """Return {event: groups} as they stand in settings, with the command of this installation in exec form."""
    found: dict[str, list[dict[str, Any]]] = json.loads(template("claude-code.json"))
    for event, groups in found.items():
        program, *args = hook_argv(event, python)
        if not os.path.isabs(program):
            raise NotFound("this Python does not know its own path", hint="run mdmem by the absolute path of its program")
        for group in groups:
            group["hooks"] = [{"type": "command", "command": program, "args": args, **hook} for hook in group["hooks"]]
    return found


def is_ours(hook: object) -> bool:
    """Return whether a hook entry runs mdmem's hooks: through this file's package, `-m mdmem hook` or `mdmem hook`."""
    if not isinstance(hook, dict) or not isinstance(hook.get("command"), str):
        return False
    args = hook.get("args")
    if isinstance(args, list):
        words = [hook["command"], *(str(word) for word in args)]
    else:
        try:
            words = shlex.split(hook["command"], posix=os.name != "nt")
        except ValueError:
            words = hook["command"].split()
    words = [word.strip("\"'").replace("\\", "/") for word in words]
    for place, word in enumerate(words[:-1]):
        if word.endswith("mdmem/hooks/main.py"):
            return True
        name = word.rsplit("/", 1)[-1].lower()
        if words[place + 1] == "hook" and (name in ("mdmem", "mdmem.exe") or (name == "mdmem" and place)):
            return True
    return False


def install_hooks(path: Path, *, dry_run: bool = False, memory: str = "", python: str = "") -> Installed:
    """Bring the settings file at `path` to hold each of our hooks exactly once, and `memory` as the auto-memory folder.

    Raises BadJson for a file that does not parse, Refused when auto-memory points elsewhere. Nothing is written then.
    """
    file = read_settings(path)
    record = load_record(path) or Record(created=file.data is None)
    edit = _open(file, record)
    events = wanted(python)
    _note_empties(edit, list(events), record)
    if not _in_place(edit, events):
        _take_out(edit)
        for event, groups in events.items():
            for group in groups:
                edit.append(("hooks", event), group)
    if memory:
        _set_memory(edit, memory, record)
    done = _finish(file, edit.text, dry_run, list(events))
    if done.written:
        save_record(path, record)
    return done


def set_memory(path: Path, memory: str, *, dry_run: bool = False) -> Installed:
    """Make `memory` the auto-memory folder in the settings file at `path`, and nothing else. Raises as install_hooks."""
    file = read_settings(path)
    record = load_record(path) or Record(created=file.data is None)
    edit = _open(file, record)
    _set_memory(edit, memory, record)
    done = _finish(file, edit.text, dry_run, [])
    if done.written:
        save_record(path, record)
    return done


def uninstall_hooks(path: Path, *, dry_run: bool = False) -> Installed:
    """Take every one of our hooks out of the settings file at `path`. Raises BadJson for a file that does not parse."""
    file = read_settings(path)
    record = load_record(path) or Record()
    if file.data is None or not file.text.strip():
        if not dry_run:
            save_record(path, None)
        return Installed(str(path), False, False)
    edit = JsonText(file.text)
    events = _take_out(edit)
    memory = bool(record.memory) and edit.get((MEMORY_KEY,)) == record.memory
    if memory:
        edit.remove((MEMORY_KEY,))
    _drop_empties(edit, events, record)
    nothing_left = edit.get(()) == {}
    text = record.blank if nothing_left and record.blank is not None else edit.text
    if nothing_left and record.created and (events or memory):
        if not dry_run:
            file.delete()
            save_record(path, None)
        return Installed(str(path), True, not dry_run, events, file.diff(""))
    done = _finish(file, text, dry_run, events)
    if not dry_run:
        save_record(path, None)
    return done


def _open(file: SettingsFile, record: Record) -> JsonText:
    if file.data is not None and not file.text.strip():
        record.blank = file.text
    edit = JsonText(file.text if file.text.strip() else "{}\n")
    if edit.root.kind != "object":
        raise Refused(f"{file.path} does not hold an object", why="it was left as it is")
    return edit


def _note_empties(edit: JsonText, events: list[str], record: Record) -> None:
    for path in [("hooks",), *(("hooks", event) for event in events)]:
        if edit.find(path) is not None and not edit.get(path) and list(path) not in record.empty:
            record.empty.append(list(path))


def _in_place(edit: JsonText, events: dict[str, list[dict[str, Any]]]) -> bool:
    """Return whether each of our groups stands in the file exactly once, and no other entry of ours does."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event, groups in (edit.get(("hooks",)) or {}).items():
        for group in groups if isinstance(groups, list) else []:
            hooks = group.get("hooks") if isinstance(group, dict) else None
            if isinstance(hooks, list) and any(is_ours(hook) for hook in hooks):
                found.setdefault(event, []).append(group)
    return found == events


def _take_out(edit: JsonText) -> list[str]:
    """Remove each entry of ours, and groups that hold nothing else; returns the events that had one."""
    touched: list[str] = []
    hooks = edit.find(("hooks",))
    for event in [member.key for member in hooks.members] if hooks and hooks.kind == "object" else []:
        place = 0
        while True:
            node = edit.find(("hooks", event))
            if node is None or node.kind != "array" or place >= len(node.members):
                break
            group = load(edit.text, node.members[place].value)
            inner = group.get("hooks") if isinstance(group, dict) else None
            ours = [i for i, hook in enumerate(inner) if is_ours(hook)] if isinstance(inner, list) else []
            if not ours:
                place += 1
                continue
            touched.append(event)
            if isinstance(inner, list) and len(ours) == len(inner):
                edit.remove(("hooks", event), place)
            else:
                _remove_hook(edit, event, place, ours[-1])
    return list(dict.fromkeys(touched))


def _remove_hook(edit: JsonText, event: str, place: int, index: int) -> None:
    """Take item `index` out of the list `hooks` of the group at `place`."""
    node = edit.find(("hooks", event))
    assert node is not None
    group = node.members[place].value
    inner = next(member.value for member in group.members if member.key == "hooks")
    edit.cut(inner, index)


def _drop_empties(edit: JsonText, events: list[str], record: Record) -> None:
    for path in [*(("hooks", event) for event in events), ("hooks",)]:
        node = edit.find(path)
        if node is not None and not node.members and node.kind != "scalar" and events and list(path) not in record.empty:
            edit.remove(path)


def _set_memory(edit: JsonText, memory: str, record: Record) -> None:
    known = edit.get((MEMORY_KEY,))
    if known not in (None, memory, record.memory or None):
        raise Refused(f"{MEMORY_KEY} points elsewhere already: {known}", hint="remove that line, then install again")
    edit.put((MEMORY_KEY,), memory)
    record.memory = memory


def _finish(file: SettingsFile, text: str, dry_run: bool, events: list[str]) -> Installed:
    changed = text != file.text or (file.data is None and bool(text))
    written = False if dry_run or not changed else file.write(text)
    return Installed(str(file.path), changed, written, events, file.diff(text))
