"""The git runner: the only place that starts git, always in the same hardened way.

GIT_DIR and its kin are stripped, nothing prompts, no hook or monitor that a repository names is run, a time limit ends
the whole process group, and credentials are cut out of every message. Importing this module is cheap: hooks do.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from mdmem.errors import MdmemError, typed
from mdmem.repo import filters
from mdmem.repo.layout import Layout, endless, find_top
from mdmem.repo.state import GitState, read_state

if TYPE_CHECKING:
    import subprocess

__all__ = ["BlobReader", "Done", "Git", "GitFailed", "GitState", "GitTimeout", "find_top", "run_git", "safe_text"]

# What `git rev-parse --local-env-vars` lists, and what else would change the meaning of our calls.
# fmt: off
_DROPPED = frozenset((
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_INTERNAL_SUPER_PREFIX", "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_QUARANTINE_PATH", "GIT_REFLOG_ACTION", "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_ATTR_SOURCE",
    "GIT_EXEC_PATH", "GIT_REDIRECT_STDIN", "GIT_REDIRECT_STDOUT", "GIT_REDIRECT_STDERR", "LANGUAGE",
))
# fmt: on
_FIXED = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",  # empty: git asks no program at all, and the terminal is switched off above
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_PAGER": "cat",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
    "LANG": "C",
}
_SETTINGS = (
    "core.quotePath=false",
    "core.fsmonitor=false",
    "core.safecrlf=false",
    "core.hooksPath=/dev/null",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "push.followTags=false",
    "push.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "rerere.enabled=false",
    "rerere.autoUpdate=false",
    "color.ui=false",
    "log.showSignature=false",
    "protocol.ext.allow=never",
    "credential.interactive=false",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=20",
)
_FLAGS = tuple(part for setting in _SETTINGS for part in ("-c", setting))
_SSH_OPTIONS = " -oBatchMode=yes -oConnectTimeout=10"

_SECRETS = (
    (re.compile(r"([a-z][a-z0-9+.-]*://)[^/\s'\"@]*@", re.I), r"\1***@"),
    (re.compile(r"((?:proxy-)?authorization\s*[:=]\s*)[^\r\n'\"]+", re.I), r"\1***"),
    (re.compile(r"((?:access_|private_)?(?:token|password|passwd|secret|api_?key)\s*[=:]\s*)[^\s&'\"]+", re.I), r"\1***"),
)


def safe_text(text: str) -> str:
    """Return text for a message or a log: credentials in URLs and headers, and control characters, are cut out."""
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return "".join(c for c in text if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f"))


class GitFailed(MdmemError):
    """git ended with an error. `status` is its exit code, `err` its redacted words."""

    code = "git_failed"

    def __init__(self, message: str, why: str = "", hint: str = "", status: int = 0, err: str = "") -> None:
        super().__init__(message, why=why, hint=hint)
        self.status = status
        self.err = err
        if "dubious ownership" in err:
            self.code = "dubious_ownership"


NOT_IN_TIME = "did not end within"


class GitTimeout(GitFailed):
    """git did not end in time; its process group was ended."""

    code = "git_timeout"


@dataclass(frozen=True)
class Done:
    """What a git call left: exit code, raw output, redacted messages."""

    code: int
    out: bytes
    err: str

    def text(self) -> str:
        """Return the output as one stripped line or lines of text."""
        return os.fsdecode(self.out).strip()

    def fields(self) -> list[str]:
        """Return the NUL-separated fields of `-z` output."""
        return [os.fsdecode(part) for part in self.out.split(b"\0") if part]


def git_environment(top: Path, extra: Mapping[str, str] | None = None, read: bool = False) -> dict[str, str]:
    """Return the environment of a git process: the caller's, hardened."""
    drop = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_TRACE")
    env = {k: v for k, v in os.environ.items() if k not in _DROPPED and not k.startswith(drop)}
    env.update(_FIXED)
    env.update(filters.OFF)
    # A folder that stops being a repository must not make git act on the one above it.
    env["GIT_CEILING_DIRECTORIES"] = str(top.parent)
    if read:
        env["GIT_OPTIONAL_LOCKS"] = "0"
    if extra:
        env.update(extra)
    return env


@cache
def _ssh_command(top: Path) -> str:
    """Return the user's own ssh command, with the options that keep it from asking. Asked once in a process."""
    own = os.environ.get("GIT_SSH_COMMAND", "")
    if not own:
        found = run_git(top, ("config", "--get", "core.sshCommand"), check=False, read=True)
        own = found.text() if found.code == 0 else ""
    if not own and os.environ.get("GIT_SSH"):
        import shlex

        own = shlex.quote(os.environ["GIT_SSH"])
    if "plink" in own.lower():
        return own + " -batch"
    return (own or "ssh") + _SSH_OPTIONS


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End git and what it started: first politely, so that it removes its lock files."""
    for name, patience in (("SIGTERM", 2.0), ("SIGKILL", 2.0)):
        number = getattr(signal, name, None)
        try:
            if number is not None and hasattr(os, "killpg"):
                os.killpg(process.pid, number)
            else:  # pragma: no cover - Windows
                process.kill()
        except (ProcessLookupError, PermissionError):
            pass
        try:
            process.communicate(timeout=patience)
        except Exception:
            continue  # still alive, or its pipes are held: the next signal follows
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # git has gone; what it started may have chosen to stay
        return


def _start(top: Path, args: Sequence[str], env: dict[str, str], stdin: int, stderr: int) -> subprocess.Popen[bytes]:
    import subprocess  # costs 10 ms: hooks that never start git do not pay

    if (odd := endless(top)) is not None:
        raise GitFailed("git was not started", f"{odd} is no file, and git would read it without end", typed("rm", odd))
    try:
        return subprocess.Popen(
            ["git", "--no-pager", *_FLAGS, *filters.flags(top, args), "-C", str(top), *args],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=env,
            start_new_session=True,  # own group for the time limit; no terminal for ssh to ask on
        )
    except FileNotFoundError as error:
        raise GitFailed("git is not installed, or the folder is gone", str(error), "install git 2.38 or newer") from error
    except OSError as error:
        raise GitFailed("git could not be started", why=error.strerror or str(error)) from error


def run_git(
    top: Path,
    args: Iterable[str],
    *,
    input: bytes | None = None,
    timeout: float = 30.0,
    check: bool = True,
    env: Mapping[str, str] | None = None,
    read: bool = False,
    network: bool = False,
) -> Done:
    """Run git in `top`; see Git.run. For the few calls that come before there is a repository."""
    import subprocess

    args = tuple(args)
    extra = dict(env or {})
    if network:
        extra["GIT_SSH_COMMAND"] = _ssh_command(top)
    stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
    process = _start(top, args, git_environment(top, extra, read), stdin, subprocess.PIPE)
    try:
        out, err = process.communicate(input, timeout=timeout)
    except subprocess.TimeoutExpired:
        _end_group(process)
        raise GitTimeout(f"git {_verb(args)} {NOT_IN_TIME} {timeout:g} s", hint="try again") from None
    except BaseException:
        _end_group(process)
        raise
    done = Done(process.returncode, out, safe_text(err.decode("utf-8", "replace")))
    if check and done.code != 0:
        raise failure(args, done)
    return done


def failure(args: Iterable[str], done: Done) -> GitFailed:
    """Return the error for a git call that failed."""
    why = telling(done.err) or f"exit code {done.code}"
    return GitFailed(f"git {_verb(args)} failed", why=why, status=done.code, err=done.err)


def telling(err: str) -> str:
    """Return the lines of git's messages that say why it failed, in one line."""
    lines = [line.strip() for line in err.splitlines() if line.strip() and not line.startswith("hint:")]
    told = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", "ssh:"))]
    # What git says of a transport that failed says nothing: the program's own words stand before it.
    general = next((at for at, line in enumerate(lines) if "Could not read from remote repository" in line), None)
    if general is not None:
        own = [line for line in lines[:general] if not line.startswith(("@", "Warning:"))]
        told = own[-2:] or told
    return "; ".join(told[:3] or lines[-3:])


def _verb(args: Iterable[str]) -> str:
    words = list(args)
    while words[:1] == ["-c"]:
        del words[:2]
    return next((word for word in words if not word.startswith("-")), "")


class Git(Layout):
    """Git in one work tree. Making it starts no process; raises NotFound when `top` is none."""

    def run(
        self,
        *args: str,
        input: bytes | None = None,
        timeout: float = 30.0,
        check: bool = True,
        env: Mapping[str, str] | None = None,
        read: bool = False,
        network: bool = False,
    ) -> Done:
        """Run one git command at the top of the work tree.

        `read` takes no optional lock; `network` allows for ssh without a question. Raises GitFailed for a non-zero exit
        unless `check` is false, and GitTimeout after `timeout` seconds.
        """
        return run_git(self.top, args, input=input, timeout=timeout, check=check, env=env, read=read, network=network)

    def state(self) -> GitState:
        """Return the state by name; see mdmem.repo.state."""
        return read_state(self)

    def rev(self, name: str) -> str | None:
        """Return the commit id that a full ref name or revision names, None when there is none."""
        if name.startswith("-"):
            return None
        done = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", check=False, read=True)
        return done.text() or None if done.code == 0 else None

    def setting(self, key: str) -> str | None:
        """Return the value of a git setting in force, None when unset."""
        done = self.run("config", "--null", "--get", key, check=False, read=True)
        return os.fsdecode(done.out.rstrip(b"\0")) if done.code == 0 else None


_ENDED = "an object may be missing"
# What a person types where an object is missing: nothing of ours goes to the network for one.
REFETCH = "git fsck; in a partial clone: git fetch --refetch --no-filter"


class BlobReader:
    """`with BlobReader(git) as blobs: blobs.read(oid)`: many objects from one git process."""

    _BATCH = 256  # requests in flight: they fit in a pipe's buffer, so neither side can block the other

    def __init__(self, git: Git) -> None:
        self._git = git
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> BlobReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin and process.stdout
        try:
            process.stdin.close()
        except OSError:
            pass
        process.stdout.close()
        deadline = time.monotonic() + 2
        while process.poll() is None and time.monotonic() < deadline:
            try:
                process.wait(timeout=0.5)
            except Exception:
                continue  # asked again until the deadline
        if process.poll() is None:
            process.kill()
            process.wait()

    def read(self, name: str) -> bytes | None:
        """Return the bytes of the object that `name` (an id, or `rev:path`) names, None when it is absent."""
        return next(self.many([name]))

    def many(self, names: Iterable[str]) -> Iterator[bytes | None]:
        """Yield the bytes of each object, in order; None for an absent one or a name with a newline in it."""
        batch: list[str] = []
        for name in names:
            batch.append(name)
            if len(batch) >= self._BATCH or len(name) > 200:
                yield from self._ask(batch)
                batch = []
        if batch:
            yield from self._ask(batch)

    def _ask(self, names: list[str]) -> Iterator[bytes | None]:
        import subprocess

        if self._process is None:
            env = git_environment(self._git.top, read=True)
            args = ("cat-file", "--batch")
            self._process = _start(self._git.top, args, env, subprocess.PIPE, subprocess.DEVNULL)
        process = self._process
        assert process.stdin and process.stdout
        askable = [name for name in names if "\n" not in name]
        try:
            process.stdin.write(b"".join(os.fsencode(name) + b"\n" for name in askable))
            process.stdin.flush()
            for name in names:
                yield None if "\n" in name else self._answer(process)
        except BrokenPipeError as error:
            raise GitFailed("git cat-file ended early", why=_ENDED, hint=REFETCH) from error

    def _answer(self, process: subprocess.Popen[bytes]) -> bytes | None:
        assert process.stdout
        head = process.stdout.readline()
        if not head:
            raise GitFailed("git cat-file ended early", why=_ENDED, hint=REFETCH)
        parts = head.split()
        if len(parts) < 3 or parts[-1] in (b"missing", b"ambiguous") or not parts[-1].isdigit():
            return None
        size = int(parts[-1])
        data = process.stdout.read(size + 1)
        if len(data) != size + 1:
            raise GitFailed("git cat-file ended early", why=_ENDED, hint=REFETCH)
        return data[:-1]
