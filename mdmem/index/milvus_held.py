"""Notes that the shared index holds, put into a small catalog in memory: for a question, and to know what a push takes away.

What a row holds is data of whoever wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from sqlite3 import Error as SqlError
from typing import Any

from mdmem.index.catalog import MemoryCatalog
from mdmem.index.edges import OK, look_up
from mdmem.index.flush import text_rows
from mdmem.index.milvus import stretch, unreadable
from mdmem.index.segment import Row

Note = tuple[str, str]  # repository and note, as the engine names them
# Columns of a note that are taken from the engine: whoever may write there names no others.
_COLUMNS = (
    *("id", "kind", "type", "category", "title", "summary", "scope", "agent", "device", "session", "status", "priority"),
    *("tier", "pinned", "importance", "initiative", "due", "expires", "valid_from", "valid_until", "fact_key", "created"),
    *("updated", "sha", "state", "body_line", "size", "fields"),
)


def opened(row: dict[str, Any]) -> dict[str, Any]:
    """Return what a row of the engine holds, read once. Raises SharedDown."""
    if "opened" not in row:
        row["opened"] = stretch(row["row"])
        if not isinstance(row["opened"], dict) or not isinstance(row["opened"].get("text"), str):
            raise unreadable(TypeError("a row without a text"))
    found: dict[str, Any] = row["opened"]
    return found


class Held:
    """Notes with all their windows. `windows`: (repository, note, number) → the rowid here; `vectors`: rowid → vector."""

    def __init__(self, whole: Mapping[Note, Mapping[int, dict[str, Any]]]) -> None:
        """`whole`: note → number of the window → the engine's row. Raises SharedDown when they are not as we write them."""
        self.catalog = MemoryCatalog("shared")
        self.vectors: dict[int, Any] = {}
        self.windows: dict[tuple[str, str, int], int] = {}
        self.count = len(whole)
        try:
            self._put(whole)
        except (LookupError, TypeError, ValueError, AttributeError, SqlError) as error:
            raise unreadable(error) from error

    def _put(self, whole: Mapping[Note, Mapping[int, dict[str, Any]]]) -> None:
        notes: list[tuple[Any, ...]] = []
        tags: list[tuple[int, str]] = []
        names: list[tuple[str, int, int]] = []
        windows: list[tuple[Any, ...]] = []
        edges: list[tuple[int, list[Any]]] = []
        for rowid, (key, parts) in enumerate(whole.items(), 1):
            texts = {number: opened(row) for number, row in sorted(parts.items())}
            columns, tagged, named, pointing = texts[0]["note"]
            label = texts[0]["repo"]
            notes.append((rowid, label, f"{label}: {columns['path']}", *(columns.get(column) for column in _COLUMNS)))
            tags += [(rowid, tag) for tag in tagged]
            names += [(name, how, rowid) for name, how in named]
            edges += [(rowid, edge) for edge in pointing]
            for number, one in texts.items():
                place = len(windows) + 1
                window = (number, one["heading"], one["text"], *one["lines"], one["hash"], bool(one["wide"]))
                windows.append((place, rowid, *window))
                self.windows[(*key, number)] = place
                if parts[number]["script"] and "meaning" in parts[number]:
                    self.vectors[place] = parts[number]["meaning"]
        marks = ", ".join("?" * (3 + len(_COLUMNS)))
        with self.catalog.writing() as connection:
            connection.executemany(f"INSERT INTO notes (rowid, folder, path, {', '.join(_COLUMNS)}) VALUES ({marks})", notes)
            connection.executemany("INSERT OR IGNORE INTO tags (note, tag) VALUES (?, ?)", tags)
            connection.executemany("INSERT OR IGNORE INTO names (key, how, note) VALUES (?, ?, ?)", names)
            connection.executemany(
                "INSERT INTO windows (rowid, note, ord, heading, text, start_line, end_line, hash, wide) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                windows,
            )
            self._join(connection, notes, edges)

    def _join(self, connection: Connection, notes: Sequence[tuple[Any, ...]], edges: Sequence[tuple[int, list[Any]]]) -> None:
        """Put the edges between the notes that are here; each means a note of its own repository."""
        of_repo: dict[str, set[int]] = {}
        for rowid, label, *_ in notes:
            of_repo.setdefault(label, set()).add(rowid)
        found = []
        for rowid, (rel, target, key, last, origin, line) in edges:
            label, path = notes[rowid - 1][1:3]
            ends, state = look_up(connection, key, path, of_repo[label])
            if state == OK and ends[0] != rowid:
                found.append((rowid, rel, target, key, last, ends[0], origin, line, state))
        connection.executemany("INSERT INTO edges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", found)

    def rows(self) -> list[Row]:
        """Return the windows as the text index takes them, in the order of their rowids."""
        return self.catalog.read(lambda connection: text_rows(connection, range(1, self.count + 1)))
