"""Trees as git stores them: what two commits have in common, path by path, modes included. Reads only."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mdmem.repo.git import REFETCH, BlobReader, Git, GitFailed

REGULAR = ("100644", "100755")


@dataclass(frozen=True)
class Item:
    """One entry of a tree: mode, object id, and the bytes where they are in no object yet."""

    mode: str
    oid: str
    data: bytes | None = None

    @property
    def regular(self) -> bool:
        """Whether it is a plain file (no link, no submodule)."""
        return self.mode in REGULAR


@dataclass(frozen=True)
class Delta:
    """One path in two trees; None where it is absent."""

    old: Item | None
    new: Item | None


def blob_id(data: bytes, like: str) -> str:
    """Return the id that git gives to these bytes, in the repository's hash (as long as the id `like`)."""
    kind = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return kind(b"blob %d\0" % len(data) + data).hexdigest()


def changes(git: Git, old: str, new: str) -> dict[str, Delta]:
    """Return {path: what is there} for each path in which two commits or trees differ; renames are not looked for."""
    args = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", "--end-of-options", old, new)
    parts = git.run(*args, read=True, timeout=120).out.decode("utf-8", "surrogateescape").split("\0")
    found = {}
    for info, path in zip(parts[::2], parts[1::2]):
        old_mode, new_mode, old_oid, new_oid, _ = info[1:].split(" ")
        found[path] = Delta(
            Item(old_mode, old_oid) if old_mode != "000000" else None,
            Item(new_mode, new_oid) if new_mode != "000000" else None,
        )
    return found


def similar(git: Git, old: str, new: str) -> dict[str, str]:
    """Return {old path: new path} of the renames that git sees between two commits by likeness."""
    args = ("diff-tree", "-r", "-z", "-M", "--name-status", "--diff-filter=R", "--no-ext-diff", "--end-of-options", old, new)
    parts = git.run(*args, read=True, timeout=120).out.decode("utf-8", "surrogateescape").split("\0")
    return dict(zip(parts[1::3], parts[2::3]))


def tree(git: Git, rev: str) -> dict[str, Item]:
    """Return {path: entry} of everything in a commit, links and submodules included."""
    found = {}
    text = git.run("ls-tree", "-r", "-z", "--full-tree", rev, read=True, timeout=120).out.decode("utf-8", "surrogateescape")
    for line in text.split("\0"):
        info, tab, path = line.partition("\t")
        if tab:
            mode, _, oid = info.split(" ")
            found[path] = Item(mode, oid)
    return found


class ObjectMissing(GitFailed):
    """The bytes of an entry are not in this clone."""

    code = "object_missing"


class Contents:
    """The bytes of entries and the differences of trees, each asked for once. Use as a context manager."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._reader = BlobReader(git)
        self._kept: dict[str, bytes] = {}
        self._deltas: dict[tuple[str, str], dict[str, Delta]] = {}

    def __enter__(self) -> Contents:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.__exit__(None, None, None)

    def changes(self, old: str, new: str) -> dict[str, Delta]:
        """Return `changes` of two commits or trees; not to be altered."""
        if (old, new) not in self._deltas:
            self._deltas[old, new] = changes(self._git, old, new) if old != new else {}
        return self._deltas[old, new]

    def fetch(self, items: list[Item | None]) -> None:
        """Read many entries at once, so that later calls find them."""
        wanted = [i.oid for i in items if i is not None and i.data is None and i.mode != "160000" and i.oid not in self._kept]
        wanted = list(dict.fromkeys(wanted))
        for oid, data in zip(wanted, self._reader.many(wanted)):
            if data is not None:
                self._kept[oid] = data

    def of(self, item: Item) -> bytes:
        """Return an entry's bytes; raises ObjectMissing for one that is not there (a damaged or partial repository)."""
        if item.data is not None:
            return item.data
        if item.oid not in self._kept:
            self.fetch([item])
        if item.oid not in self._kept:
            raise ObjectMissing("a damaged or partial repository", why=f"the object {item.oid} is missing", hint=REFETCH)
        return self._kept[item.oid]


EMPTY_TREES = {40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904"}
EMPTY_TREES[64] = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"


def empty_tree(like: str) -> str:
    """Return the id of the tree without entries, in the hash of the id `like`. Git knows it without storing it."""
    return EMPTY_TREES[len(like)]
