"""Who writes: `agent@device`, unique by construction."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from mdmem.config import Config, data_home
from mdmem.locate import write_private

_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Identity:
    """An agent on a device; `str()` gives agent@device."""

    agent: str
    device: str

    def __str__(self) -> str:
        return f"{self.agent}@{self.device}"


def plain(name: str, limit: int = 40) -> str:
    """Return a name as [a-z0-9-], at most `limit` characters; '' when nothing is left."""
    return _NAME.sub("-", name.lower()).strip("-")[:limit].strip("-")


def device_name() -> str:
    """Return this device's name; made once from the host name and four random characters, then kept."""
    path = data_home() / "device"
    if kept := _kept(path):
        return kept
    import secrets
    import socket

    made = f"{plain(socket.gethostname(), 20) or 'device'}-{secrets.token_hex(2)}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            # A second process may be doing the same: the first name wins.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if kept := _kept(path):
                return kept
            write_private(path, made.encode())
        else:
            with os.fdopen(descriptor, "w") as stream:
                stream.write(made + "\n")
    except OSError:
        return plain(socket.gethostname(), 20) or "device"
    return made


def _kept(path: Path) -> str:
    """Return the name in the file, '' where there is none or it is damaged."""
    try:
        return plain(path.read_text("utf-8"))
    except (OSError, ValueError):
        return ""


def who(config: Config) -> Identity:
    """Return the identity in force: configuration first, then what the environment tells."""
    agent = plain(str(config.get("agent")))
    if not agent:
        agent = "claude-code" if os.environ.get("CLAUDECODE") else "user"
    return Identity(agent, plain(str(config.get("device"))) or device_name())
