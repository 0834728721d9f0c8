"""SessionStart: sets the pull, the warm process and left-over sessions going, and answers with what matters."""

from __future__ import annotations

import os

from mdmem.data_home import data_folder
from mdmem.hooks.failures import untold
from mdmem.hooks.place import find_place
from mdmem.hooks.seen import doubled
from mdmem.hooks.turns import now, session_of, spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mdmem.hooks.place import Place

# After these the context holds nothing of what was given before. (After a resume it does; a fork has a new session id.)
_EMPTY_AFTER = ("startup", "clear", "compact")
# Sessions of the spool in which recently edited files are looked for, and their files.
_SESSIONS, _FILES = 3, 6
# Notes up to which whole folders are watched.
MOST_WATCHED = 300


def session_start(payload: dict[str, Any]) -> dict[str, Any] | None:
    """Return the context of a session that starts, resumes, was cleared or compacted."""
    answer: dict[str, Any] = {}
    place = find_place(payload["cwd"])
    if place is not None and doubled(place, session_of(payload), "SessionStart"):
        return None
    if place is not None:
        inside = _tried(_context, place, payload)
        _tried(_set_going, place, payload)
        if inside:
            answer["hookSpecificOutput"] = {"hookEventName": "SessionStart", **inside}
    told = untold(data_folder())
    if told:
        answer["systemMessage"] = told[:2000]
    return answer or None


def _tried(work: Callable[[Place, dict[str, Any]], Any], place: Place, payload: dict[str, Any]) -> Any:
    """Return work(place, payload); one part that fails is logged and takes nothing from the other."""
    try:
        return work(place, payload)
    except Exception as error:
        from mdmem.hooks.failures import record

        record("SessionStart", error)
        return None


def _context(place: Place, payload: dict[str, Any]) -> dict[str, Any]:
    session = session_of(payload)
    if payload.get("source") in _EMPTY_AFTER:
        from mdmem.hooks.seen import reset

        reset(place, session)
    if place.settings["inject"] not in ("on", "own"):
        return {}
    from datetime import datetime, timezone

    from mdmem.hooks import seen
    from mdmem.memory.context import Viewer, session_context

    who = (place.scope, place.agent, place.device)
    viewer = Viewer(place.root, place.state, *who, place.owned, _recent(place), place.patterns, _claims(place))
    moment = datetime.fromtimestamp(now(), timezone.utc)
    budget = place.settings["token_budget"]
    given = seen.seen(place, session)
    others = [
        Viewer(one["root"], one["state"], *who, one["owned"], viewer.recent, one["patterns"], name=one["name"])
        for one in place.others
    ]
    block = session_context(viewer, budget, moment, own=place.settings["inject"] == "own", seen=given, others=others)
    seen.add(place, session, [quote.line() for quote in block.kept])
    inside: dict[str, Any] = {"additionalContext": block.text} if block.text else {}
    watched = _watched(place, block.total, [quote.path for quote in block.kept])
    return {**inside, "watchPaths": watched} if watched else inside


def _claims(place: Place) -> dict[str, str]:
    """Return {task id: claim} of what this device claimed."""
    from mdmem.quickjson import loads

    try:
        with open(os.path.join(place.common, "claims.json"), "rb") as stream:
            data = loads(stream.read(1 << 20))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(task): str(claim) for task, claim in data.items()} if isinstance(data, dict) else {}


def _watched(place: Place, total: int, given: list[str]) -> list[str]:
    """Return what the host should watch: the folders of notes, in a large store only the notes that were given.

    Claude Code 2.1 watches a folder with all below it, and starts a hook for each file that a pull brings.
    """
    if total > MOST_WATCHED:
        return [os.path.join(place.root, path) for path in given if ":" not in path]
    folders = [os.path.join(place.root, name) for name in ("memories", "entities", "tasks", "messages", "claude")]
    return [folder for folder in folders if os.path.isdir(folder)]


def _recent(place: Place) -> list[str]:
    """Return files edited in the last sessions on this device, the latest first."""
    from mdmem.memory import spool as spooled

    found: list[str] = []
    for name, _ in spooled.sessions(place.common)[-_SESSIONS:][::-1]:
        try:
            records = spooled.records(place.common, name)
        except OSError:
            continue
        for record in reversed(records):
            if record.get("k") == "tool" and record.get("tool") in ("Write", "Edit", "MultiEdit") and record.get("files"):
                found += [file for file in record["files"] if isinstance(file, str) and file not in found]
    return found[:_FILES]


def _set_going(place: Place, payload: dict[str, Any]) -> None:
    """Leave the record of the start, and start what runs in the background. A store that cannot be written is only read."""
    if place.settings["capture"]:
        source = payload.get("source")
        record: dict[str, Any] = {"k": "start", "source": source if source in (*_EMPTY_AFTER, "resume", "fork") else "other"}
        record |= {"cwd": payload["cwd"], "scope": place.scope}
        if isinstance(payload.get("transcript_path"), str):
            record["transcript"] = payload["transcript_path"]
        spool(place, payload, record)
    from mdmem.hooks import queue

    queue.put(place, {"do": "orphans"}, {"do": "pull"})
    word = os.environ.get("MDMEM_SERVE", str(place.settings["serve"])).lower()
    if word not in ("off", "0", "no", "false"):
        from mdmem.warm.starting import start

        start(place.root, place.agent, place.device)
