"""A real ssh remote: clone, sync, races and leases; wrong keys and unknown hosts are a status line, never a question."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.repo.conftest import plain_git

from .ssh_remote import Site, keygen, serving, sshd

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sshd() is None or not shutil.which("ssh"), reason="OpenSSH (server and client) is not installed"),
]
ROOT = str(Path(__file__).resolve().parents[2])
LIMIT = 30.0  # seconds: far below what waiting for an answer would take


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with serving(tmp_path / "ssh") as running:
        yield running


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    plain_git(tmp_path, "init", "-q", "--bare", "remote.git")
    return tmp_path / "remote.git"


class Machine:
    """A user's machine: runs mdmem as a process of its own, on a terminal where a question would be seen."""

    def __init__(self, folder: Path, ssh: str) -> None:
        self.folder, self.ssh = folder, ssh
        self.said = ""

    def __call__(self, *args: str, code: int = 0, device: str = "laptop") -> str:
        """Run a command with a terminal as its own; returns stdout. Raises when it waits for an answer."""
        env = {**os.environ, "PYTHONPATH": ROOT, "GIT_SSH_COMMAND": self.ssh, "MDMEM_DEVICE": device, "DISPLAY": ":99"}
        terminal, side = pty.openpty()
        began = time.monotonic()
        words = [sys.executable, "-m", "mdmem", *args]
        take = f"import os, pty, fcntl, termios; fcntl.ioctl({side}, termios.TIOCSCTTY, 0); os.execv({words[0]!r}, {words!r})"
        process = subprocess.Popen(
            [sys.executable, "-c", take], stdout=subprocess.PIPE, stderr=side, stdin=side, env=env, pass_fds=(side,),
            start_new_session=True, cwd=self.folder.parent,
        )  # fmt: skip
        os.close(side)
        try:
            out, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"{args} waits: {_read(terminal)!r}") from None
        finally:
            self.said = _read(terminal)
            os.close(terminal)
        assert time.monotonic() - began < LIMIT
        assert process.returncode == code, (args, out, self.said)
        for question in ("passphrase", "password:", "yes/no"):
            assert question not in self.said.lower(), self.said
        return out.decode()

    def json(self, *args: str, code: int = 0, device: str = "laptop") -> Any:
        return json.loads(self(*args, "--json", code=code, device=device))

    def at(self, *args: str, **options: Any) -> Any:
        return self.json("-C", str(self.folder), *args, **options)

    def healthy(self) -> None:
        plain_git(self.folder, "fsck", "--strict")
        assert plain_git(self.folder, "status", "--porcelain") == ""


def _read(terminal: int) -> str:
    data = b""
    while select.select([terminal], [], [], 0)[0]:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break  # the other side is closed
        if not part:
            break
        data += part
    return data.decode("utf-8", "replace")


def test_two_machines_over_ssh(site: Site, remote: Path, tmp_path: Path) -> None:
    one, two = (Machine(tmp_path / name, site.command()) for name in ("one", "two"))
    assert one.json("clone", site.url(remote), str(one.folder))["made"]
    note = one.at("remember", "fact", "the office is in Basel")
    assert one.at("sync")["state"] == "pushed"
    assert two.json("clone", site.url(remote), str(two.folder))["store"]
    two.at("set", note["id"], "importance=0.9")
    (one.folder / note["path"]).write_bytes((one.folder / note["path"]).read_bytes() + b"\nA second line.\n")
    assert one.at("sync")["state"] == "pushed"
    assert two.at("sync")["state"] == "merged"
    assert one.at("sync")["state"] == "merged"
    text = (one.folder / note["path"]).read_text()
    assert "0.9" in text and "A second line." in text
    assert (two.folder / note["path"]).read_text() == text
    assert plain_git(one.folder, "rev-parse", "HEAD") == plain_git(two.folder, "rev-parse", "HEAD")
    for machine in (one, two):
        machine.healthy()
    plain_git(remote, "fsck", "--strict")


def test_leases_over_ssh(site: Site, remote: Path, tmp_path: Path) -> None:
    one, two = (Machine(tmp_path / name, site.command()) for name in ("one", "two"))
    one.json("clone", site.url(remote), str(one.folder))
    note = one.at("remember", "fact", "the office is in Basel")["id"]
    one.at("sync")
    two.json("clone", site.url(remote), str(two.folder))
    assert not one.at("lease", "acquire", note, "--ttl", "5m", device="laptop")["local"]
    assert two.at("lease", "acquire", note, code=5, device="desktop")["error"]["code"] == "lease_held"
    assert "is leased by" in two.at("set", note, "importance=0.5", device="desktop")["notice"]
    assert one.at("lease", "release", note, device="laptop")["released"]
    assert not two.at("lease", "acquire", note, device="desktop")["local"]
    two.ssh = f"{site.command()} -oHostName=127.0.0.1 -oPort=9"  # nobody listens there
    lost = two.at("lease", "renew", note, device="desktop")
    assert lost["local"] and "this machine only" in lost["notice"]


def test_a_lost_race_over_ssh_is_run_again(site: Site, remote: Path, tmp_path: Path) -> None:
    one, two = (Machine(tmp_path / name, site.command()) for name in ("one", "two"))
    one.json("clone", site.url(remote), str(one.folder))
    one.at("sync")
    two.json("clone", site.url(remote), str(two.folder))
    for number, machine in enumerate((one, two) * 3):
        machine.at("remember", "fact", f"fact number {number} of the race")
    env = {**os.environ, "PYTHONPATH": ROOT, "GIT_SSH_COMMAND": site.command()}
    running = [
        subprocess.Popen([sys.executable, "-m", "mdmem", "-C", str(m.folder), "sync"], env=env, stdout=subprocess.DEVNULL)
        for m in (one, two)
    ]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    one.at("sync")
    two.at("sync")
    assert len(list((one.folder / "memories").iterdir())) == len(list((two.folder / "memories").iterdir())) == 6
    one.healthy()
    two.healthy()


@pytest.mark.parametrize("case", ["wrong key", "key with a passphrase", "unknown host", "changed host", "password only"])
def test_g29_what_would_ask_a_question_is_a_status_line(case: str, site: Site, remote: Path, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "one", site.command())
    machine.json("clone", site.url(remote), str(machine.folder))
    machine.at("sync")
    machine.at("remember", "fact", "the office is in Basel")
    other = keygen(tmp_path / "other", "secret words" if case == "key with a passphrase" else "")
    if case == "key with a passphrase":
        shutil.copy(tmp_path / "other.pub", site.folder / "authorized")
    known = tmp_path / "known"
    known.write_text("")
    if case == "changed host":
        kind, text = (tmp_path / "other.pub").read_text().split()[:2]
        known.write_text(f"[127.0.0.1]:{site.port} {kind} {text}\n")
    before = known.read_bytes()
    asks_host = case in ("unknown host", "changed host")
    machine.ssh = site.command(known=known) if asks_host else site.command(key=other)
    wanted = "Host key verification failed" if asks_host else "Permission denied"
    if case == "password only":
        with serving(tmp_path / "second", "PubkeyAuthentication no", password=True) as second:
            machine.ssh = second.command()
            plain_git(machine.folder, "remote", "set-url", "origin", second.url(remote))
            refused(machine, second.url(remote), wanted, tmp_path)
    else:
        refused(machine, site.url(remote), wanted, tmp_path)
    assert known.read_bytes() == before
    machine.ssh = site.command()
    shutil.copy(site.folder / "key.pub", site.folder / "authorized")
    plain_git(machine.folder, "remote", "set-url", "origin", site.url(remote))
    assert machine.at("sync")["state"] == "pushed"
    machine.healthy()


def refused(machine: Machine, url: str, wanted: str, folder: Path) -> None:
    result = machine.at("sync")
    assert result["state"] == "offline" and result["waiting"] == 1 and wanted in result["reason"], result
    assert "git ls-remote origin" in result["hint"]
    assert machine.at("status")["git"]["unpushed"] == 1
    error = machine.json("clone", url, str(folder / "never"), code=1)["error"]
    assert wanted in error["why"] and not (folder / "never").exists()
    note = plain_git(machine.folder, "ls-files", "memories").split()[0]
    lease = machine.at("lease", "acquire", note)
    assert lease["local"] and wanted in lease["notice"]


def test_a_server_that_never_answers_is_left_after_the_time_limit(remote: Path, tmp_path: Path) -> None:
    with serving(tmp_path / "ssh", "ForceCommand sleep 300") as silent:
        machine = Machine(tmp_path / "one", silent.command())
        machine.json("init", str(machine.folder), "--remote", silent.url(remote))
        machine.at("remember", "fact", "the office is in Basel")
        began = time.monotonic()
        result = machine.at("sync", "--timeout", "2s")
        assert result["state"] == "offline" and "2 s" in result["reason"] and time.monotonic() - began < 15
        machine.healthy()


def test_a_server_that_takes_no_push_keeps_what_waits(remote: Path, tmp_path: Path) -> None:
    """A host that lets read only, as a deploy key does."""
    with serving(tmp_path / "ssh") as site:
        machine = Machine(tmp_path / "one", site.command())
        machine.json("clone", site.url(remote), str(machine.folder))
        machine.at("sync")
        line = (site.folder / "key.pub").read_text()
        only_read = f'restrict,command="git-upload-pack {remote}" {line}'
        (site.folder / "authorized").write_text(only_read)
        machine.at("remember", "fact", "the office is in Basel")
        result = machine.at("sync")
        assert result["state"] in ("offline", "committed") and result["waiting"] == 1 and result["reason"]
        (site.folder / "authorized").write_text(line)
        assert machine.at("sync")["state"] == "pushed"
        machine.healthy()
