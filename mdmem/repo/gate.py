"""The last gate before a push: text that is in no commit at the remote yet is scanned; what cannot be scanned stops it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from mdmem.errors import MdmemError
from mdmem.repo.git import BlobReader, Git
from mdmem.repo.own import is_own


class Finding(Protocol):
    """What a scan returns for each secret: its kind and line, never its value."""

    @property
    def kind(self) -> str: ...

    @property
    def line(self) -> int: ...


Scan = Callable[[str], Sequence[Finding]]


@dataclass(frozen=True)
class Held:
    """A secret that keeps a file, or a push, back: where it is and of which kind, never what it is."""

    path: str
    kind: str
    line: int
    rev: str = ""


class GateFailed(MdmemError):
    """The scan could not run, so nothing is pushed."""

    code = "scan_failed"


def findings(data: bytes, path: str, scan: Scan) -> list[Held]:
    """Return the secrets in one file; [] for one that is not text. Raises GateFailed when the scan fails."""
    if b"\0" in data[:8000]:
        return []
    try:
        return [Held(path, found.kind, found.line) for found in scan(data.decode("utf-8", "replace"))]
    except Exception as error:
        raise GateFailed("the scan for secrets failed", why=f"{type(error).__name__} in {path}") from error


def unpushed_findings(
    git: Git, new: str, known: Iterable[str], scan: Scan, roots: Sequence[str] = ("",), allowed: frozenset[str] = frozenset()
) -> list[Held]:
    """Return the secrets in commits that `new` has and none of the `known` commits has: files, messages, all history between.

    A line that the remote already has at that path is not held against us. `allowed` are paths that a person let pass.
    Raises GateFailed.
    """
    known = list(dict.fromkeys(known))
    span = [new, *(f"^{rev}" for rev in known)]
    try:
        blobs = _all_blobs(git, span) if "" in roots else _own_blobs(git, span, roots)
        wanted = [oid for oid, path in blobs.items() if path not in allowed]
        found: list[Held] = []
        with BlobReader(git) as reader:
            for oid, data in zip(wanted, reader.many(wanted)):
                if data is None:
                    raise GateFailed("the scan for secrets failed", why=f"{blobs[oid]} could not be read", hint="git fsck")
                held = findings(data, blobs[oid], scan)
                found += _new_ones(reader, known, held, data) if held else []
        messages = git.run("log", "-z", "--format=%H%n%B", "--stdin", input="\n".join(span).encode() + b"\n", read=True)
        for text in messages.out.split(b"\0"):
            rev, _, body = text.partition(b"\n")
            name = rev.decode("ascii", "replace")[:10]
            found += [Held(f"message of commit {name}", h.kind, h.line, name) for h in findings(body, name, scan)]
    except GateFailed:
        raise
    except MdmemError as error:
        raise GateFailed("the scan for secrets failed", why=str(error)) from error
    return found


def _all_blobs(git: Git, span: list[str]) -> dict[str, str]:
    """Return {blob id: a path of it} of everything in the commits of a span."""
    listed = git.run(
        "rev-list", "--objects", "--filter=object:type=blob", "--filter-provided-objects", "--stdin",
        input="".join(f"{line}\n" for line in span).encode(), read=True, timeout=120,
    )  # fmt: skip
    pairs = [line.partition(b" ") for line in listed.out.split(b"\n") if line]
    return {oid.decode("ascii"): name.decode("utf-8", "surrogateescape") for oid, _, name in pairs}


def _own_blobs(git: Git, span: list[str], roots: Sequence[str]) -> dict[str, str]:
    """Return {blob id: path} of our own files only: a blob may also be that of a foreign file."""
    args = ("log", "-z", "-m", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", "--format=", "--stdin")
    listed = git.run(*args, input="".join(f"{line}\n" for line in span).encode(), read=True, timeout=120)
    found = {}
    parts = listed.out.decode("utf-8", "surrogateescape").split("\0")
    for info, path in pairwise(parts):
        fields = info.lstrip("\n").split(" ")
        if info.lstrip("\n").startswith(":") and len(fields) == 5 and fields[1].startswith("100") and is_own(path, roots):
            found[fields[3]] = path
    return found


def _new_ones(reader: BlobReader, known: list[str], held: list[Held], data: bytes) -> list[Held]:
    lines = data.split(b"\n")
    old: set[bytes] = set()
    for rev in known:
        old.update((reader.read(f"{rev}:{held[0].path}") or b"").split(b"\n"))
    return [found for found in held if not 0 < found.line <= len(lines) or lines[found.line - 1] not in old]
