"""The parts of a store's index, kept alive: catalog, text index, vectors, and what was seen of the files.

They are derived: a part that turns out to be damaged is built again from the files, or from the part below it. With
`rebuilds` off (hooks, requests to the warm process) that is left to the next command. What the index is asked
for stands in `index.index`, which is this with doors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mdmem.errors import Locked, MdmemError, UsageError
from mdmem.index.catalog import Catalog, CatalogDamaged
from mdmem.index.changes import Known, Source, Tell
from mdmem.index.engine import TextEngine, text_engine
from mdmem.index.flush import flush, queue_all, queued
from mdmem.index.home import Home, state_places
from mdmem.index.refresh import Refreshed, index_lock, refresh, sources_of
from mdmem.index.text import TextIndexDamaged
from mdmem.index.versions import PARSER, WINDOWS
from mdmem.index.watch import Lookout

if TYPE_CHECKING:
    from mdmem.index.asof import View
    from mdmem.index.dense import Dense

PARTS = ("all", "catalog", "text", "vectors")
HEADER = {"parser": PARSER, "windows": WINDOWS}
BULK = 1_000  # notes written at once that make it worth merging the large segments
EMBED_SECONDS = 0.5  # what a command that did not ask for more spends on vectors

T = TypeVar("T")


class Parts:
    """One store's parts. Nothing is opened before it is used; used from several threads, calls take turns."""

    def __init__(self, store: Home) -> None:
        self.store = store
        self.rebuilds = True
        self.notices: list[str] = []
        self.mutex = threading.RLock()
        self.locked = False
        self.known = Known()
        self.lookout = Lookout()
        self._catalog: Catalog | None = None
        self._text: TextEngine | None = None
        self._fresh = False
        # Another process was writing at the last refresh, so that the newest files may be missing.
        self.behind = False
        self._view: View | None = None

    # -- one by one

    @cached_property
    def _places(self) -> tuple[Path, Path]:
        return state_places(self.store)

    @property
    def state_dir(self) -> Path:
        """The folder of catalog, text index and vectors."""
        return self._places[0]

    @property
    def lock_path(self) -> Path:
        """The lock of all writers of the index."""
        return self._places[1] / "index.lock"

    @cached_property
    def sources(self) -> list[Source]:
        """The trees of notes that are indexed."""
        return sources_of(self.store)

    @cached_property
    def dense(self) -> Dense:
        """The vectors; loaded on first use, since a search by words does without."""
        from mdmem.index.dense import Dense

        return Dense(self.store.config, self.state_dir)

    @property
    def catalog(self) -> Catalog:
        """The catalog, made anew when it is absent or damaged (a notice says so). Raises CatalogBusy."""
        if self._catalog is not None and self._catalog.replaced():
            self._drop()
        if self._catalog is None:
            path = self.state_dir / "catalog.db"
            try:
                self._catalog = Catalog(path, HEADER)
            except FileNotFoundError:
                self._catalog = self._make_catalog("")
            except CatalogDamaged as error:
                self._catalog = self._make_catalog(f"{error}; it is built again from the files")
        return self._catalog

    def _make_catalog(self, notice: str) -> Catalog:
        path = self.state_dir / "catalog.db"
        with index_lock(self, 10.0):
            try:
                return Catalog(path, HEADER)  # another process was quicker
            except (FileNotFoundError, CatalogDamaged):
                pass
            if notice:
                self.notices.append(notice)
            made = Catalog.create(path, HEADER)
            self._text = None
            return made

    def close(self) -> None:
        """Give back descriptors and what is kept in memory; used again, it opens again.

        This object stands in circles (store, view), so without it they would be held until Python's collector runs."""
        with self.mutex:
            self._drop()

    def rest(self) -> None:
        """Give back the memory of the vectors while nobody asks; they are found again by themselves."""
        if "dense" in self.__dict__:
            self.dense.rest()

    def _drop(self) -> None:
        if self._catalog is not None:
            self._catalog.close()
        self._catalog = None
        self._text = None
        self._view = None
        self.known.forget()
        self.lookout.close()
        if "dense" in self.__dict__:
            self.dense.forget()

    @property
    def text(self) -> TextEngine:
        """The text index of this catalog, on the engine of the user's choice."""
        if self._text is None:
            made, notice = text_engine(self.store.config, self.state_dir / "text", self.catalog.meta("epoch") or "")
            self._text = made
            if notice:
                self.notices.append(notice)
        return self._text

    def start_text(self) -> None:
        """Make an empty text index and queue every note for it. The caller holds the lock."""
        queue_all(self.catalog)
        self.text.create()

    def flush(self, deadline: float | None = None, tell: Tell | None = None) -> int:
        """Write waiting notes into the text index, rebuilding a damaged one; returns how many. The caller holds the lock.

        What a first build or a large pull left in many pieces is merged at once: it took long anyway."""
        try:
            written = flush(self.catalog, self.text, deadline, tell)
        except TextIndexDamaged as error:
            self.notices.append(f"{error}; it is built again from the catalog")
            self.start_text()
            written = flush(self.catalog, self.text, deadline, tell)
        if written >= BULK and deadline is None and self.text.scattered():
            self.text.optimize()
        return written

    def clear_vectors(self, error: MdmemError | None = None) -> str:
        """Delete the vectors; returns the notice. They are made again by the following commands."""
        import shutil

        with index_lock(self, 10.0):
            self.dense.forget()
            shutil.rmtree(self.state_dir / "vectors", ignore_errors=True)
        return f"{error or 'vectors were deleted'}; they are made again, meanwhile search goes by words"

    # -- keeping up

    def refresh(
        self,
        budget_s: float | None = None,
        embed_budget_s: float | None = EMBED_SECONDS,
        progress: Tell | None = None,
        paths: Iterable[str] | None = None,
        wait_s: float = 2.0,
    ) -> Refreshed:
        """Fold in every file that changed outside, and embed what lacks a vector; returns what was done.

        `budget_s`: seconds for reading files (None: all of them). `embed_budget_s`: seconds for vectors (None: all, 0: none).
        `paths`: look at these alone (as they stand in the catalog). `wait_s`: how long to wait for another writer.
        `progress(done, total, what)` is called between batches. Never raises for a damaged part: it is rebuilt."""
        named = list(paths) if paths is not None else None

        def work() -> Refreshed:
            return refresh(self, budget_s, embed_budget_s, progress, named, wait_s)

        with self.mutex:
            out = self.mended(work)
            self._fresh, self.behind = True, out.busy
            out.notices = [*self.take_notices(), *out.notices]
            return out

    def take_notices(self) -> list[str]:
        """Return what a person should know about repairs, and forget it."""
        told, self.notices = list(dict.fromkeys(self.notices)), []
        return told

    def brought_up(self) -> Catalog:
        """Return the catalog, brought up to the files once in the life of this object."""
        if not self._fresh and self.rebuilds:
            notices = self.refresh(embed_budget_s=0.0).notices
            self.notices += notices
        return self.catalog

    # -- what is done when one is damaged

    def mended(self, work: Callable[[], T]) -> T:
        """Return work(); when the catalog turns out to be damaged, it is rebuilt and the work done once more."""
        try:
            return work()
        except CatalogDamaged as error:
            if not self.rebuilds:
                raise
            self._replace_catalog(f"{error}; it is built again from the files")
        return work()

    def _replace_catalog(self, notice: str) -> None:
        with index_lock(self, 10.0):
            self._drop()
            self.notices.append(notice)
            self._catalog = Catalog.create(self.state_dir / "catalog.db", HEADER)

    def rebuild_text(self, error: TextIndexDamaged) -> None:
        """Build the damaged text index again, unless another process did or does. A notice says which."""
        try:
            with index_lock(self, 10.0):
                if not self.text.replaced():
                    self.notices.append(f"{error}; it is built again from the catalog")
                    self.start_text()
                    self.flush()
        except Locked:
            self.notices.append("another mdmem process is rebuilding the text index")

    def lost_vectors(self, error: MdmemError) -> None:
        """Delete damaged vectors (never those that only could not be read); a notice says that words are left."""
        if self.rebuilds and error.code != "vectors_unreadable":
            self.notices.append(self.clear_vectors(error))
        else:
            self.notices.append(f"{error}; searching by words only")

    # -- care

    def rebuild(self, part: str = "all") -> None:
        """Throw away a part (all, catalog, text, vectors); the next refresh makes it anew. Raises UsageError, Locked."""
        if part not in PARTS:
            raise UsageError(f"the index has no part {part!r}", why=f"it is one of {', '.join(PARTS)}")
        with self.mutex, index_lock(self, 30.0):
            if part in ("all", "catalog"):
                self._drop()
                self._catalog = Catalog.create(self.state_dir / "catalog.db", HEADER)
            if part in ("all", "catalog", "text"):
                self.start_text()
            if part in ("all", "vectors"):
                self.clear_vectors()
            self._fresh = False

    def maintain(self, thorough: bool = False) -> bool:
        """Do what is kept off the hot path: write the queue, merge segments once they are many, drop unused vectors.

        `thorough`: merge all segments into one. Returns whether anything was done. Raises Locked."""
        with self.mutex, index_lock(self, 10.0):
            if self._outgrown():
                queue_all(self.catalog)
            written = self.flush() if queued(self.catalog)[0] else 0
            merged = (thorough or self.text.worn()) and self.text.optimize()
            return bool(written or merged or self.dense.compact(self.catalog))

    def _outgrown(self) -> bool:
        """Tell whether the text index is to be written anew; a damaged one is not, the next search finds that out."""
        try:
            return self.text.exists() and self.text.renew()
        except TextIndexDamaged:
            return False
