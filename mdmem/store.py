"""The store: the one object that a face opens. Hands out folder, git and index, each on first use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.clock import Clock, SystemClock
from mdmem.config import Config, data_home, load_config
from mdmem.errors import Refused, typed
from mdmem.identity import Identity, who
from mdmem.locate import OWNED, Location, find, here, project_name

if TYPE_CHECKING:
    from mdmem.index.index import Index
    from mdmem.notes.folder import Folder
    from mdmem.repo.git import Git


# Scopes of one person, one agent, one machine.
PRIVATE = ("user:*", "agent:*", "local")


def is_private(scope: str) -> bool:
    """Return whether notes of a scope stay out of stores that others read."""
    return any(fnmatchcase(scope, pattern) for pattern in PRIVATE)


class Store:
    """An opened store. Opening reads two small files and starts no process."""

    # It was named outright, so no other store of the user's is searched beside it.
    alone = False

    def __init__(self, location: Location, config: Config, clock: Clock, cwd: Path) -> None:
        self.location = location
        self.config = config
        self.clock = clock
        self.cwd = cwd
        self.root = location.root
        self.mode = location.mode
        self.trusted = location.trusted
        self.state_dir = location.state_dir
        self.common_state_dir = location.common_state_dir
        self.notices: list[str] = [*location.notices, *config.notices]

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str] | None = None,
        *,
        need: str = "read",
        cwd: Path | None = None,
        clock: Clock | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Store:
        """Return the store to use (see locate.find). `need="write"` raises Refused for a store that is not trusted."""
        location = find(directory, cwd)
        if need == "write" and not location.trusted:
            raise untrusted(location)
        return cls(location, load_config(location.root, options), clock or SystemClock(), cwd or here(location.root))

    def writable(self) -> Store:
        """Return self; raises Refused when the store is not trusted."""
        if not self.trusted:
            raise untrusted(self.location)
        return self

    @property
    def lock_path(self) -> Path:
        """The lock that every writer of notes takes."""
        return self.common_state_dir / "write.lock"

    @property
    def owned(self) -> tuple[str, ...]:
        """The folders, relative to the root, that are ours: all of it ('',), or the known ones in a code repository."""
        return ("",) if self.mode == "dedicated" else OWNED

    @cached_property
    def shared(self) -> bool:
        """Whether the user's configuration says that others read this store (`shared = true` in its `[[stores]]` table)."""
        tables: Any = self.config.user.get("stores", [])
        return any(
            isinstance(table, dict)
            and table.get("shared") is True
            and os.path.realpath(os.path.expanduser(str(table.get("path", "")))) == str(self.root)
            for table in (tables if isinstance(tables, list) else [])
        )

    def keep_private(self, scope: str) -> None:
        """Raise Refused where a note of a private scope would be written to a store that others read."""
        if self.shared and is_private(scope):
            why = "that store is shared with others"
            hint = "choose a store of your own: --store NAME"
            raise Refused(f"a note of scope {scope} is not written to {self.root.name}", why, hint, code="private_note")

    @property
    def data_dir(self) -> Path:
        """The user's own folder of what must outlive the clone."""
        return data_home()

    @cached_property
    def identity(self) -> Identity:
        """Agent and device in force."""
        return who(self.config)

    @cached_property
    def folder(self) -> Folder:
        """The notes on disk; the only writer."""
        from mdmem.notes.folder import Folder

        return Folder(self.root, self.owned, lock=self.lock_path)

    @cached_property
    def local_folder(self) -> Folder:
        """This user's `scope: local` notes for this store: outside every tracked tree."""
        from mdmem.notes.folder import Folder

        root = self.data_dir / "local" / (self.location.store_id or "unnamed")
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Folder(root, lock=root / ".write.lock")

    @cached_property
    def git(self) -> Git:
        """The hardened git runner at the top of the work tree."""
        from mdmem.repo import filters
        from mdmem.repo.git import Git

        filters.distrust(self.location.git.top, not self.trusted)
        return Git(self.location.git.top)

    @cached_property
    def index(self) -> Index:
        """Catalog, text and vectors; opened on first use."""
        from mdmem.index.index import Index

        return Index(self)

    def use_index(self, other: Store) -> None:
        """Use the index of the same store opened for another agent, in the place of one of its own."""
        self.__dict__["index"] = other.index

    def close(self) -> None:
        """Give back what the index holds open; used again, it opens again."""
        index = self.__dict__.get("index")
        if index is not None:
            index.close()

    def to_git(self, path: str) -> str:
        """Return a path of the store as git names it (relative to the top of the work tree)."""
        return f"{self.location.prefix}/{path}" if self.location.prefix else path

    def from_git(self, path: str) -> str | None:
        """Return a path that git names as one of the store, None when it lies outside."""
        prefix = self.location.prefix
        if not prefix:
            return path
        return path[len(prefix) + 1 :] if path.startswith(prefix + "/") else None

    @cached_property
    def default_scope(self) -> str:
        """`project:NAME` when called inside another repository, else `shared`."""
        if self.mode == "embedded":
            return "shared"
        start = Path(os.path.realpath(self.cwd))
        if start == self.root or self.root in start.parents:
            return "shared"
        name = project_name(start)
        return f"project:{name}" if name else "shared"


def untrusted(location: Location) -> Refused:
    """Return the error for writing to a store that is only read: this user's mdmem neither made nor cloned it, or cannot make
    out its settings."""
    if location.hindrance is not None:
        return location.hindrance
    return Refused(
        f"the store at {location.root} is not trusted",
        why="mdmem on this machine neither made nor cloned it, so it is only read",
        hint="look at it, then: " + typed("mdmem", "-C", location.root, "trust"),
        code="untrusted",
    )
