"""Merging files that are no notes: git's own text merge, counters by maximum, and where both fail, both files."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from mdmem.repo.git import Git


def merge_file(git: Git, base: bytes | None, one: bytes, two: bytes, path: str) -> bytes | None:
    """Return the merged bytes, None when the sides clash or are binary. Swapping the sides gives the same bytes."""
    if path.endswith(".json") and "agents/" in path:
        counted = _counters(one, two)
        if counted is not None:
            return counted
    if any(b"\0" in data[:8000] for data in (base or b"", one, two)):
        return None
    one, two = sorted((one, two))
    with tempfile.TemporaryDirectory(prefix="mdmem-") as folder:
        files = []
        for name, data in (("1", one), ("base", base or b""), ("2", two)):
            files.append(str(Path(folder) / name))
            Path(files[-1]).write_bytes(data)
        done = git.run("merge-file", "-p", "-q", *files, check=False, read=True)
    return done.out if done.code == 0 else None


def _counters(one: bytes, two: bytes) -> bytes | None:
    """Return two counter files joined: the larger number, the later text, all keys; None when one cannot be read."""
    try:
        sides = [json.loads(data) for data in (one, two)]
    except (ValueError, RecursionError):
        return None
    if not all(isinstance(side, dict) for side in sides):
        return None
    return (json.dumps(_joined(*sides), ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def _joined(one: Any, two: Any) -> Any:
    if isinstance(one, dict) and isinstance(two, dict):
        return {key: _joined(one.get(key, two.get(key)), two.get(key, one.get(key))) for key in sorted({*one, *two})}
    if isinstance(one, (int, float)) and isinstance(two, (int, float)):
        # 1 and 1.0, and what is no number (NaN), need an order of their own, or the sides would not end up the same.
        return max(one, two, key=lambda value: (value == value, value if value == value else 0, json.dumps(value)))
    return max(one, two, key=lambda value: json.dumps(value, sort_keys=True))


_BESIDE = re.compile(r"^(?P<folder>(?:.*/)?)(?P<stem>[^/]+)\.conflict-[0-9a-f]{8}(?P<ending>(?:\.[^./]*)?)$")


def siblings(git: Git) -> list[tuple[str, str]]:
    """Return (path, path of the file that it is the other version of) of every such file in the work tree, sorted."""
    args = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.conflict-*")
    listed = git.run(*args, read=True, env={"GIT_LITERAL_PATHSPECS": "0"}).fields()
    found = ((path, _BESIDE.match(path)) for path in dict.fromkeys(listed))
    named = [(path, match["folder"] + match["stem"] + match["ending"]) for path, match in found if match is not None]
    return sorted((path, other) for path, other in named if os.path.lexists(git.top / path))


def sibling(path: str, oid: str) -> str:
    """Return the name under which the other version of a file is kept beside it."""
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    if not stem:
        stem, dot, ending = name, "", ""
    return f"{folder}{slash}{stem}.conflict-{oid[:8]}{dot}{ending}"
