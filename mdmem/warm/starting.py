"""Starting the warm process, apart from talking to it: a session's start needs only this."""

from __future__ import annotations

import os

from mdmem.warm import address


def start(root: str = "", agent: str = "", device: str = "") -> bool:
    """Start the warm process detached unless one runs; returns whether one was started. Never raises.

    With a store's root it loads that store at once."""
    try:
        lock = address.hold()
        if lock is None:
            return False
        try:
            from mdmem import detach

            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "main.py")
            detach.start(script, ["serve", str(lock), *([root, agent, device] if root else [])], keep=lock)
        finally:
            os.close(lock)
    except (OSError, address.NoAddress, ImportError, AttributeError):
        # Windows has neither the sockets nor the locks: everything works without.
        return False
    return True
