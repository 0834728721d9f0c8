"""What installing made that was not there before, so that uninstalling leaves each file as it was found.

Kept in the user's data folder: per file, whether mdmem created it, what blank text it held, which empty parts it had.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mdmem.config import data_home
from mdmem.install.settings_file import read_settings


@dataclass
class Record:
    """How one file was found: `created` by us, `blank` text it held, paths of lists and objects that were empty."""

    created: bool = False
    blank: str | None = None
    empty: list[list[str]] = field(default_factory=list)
    memory: str = ""


def record_file() -> Path:
    """Return the path of the record of all installs."""
    return data_home() / "installed.json"


def load_record(path: Path) -> Record | None:
    """Return what is recorded for the settings file at `path`, None for nothing (or an unreadable record)."""
    found = _all().get(str(path))
    if not isinstance(found, dict):
        return None
    try:
        return Record(**found)
    except TypeError:
        return None


def save_record(path: Path, record: Record | None) -> None:
    """Keep the record of the settings file at `path`; None forgets it."""
    everything = _all()
    if record is None:
        if everything.pop(str(path), None) is None:
            return
    else:
        everything[str(path)] = asdict(record)
    file = read_settings(record_file())
    file.target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write(json.dumps(everything, indent=1, ensure_ascii=False) + "\n")


def _all() -> dict[str, object]:
    try:
        found = json.loads(read_settings(record_file()).text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
