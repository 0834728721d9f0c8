"""What the index needs to know of a store. The store stands above the engines, so they know this shape of it only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mdmem.config import Config
    from mdmem.notes.folder import Folder
    from mdmem.repo.git import Git


class Home(Protocol):
    """A store as its index sees it."""

    state_dir: Path
    common_state_dir: Path
    config: Config
    location: Any  # has `store_id`

    @property
    def folder(self) -> Folder: ...

    @property
    def local_folder(self) -> Folder: ...

    @property
    def data_dir(self) -> Path: ...

    @property
    def owned(self) -> tuple[str, ...]: ...

    @property
    def git(self) -> Git: ...

    def to_git(self, path: str) -> str:
        """Return a path of the store as git names it."""

    def from_git(self, path: str) -> str | None:
        """Return a path that git names as one of the store, None when it lies outside."""


def state_places(home: Home) -> tuple[Path, Path]:
    """Return (folder of the index, folder of its lock), made if need be.

    Where the repository cannot be written to (another user's, a read-only disk), both lie in the user's own data folder."""
    usual = home.state_dir, home.common_state_dir
    try:
        if _usable(*usual):
            return usual
    except OSError:
        pass
    import hashlib  # loads OpenSSL: not where the state lies in its usual place

    own = home.data_dir / "state" / hashlib.sha256(str(home.state_dir).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    _usable(own)
    return own, own


def _usable(*folders: Path) -> bool:
    """Make folders if need be; returns whether all can be written to. Raises OSError."""
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return all(os.access(folder, os.W_OK | os.X_OK) for folder in folders)
