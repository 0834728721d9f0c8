"""What changed on disk since the catalog last looked: scans the sources and compares. Reads no note and writes nothing."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.index.catalog import Catalog, listed
from mdmem.notes.scan import FileStat, Numbers

if TYPE_CHECKING:
    from mdmem.notes.folder import Folder
    from mdmem.notes.note import Note

# progress(done, total, what)
Tell = Callable[[int, int, str], None]
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
    stats: Collection[Numbers] = field(default_factory=list)
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

    read: list[FileStat]
    gone: list[str]

    def __bool__(self) -> bool:
        return bool(self.read or self.gone)


def look(sources: Sequence[Source], entering: Callable[[Source], Callable[[str, str], None]] | None = None) -> Seen:
    """Return what stands on disk now, in all sources. `entering(source)` gives what is called before a folder is listed."""
    stats: list[Numbers] = []
    seen = Seen(sources, stats)
    for source in sources:
        prefix, folder = source.prefix, source.folder
        stats += folder.numbers(prefix, entering(source) if entering is not None else None)
        seen.unread += [(prefix, top) for top in folder.unread]
        for path, code, message in folder.problems:
            seen.remarks.append(Remark(source.name, prefix + path, code, message))
    return seen


def look_at(sources: Sequence[Source], paths: Iterable[str]) -> tuple[Seen, list[str]]:
    """Return what stands at some paths, and those of them where nothing stands."""
    stats: list[Numbers] = []
    seen = Seen(sources, stats)
    missing = []
    for path in dict.fromkeys(paths):
        source = source_for(sources, path)
        found = source.folder.stat(path[len(source.prefix) :]) if source else None
        if found is None:
            missing.append(path)
        else:
            stats.append(found._replace(path=path))
    return seen, missing


def source_for(sources: Iterable[Source], path: str) -> Source | None:
    """Return the source that a path of the catalog belongs to (the longest prefix); None when it is not configured."""
    fitting = [source for source in sources if path.startswith(source.prefix)]
    if path.startswith(("/", "local:")):
        fitting = [source for source in fitting if source.prefix]
    return max(fitting, key=lambda source: len(source.prefix), default=None)


class Known:
    """What the catalog holds of every file, kept between looks by a long-running process; read again when another
    process has written. `young` paths were indexed within the tick of their last change: their content is compared."""

    def __init__(self) -> None:
        self.files: dict[str, Numbers] = {}
        self.young: set[str] = set()
        self._version: tuple[str, tuple[int, int]] | None = None

    def load(self, catalog: Catalog) -> bool:
        """Take over what is in the catalog; returns False when that was known already."""
        version = (str(catalog.path), catalog.version())
        if version == self._version:
            return False

        def read(connection: sqlite3.Connection) -> tuple[list[tuple[Any, ...]], list[tuple[str]]]:
            cursor = connection.cursor()
            cursor.row_factory = None
            rows = cursor.execute("SELECT path, size, mtime_ns, ctime_ns, inode FROM notes").fetchall()
            young = "SELECT path FROM notes WHERE mtime_ns > checked_ns - :age OR ctime_ns > checked_ns - :age"
            return rows, cursor.execute(young, {"age": YOUNG_NS}).fetchall()

        rows, young = catalog.read(read)
        self.files, self.young = {row[0]: row for row in rows}, {path for (path,) in young}
        self._version = version
        return True

    def take(self, catalog: Catalog, paths: Iterable[str]) -> None:
        """Look up some paths again, which this process has just written."""
        if not self.loaded:
            return
        names = list(paths)
        rows = known_of(catalog, names)
        for name in names:
            self.files.pop(name, None)
        self.files.update((name, row.numbers) for name, row in rows.items())
        self.young.difference_update(names)
        self.young.update(name for name, row in rows.items() if row.young)

    @property
    def loaded(self) -> bool:
        """Whether the rows were read before."""
        return self._version is not None

    def forget(self) -> None:
        """Know nothing any more."""
        self.files, self.young, self._version = {}, set(), None


class Row(NamedTuple):
    """What the catalog holds of a file, and whether it was indexed within the tick of its last change."""

    numbers: Numbers
    young: bool


def known_of(catalog: Catalog, paths: Iterable[str]) -> dict[str, Row]:
    """Return what the catalog holds of some paths."""
    names = list(paths)
    if not names:
        return {}

    def read(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
        cursor = connection.cursor()
        cursor.row_factory = None
        return cursor.execute(
            "SELECT path, size, mtime_ns, ctime_ns, inode, mtime_ns > checked_ns - :age OR ctime_ns > checked_ns - :age "
            "FROM notes WHERE path IN (SELECT value FROM json_each(:paths))",
            {"age": YOUNG_NS, "paths": listed(names)},
        ).fetchall()

    return {row[0]: Row(row[:5], bool(row[5])) for row in catalog.read(read)}


def compare(known: Known, seen: Seen) -> Changes:
    """Return what is to be read or dropped. A permission error is never taken for a deletion."""
    get, young = known.files.get, known.young
    if young:
        found = {stat for stat in seen.stats if get(stat[0]) != stat or stat[0] in young}
    else:
        found = {stat for stat in seen.stats if get(stat[0]) != stat}
    read = [FileStat._make(stat) for stat in sorted(found)]
    added = sum(stat.path not in known.files for stat in read)
    gone: list[str] = []
    if len(seen.stats) - added != len(known.files):
        lost = known.files.keys() - {stat[0] for stat in seen.stats}
        gone = sorted(path for path in lost if seen.known_gone(path))
    return Changes(read, gone)


def compare_some(catalog: Catalog, seen: Seen, missing: Iterable[str]) -> Changes:
    """Return the changes among single paths: all that stand are read again, the missing ones are gone."""
    gone = [path for path in missing if catalog.value("SELECT 1 FROM notes WHERE path = ?", (path,))]
    return Changes([FileStat._make(stat) for stat in seen.stats], gone)


def time_ns() -> int:
    """Return the time of the file system's clock (never the injected one: it is compared with file times)."""
    return time.time_ns()
