"""What the index needs to know of a store. The store stands above the engines, so they know this shape of it only."""

from __future__ import annotations

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
