"""The command of a hook entry, in exec form: what an installer writes into settings."""

from __future__ import annotations

import os
import sys


def hook_argv(event: str, python: str = "") -> list[str]:
    """Return [program, argument, …] that runs one event: absolute paths, no shell, nothing taken from the cwd."""
    main = os.path.join(os.path.dirname(os.path.abspath(__file__)), "main.py")
    return [python or sys.executable, "-I", main, event]


def program_argv(python: str = "") -> list[str]:
    """Return [program, argument, …] that runs `mdmem`, to be followed by a command: absolute paths, no shell."""
    launch = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.py")
    return [python or sys.executable, "-I", launch]
