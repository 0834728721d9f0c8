"""Checks of the place: files, names, links, nested repositories, disk, clock, index, model, trust."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from mdmem.clock import read_stamp
from mdmem.doctor.finding import ERROR, NOTE, OK, WARNING, Finding, Look
from mdmem.errors import MdmemError, typed

LITTLE = 200 * 1024 * 1024  # bytes of free disk below which it is said
SKEW = timedelta(minutes=10)


def trusted(look: Look) -> Iterator[Finding]:
    """The store is trusted here, and knows its id."""
    store = look.store
    if (hindrance := store.location.hindrance) is not None:
        yield Finding("settings", ERROR, str(hindrance), hindrance.hint)
    elif not store.trusted:
        command = typed("mdmem", "-C", store.root, "trust")
        yield Finding("trust", WARNING, "the store is not trusted on this machine: it is only read", command)
    elif not store.location.store_id:
        yield Finding("trust", WARNING, ".mdmem.toml has no store id", "mdmem trust")


def notes(look: Look) -> Iterator[Finding]:
    """Every note parses and validates, has its own id, and can be named on every system."""
    from mdmem.memory.check import check

    _, found = check(look.store)
    for (code, fails), count in Counter((f.code, f.fails) for f in found).most_common():
        first = next(f for f in found if (f.code, f.fails) == (code, fails))
        text = f"{count} × {code}, such as {first.path}:{first.line}: {first.message}"
        yield Finding(f"note-{code.replace('_', '-')}", ERROR if fails else NOTE, text, "mdmem check")


def leftovers(look: Look) -> Iterator[Finding]:
    """No temporary file of a killed command is left."""
    folder = look.store.folder
    for _ in folder.scan():
        pass
    left = folder.last_scan.leftovers
    if left and look.store.trusted:

        def mend() -> str:
            return f"{len(folder.sweep())} temporary files removed"

        text = f"{len(left)} temporary files of commands that were killed"
        yield Finding("leftovers", NOTE, text, "mdmem doctor --fix", mend)


def embedded(look: Look) -> Iterator[Finding]:
    """No repository or link hides in the tracked tree."""
    listed = look.store.git.run("ls-files", "-s", "-z", read=True, timeout=60).fields()
    kinds = {"120000": ("tracked-link", "links"), "160000": ("submodule", "submodules")}
    for mode, (code, word) in kinds.items():
        names = [line.partition("\t")[2] for line in listed if line.startswith(mode)]
        if names:
            text = f"{len(names)} {word} in the repository, which mdmem does not follow: {names[0]}"
            yield Finding(code, NOTE, text, typed("git", "-C", look.store.root, "ls-files", "-s"))
    paths = {line.partition("\t")[2] for line in listed}
    heads = [path[: -len("HEAD")] for path in paths if path.endswith("/HEAD")]
    for folder in heads:
        if f"{folder}config" in paths:
            text = f"{folder} looks like a repository inside the repository; commands of git in it would obey its config"
            yield Finding("embedded-repository", ERROR, text, f"look at '{folder}config'")


def disk(look: Look) -> Iterator[Finding]:
    """There is room to write."""
    free = shutil.disk_usage(look.store.root).free
    if free < LITTLE:
        yield Finding("disk", ERROR, f"only {free // (1024 * 1024)} MB are free on this disk", "make room")


def clock(look: Look) -> Iterator[Finding]:
    """No note is dated in the future, which would make it win over newer ones."""
    from mdmem.recall.select import nameable

    now = look.store.clock.now()
    rows = look.store.index.catalog.rows("SELECT path, updated FROM notes WHERE folder = '' ORDER BY updated DESC LIMIT 20")
    may_name = nameable(look.store)
    rows = [row for row in rows if may_name(row["path"])]
    late = [row["path"] for row in rows if (moment := read_stamp(row["updated"] or "")) and moment - now > SKEW]
    if late:
        text = f"{len(late)} notes are dated in the future, such as {late[0]}: this machine's clock or another's is wrong"
        yield Finding("clock", WARNING, text, "look at the clock of each machine")


def index(look: Look) -> Iterator[Finding]:
    """The index agrees with the files."""
    from mdmem.recall.select import agent_scopes, hidden

    store = look.store
    restricted = agent_scopes(store) is not None
    closed: frozenset[int] = frozenset()
    try:
        store.index.refresh(embed_budget_s=0.0)
        closed = hidden(store)
        wrong = store.index.verify(closed)
    except MdmemError as error:
        wrong = [str(error)]
    if wrong:

        def mend() -> str:
            store.index.rebuild("all")
            store.index.refresh(embed_budget_s=0.0)
            return "the index was built again"

        yield Finding("index", WARNING, f"the index does not agree with the files: {wrong[0]}", "mdmem index rebuild", mend)
    else:
        waiting = int(store.index.status(closed if restricted else None).get("waiting_for_vectors", 0))
        yield Finding("index", OK, "the index agrees with the files")
        if waiting:
            yield Finding("vectors", NOTE, f"{waiting} passages wait for a vector", "mdmem index refresh")


def model(look: Look) -> Iterator[Finding]:
    """The embedding model is there and whole."""
    from mdmem.index.embed import load_embedder

    store = look.store
    if str(store.config.get("embedding.backend")) in ("none", "off"):
        text = "no embedding model is configured: search by words only"
        yield Finding("model", NOTE, text, "mdmem config unset embedding.backend")
        return
    try:
        # In an empty folder nothing counts as looked at before: every file is read and hashed.
        with tempfile.TemporaryDirectory() as empty:
            load_embedder(store.config, Path(empty))
        yield Finding("model", OK, "the embedding model is whole")
    except MdmemError as error:
        yield Finding("model", ERROR, f"the embedding model cannot be used: {error}", error.hint or "install mdmem again")


def settings(look: Look) -> Iterator[Finding]:
    """The settings can be read, and the repository names nothing that it may not."""
    for text in look.store.notices:
        yield Finding("settings", WARNING, text, "mdmem config list")


CHECKS = (trusted, settings, disk, notes, leftovers, embedded, clock, index, model)
