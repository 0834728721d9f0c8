"""The index as it would have been at a commit: rows, words and vectors of files that did not change since are reused.

Only what differs is read from git and parsed, into a catalog and a segment in memory. Nothing is written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mdmem.clock import stamp
from mdmem.index import edges, resolve
from mdmem.index.catalog import MemoryCatalog, listed
from mdmem.index.changes import Source
from mdmem.index.flush import overlay, text_rows
from mdmem.index.fold_in import Names, put
from mdmem.index.score import Corpus, TextHits
from mdmem.index.text import query_words
from mdmem.index.vectors import VectorsDamaged
from mdmem.notes.note import load
from mdmem.notes.scan import MAX_BYTES, SKIPPED, FileStat

if TYPE_CHECKING:
    from datetime import datetime

    from mdmem.index.dense import Dense
    from mdmem.index.home import Home
    from mdmem.index.index import Index
    from mdmem.index.language import Level
    from mdmem.index.segment import Row

Read = Callable[[Iterable[str]], Mapping[str, bytes]]
T = TypeVar("T")


class View:
    """The notes of one commit, with the reading half of Index: catalog, text_hits, vector_search, note_by, neighbours.

    Rowids of notes that are the same now are those of the index; all others are its own."""

    def __init__(
        self, index: Index, rev: str, tree: Mapping[str, str], read: Read, moment: datetime | None = None, part: bool = False
    ) -> None:
        """`tree`: path in the store → blob id; `read`: blob ids → bytes; `moment`: no date may lie behind it; `part`: the tree
        is a part of the commit's, and nothing is searched."""
        self.index = index
        self.rev = rev
        self.tree = {path: blob for path, blob in tree.items() if is_note(path)}
        self._read = read
        catalog = index.catalog
        self._changes = catalog.changed()
        self.catalog = MemoryCatalog(f"{catalog.meta('epoch')}@{rev}")
        among, values = (" WHERE path IN (SELECT value FROM json_each(?))", [listed(self.tree)]) if part else ("", [])
        now = catalog.rows(f"SELECT rowid, path, blob, folder FROM notes{among}", values)
        same = {row["path"]: row["rowid"] for row in now if row["folder"] == "" and self.tree.get(row["path"]) == row["blob"]}
        kept = set(same.values())
        self.hidden = {row["rowid"] for row in now} - kept
        self.catalog.copy_from(catalog, kept)
        self._fresh = self._add([path for path in self.tree if path not in same])
        if moment is not None:
            with self.catalog.writing() as connection:
                for column in ("created", "updated"):
                    connection.execute(f"UPDATE notes SET {column} = ? WHERE {column} > ?", (stamp(moment), stamp(moment)))
        self._corpus: tuple[frozenset[int], Corpus] | None = None

    def _add(self, paths: list[str]) -> list[int]:
        """Parse what differs, and look up again the edges whose targets came or went; returns the new rowids."""
        names = Names()
        names.gone |= self.hidden
        gone = self.index.catalog.rows("SELECT key, note FROM names") if self.hidden else []
        names.keys.update(row["key"] for row in gone if row["note"] in self.hidden)
        source = Source("", "", self.index.sources[0].folder)
        added = []
        data = self._read(self.tree[path] for path in paths)
        with self.catalog.writing() as connection:
            for path in sorted(paths):
                content = data.get(self.tree[path])
                if content is not None:
                    note = load(path, content[:MAX_BYTES])
                    added.append(put(connection, source, note, FileStat(path, len(content), 0, 0, 0), 0, None, names))
            edges.resolve_again(connection, names.keys, names.gone)
        return added

    def current(self) -> bool:
        """Tell whether the index still is what this view was made from."""
        return self._changes == self.index.catalog.changed()

    def rows(self) -> list[Row]:
        """Return the windows as the text index takes them."""
        notes = [row["rowid"] for row in self.catalog.rows("SELECT rowid FROM notes")]
        return self.catalog.read(lambda connection: text_rows(connection, notes))

    def corpus(self, without: frozenset[int] = frozenset()) -> Corpus:
        """Return the windows of the commit as one searchable corpus; `without`: see Index.corpus."""
        if self._corpus is None or self._corpus[0] != without:
            waiting, rows = overlay(self.index.catalog)
            fresh = [row for row in rows if row.note not in self.hidden and row.note not in without]
            new = [note for note in self._fresh if note not in without]
            fresh += self.catalog.read(lambda connection: text_rows(connection, new))
            self._corpus = without, self.index.text.corpus(self.hidden | set(waiting) | without, fresh)
        return self._corpus[1]

    def text_hits(
        self,
        query: str | Sequence[tuple[str, float]],
        allowed: Collection[int] | None = None,
        limit: int = 50,
        without: frozenset[int] = frozenset(),
    ) -> TextHits:
        """Return the best windows by BM25F; see Index.text_hits."""
        words = query_words(query) if isinstance(query, str) else list(query)
        return self.index.text.search(self.corpus(without), words, allowed, limit)

    def text_search(self, query: str, allowed: Collection[int] | None = None, limit: int = 50) -> list[tuple[int, float]]:
        """Return (window rowid, BM25F score), best first."""
        return [(hit.window, hit.score) for hit in self.text_hits(query, allowed, limit).hits]

    def syntax_hits(
        self, query: str, allowed: Collection[int] | None = None, limit: int = 50, without: frozenset[int] = frozenset()
    ) -> TextHits:
        """Return the windows that a query in Whoosh's language fits. Raises UsageError."""
        from mdmem.index.syntax import search

        return search(self, query, allowed, limit, without)

    def vector_search(
        self, query: Any, allowed: Collection[int] | None = None, limit: int = 50, script: bool | None = None
    ) -> list[tuple[int, float]]:
        """Return (window rowid, cosine), best first; windows that were never embedded are not among them."""
        vector = self._vector(query)
        if vector is None:
            return []
        return self._near(lambda dense: dense.search(self.catalog, vector, allowed, limit, script), [])

    def cosines(self, query: Any, wanted: Sequence[int]) -> dict[int, float]:
        """Return {window rowid: cosine}; see Index.cosines."""
        vector = self._vector(query)
        return {} if vector is None else self._near(lambda dense: dense.cosines(self.catalog, vector, wanted), {})

    def two_scripts(self, allowed: Collection[int] | None = None, least: int = 1) -> bool:
        """Tell whether there are windows of both kinds of script; see Index.two_scripts."""
        try:
            return self.index.dense.two_scripts(self.catalog, allowed, least)
        except VectorsDamaged as error:
            self.index.notices.append(f"{error}; searching by words only")
            return False

    def level(self, query: Any, asked: bool, allowed: Collection[int] | None = None) -> Level | None:
        """Return what evens out a question's cosines to windows of two scripts; see Index.level."""
        return self._near(lambda dense: dense.level(self.catalog, query, asked, allowed), None)

    def window_vectors(self, wanted: Sequence[int]) -> dict[int, Any]:
        """Return {window rowid: its vector}; see Index.window_vectors."""
        return self._near(lambda dense: dense.window_vectors(self.catalog, wanted), {})

    def _vector(self, query: Any) -> Any:
        return self.index.dense.question(query) if isinstance(query, str) else query

    def _near(self, work: Callable[[Dense], T], without: T) -> T:
        """Return work(vectors), or `without` when they are damaged: today's index makes them anew."""
        try:
            return work(self.index.dense)
        except VectorsDamaged as error:
            self.index.notices.append(f"{error}; searching by words only")
            return without

    def note_by(self, reference: str) -> sqlite3.Row:
        """Return the row of a note as it was; raises NotFound, Ambiguous."""
        return resolve.note_by(self.catalog, reference)

    def neighbours(
        self,
        notes: int | Iterable[int],
        depth: int = 1,
        rel: Iterable[str] | None = None,
        direction: str = "both",
        limit: int | None = None,
        links: bool = True,
    ) -> list[edges.Neighbour]:
        """Return the notes within `depth` edges as they were; see edges.neighbours."""
        start = [notes] if isinstance(notes, int) else list(notes)
        return edges.neighbours(self.catalog, start, depth, rel, direction, limit, links)

    def read_bytes(self, row: sqlite3.Row) -> bytes:
        """Return the bytes of a note as they were."""
        blob = self.tree[str(row["path"])]
        return self._read([blob])[blob]

    def texts(self, paths: Iterable[str]) -> list[str]:
        """Return the texts of notes as they were, in this order."""
        wanted = [self.tree[path] for path in paths]
        read = self._read(dict.fromkeys(wanted))
        return [read[blob].decode("utf-8", "replace") for blob in wanted]


def is_note(path: str) -> bool:
    """Tell whether a path of a commit would be indexed as a note."""
    parts = path.split("/")
    return path[-3:].lower() == ".md" and not any(part.startswith(".") or part in SKIPPED for part in parts)


def path_in(home: Home, path: str) -> str | None:
    """Return a path of a commit as one of the store's notes, None when it is none."""
    inner = home.from_git(path)
    if inner is None or not any(not owned or inner.startswith(owned.rstrip("/") + "/") for owned in home.owned):
        return None
    return inner if is_note(inner) else None


def view_at(index: Index, rev: str, moment: datetime | None = None) -> View:
    """Return the view of a commit of the store's repository. Raises GitFailed."""
    from mdmem.repo.history import blobs, tree_at

    home = index.store
    tree = {}
    for path, blob in tree_at(home.git, rev).items():
        inner = path_in(home, path)
        if inner is not None:
            tree[inner] = blob
    return View(index, rev, tree, lambda wanted: blobs(home.git, wanted), moment)


def part_at(index: Index, rev: str, tree: Mapping[str, str]) -> View:
    """Return a view of some notes of a commit (path in the store → blob id), to read and not to search. Raises GitFailed."""
    from mdmem.repo.history import blobs

    return View(index, rev, tree, lambda wanted: blobs(index.store.git, wanted), part=True)
