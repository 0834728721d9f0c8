"""Which names are taken in a tree of notes: also by a name that another machine takes for the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mdmem.errors import ConflictFound
from mdmem.notes.names import fold


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder; none where there is no folder. Raises OSError."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


class Taken:
    """The names below `root`. Folders are listed at each question, or once while they are `kept`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[Path, dict[str, list[str]]] | None = None  # by folder, then by the folded name

    @contextmanager
    def kept(self) -> Iterator[None]:
        """List each folder once in here, so that ten thousand new notes do not read it ten thousand times.

        Who uses it holds the write lock, once, and tells of what it adds and changes."""
        self._known = {}
        try:
            yield
        finally:
            self._known = None

    def added(self, path: Path) -> None:
        """Count a path as taken from now on, while folders are kept."""
        if self._known is not None and path.parent in self._known:
            same = self._known[path.parent].setdefault(fold(path.name), [])
            if path.name not in same:
                same.append(path.name)

    def changed(self, folder: Path) -> None:
        """List a folder again at the next question: a name in it went or was changed."""
        if self._known is not None:
            self._known.pop(folder, None)

    def check(self, path: str, but: str | None = None) -> None:
        """Raise ConflictFound when path is taken (`exists`), or when another machine would take it and a present file or
        folder for one (`twin`). `but`: a path that is about to go."""
        place, above = self.root, ""
        for part in path.split("/"):
            for name in self._same(place, part):
                if above + name != but:
                    raise ConflictFound(
                        f"a name that differs only in case or Unicode form exists: {above}{name}",
                        why=f"{path} and it would be one file on another machine",
                        code="twin",
                    )
            place, above = place / part, above + part + "/"
        if os.path.lexists(self.root / path):
            raise ConflictFound(f"the file exists already: {path}", code="exists")

    def _same(self, folder: Path, part: str) -> list[str]:
        """Return the names in folder that equal part but for case and Unicode form, part itself left out."""
        same = fold(part)
        if self._known is None:
            # Almost every name is another one at first sight: `fold` is asked only where a plain comparison cannot tell.
            found = [name for name in names_in(folder) if (name.lower() == same if name.isascii() else fold(name) == same)]
        else:
            if folder not in self._known:
                self._known[folder] = {}
                for name in names_in(folder):
                    self.added(folder / name)
            found = self._known[folder].get(same, [])
        return [name for name in found if name != part]
