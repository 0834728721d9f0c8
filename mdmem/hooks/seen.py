"""Which notes a session has in its context already: a line each, as in memory.shown, in a file beside the spool; gone after a
compaction."""

from __future__ import annotations

import os

from mdmem.memory.spool import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mdmem.hooks.place import Place

# Seconds after which the file of a session is old.
OLD = 30 * 86400


def _file(place: Place, session: str) -> str:
    return os.path.join(place.common, "seen", safe(session))


def seen(place: Place, session: str) -> set[str]:
    """Return the keys (ids or paths) of the notes that the session was given."""
    from mdmem.memory.shown import lines_of

    return {one.partition("\t")[0] for one in lines_of(_file(place, session))}


def add(place: Place, session: str, lines: Iterable[str]) -> None:
    """Remember that these notes (lines of memory.shown) were given. Losing this costs a repetition, so failures are silent."""
    from mdmem.memory.shown import append

    append(_file(place, session), lines)


def reset(place: Place, session: str) -> None:
    """Forget what the session was given: its context is empty again."""
    try:
        os.unlink(_file(place, session))
    except OSError:
        return


def doubled(place: Place, session: str, event: str) -> bool:
    """Return whether another process answers this event of this session: the plugin's hooks and those in the settings may both
    be on, and the host then starts two at once. The plugin's gives way; of two others, the later one.

    What one of them takes is given back when its process ends."""
    if "CLAUDE_PLUGIN_ROOT" in os.environ and in_settings(event, place.start):
        return True
    path = f"{_file(place, session)}.{event}"
    try:
        import fcntl

        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except (OSError, ImportError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def in_settings(event: str, project: str) -> bool:
    """Return whether Claude Code's settings of the user or of the project run our hook of an event."""
    from mdmem.quickjson import loads

    config = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")
    top = os.environ.get("CLAUDE_PROJECT_DIR") or project
    names = [os.path.join(config, "settings.json")]
    names += [os.path.join(top, ".claude", name) for name in ("settings.json", "settings.local.json")]
    for name in names:
        try:
            with open(name, "rb") as stream:
                groups = loads(stream.read(4 << 20))["hooks"][event]
            for group in groups:
                for hook in group["hooks"]:
                    words = [str(hook.get("command", "")), *map(str, hook.get("args") or ())]
                    if any(word.replace("\\", "/").endswith("mdmem/hooks/main.py") for word in words):
                        return True
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return False


def expire(common: str, now: float) -> None:
    """Remove the files of old sessions."""
    try:
        with os.scandir(os.path.join(common, "seen")) as entries:
            for entry in entries:
                if now - entry.stat().st_mtime > OLD:
                    os.unlink(entry.path)
    except OSError:
        return
