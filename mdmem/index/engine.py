"""The seam to a text engine: what the rest of the index may ask of one, and which one the user has chosen.

Two functions carry the work: `update` with a batch of changed notes, `search` with query, filter and limit; `health` says
whether it can be asked. All else is housekeeping. Every engine gets the terms of our analyzer and gives the scores of
`score.py`, so that a note's rank does not depend on the engine. Knows no catalog and no files of notes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mdmem.config import Config
    from mdmem.index.score import Corpus, TextHits
    from mdmem.index.segment import Row, Segment


@dataclass(frozen=True)
class Health:
    """What an engine says of itself; `trouble` is empty when it can be asked."""

    engine: str
    windows: int = 0
    segments: int = 0
    trouble: str = ""


class TextEngine(Protocol):
    """A text index in a folder, for the rowids of one catalog. Writers hold the index lock.

    Any fault becomes TextIndexDamaged, and the caller rebuilds."""

    def update(self, gone: Collection[int], rows: Iterable[Row], merge: bool = False) -> None:
        """Delete the windows of the notes in `gone`, add `rows`, in one commit; a note to be replaced is in both."""

    def search(self, corpus: Corpus, words: list[tuple[str, float]], allowed: Collection[int] | None, limit: int) -> TextHits:
        """Return the best `limit` windows for (term, weight) pairs among the notes in `allowed` (None: all)."""

    def health(self) -> Health:
        """Return the state of the engine; never raises."""

    def corpus(self, gone: Collection[int] = (), fresh: Iterable[Row] = (), stamp: Any = None) -> Corpus:
        """Return what is searched: all that was written, without the notes in `gone`, with the windows `fresh` on top."""

    def kept(self, stamp: Any) -> Corpus | None:
        """Return the corpus made last, when neither the index nor `stamp` has changed since."""

    def create(self) -> None:
        """Make it empty, in the place of whatever is there."""

    def exists(self) -> bool:
        """Tell whether there is one of this engine (not whether it is sound)."""

    def replaced(self) -> bool:
        """Tell whether another process has written since the last look."""

    def segments(self) -> Sequence[Segment]:
        """Return everything that was written, for checks and for the query language."""

    def scattered(self) -> bool:
        """Tell whether a bulk load has left several large segments, which are merged at once."""

    def worn(self) -> bool:
        """Tell whether merging pays."""

    def renew(self) -> bool:
        """Tell whether it holds so much of notes that are gone that all notes are to be written again, and make it ready."""

    def optimize(self) -> bool:
        """Merge; returns False when there was nothing to do."""


def text_engine(config: Config, folder: Path, epoch: str) -> tuple[TextEngine, str]:
    """Return the engine of `index.engine` and a notice, empty unless it is not the one that was chosen."""
    from mdmem.index.text import TextIndex

    chosen = str(config.get("index.engine")).strip().lower()
    if chosen == "tantivy":
        if find_spec("tantivy") is not None:
            from mdmem.index.tantivy_text import TantivyText

            return TantivyText(folder, epoch), ""
        notice = 'index.engine is tantivy, which is not installed; using whoosh (to get it: pip install "mdmem[tantivy]")'
        return TextIndex(folder, epoch), notice
    return TextIndex(folder, epoch), ""
