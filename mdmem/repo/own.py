"""Which paths of a repository mdmem may commit by itself, and which path names are safe to carry."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SETTINGS = frozenset((".mdmem.toml", ".gitattributes"))
_COUNTERS = re.compile(r"(?:^|/)agents/[^/]+\.json$")
# `.git` in every spelling that a file system may fold to it.
_DOT_GIT = re.compile(r"(?i)^(?:\.git|git~1)[ .]*(?::.*)?$")
_IGNORED_BY_HFS = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufeff]")


def is_note(path: str) -> bool:
    """Return whether a path names a markdown note."""
    return path.lower().endswith(".md")


def is_own(path: str, roots: Sequence[str] = ("",)) -> bool:
    """Return whether a path (relative to the git top) is mdmem's to commit.

    `roots` are the owned folders; `("",)` is a dedicated store, where every note is a memory. Settings count at the top only.
    """
    if path in _SETTINGS:
        return "" in roots
    if not is_note(path) and not _COUNTERS.search(path):
        return False
    return any(not root or path.startswith(root.rstrip("/") + "/") for root in roots)


def out_of_sight(path: str, roots: Sequence[str] = ("",)) -> bool:
    """Return whether an own path is one that the index does not look at: below a root, in a folder or with a name that begins
    with a dot, or among installed packages. An editor's trash and a program's old versions lie there, `.mdmem.toml` aside."""
    from mdmem.notes.scan import SKIPPED

    if path in _SETTINGS:
        return False
    inner = (path[len(root) :] for root in (root.rstrip("/") + "/" if root else "" for root in roots) if path.startswith(root))
    return all(any(part.startswith(".") or part in SKIPPED for part in rest.split("/")) for rest in inner)


def unsafe(path: str) -> str:
    """Return why a path out of a git tree must not be written to disk, '' when it may."""
    if not path or path.startswith("/") or path.endswith("/") or "\0" in path:
        return "not a relative path"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return f"has the part {part!r}"
        if _DOT_GIT.match(_IGNORED_BY_HFS.sub("", part)):
            return "reaches into a git directory"
    return ""
