"""Changing the user's configuration file: one line changes, comments and order stay."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mdmem.config import DEFAULTS, coerce, flatten, read_toml, user_file
from mdmem.errors import MdmemError, UsageError
from mdmem.locate import write_private
from mdmem.locks import FileLock


def literal(value: Any) -> str:
    """Return a value as TOML writes it (strings, numbers, booleans, lists of strings)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def set_value(name: str, value: Any) -> tuple[Path, Any]:
    """Write one setting (None removes it); returns (file, stored value). Raises UsageError or MdmemError."""
    if name not in DEFAULTS:
        raise UsageError(f"no setting is named {name}", hint="mdmem config list")
    stored = None if value is None else coerce(name, value)
    path = user_file()
    with FileLock(path.with_name("config.lock")):
        read_toml(path)  # a broken file is refused before anything is written
        text = path.read_text("utf-8") if path.exists() else ""
        changed = splice(text, name, stored)
        if changed != text:
            check(changed, name, stored)
            try:
                write_private(path.resolve() if path.is_symlink() else path, changed.encode())
            except OSError as error:
                raise MdmemError(f"cannot write {path}", why=error.strerror or str(error)) from error
    return path, stored


def check(text: str, name: str, stored: Any) -> None:
    """Raise MdmemError unless `text` is TOML that holds the new value."""
    import tomllib

    try:
        found = flatten(tomllib.loads(text)).get(name)
    except tomllib.TOMLDecodeError as error:
        raise MdmemError(f"cannot set {name} without breaking the file", why=str(error), hint="edit it by hand") from error
    if found != stored:
        raise MdmemError(f"cannot set {name}: the file writes it in a form that is left alone", hint="edit it by hand")


def splice(text: str, name: str, value: Any) -> str:
    """Return the TOML text with one setting changed, added or (None) removed; other lines as they were."""
    table, _, key = name.rpartition(".")
    lines = text.splitlines(keepends=True)
    header = re.compile(r"\s*\[\s*([\w.\"'-]+)\s*\]\s*(#.*)?$")
    current, last = "", None if table else 0
    for number, line in enumerate(lines):
        found = header.match(line)
        if found or line.lstrip().startswith("[["):
            current = found[1] if found else "\0"
            if current == table:
                last = number + 1
            continue
        written = line.partition("=")[0].strip() if "=" in line else ""
        if (current == table and written == key) or (current == "" and written == name):
            if value is None:
                return "".join(lines[:number] + lines[number + 1 :])
            lines[number] = f"{written} = {literal(value)}\n"
            return "".join(lines)
        if current == table and line.strip() and not line.lstrip().startswith("#"):
            last = number + 1
    if value is None:
        return text
    new = f"{key} = {literal(value)}\n"
    if last is None:
        gap = "" if not text else ("\n" if text.endswith("\n") else "\n\n")
        return f"{text}{gap}[{table}]\n{new}"
    if last and not lines[last - 1].endswith("\n"):
        lines[last - 1] += "\n"
    return "".join(lines[:last] + [new] + lines[last:])
