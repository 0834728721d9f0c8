"""The quick way of `mdmem recall`: the common forms of its command line, answered by the warm process, without loading click,
which takes longer than all the rest. Whatever is not plain (other options, help, an error, several stores, no warm process)
is left to the command itself, before anything was printed."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mdmem.recall.hit import Recall
    from mdmem.store import Store

MODES = {"--keyword": "keyword", "--semantic": "semantic", "--hybrid": "hybrid"}
NUMBERS = {"--limit": 1000, "-n": 1000, "--budget": 1_000_000}  # the option, and up to which number it is read here
# Seconds after which a warm process that did not answer is not asked a second time.
LATE = 1.0


class Plain(NamedTuple):
    """A command line that is understood here."""

    words: list[str]
    directory: str | None = None
    mode: str = "hybrid"
    limit: int | None = None
    budget: int | None = None
    explain: bool = False
    as_json: bool = False


def plain(args: list[str]) -> Plain | None:
    """Return what a command line asks for, None where click is to read it."""
    directory = None
    if len(args) > 2 and args[0] == "-C":
        directory, args = args[1], args[2:]
    if args[:1] != ["recall"] or directory == "":
        return None
    words: list[str] = []
    given: dict[str, str | int] = {}
    rest = iter(args[1:])
    for word in rest:
        name, value = word, word
        if word in NUMBERS:
            name, value = "--limit" if word == "-n" else word, next(rest, "")
            if not (value.isascii() and value.isdigit()) or len(value) > 7 or not 1 <= int(value) <= NUMBERS[word]:
                return None
        elif word in MODES:
            name = "mode"
        elif word.startswith("-") and word not in ("--json", "--explain"):
            return None
        if name == word and not word.startswith("-"):
            words.append(word)
        elif name in given:
            return None
        else:
            given[name] = value
    if not " ".join(words).strip():
        return None
    limit, budget = (int(given[name]) if name in given else None for name in ("--limit", "--budget"))
    mode = MODES[str(given.get("mode", "--hybrid"))]
    return Plain(words, directory, mode, limit, budget, "--explain" in given, "--json" in given)


def recall(args: list[str]) -> int | None:
    """Answer a command line by way of the warm process; returns the exit code, None when nothing was done or printed."""
    asked = plain(args)
    if asked is None or "_MDMEM_COMPLETE" in os.environ:
        return None
    try:
        answered = _answer(asked)
    except Exception:
        # The command meets the same, and knows how to say it.
        return None
    if answered is None:
        return None
    from mdmem.cli.found import show
    from mdmem.cli.printing import clean, note, settled

    store, found = answered

    def work() -> int:
        for text in dict.fromkeys(store.notices):
            note(f"note: {clean(text)}")
        show(store, found, asked.as_json)
        return 0

    return settled(work, asked.as_json)


def _answer(asked: Plain) -> tuple[Store, Recall] | None:
    """Return the store and what the warm process answered. Raises whatever opening the store raises."""
    from mdmem.warm import client

    if not client.allowed() or not client.there():
        return None
    from mdmem.federation import searched
    from mdmem.recall.query import Query
    from mdmem.store import Store
    from mdmem.warm import recalling

    store = Store.open(asked.directory)
    if asked.directory is None and not store.alone:
        stores = searched(store)
        if len(stores) != 1 or stores[0][0]:
            return None
    limit = asked.limit or int(store.config.get("recall.limit"))
    query = Query(" ".join(asked.words), limit, asked.mode, explain=asked.explain, budget=asked.budget)
    begin = time.monotonic()
    found = recalling.recall_warm(store, query)
    if found is None:
        recalling.given_up = time.monotonic() - begin > LATE
        return None
    return store, found
