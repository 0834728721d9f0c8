"""`mdmem hook EVENT`: reads one payload, runs the event's handler, prints one JSON object or nothing, exits 0.

Every import here is paid on every event, so this file knows only `os` and `sys` until an event is known to be ours.
A hook is a guest: whatever goes wrong is written to a log and told at the next session start, never to the host.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Handler = Callable[[dict[str, Any]], dict[str, Any] | None]

# Set in the environment of every process that a hook starts; a hook that sees it is inside another one's work.
MARKER = "MDMEM_HOOK"

# event -> "module:function"; an event that is not here is accepted and ignored.
HANDLERS: dict[str, str] = {
    "SessionStart": "mdmem.hooks.session_start:session_start",
    "UserPromptSubmit": "mdmem.hooks.user_prompt:user_prompt",
    "PostToolUse": "mdmem.hooks.tools:tool_used",
    "PostToolUseFailure": "mdmem.hooks.tools:tool_used",
    "PostToolBatch": "mdmem.hooks.tools:tool_batch",
    "FileChanged": "mdmem.hooks.tools:file_changed",
    "PreCompact": "mdmem.hooks.turns:compacting",
    "PostCompact": "mdmem.hooks.turns:compacted",
    "Stop": "mdmem.hooks.turns:stopped",
    "SubagentStart": "mdmem.hooks.turns:subagent_started",
    "SubagentStop": "mdmem.hooks.turns:stopped",
    "SessionEnd": "mdmem.hooks.session_end:session_end",
}

# A payload beyond this is drained and dropped.
LARGEST = 8 << 20
# Seconds of silence on stdin after which what has come is all that will come.
PATIENCE = 2.0
# Seconds after which a handler is given up, inside the time limits that the installer writes.
LIMIT = {"SessionStart": 8.0, "SessionEnd": 8.0}
DEFAULT_LIMIT = 4.0


class OutOfTime(BaseException):
    """The handler took longer than a hook may."""


def run_hook(args: list[str]) -> int:
    """Handle one event; `args` are the words after `hook`. Returns 0, always."""
    if os.environ.get(MARKER):
        return 0
    event = next((word for word in args if not word.startswith("-")), "")
    try:
        _keep_descriptors()
        data = _read_stdin(keep=not event or event in HANDLERS)
        if data:
            _handle(event, data)
    except BaseException as error:
        _complain(event, error)
    return 0


def _keep_descriptors() -> None:
    """Open the null device where 0, 1 or 2 is closed: the next file opened must not become stdout."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _read_stdin(keep: bool) -> bytes:
    """Return the bytes on stdin, b"" for a terminal, too many of them, or when not to be kept."""
    if os.isatty(0):
        return b""
    wait = _waiter()
    parts: list[bytes] = []
    size = 0
    while True:
        try:
            if wait is not None and not wait():
                break
            part = os.read(0, 1 << 20)
        except OSError:
            break
        if not part:
            break
        size += len(part)
        if keep and size <= LARGEST:
            parts.append(part)
    return b"".join(parts) if size <= LARGEST else b""


def _waiter() -> Callable[[], bool] | None:
    """Return what waits for stdin for PATIENCE seconds and tells whether there is something to read."""
    if os.name == "nt":  # pragma: no cover - Windows can wait for sockets only
        return None
    import select

    return lambda: bool(select.select([0], [], [], PATIENCE)[0])


def _handle(named: str, data: bytes) -> None:
    from mdmem.quickjson import dumps, loads

    try:
        payload = loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(payload, dict):
        return
    event = payload.get("hook_event_name")
    if not isinstance(event, str) or not event:
        event = named
    # Without a folder there is no telling whose session this is.
    if event not in HANDLERS or not isinstance(payload.get("cwd"), str) or not payload["cwd"]:
        return
    payload["hook_event_name"] = event
    out = _take_stdout()
    _watch(LIMIT.get(event, DEFAULT_LIMIT))
    os.environ[MARKER] = "1"
    # Whoever calls this speaks the hook protocol: the agent is Claude Code, whether or not its own mark came along.
    os.environ.setdefault("CLAUDECODE", "1")
    module, _, name = HANDLERS[event].partition(":")
    __import__(module)
    handler: Handler = getattr(sys.modules[module], name)
    answer = handler(payload)
    _watch(0)
    if answer:
        _write(out, dumps(answer).encode("ascii"))


def _take_stdout() -> int:
    """Return a private descriptor of stdout; what a library prints from here on goes nowhere."""
    out = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1, inheritable=False)
    os.close(null)
    return out


def _write(out: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(out, data) :]
        except OSError:
            # The host has gone: nobody to tell.
            return


def _watch(limit: float) -> None:
    try:
        # The module behind `signal`, which wraps the numbers in enums: twice the price of all else here.
        signal = __import__("_signal")
    except ImportError:  # pragma: no cover - another Python than CPython
        return
    if not hasattr(signal, "setitimer"):  # pragma: no cover - Windows has no interval timer
        return

    def ring(number: int, frame: object) -> None:
        raise OutOfTime(f"gave up after {limit:g} s")

    if limit:
        signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit)


def _complain(event: str, error: BaseException) -> None:
    try:
        _watch(0)
        from mdmem.hooks.failures import record

        record(event, error)
    except BaseException:
        return
