"""What went wrong in hooks: a bounded, redacted log, and the part of it that the user has not been told yet."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

# Bytes after which the log starts again (the old one is kept once, as hooks.log.1).
LARGEST = 256 << 10


def _folder() -> Path:
    from mdmem.config import data_home

    return data_home() / "log"


def record(event: str, error: BaseException) -> None:
    """Write one failure to the log and to the list of untold ones; raises OSError when neither can be written.

    Only the trace and the message are kept: never the payload, never the environment.
    """
    import traceback
    from datetime import datetime, timezone

    trace = "".join(traceback.format_exception(error))
    line = f"{event or 'unknown event'}: {type(error).__name__}: {error}"
    try:
        from mdmem.notes.redact import redact

        trace, line = redact(trace).text, redact(line).text
    except Exception:
        trace = "(the trace could not be redacted and was left out)\n"
        line = f"{event or 'unknown event'}: {type(error).__name__}"
    moment = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    folder = _made()
    log = folder / "hooks.log"
    try:
        if log.stat().st_size > LARGEST:
            os.replace(log, folder / "hooks.log.1")
    except OSError:
        pass
    _append(log, f"{moment} {line}\n{trace}\n")
    tell(f"a hook failed: {line}")


def tell(line: str) -> None:
    """Keep one line for the user's next session start. It holds no secret and no text of a note. Raises OSError."""
    _append(_made() / "hooks.untold", " ".join(line.split())[:300] + "\n")


def _made() -> Path:
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _append(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        os.write(descriptor, text.encode("utf-8", "backslashreplace"))
    finally:
        os.close(descriptor)


def untold(data_folder: str) -> str:
    """Return what was not told yet, on one line, and forget it; '' when there is nothing."""
    path = os.path.join(data_folder, "log", "hooks.untold")
    try:
        # Whoever renames the file tells it: two sessions that start at once say it once.
        os.replace(path, f"{path}.{os.getpid()}")
    except OSError:
        return ""
    path = f"{path}.{os.getpid()}"
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = stream.read(64 << 10).splitlines()
        os.unlink(path)
    except OSError:
        return ""
    if not lines:
        return ""
    lines = list(dict.fromkeys(lines))
    more = f" (and {len(lines) - 3} more)" if len(lines) > 3 else ""
    return f"mdmem: {'; '.join(lines[-3:])}{more}. Log: {os.path.dirname(path)}/hooks.log"
