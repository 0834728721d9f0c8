"""Telling git about the merge driver: the guarded command in `.git/config`, the paths in `.git/info/attributes`."""

from __future__ import annotations

import os
import re
import shlex
import site
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mdmem.repo.driver import GUARDED, GUARDED_CONFLICT

NAME = "mdmem: notes by field and paragraph"
BEGIN = "# mdmem begin: written by mdmem, other lines are left alone"
END = "# mdmem end"
_BASE = b"---\ntitle: a\npriority: low\n---\n\none\n\ntwo\n"
_OURS = _BASE.replace(b"low", b"high").replace(b"one", b"ONE")
_THEIRS = _BASE.replace(b"low", b"mid").replace(b"two", b"TWO")


class _Done(Protocol):
    @property
    def code(self) -> int: ...
    @property
    def out(self) -> bytes: ...


class Runner(Protocol):
    """What is needed of mdmem.repo.git.Git."""

    @property
    def top(self) -> Path: ...
    def run(self, *args: str, check: bool = True) -> _Done: ...
    def path(self, name: str) -> Path: ...


@dataclass(frozen=True)
class DriverStatus:
    """Whether git will call the driver here.

    `configured`: the command in force, empty when there is none. `current`: it is the one that install_driver would
    write. `covered`: notes are given to it by an attribute. `works`: called on three small texts it gave the right merge.
    """

    configured: str
    current: bool
    covered: bool
    works: bool

    @property
    def ok(self) -> bool:
        """True when nothing is left to repair."""
        return self.current and self.covered and self.works


def driver_command() -> str:
    """Return the shell command for `merge.mdmem.driver`, with git's placeholders.

    It ends in git's own text merge with markers unless the driver ended with a code that only the driver gives. `-P`
    keeps Python from importing modules out of the work tree in which git runs it.
    """
    package = Path(__file__).resolve().parent.parent.parent
    installed = {Path(path).resolve() for path in (*_site_folders(), *sysconfig.get_paths().values())}
    call = f"{_word(sys.executable)} -P -m mdmem merge-driver %O %A %B %L %P {GUARDED} 1>&2"
    if package not in installed:
        call = f"PYTHONPATH={_word(str(package))} {call}"
    text = "git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B || exit 1"
    return f"{call}; case $? in 0) exit 0;; {GUARDED_CONFLICT}) exit 1;; esac; {text}"


def _site_folders() -> list[str]:
    try:
        return [*site.getsitepackages(), site.getusersitepackages()]
    except Exception:  # some embedded interpreters have no site module worth the name
        return []


def _word(path: str) -> str:
    """Return a path as one word for sh, inside a value in which git reads `%`."""
    return shlex.quote(path.replace("\\", "/") if os.name == "nt" else path).replace("%", "%%")


def install_driver(git: Runner, lines: Sequence[str] = ("*.md -text merge=mdmem",)) -> bool:
    """Write the driver into this clone's configuration and attributes; returns whether anything changed.

    `lines` are the attribute lines (in a store inside another repository: only the folders that mdmem owns). Other lines
    and other drivers are left alone. Inner merges of several merge bases use the driver too, so that the base is a note.
    Raises GitFailed or OSError.
    """
    changed = False
    for key, value in (("name", NAME), ("driver", driver_command()), ("recursive", "mdmem")):
        if _setting(git, key) != value:
            git.run("config", "--local", "--replace-all", f"merge.mdmem.{key}", value)
            changed = True
    path = git.path("info/attributes")
    old = path.read_bytes() if path.exists() else b""
    new = _with_lines(old, lines)
    if new != old:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, new)
        changed = True
    return changed


def _setting(git: Runner, key: str) -> str:
    done = git.run("config", "--null", "--get", f"merge.mdmem.{key}", check=False)
    return os.fsdecode(done.out.rstrip(b"\0")) if done.code == 0 else ""


def _with_lines(text: bytes, lines: Sequence[str]) -> bytes:
    """Return an attributes file with our part at its end: there it wins over earlier lines."""
    own = re.compile(rb"^" + re.escape(BEGIN.encode()) + rb"\n(?:[^\n]*\n)*?" + re.escape(END.encode()) + rb"(?:\n|\Z)", re.M)
    part = "\n".join([BEGIN, *lines, END, ""]).encode("utf-8", "surrogateescape")
    found = own.findall(text)
    if found == [part]:
        return text
    rest = own.sub(b"", text)
    return rest + (b"" if not rest or rest.endswith(b"\n") else b"\n") + part


def _replace(path: Path, data: bytes) -> None:
    target = Path(os.path.realpath(path))
    fd, name = tempfile.mkstemp(prefix="attributes.", dir=target.parent)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, target.stat().st_mode & 0o777 if target.exists() else 0o644)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def driver_status(git: Runner, note: str = "memories/x.md", trusted: bool = True) -> DriverStatus:
    """Return whether git will call the driver for a note of that path, and whether the configured command works.

    The command is run once, in an empty folder, on three known texts; of a clone that is not `trusted` only our own is run.
    """
    command = _setting(git, "driver")
    done = git.run("check-attr", "-z", "merge", "--", note, check=False)
    fields = done.out.split(b"\0")
    covered = done.code == 0 and len(fields) > 2 and fields[2] == b"mdmem"
    current = command == driver_command()
    return DriverStatus(command, current, covered, bool(command) and (trusted or current) and try_driver(command))


def try_driver(command: str, timeout: float = 20.0) -> bool:
    """Run a configured command on a known conflict; returns whether it wrote the right merge and reported the conflict."""
    import subprocess

    from mdmem.repo.merge import merge

    with tempfile.TemporaryDirectory(prefix="mdmem-driver-") as folder:
        for name, data in (("O", _BASE), ("A", _OURS), ("B", _THEIRS)):
            Path(folder, name).write_bytes(data)
        values = {"O": "O", "A": "A", "B": "B", "L": "7", "P": "'x.md'", "%": "%"}
        line = re.sub(r"%([OABLP%])", lambda found: values[found[1]], command)
        try:
            code = subprocess.run(
                ["sh", "-c", line],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=timeout,
                check=False,
            ).returncode
        except (OSError, subprocess.TimeoutExpired):
            return False
        return code == 1 and Path(folder, "A").read_bytes() == merge(_BASE, _OURS, _THEIRS).text
