"""An ssh server on loopback: OpenSSH's own, with its host key, configuration and client keys in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path

CONFIG = """\
{more}
Port {port}
ListenAddress 127.0.0.1
HostKey {host_key}
PidFile none
AuthorizedKeysFile {folder}/authorized
StrictModes no
UsePAM no
PermitRootLogin yes
PubkeyAuthentication yes
PasswordAuthentication {password}
KbdInteractiveAuthentication no
AcceptEnv GIT_PROTOCOL
SetEnv GIT_CONFIG_GLOBAL=/dev/null
"""


def sshd() -> str | None:
    """Return the server's program, None where it is not installed."""
    return shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def keygen(path: Path, passphrase: str = "") -> Path:
    """Make a key pair; returns the private key's path."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)], check=True)
    return path


@dataclass
class Site:
    """A running server and the client's side of it: `key` may log in, `known` holds the server's host key."""

    folder: Path
    port: int
    key: Path
    known: Path

    def url(self, repository: Path) -> str:
        return f"ssh://{getuser()}@127.0.0.1:{self.port}{repository}"

    def command(self, key: Path | None = None, known: Path | None = None) -> str:
        """Return the ssh command of a user with this key and these known hosts; nothing of the machine's own is read."""
        options = f"-oUserKnownHostsFile={known or self.known} -oGlobalKnownHostsFile=/dev/null -oIdentitiesOnly=yes"
        return f"ssh -F /dev/null -i {key or self.key} -oIdentityAgent=none {options}"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def serving(folder: Path, more: str = "", password: bool = False) -> Iterator[Site]:
    """Yield a server that lets the key of the yielded site in. `more`: lines of its configuration that go before the others."""
    program = sshd()
    assert program is not None
    folder.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # the server's own condition when root starts it
    host, key, port = keygen(folder / "host"), keygen(folder / "key"), _free_port()
    shutil.copy(folder / "key.pub", folder / "authorized")
    known = folder / "known"
    kind, text = (folder / "host.pub").read_text().split()[:2]
    known.write_text(f"[127.0.0.1]:{port} {kind} {text}\n")
    config = folder / "sshd_config"
    words = {"port": port, "host_key": host, "folder": folder, "more": more, "password": "yes" if password else "no"}
    config.write_text(CONFIG.format(**words))
    log = folder / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen([program, "-D", "-e", "-f", str(config)], stdin=subprocess.DEVNULL, stderr=sink)
    try:
        for _ in range(200):
            assert process.poll() is None, log.read_text()
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield Site(folder, port, key, known)
    finally:
        process.terminate()
        process.wait(timeout=10)
