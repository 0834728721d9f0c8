"""What a language model said of pairs that wait for review: kept on this device, so that no pair is asked about twice."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from mdmem.locate import write_private

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mdmem.notes.note import Note
    from mdmem.store import Store

KEPT = 2000
FILE = "opinions.json"


def read(store: Store) -> dict[str, str]:
    """Return {pair: word}; {} when nothing was asked or the file is damaged."""
    try:
        data = json.loads((store.common_state_dir / FILE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    rows = data.items() if isinstance(data, dict) else ()
    return {pair: word for pair, word in rows if isinstance(word, str)}


def word_on(known: Mapping[str, str], newer: Note, older: Note) -> str | None:
    """Return the word on a pair, None where there is none on these texts."""
    return known.get(_pair(newer, older))


def keep(store: Store, newer: Note, words: Iterable[tuple[Note, str]]) -> None:
    """Keep the words on a newer note beside older ones. Losing them costs a question, so failures are silent."""
    rows = [*read(store).items(), *((_pair(newer, older), word) for older, word in words)]
    try:
        write_private(store.common_state_dir / FILE, json.dumps(dict(rows[-KEPT:]), indent=0).encode())
    except OSError:
        return


def _pair(newer: Note, older: Note) -> str:
    texts = sha256(f"{newer.body.strip()}\0{older.body.strip()}".encode("utf-8", "replace")).hexdigest()[:16]
    return f"{newer.id} {older.id} {texts}"
