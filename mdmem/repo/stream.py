"""One commit through `git fast-import`: no work tree, no index, one process however large the store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mdmem.repo.git import Git, GitFailed, failure

# A power cut must not leave a branch that points at an empty object.
DURABLE = ("-c", "core.fsync=committed,loose-object", "-c", "core.fsyncMethod=batch")


class Moved(GitFailed):
    """Somebody else moved the branch meanwhile; nothing was changed."""

    code = "moved"


@dataclass(frozen=True)
class Signature:
    """Who and when, as a commit stores it: seconds since 1970 and an offset such as +0000."""

    name: str
    email: str
    seconds: int
    zone: str = "+0000"

    def line(self) -> bytes:
        """Return `Name <email> seconds zone`, characters that would end a field left out."""
        name = re.sub(r"[<>\r\n\0]", "", self.name).strip() or "mdmem"
        email = re.sub(r"[<>\r\n\0\s]", "", self.email)
        return f"{name} <{email}> {self.seconds} {self.zone}".encode("utf-8", "surrogateescape")


@dataclass
class NewCommit:
    """A commit to be made on `ref`. `entries`: path -> (mode, object id), (mode, bytes), or None for a path that goes."""

    ref: str
    author: Signature
    committer: Signature
    message: str
    parents: list[str] = field(default_factory=list)
    entries: Mapping[str, tuple[str, str | bytes] | None] = field(default_factory=dict)


def quoted(path: str) -> bytes:
    """Return a path in git's C quoting."""
    out = bytearray(b'"')
    for byte in os.fsencode(path):
        if byte in b'"\\' or byte < 32 or byte > 126:
            out += b"\\%03o" % byte
        else:
            out.append(byte)
    return bytes(out) + b'"'


def message_text(subject: str, trailers: Mapping[str, str], body: str = "") -> str:
    """Return a commit message. A trailer named `agent` is written `Mdmem-Agent`; values are kept to one line."""
    lines = [" ".join(subject.split()) or "mdmem"]
    if body.strip():
        lines += ["", body.strip()]
    found = {_trailer(key): " ".join(str(value).split()) for key, value in trailers.items()}
    found = {key: value for key, value in found.items() if value}
    if not found:
        found = {"Mdmem-Op": lines[0].split(":")[0].split()[0]}
    return "\n".join([*lines, "", *(f"{key}: {value}" for key, value in found.items())]) + "\n"


def _trailer(key: str) -> str:
    if key.lower().startswith("mdmem-"):
        return key
    return "Mdmem-" + re.sub(r"[^A-Za-z0-9-]+", "-", key).strip("-").capitalize()


def _lines(commit: NewCommit) -> Iterable[bytes]:
    yield b"feature done\n"
    yield b"commit " + os.fsencode(commit.ref) + b"\nmark :1\n"
    yield b"author " + commit.author.line() + b"\ncommitter " + commit.committer.line() + b"\n"
    message = commit.message.encode("utf-8", "replace")
    yield b"data %d\n" % len(message) + message + b"\n"
    for word, parent in zip(("from", *["merge"] * len(commit.parents)), commit.parents):
        yield f"{word} {parent}\n".encode()
    # Deletions first: a file may become a folder and the other way round.
    for path, entry in commit.entries.items():
        if entry is None:
            yield b"D " + quoted(path) + b"\n"
    for path, entry in commit.entries.items():
        if entry is None:
            continue
        mode, content = entry
        if isinstance(content, bytes):
            yield b"M " + mode.encode() + b" inline " + quoted(path) + b"\ndata %d\n" % len(content) + content + b"\n"
        else:
            yield b"M " + mode.encode() + b" " + content.encode() + b" " + quoted(path) + b"\n"
    yield b"get-mark :1\ndone\n"


def write_blobs(git: Git, contents: Iterable[bytes], timeout: float = 300.0) -> None:
    """Store many contents as one pack for each 32 MB, instead of as a file each. Raises GitFailed."""
    args = (*DURABLE, "-c", "fastimport.unpackLimit=1", "fast-import", "--quiet")
    stream, size = [], 0
    for data in contents:
        stream.append(b"blob\ndata %d\n" % len(data) + data + b"\n")
        size += len(data)
        if size >= _PACK_BYTES:
            git.run(*args, input=b"".join(stream), timeout=timeout)
            stream, size = [], 0
    if stream:
        git.run(*args, input=b"".join(stream), timeout=timeout)


_PACK_BYTES = 32 << 20
# Below this many entries a commit with its trees stays under fastimport.unpackLimit (100 objects), unless the user set it.
_FEW = 24


def write_commit(git: Git, commit: NewCommit, *, force: bool = False, timeout: float = 120.0) -> str:
    """Make the commit and move its ref to it; returns the commit id.

    The ref moves only forward, and only if nobody else moved it meanwhile, unless `force`. Raises Moved, GitFailed.
    """
    # Few objects become loose ones at once: what git packs them in on the way there is not worth squeezing, and the tree of
    # a large folder is megabytes.
    plain = ("-c", "pack.compression=0") if len(commit.entries) < _FEW else ()
    args = (*DURABLE, *plain, "fast-import", "--quiet", "--date-format=raw", *(("--force",) if force else ()))
    done = git.run(*args, input=b"".join(_lines(commit)), timeout=timeout, check=False)
    if done.code == 1:
        raise Moved("the branch moved meanwhile", why=done.err.strip(), status=1, err=done.err)
    if done.code != 0:
        raise failure(args, done)
    return done.text()
