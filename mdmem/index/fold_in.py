"""Folding changes into the catalog: reads the files, writes the rows. The caller holds the index lock.

Work is done in short transactions, each whole in itself: after a kill the next look finds the rest. A note whose words
changed is put into `text_queue` in the same transaction; it leaves the queue only when the text index has it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mdmem.clock import UTC, stamp
from mdmem.errors import MdmemError, NotFound
from mdmem.index.catalog import PATH, Catalog, listed
from mdmem.index.changes import Changes, Seen, Source, Tell, source_for, time_ns
from mdmem.index.edges import resolve_again, store_edges, target_key
from mdmem.index.language import wide
from mdmem.index.rows import NoteRow, row_of
from mdmem.notes.names import fold
from mdmem.notes.note import Note
from mdmem.notes.scan import FileStat, twins

BATCH_SECONDS = 0.5  # how long one transaction may take others' turn
PENDING, COMMIT, FILE, FIELD = "pending", "commit", "file", "field"


@dataclass
class Folded:
    """What was folded in; `left` files were not reached in time."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    left: int = 0
    unreadable: list[str] = field(default_factory=list)

    def any(self) -> bool:
        """Tell whether the catalog changed in a way that a person would call a change."""
        return bool(self.added or self.changed or self.removed or self.renamed)


@dataclass
class Names:
    """Names that came or went in a transaction, and notes that went: their edges are looked up again at its end."""

    keys: set[str] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)


def fold_in(catalog: Catalog, seen: Seen, changes: Changes, deadline: float | None = None, tell: Tell | None = None) -> Folded:
    """Bring the catalog up to `changes`, until the monotonic `deadline`."""
    out = Folded()
    total = len(changes.read)
    gone = _rows_of(catalog, changes.gone)
    by_sha: dict[str, list[sqlite3.Row]] = {}
    for row in gone.values():
        by_sha.setdefault(row["sha"], []).append(row)
    done = 0
    while done < total:
        if deadline is not None and time.monotonic() >= deadline:
            out.left = total - done
            break
        with catalog.writing() as connection:
            names = Names()
            until = time.monotonic() + BATCH_SECONDS
            while done < total and time.monotonic() < until:
                _one(connection, seen.sources, changes.read[done], by_sha, gone, names, out)
                done += 1
                if deadline is not None and time.monotonic() >= deadline:
                    break
            settle(connection, names)
        if tell is not None:
            tell(done, total, "notes")
    if not out.left and gone:
        # Removals come last: until every new file was read, one of them may be a rename.
        with catalog.writing() as connection:
            names = Names()
            for row in gone.values():
                forget(connection, row["rowid"], names)
                out.removed.append(row["path"])
            settle(connection, names)
    return out


def _rows_of(catalog: Catalog, paths: Iterable[str]) -> dict[str, sqlite3.Row]:
    sql = "SELECT rowid, path, sha FROM notes WHERE path IN (SELECT value FROM json_each(?)) ORDER BY path"
    return {row["path"]: row for row in catalog.rows(sql, (listed(paths),))}


def settle(connection: sqlite3.Connection, names: Names) -> None:
    if names.keys or names.gone:
        resolve_again(connection, names.keys, names.gone)
    connection.execute(
        "INSERT OR REPLACE INTO meta VALUES ('changes', 1 + coalesce((SELECT value FROM meta WHERE key = 'changes'), 0))"
    )


def _one(
    connection: sqlite3.Connection,
    sources: Sequence[Source],
    found: FileStat,
    by_sha: dict[str, list[sqlite3.Row]],
    gone: dict[str, sqlite3.Row],
    names: Names,
    out: Folded,
) -> None:
    """Read one file and bring its row up to date."""
    source = source_for(sources, found.path)
    if source is None:
        return
    checked = time_ns()
    found = _storable(found)
    try:
        note = source.read(found.path)
    except NotFound:
        return  # gone between the look and now: the next look will say so
    except (MdmemError, OSError) as error:
        _unreadable(connection, source, found, str(error))
        out.unreadable.append(found.path)
        return
    old = connection.execute("SELECT rowid, path, sha, created, dated FROM notes WHERE path = ?", (found.path,)).fetchone()
    if old is None:
        moved = by_sha.get(note.sha)
        if moved:
            before = moved.pop(0)
            gone.pop(before["path"], None)
            old = connection.execute(
                "SELECT rowid, path, sha, created, dated FROM notes WHERE rowid = ?", (before["rowid"],)
            ).fetchone()
            out.renamed.append((before["path"], found.path))
    elif old["sha"] == note.sha:
        connection.execute(
            "UPDATE notes SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, checked_ns = ? WHERE rowid = ?",
            (*found[1:], checked, old["rowid"]),
        )
        connection.execute("DELETE FROM problems WHERE note = ? AND code = 'unread_file'", (old["rowid"],))
        return
    else:
        out.changed.append(found.path)
    if old is None:
        out.added.append(found.path)
    put(connection, source, note, found, checked, old, names)


def put(
    connection: sqlite3.Connection,
    source: Source,
    note: Note,
    found: FileStat,
    checked: int,
    old: sqlite3.Row | None,
    names: Names,
) -> int:
    """Write the rows of a note, keeping its rowid and the windows that did not change; returns the rowid."""
    row = row_of(note, found.path, source.kind, source.types)
    columns = dict(row.columns, folder=source.name, checked_ns=checked)
    columns.update(zip(("size", "mtime_ns", "ctime_ns", "inode"), found[1:]))
    if source.name == "local":
        columns["scope"] = "local"
    _date(columns, source, found, old)
    marks = ", ".join(f":{name}" for name in columns)
    if old is None:
        cursor = connection.execute(f"INSERT INTO notes ({', '.join(columns)}) VALUES ({marks})", columns)
        rowid = int(cursor.lastrowid or 0)
    else:
        rowid = int(old["rowid"])
        pairs = ", ".join(f"{name} = :{name}" for name in columns)
        connection.execute(f"UPDATE notes SET {pairs} WHERE rowid = :_rowid", {**columns, "_rowid": rowid})
    words_changed = _put_names(connection, rowid, row, names)
    words_changed |= _put_tags(connection, rowid, row)
    words_changed |= _put_windows(connection, rowid, row)
    if old is not None:
        connection.execute("DELETE FROM edges WHERE src = ?", (rowid,))
        connection.execute("DELETE FROM problems WHERE note = ?", (rowid,))
    if row.edges:
        store_edges(connection, rowid, row.edges)
        names.keys.update(target_key(edge.target) for edge in row.edges)
    if row.problems:
        connection.executemany(
            "INSERT INTO problems (folder, path, note, code, message, line) VALUES (?, ?, ?, ?, ?, ?)",
            [(source.name, found.path, rowid, *problem) for problem in row.problems],
        )
    if words_changed or old is None:
        connection.execute("INSERT OR IGNORE INTO text_queue VALUES (?)", (rowid,))
    return rowid


def _date(columns: dict[str, Any], source: Source, found: FileStat, old: sqlite3.Row | None) -> None:
    """Fill in the dates that the note does not say: its file's for now; git is asked once for all of them, afterwards."""
    if columns["created"] and columns["updated"]:
        columns["dated"] = FIELD
        return
    moment = from_ns(found.mtime_ns)
    columns["dated"] = FILE if source.name else PENDING
    columns["updated"] = columns["updated"] or moment
    known = old["created"] if old is not None and old["dated"] == COMMIT else None
    columns["created"] = columns["created"] or min(known or moment, columns["updated"])


def _storable(found: FileStat) -> FileStat:
    """Return a file's numbers as SQLite can hold them, in 64 bits with a sign: some file systems number inodes beyond that, and
    a file may be dated after 2262. Such a file differs from its row at every look and is compared by content."""
    numbers = found[1:]
    if all(-(1 << 63) <= number < 1 << 63 for number in numbers):
        return found
    return FileStat(found.path, *((number + (1 << 63)) % (1 << 64) - (1 << 63) for number in numbers))


def from_ns(mtime_ns: int) -> str:
    """Return a file time as RFC 3339 UTC."""
    try:
        return stamp(datetime.fromtimestamp(mtime_ns / 1e9, UTC))
    except (ValueError, OverflowError, OSError):
        return "1970-01-01T00:00:00Z"


def _put_names(connection: sqlite3.Connection, rowid: int, row: NoteRow, names: Names) -> bool:
    before = {tuple(found) for found in connection.execute("SELECT key, how FROM names WHERE note = ?", (rowid,))}
    now = set(row.names)
    if before == now:
        return False
    names.keys.update(key for key, _ in before ^ now)
    connection.executemany(
        "DELETE FROM names WHERE key = ? AND how = ? AND note = ?", [(*name, rowid) for name in before - now]
    )
    connection.executemany("INSERT INTO names (key, how, note) VALUES (?, ?, ?)", [(*name, rowid) for name in now - before])
    return True


def _put_tags(connection: sqlite3.Connection, rowid: int, row: NoteRow) -> bool:
    before = [tag for (tag,) in connection.execute("SELECT tag FROM tags WHERE note = ? ORDER BY tag", (rowid,))]
    if before == sorted(row.tags):
        return False
    connection.execute("DELETE FROM tags WHERE note = ?", (rowid,))
    connection.executemany("INSERT INTO tags (note, tag) VALUES (?, ?)", [(rowid, tag) for tag in row.tags])
    return True


def _put_windows(connection: sqlite3.Connection, rowid: int, row: NoteRow) -> bool:
    """Replace the windows when any of them differs; returns whether the words did."""
    before = connection.execute(
        "SELECT heading, text, start_line, end_line, hash FROM windows WHERE note = ? ORDER BY ord", (rowid,)
    ).fetchall()
    now = [(w.heading, w.text, w.start_line, w.end_line, w.hash) for w in row.windows]
    if [tuple(found) for found in before] == now:
        return False
    if [(found[4], found[1]) for found in before] == [(w.hash, w.text) for w in row.windows]:
        # Only the lines moved (a field was added above): same rows, so text index and vectors stay right.
        connection.executemany(
            "UPDATE windows SET start_line = ?, end_line = ? WHERE note = ? AND ord = ?",
            [(w.start_line, w.end_line, rowid, number) for number, w in enumerate(row.windows)],
        )
        return False
    connection.execute("DELETE FROM windows WHERE note = ?", (rowid,))
    connection.executemany(
        "INSERT INTO windows (note, ord, heading, text, start_line, end_line, hash, wide) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(rowid, number, *values, wide(values[1])) for number, values in enumerate(now)],
    )
    return True


def _unreadable(connection: sqlite3.Connection, source: Source, found: FileStat, message: str) -> None:
    row = connection.execute("SELECT rowid FROM notes WHERE path = ?", (found.path,)).fetchone()
    note = row["rowid"] if row else None
    connection.execute("DELETE FROM problems WHERE path = ? AND code = 'unread_file'", (found.path,))
    connection.execute(
        "INSERT INTO problems (folder, path, note, code, message) VALUES (?, ?, ?, 'unread_file', ?)",
        (source.name, found.path, note, message),
    )


def forget(connection: sqlite3.Connection, rowid: int, names: Names) -> None:
    """Delete everything about a note; edges that led to it become dangling."""
    names.keys.update(key for (key,) in connection.execute("SELECT key FROM names WHERE note = ?", (rowid,)))
    names.gone.add(rowid)
    for table in ("tags", "windows", "names", "problems"):
        connection.execute(f"DELETE FROM {table} WHERE note = ?", (rowid,))
    connection.execute("DELETE FROM edges WHERE src = ?", (rowid,))
    connection.execute("DELETE FROM notes WHERE rowid = ?", (rowid,))
    connection.execute("INSERT OR IGNORE INTO text_queue VALUES (?)", (rowid,))


def put_remarks(catalog: Catalog, seen: Seen) -> list[str]:
    """Keep what the scan left out; returns one line for each remark that is new."""
    stored = catalog.rows(
        "SELECT folder, path, code, message FROM problems WHERE note IS NULL AND code NOT IN ('unread_file', 'twin')"
    )
    before = {tuple(row) for row in stored}
    now = {(r.folder, r.path, r.code, r.message) for r in seen.remarks}
    if before == now:
        return []
    with catalog.writing() as connection:
        connection.executemany(
            "DELETE FROM problems WHERE note IS NULL AND folder = ? AND path = ? AND code = ? AND message = ?",
            list(before - now),
        )
        connection.executemany("INSERT INTO problems (folder, path, code, message) VALUES (?, ?, ?, ?)", sorted(now - before))
    return [f"{path or os.curdir}: {message}" for _, path, _, message in sorted(now - before)]


def put_twins(catalog: Catalog, fresh: Iterable[str], removed: bool) -> list[str]:
    """Keep which paths a case-insensitive file system would take for one; returns one line for each that is new.

    All paths are compared only when one of the `fresh` ones has a twin, or when a known twin may be gone."""
    stored = catalog.rows("SELECT path, message FROM problems WHERE code = 'twin'")
    before = {row["path"]: row["message"] for row in stored}
    met = "SELECT 1 FROM names WHERE key IN (SELECT value FROM json_each(?)) AND how = ? GROUP BY key HAVING count(*) > 1"
    if not (before and removed) and catalog.value(met, (listed(fold(path) for path in fresh), PATH)) is None:
        return []
    paths = [row["path"] for row in catalog.rows("SELECT path FROM notes WHERE folder = ''")]
    now = {}
    for group in twins(paths):
        for path in group:
            others = ", ".join(other for other in group if other != path)
            now[path] = f"differs only in case or Unicode form from {others}"
    if before == now:
        return []
    with catalog.writing() as connection:
        connection.execute("DELETE FROM problems WHERE code = 'twin'")
        connection.executemany("INSERT INTO problems (path, code, message) VALUES (?, 'twin', ?)", sorted(now.items()))
    return [f"{path} {now[path]}" for path in sorted(now) if before.get(path) != now[path]]
