"""Which notes a session has in its context already: a line each, in a file beside the spool; gone after a compaction."""

from __future__ import annotations

import os

from mdmem.memory.spool import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mdmem.hooks.place import Place

# Seconds after which the file of a session is old.
OLD = 30 * 86400
# Seconds within which the same event of a session is one event that came by two ways.
SAME = 2.0
# Bytes of such a file that are read.
LARGEST = 1 << 20


def _file(place: Place, session: str) -> str:
    return os.path.join(place.common, "seen", safe(session))


def seen(place: Place, session: str) -> set[str]:
    """Return the keys (ids or paths) of the notes that the session was given."""
    try:
        with open(_file(place, session), encoding="utf-8", errors="replace") as stream:
            return set(stream.read(LARGEST).splitlines())
    except OSError:
        return set()


def add(place: Place, session: str, keys: Iterable[str]) -> None:
    """Remember that these notes were given. Losing this costs a repetition, so failures are silent."""
    data = "".join(f"{key}\n" for key in keys if "\n" not in key).encode("utf-8", "replace")
    if not data:
        return
    path = _file(place, session)
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


def reset(place: Place, session: str) -> None:
    """Forget what the session was given: its context is empty again."""
    try:
        os.unlink(_file(place, session))
    except OSError:
        return


def first(place: Place, session: str, what: str, now: float) -> bool:
    """Return whether nobody has said `what` in this session in the last SAME seconds, and note that it was said.

    The plugin's hooks and those in the settings may both be on; the host then runs each event twice, at once."""
    from mdmem.memory import journal

    path = _file(place, session) + ".once"
    try:
        descriptor, _ = journal.open_locked(path)
    except OSError:
        return True
    try:
        size = os.fstat(descriptor).st_size
        for record in journal.parse(journal.read_at(descriptor, 4096, max(0, size - 4096))):
            when = record.get("t")
            if record.get("w") == what and isinstance(when, (int, float)) and abs(now - when) < SAME:
                return False
        journal.write(descriptor, journal.line({"t": round(now, 3), "w": what}))
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return True


def expire(common: str, now: float) -> None:
    """Remove the files of old sessions."""
    try:
        with os.scandir(os.path.join(common, "seen")) as entries:
            for entry in entries:
                if now - entry.stat().st_mtime > OLD:
                    os.unlink(entry.path)
    except OSError:
        return
