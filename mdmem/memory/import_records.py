"""Bringing records in: JSON, NDJSON, Elasticsearch bulk, exports of other programs, a zip of notes. Twice is once."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError
from mdmem.memory.importing import MAX_BYTES, import_markdown, not_own, put_back
from mdmem.memory.placing import Imported, Placing
from mdmem.memory.remember import Memory, render, same_content

if TYPE_CHECKING:
    from mdmem.memory.records import Item, Relation
    from mdmem.store import Store

RECORDS = (".json", ".jsonl", ".ndjson", ".zip")
MAX_ARCHIVE = 500_000_000
# What `zipfile` raises of one entry: damaged, cut off, packed in a way that Python lacks, locked by a password.
_BAD_ENTRY = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


def import_any(store: Store, source: Path, ask: bool = False, **more: Any) -> Imported:
    """Import a file or folder of any form that is known: markdown, records, or a zip of notes. `ask`: somebody waits, and the
    language model may be asked about pairs that are in doubt, some of them; the rest waits for the next consolidation."""
    records = source.is_file() and source.suffix.lower() in RECORDS
    out = import_records(store, source, **more) if records else import_markdown(store, source, **more)
    if ask and any(row["outcome"] in ("opposes", "perhaps") for row in out.decided):
        from mdmem.learn.opinion import advise_waiting
        from mdmem.memory.write import commit, subject

        done = advise_waiting(store, {row["note"] for row in out.decided})
        out.notices += done.notices
        for row in done.reconciled:
            out.decided = [one for one in out.decided if (one["note"], one["other"]) != (row["note"], row["other"])] + [row]
        if done.paths:
            made = commit(store, done.paths, subject("import", f"{len(done.reconciled)} pairs settled"))
            out.committed, out.reason = made.done, made.reason
    return out


def import_records(
    store: Store,
    source: Path,
    *,
    type_: str = "",
    scope: str = "",
    dry_run: bool = False,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> Imported:
    """Import JSON, NDJSON, Elasticsearch bulk, the exports of other programs, or a zip; one bad record stops no other."""
    from mdmem.memory.records import LeftOut, Relation, Unread

    not_own(store, source)
    found = list(_given(source))
    leads: dict[str, list[Relation]] = {}
    for item in found:
        if isinstance(item, Relation):
            leads.setdefault(item.start, []).append(item)
    placing = Placing(store, dry_run)
    out = placing.out
    titles = set()
    with placing.going_on():
        for number, item in enumerate(found):
            progress(number, len(found), "")
            where = f"record {number + 1}"
            if isinstance(item, Unread):
                out.failed.append({"path": item.where, "reason": item.reason})
            elif isinstance(item, LeftOut):
                out.left_out.append({"path": item.where, "reason": item.reason})
            elif not isinstance(item, Relation):
                titles.add(item.title)
                try:
                    if item.data:
                        put_back(placing, item.path, item.data)
                    else:
                        memory = Memory(type_ or item.type, item.text, item.title, item.tags, scope or item.scope)
                        _said(placing, memory, {**item.extra, **_edges(leads.get(item.title, []))})
                except (OSError, MdmemError, UnicodeError) as error:
                    out.failed.append({"path": item.path or where, "reason": str(error)})
        for start in sorted(set(leads) - titles):
            lost = f"{len(leads[start])} relations of it: no such entity is in the file"
            out.failed.append({"path": f"relation {start[:80]}", "reason": lost})
    progress(len(found), len(found), "")
    return placing.done()


def _edges(relations: list[Relation]) -> dict[str, list[str]]:
    """Return relations as fields: under their own name where it is an edge of ours, else `relates_to`, and the words that
    were used."""
    from mdmem.notes.schema import EDGE_FIELDS

    fields: dict[str, set[str]] = {}
    words: list[str] = []
    for relation in relations:
        known = relation.rel in EDGE_FIELDS
        fields.setdefault(relation.rel if known else "relates_to", set()).add(relation.to)
        if relation.rel and not known and relation.rel != "relates_to":
            words.append(f"{relation.rel}: {relation.to}")
    return {**{name: sorted(to) for name, to in sorted(fields.items())}, **({"relations": sorted(set(words))} if words else {})}


def _given(source: Path) -> Iterator[Item]:
    from mdmem.memory.records import Given, Unread, read_records

    if source.suffix.lower() != ".zip":
        if source.stat().st_size > MAX_ARCHIVE:
            raise MdmemError(f"{source} is larger than {MAX_ARCHIVE:,} bytes", hint="split it by lines")
        yield from read_records(source.read_bytes().decode("utf-8", "replace"))
        return
    try:
        with zipfile.ZipFile(source) as archive:
            for entry in archive.infolist():
                if entry.is_dir() or not entry.filename.lower().endswith((".md", ".markdown")):
                    continue
                if entry.file_size > MAX_BYTES:
                    yield Unread(entry.filename, f"larger than {MAX_BYTES:,} bytes")
                    continue
                try:
                    data = archive.read(entry)
                except _BAD_ENTRY as error:
                    yield Unread(entry.filename, str(error) or "cut off")
                    continue
                yield Given("zip", entry.filename, data)
    except _BAD_ENTRY as error:
        raise MdmemError(f"{source} is not a zip that can be read", why=str(error)) from error


def _said(placing: Placing, memory: Memory, extra: dict[str, Any]) -> None:
    """Keep a text of another program as a memory, by the same gate and ids as `remember`."""
    from mdmem.memory.remember import checked
    from mdmem.notes import names
    from mdmem.notes.redact import redact

    placing.out.redacted += len(checked(placing.store, memory))
    local = memory.scope == "local"
    identity = names.memory_id("memory", memory.scope, memory.text)
    existing = placing.by_id(identity, local)
    if existing is not None and same_content(existing, memory):
        placing.out.unchanged += 1
        return
    if existing is not None:
        identity = names.memory_id("memory", memory.scope, memory.text, "import")
        if placing.by_id(identity, local) is not None:
            placing.out.unchanged += 1
            return
    for name, value in extra.items():
        lines = [redact(one).text for one in value] if isinstance(value, list) else redact(str(value)).text
        memory.extra[name] = lines
    placing.put(names.memory_path(memory.title, identity), render(placing.store, memory, identity), identity, local, True)
