"""What the last look saw when every file stood as the catalog has it: the next process compares bytes, not rows.

Only a shortcut: a missing or torn file, another catalog or another order of the folder's entries just costs the comparison
with the catalog itself. Read and written without a lock; it says which state of the catalog it belongs to."""

from __future__ import annotations

import marshal
import os
from collections.abc import Collection
from pathlib import Path

from mdmem.index.catalog import Catalog
from mdmem.notes.scan import Numbers

NAME = "last-look"
_FORM = 2  # of marshal: without references, so that equal values give equal bytes


def stamp(catalog: Catalog) -> bytes:
    """Return what names the state of a catalog; to be asked for before its rows are read."""
    return f"{catalog.meta('epoch')} {catalog.changed()}\n".encode()


def same(folder: Path, state: bytes, stats: Collection[Numbers]) -> bool:
    """Tell whether the files are those of the last look, and the catalog is the one that agreed with them."""
    try:
        with open(folder / NAME, "rb") as stream:
            if stream.read(len(state)) != state:
                return False
            return stream.read() == marshal.dumps(list(stats), _FORM)
    except OSError:
        return False


def keep(folder: Path, state: bytes, stats: Collection[Numbers]) -> None:
    """Write down a look that found nothing to do; where that cannot be written, nothing is lost."""
    fresh = folder / f"{NAME}.{os.getpid()}"
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(state + marshal.dumps(list(stats), _FORM))
        os.replace(fresh, folder / NAME)
    except OSError:
        fresh.unlink(missing_ok=True)
