"""What recall gave to a session and what the agent then cited: counted on this device, never written into a note.

Hooks note what was given (see shown) and, at the end of each turn, what the agent's message cites of it. The detached worker
counts that when the session ends, or after it went silent. Once a day the counts go into this agent's own file, from where
other devices read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mdmem.clock import read_stamp, stamp
from mdmem.locate import write_private
from mdmem.locks import FileLock
from mdmem.memory import feedback, shown, spool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mdmem.store import Store

SHARED = 500  # notes whose use is shared
OLD = 30 * 86400.0  # seconds after which a list of given notes goes


def settle(store: Store, sessions: Iterable[str]) -> dict[str, int]:
    """Count what these sessions, and those that went silent without an end, cited; returns {key: times cited}. What was
    counted is not counted again."""
    from mdmem.memory.sessions import SILENT

    common, now = str(store.common_state_dir), store.clock.now().timestamp()
    names = [spool.safe(name) for name in sessions if name]
    given: list[str] = []
    cited: dict[str, int] = {}
    for name in dict.fromkeys([*names, *shown.silent(common, now - SILENT * 3600)]):
        found = shown.cited(common, name)
        given += list(dict.fromkeys([*shown.keys(common, name), *found]))
        for key in found:
            cited[key] = cited.get(key, 0) + 1
        shown.drop(common, name)
    shown.expire(common, now - OLD)
    if given:
        _count(store, given, cited)
    return cited


def _count(store: Store, given: list[str], cited: dict[str, int]) -> None:
    path = store.common_state_dir / "feedback.json"
    with FileLock(path.with_name("feedback.lock")):
        kept = feedback.ratings(store)
        for key in given:
            entry = kept.setdefault(key, {"weight": feedback.START, "count": 0})
            entry["given"] = _number(entry.get("given")) + 1
        for key, times in cited.items():
            entry = kept[key]
            for _ in range(times):
                weight = float(entry.get("weight", feedback.START))
                entry["weight"] = round(weight + feedback.ALPHA * (feedback.SIGNALS["useful"] - weight), 6)
            entry["used"] = _number(entry.get("used")) + times
            entry["last"] = stamp(store.clock.now())
        write_private(path, json.dumps(kept, indent=1).encode())


def _number(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def share(store: Store) -> bool:
    """Put the counts into this agent's own file, at most daily and only when they changed; returns whether it was written."""
    from mdmem.team.agents import update_own

    kept = feedback.ratings(store)
    used = {key: entry for key, entry in kept.items() if _number(entry.get("used")) or _number(entry.get("count"))}
    best = sorted(used, key=lambda key: (-_number(used[key].get("used")), key))[:SHARED]
    if not best:
        return False
    rows = {key: {name: used[key][name] for name in ("used", "weight", "last") if name in used[key]} for key in sorted(best)}
    return update_own(store, {"use": rows})


def use_of(store: Store) -> dict[str, dict[str, Any]]:
    """Return {key: {used, last}} over this device and what others shared: uses add up, the latest day counts."""
    from mdmem.team.agents import own_path

    total: dict[str, dict[str, Any]] = {}
    sources = [feedback.ratings(store)]
    mine = own_path(store).rpartition("/")[2]
    folder = store.root / "agents"
    for file in sorted(folder.glob("*@*.json")) if folder.is_dir() else ():
        if file.name == mine:
            continue
        try:
            data = json.loads(store.folder.read_bytes(f"agents/{file.name}", 256_000))
        except Exception:
            continue  # a bad file of another device says nothing
        shared = data.get("use") if isinstance(data, dict) else None
        sources.append({k: v for k, v in shared.items() if isinstance(v, dict)} if isinstance(shared, dict) else {})
    for source in sources:
        for key, entry in source.items():
            one = total.setdefault(key, {"used": 0, "last": ""})
            one["used"] += min(10_000, max(0, _number(entry.get("used"))))
            last = str(entry.get("last", ""))
            if read_stamp(last) and last > one["last"]:
                one["last"] = last
    return total
