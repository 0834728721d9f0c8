"""What changed on disk since the catalog last looked: scans the sources and compares. Reads no note and writes nothing."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.index.catalog import Catalog

if TYPE_CHECKING:
    from mdmem.notes.folder import Folder
    from mdmem.notes.note import Note

# A file this young may be written again without a change of its times: it is compared by content.
YOUNG_NS = 2_000_000_000


@dataclass(frozen=True)
class Source:
    """A tree of notes: the store (name ''), the device's local notes ('local'), or a folder outside (its path).

    `prefix` stands before the paths of its notes in the catalog; `kind` and `types` fill in what its notes do not say."""

    name: str
    prefix: str
    folder: Folder
    kind: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)

    def read(self, path: str) -> Note:
        """Return a note by its path in the catalog; raises NotFound or Refused."""
        return self.folder.read(path[len(self.prefix) :])


class Stat(NamedTuple):
    """A file as a scan saw it; the path is that of the catalog."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Remark(NamedTuple):
    """Something that a scan left out or warns about."""

    folder: str
    path: str
    code: str
    message: str


@dataclass
class Seen:
    """One look at all sources. `unread`: (prefix of the source, folder in it, "" for all of it) that could not be read."""

    sources: Sequence[Source]
    stats: list[Stat] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

    def known_gone(self, path: str) -> bool:
        """Tell whether the absence of a path means that the file was removed."""
        source = source_for(self.sources, path)
        if source is None:
            return True  # its folder is no longer configured
        inner = path[len(source.prefix) :]
        tops = [top for prefix, top in self.unread if prefix == source.prefix]
        return not any(top == "" or inner == top or inner.startswith(top + "/") for top in tops)


@dataclass
class Changes:
    """The difference: files to read (new, changed, or too young to trust), and paths that are gone."""

    read: list[Stat]
    gone: list[str]

    def __bool__(self) -> bool:
        return bool(self.read or self.gone)


def look(sources: Sequence[Source]) -> Seen:
    """Return what stands on disk now, in all sources."""
    seen = Seen(sources)
    for source in sources:
        prefix, folder = source.prefix, source.folder
        if prefix:
            seen.stats += [Stat(prefix + found[0], *found[1:]) for found in folder.scan()]
        else:
            seen.stats += map(Stat._make, folder.scan())
        seen.unread += [(prefix, top) for top in folder.unread]
        for path, code, message in folder.problems:
            seen.remarks.append(Remark(source.name, prefix + path, code, message))
    return seen


def look_at(sources: Sequence[Source], paths: Iterable[str]) -> tuple[Seen, list[str]]:
    """Return what stands at some paths, and those of them where nothing stands."""
    seen = Seen(sources)
    missing = []
    for path in dict.fromkeys(paths):
        source = source_for(sources, path)
        found = source.folder.stat(path[len(source.prefix) :]) if source else None
        if found is None:
            missing.append(path)
        else:
            seen.stats.append(Stat(path, *found[1:]))
    return seen, missing


def source_for(sources: Iterable[Source], path: str) -> Source | None:
    """Return the source that a path of the catalog belongs to (the longest prefix); None when it is not configured."""
    fitting = [source for source in sources if path.startswith(source.prefix)]
    if path.startswith(("/", "local:")):
        fitting = [source for source in fitting if source.prefix]
    return max(fitting, key=lambda source: len(source.prefix), default=None)


def compare(catalog: Catalog, seen: Seen) -> Changes:
    """Return what is to be read or dropped. A permission error is never taken for a deletion."""

    def load(connection: sqlite3.Connection) -> tuple[set[tuple[Any, ...]], list[tuple[str]]]:
        cursor = connection.cursor()
        cursor.row_factory = None
        rows = set(cursor.execute("SELECT path, size, mtime_ns, ctime_ns, inode FROM notes").fetchall())
        young = cursor.execute(
            "SELECT path FROM notes WHERE mtime_ns > checked_ns - ? OR ctime_ns > checked_ns - ?", (YOUNG_NS, YOUNG_NS)
        ).fetchall()
        return rows, young

    rows, young = catalog.read(load)
    now = set(seen.stats)
    fresh = now - rows
    lost = rows - now
    if not fresh and not lost and not young:
        return Changes([], [])
    paths = {stat.path for stat in fresh}
    gone = sorted(row[0] for row in lost if row[0] not in paths and seen.known_gone(row[0]))
    read = list(fresh)
    if young:
        names = {name for (name,) in young} - paths
        read += [stat for stat in seen.stats if stat.path in names]
    return Changes(sorted(read), gone)


def compare_some(catalog: Catalog, seen: Seen, missing: Iterable[str]) -> Changes:
    """Return the changes among single paths: all that stand are read again, the missing ones are gone."""
    gone = [path for path in missing if catalog.value("SELECT 1 FROM notes WHERE path = ?", (path,))]
    return Changes(list(seen.stats), gone)


def time_ns() -> int:
    """Return the time of the file system's clock (never the injected one: it is compared with file times)."""
    return time.time_ns()
