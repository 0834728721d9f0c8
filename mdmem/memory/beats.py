"""When each agent of this device was last at work, told by hooks: a small file per agent whose time is touched, no process.

Knows nothing of stores; `mdmem agents` reads it.
"""

from __future__ import annotations

import os

# Seconds between two beats that are kept.
THROTTLE = 60.0


def beat(common: str, identity: str, session: str, now: float) -> bool:
    """Say that `identity` (agent@device) is at work; returns whether it was written: at most every THROTTLE seconds.
    Never raises."""
    from mdmem.memory.spool import safe

    path = os.path.join(common, "beats", safe(identity))
    try:
        if 0 <= now - os.stat(path).st_mtime < THROTTLE:
            return False
    except OSError:
        pass
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags, 0o600)
        try:
            os.write(descriptor, f"{identity}\n{session}\n".encode("utf-8", "replace"))
        finally:
            os.close(descriptor)
        os.utime(path, (now, now))
    except OSError:
        return False
    return True


def beats(common: str) -> dict[str, tuple[float, str]]:
    """Return {agent@device: (seconds since the epoch, session)}."""
    found: dict[str, tuple[float, str]] = {}
    try:
        with os.scandir(os.path.join(common, "beats")) as entries:
            for entry in entries:
                with open(entry.path, encoding="utf-8", errors="replace") as stream:
                    identity, _, session = stream.read(2000).partition("\n")
                if identity:
                    found[identity] = (entry.stat().st_mtime, session.strip())
    except OSError:
        pass
    return found
