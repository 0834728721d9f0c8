"""Which shared indexes did not answer lately: waited for once, not at every question. A small file beside the index; also when
it is lost or cannot be written, nothing but a wait is. Knows no store and no engine.
"""

from __future__ import annotations

import json
import os
import secrets
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from mdmem.clock import read_stamp, stamp
from mdmem.index.milvus import SharedDown, key_of

if TYPE_CHECKING:
    from mdmem.index.milvus import Target

PATIENCE = timedelta(seconds=60)  # for so long one that did not answer is not asked again
FILE = "shared-index-down.json"
# For a process that cannot write the file.
_here: dict[str, tuple[datetime, str]] = {}


def _key(target: Target) -> str:
    return key_of(f"{target.uri} {target.collection}")


def _read(folder: Path) -> dict[str, tuple[datetime, str]]:
    try:
        data = json.loads((folder / FILE).read_bytes())
        read = {str(key): (read_stamp(entry[0]), str(entry[1])) for key, entry in data.items()}
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return {}
    return {key: (moment, why) for key, (moment, why) in read.items() if moment is not None}


def _write(folder: Path, entries: dict[str, tuple[datetime, str]]) -> None:
    temporary = folder / f"{FILE}.{secrets.token_hex(4)}"
    try:
        if not entries:
            (folder / FILE).unlink(missing_ok=True)
            return
        temporary.write_text(json.dumps({key: [stamp(moment), why] for key, (moment, why) in entries.items()}), "utf-8")
        os.replace(temporary, folder / FILE)
    except OSError:
        temporary.unlink(missing_ok=True)


def check(folder: Path, target: Target, now: datetime) -> None:
    """Raise SharedDown for an engine that did not answer within the last PATIENCE."""
    key = _key(target)
    found = _read(folder).get(key) or _here.get(key)
    # One in the future is of a clock that was put back.
    if found is not None and now - PATIENCE < found[0] <= now:
        left = int((found[0] + PATIENCE - now).total_seconds()) + 1
        raise SharedDown("the shared index did not answer a moment ago", why=f"{found[1]}; asked again in {left} s")


def note(folder: Path, target: Target, now: datetime, why: str) -> None:
    """Write down that an engine did not answer."""
    entry = now, why[:200]
    _here[_key(target)] = entry
    _write(folder, {key: old for key, old in _read(folder).items() if now - PATIENCE < old[0] <= now} | {_key(target): entry})


def clear(folder: Path, target: Target) -> None:
    """Forget it: the engine has answered."""
    _here.pop(_key(target), None)
    entries = _read(folder)
    if entries.pop(_key(target), None) is not None:
        _write(folder, entries)
