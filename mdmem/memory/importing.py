"""Bringing markdown in: files keep their frontmatter, secrets are taken out, ids stay, twice is once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.errors import ConflictFound, MdmemError, NotFound
from mdmem.memory.remember import Memory, find_id, first_words, render, same_content
from mdmem.memory.write import commit, subject

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.store import Store

MAX_BYTES = 4_000_000


@dataclass
class Imported:
    """What an import did; `failed` names each file that could not be taken, with the reason."""

    created: int = 0
    unchanged: int = 0
    paths: list[str] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    redacted: int = 0
    committed: bool = False
    reason: str = ""
    seen: set[str] = field(default_factory=set)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "created": self.created,
            "unchanged": self.unchanged,
            "failed": self.failed,
            "redacted": self.redacted,
            "paths": self.paths,
            "committed": self.committed,
            "reason": self.reason,
        }


def markdown_files(source: Path) -> list[Path]:
    """Return the markdown files at or below `source`, sorted; hidden folders and links are left out. Raises NotFound."""
    if source.is_file():
        return [source]
    if not source.is_dir():
        raise NotFound(f"no such file or folder: {source}")
    found: list[Path] = []
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        shown = (name for name in sorted(files) if name[0] != ".")
        found += [Path(folder, name) for name in shown if name.lower().endswith((".md", ".markdown"))]
    return [path for path in found if not path.is_symlink()]


def import_markdown(
    store: Store,
    source: Path,
    *,
    type_: str = "",
    scope: str = "",
    dry_run: bool = False,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> Imported:
    """Import every markdown file at `source`; one bad file never stops another. Commits once, at the end."""
    files = markdown_files(source)
    out = Imported()
    base = source if source.is_dir() else source.parent
    with contextlib.nullcontext() if dry_run else store.folder.bulk():
        for number, path in enumerate(files):
            progress(number, len(files), "")
            relative = path.relative_to(base).as_posix()
            try:
                _one(store, path, relative, base.name, type_, scope, dry_run, out)
            except (OSError, MdmemError, UnicodeError) as error:
                out.failed.append({"path": relative, "reason": str(error)})
    progress(len(files), len(files), "")
    if out.paths and not dry_run:
        done = commit(store, out.paths, subject("import", f"{len(out.paths)} notes"))
        out.committed, out.reason = done.done, done.reason
    return out


def _one(
    store: Store, path: Path, relative: str, folder: str, type_: str, scope: str, dry_run: bool, out: Imported
) -> None:
    from mdmem.notes.note import load
    from mdmem.notes.redact import redact

    if path.stat().st_size > MAX_BYTES:
        raise MdmemError(f"larger than {MAX_BYTES:,} bytes")
    data = path.read_bytes()
    text = data.decode("utf-8")  # a file that is not UTF-8 is named, not guessed at
    gate = redact(text)
    if gate.findings:
        out.redacted += len(gate.findings)
        data = gate.text.encode("utf-8")
    note = load(relative, data)
    if not note.ok:
        problem = note.doc.problem
        raise MdmemError(problem.message if problem else "cannot be parsed")
    kind = str(note.get("kind") or "")
    if kind == "memory" or (not kind and not note.doc.has_block) or type_ or (not kind and _memory_type(note)):
        _memory(store, note, type_, scope, dry_run, out)
    else:
        _verbatim(store, note, relative, folder, dry_run, out)


def _memory_type(note: Note) -> bool:
    from mdmem.notes.schema import MEMORY_TYPES

    return note.type in MEMORY_TYPES


def _memory(store: Store, note: Note, type_: str, scope: str, dry_run: bool, out: Imported) -> None:
    """Take a file as a memory: its own bytes when it has an id, else rendered as `remember` would."""
    from mdmem.notes import names

    scope = str(note.scope or scope or store.default_scope)
    title = note.title or first_words(note.body)
    memory = Memory(str(note.type or type_ or "fact"), note.body.strip("\n"), title, note.tags, scope)
    identity = note.id or names.memory_id("memory", scope, memory.text)
    existing = find_id(store, store.folder, identity)
    if existing is not None:
        if note.id or same_content(existing, memory):
            out.unchanged += 1
            return
        identity = names.memory_id("memory", scope, memory.text, note.path)
        if find_id(store, store.folder, identity) is not None:
            out.unchanged += 1
            return
    if not dry_run:
        path = names.memory_path(title, identity)
        extra = {k: v for k, v in note.doc.fields.items() if k not in _RENDERED}
        memory.extra = extra
        data = note.data if note.id else render(store, memory, identity)
        store.folder.create(path, data)
        out.paths.append(path)
    out.created += 1


_RENDERED = frozenset({"id", "kind", "type", "title", "tags", "scope", "name"})


def _verbatim(store: Store, note: Note, relative: str, folder: str, dry_run: bool, out: Imported) -> None:
    """Take a file as it stands: an entity to its folder, any other note below a folder named for its source."""
    from mdmem.notes import names

    if note.kind == "entity" or note.get("kind") == "entity":
        path = names.entity_path(note.type or "entity", note.title)
    elif store.mode == "embedded":
        raise MdmemError("not a memory or entity: inside a code repository only mdmem's folders are written to")
    else:
        path = f"imported/{names.slug(folder)}/{relative}"
    if (store.root / path).exists():
        if store.folder.read(path).data == note.data:
            out.unchanged += 1
            return
        raise ConflictFound(f"{path} is there already with another content")
    if not dry_run:
        store.folder.create(path, note.data)
        out.paths.append(path)
    out.created += 1
