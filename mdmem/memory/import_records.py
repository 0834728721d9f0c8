"""Bringing records in: JSON, NDJSON, Elasticsearch bulk, exports of other programs, a zip of notes. Twice is once."""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.errors import ConflictFound, MdmemError
from mdmem.memory.importing import MAX_BYTES, Imported, import_markdown
from mdmem.memory.remember import Memory, find_id, render, same_content
from mdmem.memory.write import commit, subject

if TYPE_CHECKING:
    from mdmem.memory.records import Given, Relation, Unread
    from mdmem.store import Store

RECORDS = (".json", ".jsonl", ".ndjson", ".zip")
MAX_ARCHIVE = 500_000_000


def import_any(store: Store, source: Path, **more: Any) -> Imported:
    """Import a file or folder of any form that is known: markdown, records, or a zip of notes."""
    if source.is_file() and source.suffix.lower() in RECORDS:
        return import_records(store, source, **more)
    return import_markdown(store, source, **more)


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
    from mdmem.memory.records import Relation, Unread

    every = list(_given(source))
    relations = [item for item in every if isinstance(item, Relation)]
    found = [item for item in every if not isinstance(item, Relation)]
    out = Imported()
    with contextlib.nullcontext() if dry_run else store.folder.bulk():
        for number, item in enumerate(found):
            progress(number, len(found), "")
            where = f"record {number + 1}"
            if isinstance(item, Unread):
                out.failed.append({"path": item.where, "reason": item.reason})
                continue
            try:
                if item.data:
                    _ours(store, item.path, item.data, dry_run, out)
                else:
                    memory = Memory(type_ or item.type, item.text, item.title, item.tags, scope or item.scope)
                    targets = sorted({relation.to for relation in relations if relation.start == item.title})
                    _said(store, memory, {**item.extra, "relates_to": targets}, dry_run, out)
            except (OSError, MdmemError, UnicodeError) as error:
                out.failed.append({"path": item.path or where, "reason": str(error)})
    progress(len(found), len(found), "")
    if out.paths and not dry_run:
        done = commit(store, out.paths, subject("import", f"{len(out.paths)} notes"))
        out.committed, out.reason = done.done, done.reason
    return out


def _given(source: Path) -> Iterator[Given | Unread | Relation]:
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
                yield Given("zip", entry.filename, archive.read(entry))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise MdmemError(f"{source} is not a zip that can be read", why=str(error)) from error


def _ours(store: Store, path: str, data: bytes, dry_run: bool, out: Imported) -> None:
    """Put a note of ours back where it was; the same bytes are unchanged, other bytes at that path or id a failure."""
    from mdmem.notes.note import load
    from mdmem.notes.redact import redact

    try:
        gate = redact(data.decode("utf-8"))
    except UnicodeDecodeError:
        pass
    else:
        if gate.findings:
            out.redacted += len(gate.findings)
            data = gate.text.encode("utf-8")
    if store.folder.exists(path):
        if store.folder.read_bytes(path) == data:
            out.unchanged += 1
            return
        raise ConflictFound(f"{path} is there already with another content")
    note = load(path, data)
    if note.id and (there := find_id(store, store.folder, note.id)) is not None:
        if there.data == data:
            out.unchanged += 1
            return
        raise ConflictFound(f"the id {note.id} is there already, in {there.path}")
    if dry_run:
        from mdmem.notes.names import unsafe_name

        if unsafe_name(path):
            raise MdmemError(f"not a name for a note: {unsafe_name(path)}")
    else:
        store.folder.create(path, data)
        out.paths.append(path)
    out.created += 1


def _said(store: Store, memory: Memory, extra: dict[str, Any], dry_run: bool, out: Imported) -> None:
    """Keep a text of another program as a memory, by the same gate and ids as `remember`."""
    from mdmem.memory.remember import checked
    from mdmem.notes import names

    out.redacted += len(checked(store, memory))
    identity = names.memory_id("memory", memory.scope, memory.text)
    existing = find_id(store, store.folder, identity)
    if existing is not None and same_content(existing, memory):
        out.unchanged += 1
        return
    if existing is not None:
        identity = names.memory_id("memory", memory.scope, memory.text, "import")
        if find_id(store, store.folder, identity) is not None:
            out.unchanged += 1
            return
    memory.extra = extra
    path = names.memory_path(memory.title, identity)
    # A dry run counts what a real one would do, so a text that the file repeats counts once there too.
    if identity in out.seen:
        out.unchanged += 1
        return
    out.seen.add(identity)
    if not dry_run:
        store.folder.create(path, render(store, memory, identity))
        out.paths.append(path)
    out.created += 1
