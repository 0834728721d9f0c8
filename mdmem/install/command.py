"""The commands that installers write down, in exec form: absolute paths, no shell, nothing taken from the cwd."""

from __future__ import annotations

import os
import sys

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def hook_argv(event: str, python: str = "") -> list[str]:
    """Return [program, argument, …] that runs one event of Claude Code."""
    return [python or sys.executable, "-I", "-S", os.path.join(_PACKAGE, "hooks", "main.py"), event]


def program_argv(python: str = "") -> list[str]:
    """Return [program, argument, …] that runs `mdmem`, to be followed by a command."""
    return [python or sys.executable, "-I", os.path.join(_PACKAGE, "install", "launch.py")]
