"""Starting a process that outlives us: own session, no inherited descriptor, stdio on the null device."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Says to every hook below us that it is inside mdmem's own work and must do nothing.
MARKER = "MDMEM_HOOK"
# Of the host's own variables only these are handed on; the rest holds its session and a messaging token.
KEPT_OF_HOST = ("CLAUDE_CONFIG_DIR",)


def start(script: str, args: list[str], *, keep: int | None = None, env: Mapping[str, str] | None = None) -> int:
    """Run the Python file `script` detached; returns its process id. Raises OSError.

    `keep` is one descriptor that the child gets under the same number (a lock that is held for it).
    """
    argv = [sys.executable, "-I", script, *args]
    variables = {k: v for k, v in os.environ.items() if not k.startswith("CLAUDE") or k in KEPT_OF_HOST}
    variables[MARKER] = "1"
    variables.update(env or {})
    if keep is not None:
        os.set_inheritable(keep, True)
    try:
        return _spawn(argv, variables, keep)
    except (AttributeError, NotImplementedError):  # Windows has no spawn; an old macOS raises the second for setsid
        return _popen(argv, variables, keep)


def _spawn(argv: list[str], env: dict[str, str], keep: int | None) -> int:
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    others = [(os.POSIX_SPAWN_CLOSE, number) for number in _inheritable() if number > 2 and number != keep]
    return os.posix_spawn(argv[0], argv, env, file_actions=[*null, *others], setsid=True)


def _inheritable() -> list[int]:
    """Return the open descriptors that a child would get: the host may have left some open for us."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            numbers = [int(name) for name in os.listdir(folder)]
        except (OSError, ValueError):
            continue
        found = []
        for number in numbers:
            try:
                if os.get_inheritable(number):
                    found.append(number)
            except OSError:
                continue
        return found
    return []


def _popen(argv: list[str], env: dict[str, str], keep: int | None) -> int:
    import subprocess

    if os.name == "nt":
        flags = 0x00000008 | 0x00000200  # DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP
        return subprocess.Popen(
            argv, env=env, stdin=-3, stdout=-3, stderr=-3, creationflags=flags, close_fds=True
        ).pid
    return subprocess.Popen(
        argv, env=env, stdin=-3, stdout=-3, stderr=-3, start_new_session=True, pass_fds=[keep] if keep is not None else []
    ).pid
