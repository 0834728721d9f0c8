"""Who is there: agents by device, where each was last seen and on what.

Commits say it by their trailers. Beside them each agent has one file per device, `agents/<agent>@<device>.json`, that only
this device writes, at most once a day and only when something changed. How long ago the last heartbeat of this device was
stays on the device.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from mdmem.clock import read_stamp, stamp
from mdmem.errors import MdmemError, Refused
from mdmem.locate import write_private
from mdmem.memory import beats
from mdmem.recall.select import agent_scopes, may_read, nameable, showable
from mdmem.team import claims, tasks
from mdmem.team.logbook import session_of

if TYPE_CHECKING:
    from mdmem.store import Store

THROTTLE = 60.0  # seconds between two heartbeats that are kept
DAY = timedelta(days=1)
COMMITS = 2000  # how far back the log is read
MAX_BYTES = 256_000
_STAMPS = ("written", "seen")


def own_path(store: Store) -> str:
    """Return the path of the file of this agent on this device."""
    from mdmem.notes.names import agent_path

    return agent_path(store.identity.agent, store.identity.device)


def read_own(store: Store) -> dict[str, Any]:
    """Return what this agent's file on this device holds, {} when it is absent or cannot be read."""
    return _read(store, own_path(store))


def _read(store: Store, path: str) -> dict[str, Any]:
    try:
        data = json.loads(store.folder.read_bytes(path, MAX_BYTES))
    except (MdmemError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def update_own(store: Store, changes: Mapping[str, Any], *, now: bool = False) -> bool:
    """Merge `changes` into this agent's file; returns whether it was written: only when something differs, and at most
    daily unless `now`. It is committed with the next sync."""
    old = read_own(store)
    new = {**old, **changes, "agent": store.identity.agent, "device": store.identity.device}
    if {k: v for k, v in old.items() if k not in _STAMPS} == {k: v for k, v in new.items() if k not in _STAMPS}:
        return False
    last = read_stamp(str(old.get("written", "")))
    if last is not None and not now and timedelta(0) <= store.clock.now() - last < DAY:
        return False
    new["written"] = stamp(store.clock.now())
    data = (json.dumps(new, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
    store.folder.write(own_path(store), data, None)
    return True


def heartbeat(store: Store, doing: str = "") -> dict[str, Any]:
    """Say that this agent is at work; returns {agent, kept, written, seen}. Nothing is done within THROTTLE seconds."""
    from mdmem.team.work import gate

    path = store.common_state_dir / "heartbeats.json"
    now = store.clock.now()
    me = str(store.identity)
    beats = _beats(store)
    last = read_stamp(str(beats.get(me, {}).get("seen", "")))
    words = " ".join(gate(doing).split())[:200]
    if last is not None and 0 <= (now - last).total_seconds() < THROTTLE and words in ("", beats[me].get("doing")):
        return {"agent": me, "kept": False, "written": False, "seen": stamp(last)}
    beats[me] = {"seen": stamp(now), "doing": words or beats.get(me, {}).get("doing", ""), "session": session_of()}
    write_private(path, json.dumps(beats, indent=1).encode())
    held = [task.id or task.path for task in tasks.current(store)]
    written = False
    if store.trusted:
        try:
            written = update_own(store, {"scope": store.default_scope, "doing": beats[me]["doing"], "tasks": sorted(held)})
        except Refused:
            written = False
    return {"agent": me, "kept": True, "written": written, "seen": stamp(now)}


def _beats(store: Store) -> dict[str, dict[str, Any]]:
    try:
        data = json.loads((store.common_state_dir / "heartbeats.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    rows = {key: row for key, row in data.items() if isinstance(row, dict)} if isinstance(data, dict) else {}
    return {key: {name: text for name, text in row.items() if isinstance(text, str)} for key, row in rows.items()}


def agents(store: Store, since: datetime | None = None) -> list[dict[str, Any]]:
    """Return who was seen, latest first: {agent, device, seen, by, subject, session, doing, scope, tasks}."""
    found: dict[tuple[str, str], dict[str, Any]] = {}

    def entry(agent: str, device: str) -> dict[str, Any]:
        fresh = {"agent": agent, "device": device, "seen": "", "by": "", "subject": "", "session": "", "commits": 0}
        return found.setdefault((agent, device), {**fresh, "doing": "", "scope": "", "tasks": []})

    _by_commits(store, entry)
    _by_files(store, entry)
    for name, beat in _beats(store).items():
        agent, _, device = name.partition("@")
        one = entry(agent, device)
        if str(beat.get("seen", "")) > one["seen"]:
            one |= {"seen": beat["seen"], "by": "heartbeat", "session": beat.get("session", "")}
        one["doing"] = beat.get("doing") or one["doing"]
    for name, (when, session) in beats.beats(str(store.common_state_dir)).items():
        agent, _, device = name.partition("@")
        one, moment = entry(agent, device), stamp(datetime.fromtimestamp(when, timezone.utc))
        if moment > one["seen"]:
            one |= {"seen": moment, "by": "hook", "session": session}
    for task in tasks.listed(store):
        agent, _, device = claims.holder(task).partition("@")
        if agent and tasks.status_of(task) in ("claimed", "active"):
            entry(agent, device)["tasks"].append({"id": task.id or task.path, "title": task.title})
    rows = sorted(found.values(), key=lambda one: (one["agent"], one["device"]))
    rows.sort(key=lambda one: one["seen"], reverse=True)
    return [one for one in rows if since is None or one["seen"] >= stamp(since)]


def _by_commits(store: Store, entry: Any) -> None:
    from mdmem.repo.history import commits

    now = stamp(store.clock.now())
    restricted = agent_scopes(store) is not None
    shows, may_name = showable(store), nameable(store)
    try:
        if store.git.rev("HEAD") is None:
            return
        log = commits(store.git, f"--max-count={COMMITS}", "--end-of-options", "HEAD", paths=restricted)
    except MdmemError:
        return
    for commit in log:
        agent, device = commit.trailers.get("Mdmem-Agent", ""), commit.trailers.get("Mdmem-Device", "")
        if not agent:
            continue
        if restricted and commit.entries and not any(may_name(store.from_git(e.path) or e.path) for e in commit.entries):
            continue
        one = entry(agent, device)
        one["commits"] += 1
        seen = min(commit.date, now)  # a clock that runs ahead is not the future
        if not one["by"] or (commit.date <= now and seen > one["seen"]):
            one |= {"seen": seen, "by": "commit", "subject": commit.subject if shows(commit) else ""}
            one["session"] = commit.trailers.get("Mdmem-Session", "")


def _by_files(store: Store, entry: Any) -> None:
    patterns = agent_scopes(store)
    folder = store.root / "agents"
    for file in sorted(folder.glob("*@*.json")) if folder.is_dir() else ():
        data = _read(store, f"agents/{file.name}")
        agent, _, device = file.name.removesuffix(".json").partition("@")
        if not data:
            continue
        one = entry(str(data.get("agent") or agent), str(data.get("device") or device))
        if may_read(str(data.get("scope", "")), patterns):
            one["scope"], one["doing"] = str(data.get("scope", "")), str(data.get("doing", ""))
        written = str(data.get("written", ""))
        if written > one["seen"] and read_stamp(written):
            one |= {"seen": min(written, stamp(store.clock.now())), "by": "file"}
