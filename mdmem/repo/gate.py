"""The last gate before a push: text that is in no commit at the remote yet is scanned; what cannot be scanned stops it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
Wanted = Callable[[str], bool]
_LONGEST = 300.0  # seconds for one look at a whole history


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

    `allowed` are paths that a person let pass. Raises GateFailed.
    """
    wanted = None if "" in roots else partial(is_own, roots=roots)
    found = (held for held, _ in in_commits(git, [new], known, scan, wanted, allowed))
    return [held if held.path else replace(held, path=f"message of commit {held.rev[:10]}") for held in found]


def in_commits(
    git: Git,
    new: Sequence[str],
    known: Iterable[str],
    scan: Scan,
    wanted: Wanted | None = None,
    allowed: frozenset[str] = frozenset(),
) -> Iterator[tuple[Held, str]]:
    """Yield (secret, blob id) for what the commits of `new` bring that none of the `known` commits has.

    `wanted` says which paths are looked at, None for all. A message has the path "", no blob id, and its commit in `rev`. A
    line that a known commit already has at that path is not held against us. Raises GateFailed, also where something could not
    be read: what was not looked at must not be pushed.
    """
    known = list(dict.fromkeys(known))
    if any(rev.startswith("-") for rev in (*new, *known)):
        raise GateFailed("the scan for secrets failed", why="a revision cannot start with a dash")
    span = "".join(f"{line}\n" for line in (*new, *(f"^{rev}" for rev in known))).encode()
    try:
        blobs = _all_blobs(git, span) if wanted is None else _some_blobs(git, span, wanted)
        oids = [oid for oid, path in blobs.items() if path not in allowed]
        with BlobReader(git) as reader:
            for oid, data in zip(oids, reader.many(oids)):
                if data is None:
                    why = f"the object {oid[:10]} of {blobs[oid]} is not here"
                    hint = "git fsck; in a partial clone: git fetch --refetch --no-filter"
                    raise GateFailed("the scan for secrets failed", why=why, hint=hint)
                held = findings(data, blobs[oid], scan)
                for secret in _new_ones(reader, known, held, data) if held else []:
                    yield secret, oid
        args = ("log", "-z", "--format=%H%n%B", "--no-show-signature", "--stdin")
        for text in git.run(*args, input=span, read=True, timeout=_LONGEST).out.split(b"\0"):
            rev, _, body = text.partition(b"\n")
            for secret in findings(body, "", scan):
                yield replace(secret, rev=rev.decode("ascii", "replace")), ""
    except GateFailed:
        raise
    except MdmemError as error:
        raise GateFailed("the scan for secrets failed", why=str(error)) from error


def _all_blobs(git: Git, span: bytes) -> dict[str, str]:
    """Return {blob id: a path of it} of everything in the commits of a span."""
    args = ("rev-list", "--objects", "--filter=object:type=blob", "--filter-provided-objects", "--stdin")
    listed = git.run(*args, input=span, read=True, timeout=_LONGEST)
    pairs = [line.partition(b" ") for line in listed.out.split(b"\n") if line]
    return {oid.decode("ascii"): name.decode("utf-8", "surrogateescape") for oid, _, name in pairs}


def _some_blobs(git: Git, span: bytes, wanted: Wanted) -> dict[str, str]:
    """Return {blob id: path} of the wanted files only: a blob may also be that of another file."""
    args = ("log", "-z", "-m", "--root", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", "--format=", "--stdin")
    listed = git.run(*args, input=span, read=True, timeout=_LONGEST)
    found = {}
    parts = listed.out.decode("utf-8", "surrogateescape").split("\0")
    for info, path in pairwise(parts):
        fields = info.lstrip("\n").split(" ")
        if info.lstrip("\n").startswith(":") and len(fields) == 5 and fields[1].startswith("100") and wanted(path):
            found[fields[3]] = path
    return found


def _new_ones(reader: BlobReader, known: list[str], held: list[Held], data: bytes) -> list[Held]:
    lines = data.split(b"\n")
    old: set[bytes] = set()
    for rev in known:
        old.update((reader.read(f"{rev}:{held[0].path}") or b"").split(b"\n"))
    return [found for found in held if not 0 < found.line <= len(lines) or lines[found.line - 1] not in old]
