"""Names mdmem's MCP server in the configuration of a program that speaks MCP, and takes it out again.

The file is edited as text; an entry called `mdmem` that is not ours is left alone and reported.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdmem.errors import MdmemError, Refused
from mdmem.install.claude import Installed, config_folder
from mdmem.install.command import program_argv
from mdmem.install.json_text import JsonText
from mdmem.install.record import Record, load_record, save_record
from mdmem.install.settings_file import SettingsFile, read_settings
from mdmem.repo.layout import find_top

NAME = "mdmem"
CLIENTS = ("claude", "codex", "cursor", "vscode")


@dataclass(frozen=True)
class _Place:
    path: Path
    key: str
    comments: bool = False
    typed: bool = False


def _place(client: str, scope: str, cwd: Path) -> _Place:
    top = find_top(cwd) or cwd
    home = Path.home()
    if client == "claude":
        if scope == "project":
            return _Place(top / ".mcp.json", "mcpServers")
        own = os.environ.get("CLAUDE_CONFIG_DIR")
        return _Place((config_folder() if own else home) / ".claude.json", "mcpServers", typed=True)
    if client == "cursor":
        return _Place((top if scope == "project" else home) / ".cursor" / "mcp.json", "mcpServers")
    if scope == "project":
        return _Place(top / ".vscode" / "mcp.json", "servers", comments=True, typed=True)
    return _Place(_vscode_user() / "mcp.json", "servers", comments=True, typed=True)


def _vscode_user() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Code" / "User"
    if os.name == "nt":  # pragma: no cover - written for Windows, not run there
        return Path(os.environ.get("APPDATA", str(Path.home()))) / "Code" / "User"
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base else Path.home() / ".config") / "Code" / "User"


def codex_file() -> Path:
    """Return the path of Codex's configuration of this user."""
    named = os.environ.get("CODEX_HOME", "")
    return (Path(named) if named else Path.home() / ".codex") / "config.toml"


def entry(python: str = "") -> dict[str, Any]:
    """Return {command, args} that start the server: absolute paths, no shell."""
    program, *args = program_argv(python)
    return {"command": program, "args": [*args, "mcp"]}


def _ours(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    words = [str(value.get("command", "")), *(str(word) for word in value.get("args") or [])]
    return any(
        "mdmem" in word.replace("\\", "/").rsplit("/", 3)[-3:] or word.endswith(("/mdmem", "mdmem.exe")) for word in words
    ) or ("mdmem" in words)


def named(client: str, scope: str, cwd: Path) -> dict[str, Any] | None:
    """Return our entry in the configuration of `client`, None when there is none or the file cannot be read."""
    try:
        if client == "codex":
            servers = _toml(read_settings(codex_file())).get("mcp_servers", {})
            value = servers.get(NAME) if isinstance(servers, dict) else None
        else:
            place = _place(client, scope, cwd)
            file = read_settings(place.path)
            value = JsonText(file.text, place.comments).get((place.key, NAME)) if file.text.strip() else None
    except (MdmemError, OSError, ValueError):
        return None
    return value if isinstance(value, dict) and _ours(value) else None


def install_mcp(client: str, scope: str, cwd: Path, *, dry_run: bool = False, python: str = "") -> Installed:
    """Name the server in the configuration of `client`. Doing it twice changes nothing.

    Raises BadJson or MdmemError for a file that does not parse, Refused when the name is taken by something else.
    """
    if client == "codex":
        return _install_codex(dry_run, python)
    place = _place(client, scope, cwd)
    file = read_settings(place.path)
    record = load_record(place.path) or Record(created=file.data is None)
    edit = JsonText(file.text if file.text.strip() else "{}\n", place.comments)
    known = edit.get((place.key, NAME))
    if known is not None and not _ours(known):
        raise Refused(f"{place.path} names another server {NAME}", hint="rename it there, then install again")
    value = {**({"type": "stdio"} if place.typed else {}), **entry(python)}
    if known is None:
        if edit.find((place.key,)) is not None and not edit.get((place.key,)):
            record.empty.append([place.key])
        edit.put((place.key, NAME), value)
    elif {key: known.get(key) for key in value} != value:
        edit.put((place.key, NAME), {**known, **value})
    return _finish(file, edit.text, record, dry_run)


def uninstall_mcp(client: str, scope: str, cwd: Path, *, dry_run: bool = False) -> Installed:
    """Take the server out of the configuration of `client`; an entry that is not ours stays."""
    if client == "codex":
        return _uninstall_codex(dry_run)
    place = _place(client, scope, cwd)
    file = read_settings(place.path)
    if not file.text.strip():
        return Installed(str(place.path), False, False)
    record = load_record(place.path) or Record()
    edit = JsonText(file.text, place.comments)
    if not _ours(edit.get((place.key, NAME))):
        return Installed(str(place.path), False, False)
    edit.remove((place.key, NAME))
    if not edit.get((place.key,)) and [place.key] not in record.empty:
        edit.remove((place.key,))
    return _leave(file, edit.text, record, edit.get(()) == {}, dry_run)


def _finish(file: SettingsFile, text: str, record: Record, dry_run: bool) -> Installed:
    changed = text != file.text
    written = False if dry_run or not changed else file.write(text)
    if written:
        save_record(file.path, record)
    return Installed(str(file.path), changed, written, [NAME], file.diff(text))


def _leave(file: SettingsFile, text: str, record: Record, nothing: bool, dry_run: bool) -> Installed:
    diff = file.diff("" if nothing and record.created else text)
    if not dry_run:
        if nothing and record.created:
            file.delete()
        else:
            file.write(text)
        save_record(file.path, None)
    return Installed(str(file.path), True, not dry_run, [NAME], diff)


_TABLE = re.compile(rf"(?m)^\[mcp_servers\.(?:{NAME}|\"{NAME}\")(?:\.[^\]\n]*)?\][^\n]*\n(?:(?!\[)[^\n]*\n?)*")


def _toml(file: SettingsFile) -> dict[str, Any]:
    try:
        return tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        raise MdmemError(f"cannot read {file.path}", why=str(error), hint="mend it in an editor", code="bad_config") from error


def _install_codex(dry_run: bool, python: str) -> Installed:
    file = read_settings(codex_file())
    record = load_record(file.path) or Record(created=file.data is None)
    servers = _toml(file).get("mcp_servers", {})
    known = servers.get(NAME) if isinstance(servers, dict) else None
    value = entry(python)
    if known is not None and not _ours(known):
        raise Refused(f"{file.path} names another server {NAME}", hint="rename it there, then install again")
    if isinstance(known, dict) and all(known.get(key) == value[key] for key in value):
        return Installed(str(file.path), False, False, [NAME])
    text = _without_table(file.text) if known is not None else file.text
    newline = "\r\n" if "\r\n" in text else "\n"
    # A JSON string is a TOML basic string.
    lines = [f"[mcp_servers.{NAME}]", *(f"{key} = {json.dumps(word, ensure_ascii=False)}" for key, word in value.items())]
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return _finish(file, text + gap + newline.join(lines) + newline, record, dry_run)


def _uninstall_codex(dry_run: bool) -> Installed:
    file = read_settings(codex_file())
    servers = _toml(file).get("mcp_servers", {})
    if not isinstance(servers, dict) or not _ours(servers.get(NAME)):
        return Installed(str(file.path), False, False)
    record = load_record(file.path) or Record()
    text = _without_table(file.text)
    return _leave(file, text, record, not text.strip(), dry_run)


def _without_table(text: str) -> str:
    """Return the text without our table; with the empty line that stood before it when it ends the file."""
    match = _TABLE.search(text)
    if match is None:
        raise Refused(f"the server {NAME} is written in a form that cannot be taken out", hint="remove it in an editor")
    before, after = text[: match.start()], text[match.end() :]
    if not after:
        before = re.sub(r"\r?\n\Z", "", before) if before.endswith(("\n\n", "\n\r\n")) else before
    return before + after
