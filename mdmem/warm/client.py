"""Asking the warm process: an answer, or None when there is no such process, it is not ours, or it is slow to say hello.

Every caller works without it. Imports next to nothing: of sockets only the C core, since `socket` itself costs more than an
exchange does.
"""

from __future__ import annotations

import os
import struct

from mdmem import __version__
from mdmem.quickjson import dumps, loads
from mdmem.warm import address

try:
    import _socket as socket
except ImportError:  # pragma: no cover - another Python than CPython
    import socket  # type: ignore[no-redef]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Seconds that the greeting may take: a process that is slower than this is no shortcut.
GREETING = 0.03
# Bytes of one message.
LARGEST = 16 << 20


def allowed(setting: str = "") -> bool:
    """Return whether the warm process may be used: MDMEM_SERVE, else the setting `serve`."""
    word = os.environ.get("MDMEM_SERVE", setting).strip().lower()
    return word not in ("off", "0", "no", "false") and hasattr(socket, "AF_UNIX")


def there() -> bool:
    """Tell whether there is a socket to ask at; nobody may be listening."""
    try:
        return os.path.exists(address.socket_path())
    except (OSError, address.NoAddress):
        return False


def ask(request: dict[str, Any], patience: float = 2.0) -> dict[str, Any] | None:
    """Return the answer to a request, None when the warm process cannot be had or does not answer within `patience`
    seconds. An answer {"error": …} is returned as it is. Never raises."""
    asked = begin(request)
    return asked.answer(patience) if asked is not None else None


def begin(request: dict[str, Any]) -> Asked | None:
    """Send a request and return at once, so that the caller can do something else meanwhile; None: nobody to ask."""
    try:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except (OSError, AttributeError):
        return None
    asked = Asked(line)
    try:
        line.settimeout(GREETING)
        line.connect(address.socket_path())
        if same_user(line):
            hello = loads(asked.read_line(4096))
            if hello.get("version") == __version__:
                line.sendall(dumps(request).encode("ascii") + b"\n")
                return asked
            # It ends when it learns that a newer (or older) mdmem is in use.
            line.sendall(b'{"op":"outdated"}\n')
    except (OSError, ValueError, AttributeError, address.NoAddress):
        pass
    line.close()
    return None


class Asked:
    """A request under way."""

    def __init__(self, line: Any) -> None:
        self.line = line
        self.rest = b""

    def answer(self, patience: float) -> dict[str, Any] | None:
        """Return the answer, None when it does not come within `patience` seconds. Never raises."""
        try:
            self.line.settimeout(patience)
            found = loads(self.read_line(LARGEST))
            return found if isinstance(found, dict) else None
        except (OSError, ValueError, RecursionError):
            return None
        finally:
            self.line.close()

    def read_line(self, most: int) -> bytes:
        """Return the next line, or what there is of it at the end or beyond `most` bytes. Raises OSError."""
        parts, size, end = [self.rest], len(self.rest), self.rest.find(b"\n")
        while end < 0 and size <= most:
            part = self.line.recv(1 << 16)
            if not part:
                break
            end = part.find(b"\n")
            end = size + end if end >= 0 else -1
            parts.append(part)
            size += len(part)
        data = b"".join(parts)
        self.rest = data[end + 1 :] if end >= 0 else b""
        return data[: end + 1] if end >= 0 else data


def same_user(line: Any) -> bool:
    """Return whether the process at the other end runs as this user."""
    if hasattr(socket, "SO_PEERCRED"):
        data = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", data)[1]) == os.getuid()
    # Elsewhere the folder of mode 0700 has to do.
    return True
