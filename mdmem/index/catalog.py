"""The catalog: one SQLite file with a row per note, window, tag, name, edge and problem. Knows SQL, not markdown.

Loaded by hooks, so it imports neither yaml nor the search engine. Two kinds of trouble are told apart: `CatalogDamaged`
(the bytes are wrong, or another version wrote them: delete and rebuild) and `CatalogBusy` (the disk or a lock, for now:
nothing is deleted). A transient fault is tried again before it becomes an error.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from mdmem.errors import MdmemError

FORMAT = 2
# How a name stands for a note; the first that fits wins.
ID, PATH, STEM, TITLE, ALIAS = range(5)

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE notes (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT, folder TEXT NOT NULL DEFAULT '', path TEXT NOT NULL, id TEXT,
  kind TEXT, type TEXT, category TEXT, title TEXT, summary TEXT, scope TEXT, agent TEXT, device TEXT, session TEXT,
  status TEXT, priority TEXT, tier TEXT, pinned INTEGER NOT NULL DEFAULT 0, importance REAL, initiative TEXT, due TEXT,
  expires TEXT, valid_from TEXT, valid_until TEXT, fact_key TEXT, created TEXT, updated TEXT, dated TEXT,
  size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, inode INTEGER, checked_ns INTEGER, sha TEXT, blob TEXT,
  state TEXT NOT NULL DEFAULT 'ok', cut INTEGER, fields TEXT, body_line INTEGER NOT NULL DEFAULT 1,
  UNIQUE (path));
CREATE INDEX notes_id ON notes (id);
CREATE INDEX notes_kind ON notes (kind, status, expires);
CREATE INDEX notes_dated ON notes (dated) WHERE dated IN ('pending', 'file');
CREATE TABLE tags (note INTEGER NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (tag, note)) WITHOUT ROWID;
CREATE INDEX tags_note ON tags (note);
CREATE TABLE windows (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT, note INTEGER NOT NULL, ord INTEGER NOT NULL, heading TEXT NOT NULL,
  text TEXT NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, hash TEXT NOT NULL,
  wide INTEGER NOT NULL DEFAULT 0);
CREATE INDEX windows_note ON windows (note, ord);
CREATE INDEX windows_hash ON windows (hash);
CREATE TABLE names (key TEXT NOT NULL, note INTEGER NOT NULL, how INTEGER NOT NULL, PRIMARY KEY (key, how, note))
  WITHOUT ROWID;
CREATE INDEX names_note ON names (note);
CREATE TABLE edges (
  src INTEGER NOT NULL, rel TEXT NOT NULL, target TEXT NOT NULL, key TEXT NOT NULL, last TEXT NOT NULL, dst INTEGER,
  origin TEXT NOT NULL, line INTEGER, state TEXT NOT NULL);
CREATE INDEX edges_src ON edges (src, rel);
CREATE INDEX edges_dst ON edges (dst, rel);
CREATE INDEX edges_last ON edges (last);
CREATE INDEX edges_state ON edges (state) WHERE state != 'ok';
CREATE TABLE problems (folder TEXT NOT NULL DEFAULT '', path TEXT NOT NULL, note INTEGER, code TEXT NOT NULL,
  message TEXT NOT NULL, line INTEGER);
CREATE INDEX problems_path ON problems (path);
CREATE INDEX problems_note ON problems (note);
CREATE TABLE text_queue (note INTEGER PRIMARY KEY);
"""

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_TRANSIENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
}
# The file ends before its own last page: cut off, not a passing fault.
_SHORT_READ = 522
_TRIES = 3
PAGES_KB = 8 << 10  # of the file that a connection keeps in memory at most

T = TypeVar("T")


class CatalogDamaged(MdmemError):
    """The catalog cannot be used and must be rebuilt."""

    code = "index_damaged"


class CatalogBusy(MdmemError):
    """The catalog cannot be reached now; it is not known to be broken."""

    code, exit_code = "index_busy", 5


def pause(attempt: int) -> None:  # replaced in tests
    """Wait a little before the next try."""
    time.sleep(0.02 * 4**attempt)


def connect(path: str) -> sqlite3.Connection:  # replaced in tests
    """Open the database without creating it."""
    return sqlite3.connect(_uri(path, "rw"), uri=True, timeout=10.0, isolation_level=None, check_same_thread=False)


def _uri(path: str, mode: str) -> str:
    return "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + f"?mode={mode}"


class Catalog:
    """An open catalog. Rows can be read by name and by position.

    `header` names the versions of format, parser, windows; a file with another header counts as damaged. Raises
    FileNotFoundError when there is none."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path = path
        found = os.stat(path)
        self._identity = (found.st_dev, found.st_ino)
        self._connection: sqlite3.Connection | None = None
        self._header = json.dumps({"format": FORMAT, **header}, sort_keys=True)
        self._depth = self._serial = 0
        self._kept_at: tuple[int, int, int] | None = None
        self._worked_out: dict[Any, Any] = {}
        self.read(self._check)

    @classmethod
    def create(cls, path: Path, header: dict[str, Any]) -> Catalog:
        """Make an empty catalog (in the place of any there is) and open it. The caller holds the index lock."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_name(path.name + ".new")
        discard(fresh)
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        connection = connect(str(fresh))
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN")
            make_tables(connection)
            stored = json.dumps({"format": FORMAT, **header}, sort_keys=True)
            epoch = os.urandom(8).hex()
            connection.executemany("INSERT INTO meta VALUES (?, ?)", [("header", stored), ("epoch", epoch)])
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()
        discard(path)
        os.replace(fresh, path)
        return cls(path, header)

    def _check(self, connection: sqlite3.Connection) -> None:
        row = connection.execute("SELECT value FROM meta WHERE key = 'header'").fetchone()
        if row is None or row[0] != self._header:
            raise CatalogDamaged("the catalog was written by another version of mdmem")

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = connect(str(self.path))
            self._serial += 1
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA temp_store = MEMORY")
            # A search looks up hundreds of rows all over the file; taken only as pages are read.
            connection.execute(f"PRAGMA cache_size = -{PAGES_KB}")
            self._connection = connection
        return self._connection

    def close(self) -> None:
        """Close the connection; it opens again by itself when the catalog is used."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def replaced(self) -> bool:
        """Return True when another process has put a new catalog in the place of this one (or deleted it)."""
        try:
            found = os.stat(self.path)
        except OSError:
            return True
        return (found.st_dev, found.st_ino) != self._identity

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return work(connection); a transient fault is tried again, `_TRIES` times in all.

        Raises CatalogBusy or CatalogDamaged. `work` must be safe to run twice."""
        attempt = 0
        while True:
            try:
                return work(self._open())
            except sqlite3.Error as error:
                kind = _kind(error)
                if kind is None:
                    raise
                if self._depth or kind is CatalogDamaged or attempt + 1 >= _TRIES:
                    raise kind("the catalog cannot be read", why=str(error)) from error
            self.close()
            pause(attempt)
            attempt += 1

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Hold a write transaction: committed at the end, rolled back on any exception. The caller holds the index lock."""
        if self._depth:
            yield self._open()
            return
        self.read(lambda connection: connection.execute("BEGIN IMMEDIATE"))
        self._depth = 1
        connection = self._open()
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException as error:
            self._depth = 0
            try:
                connection.execute("ROLLBACK")
            except sqlite3.Error:
                self.close()
            kind = _kind(error) if isinstance(error, sqlite3.Error) else None
            if kind is not None:
                raise kind("the catalog cannot be written", why=str(error)) from error
            raise
        finally:
            self._depth = 0

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """Return all rows of a query."""
        return self.read(lambda connection: connection.execute(sql, values).fetchall())

    query = rows

    def edge_problems(self) -> list[sqlite3.Row]:
        """Return (path, line, code, message, src, rel, target) of the edges that lead nowhere: dangling, ambiguous, self."""
        return self.rows(
            "SELECT n.path, e.line, e.state AS code, e.src, e.rel, e.target, e.rel || ': ' || e.target || CASE e.state "
            "WHEN 'dangling' THEN ' names no note' WHEN 'ambiguous' THEN ' names more than one note' "
            "ELSE ' names the note itself' END AS message FROM edges e JOIN notes n ON n.rowid = e.src "
            "WHERE e.state != 'ok' ORDER BY n.path, e.rel, e.target"
        )

    def row(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Row | None:
        """Return the first row of a query, or None."""
        found: sqlite3.Row | None = self.read(lambda connection: connection.execute(sql, values).fetchone())
        return found

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Return the first column of the first row, or None."""
        found = self.row(sql, values)
        return None if found is None else found[0]

    def meta(self, key: str) -> str | None:
        """Return a remembered value."""
        found = self.value("SELECT value FROM meta WHERE key = ?", (key,))
        return None if found is None else str(found)

    def put_meta(self, key: str, value: str) -> None:
        """Remember a value."""
        with self.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def version(self) -> tuple[int, int]:
        """Return what changes when another connection commits, or when this one was opened again (for caches)."""
        number = int(self.value("PRAGMA data_version"))
        return self._serial, number

    def kept(self) -> dict[Any, Any]:
        """Return a place for what was worked out from the rows: empty again after any change, by whatever process."""

        def now(connection: sqlite3.Connection) -> tuple[int, int, int]:
            number = connection.execute("PRAGMA data_version").fetchone()[0]
            return self._serial, connection.total_changes, int(number)

        stamp = self.read(now)
        if stamp != self._kept_at:
            self._kept_at, self._worked_out = stamp, {}
        return self._worked_out

    def changed(self) -> int:
        """Return how many times the notes were changed, by any process, since the catalog was made."""
        return int(self.meta("changes") or 0)


class MemoryCatalog(Catalog):
    """A catalog that is never written: the notes of another revision. Copied from one on disk, then changed."""

    def __init__(self, epoch: str) -> None:
        self.path = Path(":memory:")
        self._depth = self._serial = 0
        self._kept_at, self._worked_out = None, {}
        self._memory = sqlite3.connect(":memory:", uri=True, isolation_level=None, check_same_thread=False)
        self._memory.row_factory = sqlite3.Row
        make_tables(self._memory)
        self._memory.execute("INSERT INTO meta VALUES ('epoch', ?)", (epoch,))

    def _open(self) -> sqlite3.Connection:
        return self._memory

    def close(self) -> None:
        """Nothing: closing would lose it."""

    def replaced(self) -> bool:
        """Return False: nobody else has it."""
        return False

    def copy_from(self, other: Catalog, notes: Iterable[int]) -> None:
        """Take over some notes of another catalog with all their rows; new rowids start above those of the other."""
        connection = self._memory
        connection.execute("ATTACH ? AS other", (_uri(str(other.path), "ro"),))
        try:
            connection.execute("BEGIN")
            wanted = listed(notes)
            for table, column in (("notes", "rowid"), *((name, "note") for name in ("windows", "tags", "names", "problems"))):
                rowid = "rowid, " if table in ("notes", "windows") else ""
                names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "rowid"]
                columns = rowid + ", ".join(names)
                connection.execute(
                    f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM other.{table} "
                    f"WHERE {column} IN (SELECT value FROM json_each(?))",
                    (wanted,),
                )
            connection.execute(
                "INSERT INTO main.edges SELECT * FROM other.edges WHERE src IN (SELECT value FROM json_each(?))", (wanted,)
            )
            for table in ("notes", "windows"):
                top = connection.execute("SELECT seq FROM other.sqlite_sequence WHERE name = ?", (table,)).fetchone()
                connection.execute("DELETE FROM main.sqlite_sequence WHERE name = ?", (table,))
                connection.execute("INSERT INTO main.sqlite_sequence VALUES (?, ?)", (table, (top[0] if top else 0) + 1))
            connection.execute("COMMIT")
        finally:
            connection.execute("DETACH other")


def make_tables(connection: sqlite3.Connection) -> None:
    """Create the tables and indexes of an empty catalog."""
    for statement in SCHEMA.split(";"):
        if statement.strip():
            connection.execute(statement)


def listed(values: Iterable[Any]) -> str:
    """Return the value of a parameter for `IN (SELECT value FROM json_each(?))`: a list of any length."""
    return json.dumps(list(values))


def clean(text: str) -> str:
    """Return text that can be stored as UTF-8: half of a surrogate pair becomes a question mark."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()


def discard(path: Path) -> None:
    """Delete a catalog with its journals."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        try:
            os.unlink(str(path) + suffix)
        except FileNotFoundError:
            pass


def _kind(error: sqlite3.Error) -> type[CatalogDamaged] | type[CatalogBusy] | None:
    """Return what an error of the library means; None for one that is a mistake in the call."""
    code = getattr(error, "sqlite_errorcode", None)
    text = str(error)
    if code is None:
        # Raised by the module itself, for text that is not UTF-8.
        return CatalogDamaged if "decode" in text.lower() else None
    if code == _SHORT_READ or code & 0xFF in _DAMAGED:
        return CatalogDamaged
    if code & 0xFF in _TRANSIENT:
        return CatalogBusy
    return CatalogDamaged if "no such table" in text or "malformed" in text else None
