"""Looking after the index: what it holds, and whether it agrees with the files."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError
from mdmem.index.catalog import CatalogDamaged, listed
from mdmem.index.changes import source_for
from mdmem.index.flush import overlay, text_rows
from mdmem.index.rows import row_of
from mdmem.index.segment import Damaged, Segment, memory
from mdmem.index.text import TextIndexDamaged
from mdmem.index.vectors import VectorsDamaged

if TYPE_CHECKING:
    from mdmem.index.index import Index

SHOWN = 50  # differences listed one by one


def status(index: Index, without: frozenset[int] | None = None) -> dict[str, Any]:
    """Return the figures of `mdmem index status`.

    `without`: notes that are not there for whoever asks (None: he may see all). They are counted nowhere, and what counts for
    the index as a whole (segments, vectors, bytes) is then left out."""
    catalog = index.catalog
    gone = listed(without or ())

    def count(table: str, column: str, where: str = "1") -> Any:
        sql = f"SELECT count(*) FROM {table} WHERE ({where}) AND ({column} IS NULL OR {column} NOT IN "
        return catalog.value(sql + "(SELECT value FROM json_each(?)))", (gone,))

    def by(column: str) -> dict[str, int]:
        sql = f"SELECT {column}, count(*) FROM notes WHERE rowid NOT IN (SELECT value FROM json_each(?)) GROUP BY 1 ORDER BY 1"
        return {row[0]: row[1] for row in catalog.rows(sql, (gone,))}

    out: dict[str, Any] = {
        "notes": count("notes", "rowid"),
        "windows": count("windows", "note"),
        "edges": count("edges", "src"),
        "broken_edges": count("edges", "src", "state != 'ok'"),
        "states": by("state"),
        "folders": by("folder"),
        "problems": count("problems", "note", "1" if without is None else "note IS NOT NULL"),
        "waiting_for_words": count("text_queue", "note"),
    }
    if without is not None:
        # An edge to a note that is not there dangles.
        broken = "state = 'ok' AND dst IN (SELECT value FROM json_each(?)) AND src NOT IN (SELECT value FROM json_each(?))"
        out["broken_edges"] += catalog.value(f"SELECT count(*) FROM edges WHERE {broken}", (gone, gone))
        return out
    health = index.text.health()
    out["engine"] = health.engine
    if health.trouble:
        out["text"] = health.trouble
    else:
        out["segments"] = health.segments
    if index.store.config.get("index.engine") == "milvus":
        from mdmem.index.milvus import health_of

        shared = health_of(index.store.config)
        out["shared"] = shared.trouble or f"{shared.windows} passages"
    try:
        stored = index.dense.vectors()
        out["vectors"] = len(stored) if stored is not None else 0
        out["waiting_for_vectors"] = index.dense.pending(catalog)
        out["model"] = stored.fingerprint if stored is not None else ""
    except VectorsDamaged as error:
        out["vectors_damaged"] = str(error)
    if index.dense.trouble:
        out["notice"] = index.dense.trouble
    out["bytes"] = sum(found.stat().st_size for found in index.state_dir.rglob("*") if found.is_file())
    out["folder"] = str(index.state_dir)
    return out


def verify(index: Index, without: frozenset[int] = frozenset()) -> list[str]:
    """Return the differences between files, catalog, text index and vectors, one line each.

    `without`: notes that are not there for whoever asks; nothing is said of them."""
    index.refresh(embed_budget_s=0.0)
    index.take_notices()
    found = _catalog_itself(index)
    if found:
        return found
    found += _files(index, without)
    try:
        found += _words(index, without)
    except (TextIndexDamaged, Damaged) as error:
        found.append(f"text index: {error}")
    try:
        stored = index.dense.vectors()
        if stored is not None:
            stored.verify()
    except VectorsDamaged as error:
        found.append(str(error))
    if len(found) > SHOWN:
        found[SHOWN:] = [f"… and {len(found) - SHOWN} more"]
    return found


def _catalog_itself(index: Index) -> list[str]:
    try:
        rows = index.catalog.rows("PRAGMA integrity_check(20)")
    except CatalogDamaged as error:
        return [str(error)]
    return [f"catalog: {row[0]}" for row in rows if row[0] != "ok"]


def _files(index: Index, without: frozenset[int]) -> list[str]:
    """Compare each row of the catalog with its file, parsed again."""
    found = []
    for stored in index.catalog.rows("SELECT rowid, * FROM notes ORDER BY path"):
        if stored["rowid"] in without:
            continue
        path = stored["path"]
        source = source_for(index.sources, path)
        if source is None:
            found.append(f"{path}: its folder is not configured")
            continue
        try:
            note = source.read(path)
        except MdmemError as error:
            found.append(f"{path}: {error}")
            continue
        if note.sha != stored["sha"]:
            found.append(f"{path}: the file differs from what was indexed")
            continue
        row = row_of(note, path, source.kind, source.types)
        differing = [
            name for name, value in row.columns.items() if name not in ("created", "updated", "scope") and stored[name] != value
        ]
        windows = index.catalog.rows(
            "SELECT hash, text, start_line FROM windows WHERE note = ? ORDER BY ord", (stored["rowid"],)
        )
        if [tuple(w) for w in windows] != [(w.hash, w.text, w.start_line) for w in row.windows]:
            differing.append("windows")
        tags = [tag for (tag,) in index.catalog.rows("SELECT tag FROM tags WHERE note = ? ORDER BY tag", (stored["rowid"],))]
        if tags != sorted(row.tags):
            differing.append("tags")
        if differing:
            found.append(f"{path}: the catalog differs in {', '.join(differing)}")
    return found


def _words(index: Index, without: frozenset[int]) -> list[str]:
    """Compare the postings with those of all windows, analysed again."""
    notes = [row[0] for row in index.catalog.rows("SELECT rowid FROM notes") if row[0] not in without]
    truth = _prints([(memory(index.catalog.read(lambda connection: text_rows(connection, notes))), set())])
    waiting, fresh = overlay(index.catalog)
    gone = without.union(waiting)
    fresh = [row for row in fresh if row.note not in without]
    parts: list[tuple[Segment, set[int]]] = [
        (segment, set(segment.dead) | {doc for doc, note in enumerate(segment.notes) if note in gone})
        for segment in index.text.segments()
    ]
    held = _prints([*parts, (memory(fresh), set())])
    found = [f"text index: window {window} is missing" for window in sorted(truth.keys() - held.keys())]
    found += [f"text index: window {window} should not be there" for window in sorted(held.keys() - truth.keys())]
    found += [
        f"text index: window {window} has other words"
        for window in sorted(held.keys() & truth.keys())
        if held[window] != truth[window]
    ]
    return found


def _prints(parts: list[tuple[Segment, set[int]]]) -> dict[int, int]:
    """Return {window: a checksum of its terms and frequencies} of segments without their dead documents."""
    prints: dict[int, int] = {}
    for segment, dead in parts:
        marks = [0] * segment.size
        for term, found in segment.every():
            name = zlib.crc32(term.encode())
            columns = [bytes(len(found.docs)) if column is None else column for column in found.tfs]
            for doc, *tfs in zip(found.docs, *columns):
                marks[doc] ^= zlib.crc32(bytes(tfs), name)
        for doc, window in enumerate(segment.windows):
            if doc not in dead:
                prints[window] = marks[doc]
    return prints
