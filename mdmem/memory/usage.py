"""What recall gave to a session and what the agent then cited: counted on this device, never written into a note.

The hooks leave lines only (what was given, what was said); the detached worker compares them when the session ends. Once a
day the counts go into this agent's own file, from where other devices read them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from mdmem.clock import read_stamp, stamp
from mdmem.locate import write_private
from mdmem.locks import FileLock
from mdmem.memory import feedback, spool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mdmem.store import Store

SHARED = 500  # notes whose use is shared
LARGEST = 1 << 20  # bytes of a list of given notes
# A title this short may stand in a text by chance.
SHORT_TITLE, SHORT_WIDE_TITLE = 12, 6
OLD = 30 * 86400.0  # seconds after which a list of given notes goes


def given(common: str, session: str, keys: Iterable[str]) -> None:
    """Note that these notes (ids or paths) were shown to a session. Losing it costs a count, so failures are silent."""
    data = "".join(f"{key}\n" for key in keys if key and "\n" not in key).encode("utf-8", "replace")
    if not data or not session:
        return
    path = os.path.join(common, "given", spool.safe(session))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, flags, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError:
        return


def _given(common: str, session: str) -> list[str]:
    found: list[str] = []
    for folder in ("given", "seen"):
        try:
            with open(os.path.join(common, folder, spool.safe(session)), encoding="utf-8", errors="replace") as stream:
                found += stream.read(LARGEST).splitlines()
        except OSError:
            continue
    return list(dict.fromkeys(found))


def settle(store: Store, sessions: Iterable[str]) -> dict[str, int]:
    """Compare what each session was given with what it said; returns {key: times cited}. A session counts once."""
    common = str(store.common_state_dir)
    shown: list[str] = []
    cited: dict[str, int] = {}
    for session in dict.fromkeys(name for name in sessions if name):
        keys = _given(common, session)
        if not keys:
            continue
        said = "\n".join(str(r.get("text", "")) for r in spool.records(common, session) if r.get("k") == "said")
        shown += keys
        for key in _cited(store, keys, said):
            cited[key] = cited.get(key, 0) + 1
        _drop(common, session)
    _expire(common, store.clock.now().timestamp())
    if shown:
        _count(store, shown, cited)
    return cited


def _cited(store: Store, keys: list[str], said: str) -> list[str]:
    folded = said.casefold()
    out = []
    for key in keys if folded.strip() else ():
        row = store.index.catalog.row("SELECT id, path, title FROM notes WHERE id = ? OR path = ?", (key, key))
        names = [key] if row is None else [row["id"] or "", row["path"]]
        title = (row["title"] or "") if row is not None else ""
        if len(title) >= (SHORT_TITLE if title.isascii() else SHORT_WIDE_TITLE):
            names.append(title)
        if any(name and name.casefold() in folded for name in names):
            out.append(key)
    return out


def _count(store: Store, shown: list[str], cited: dict[str, int]) -> None:
    path = store.common_state_dir / "feedback.json"
    with FileLock(path.with_name("feedback.lock")):
        kept = feedback.ratings(store)
        for key in shown:
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


def _drop(common: str, session: str) -> None:
    try:
        os.unlink(os.path.join(common, "given", spool.safe(session)))
    except OSError:
        return


def _expire(common: str, now: float) -> None:
    try:
        with os.scandir(os.path.join(common, "given")) as entries:
            for entry in entries:
                if now - entry.stat().st_mtime > OLD:
                    os.unlink(entry.path)
    except OSError:
        return


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
