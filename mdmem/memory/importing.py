"""Bringing markdown in: files keep their frontmatter, secrets are taken out, ids stay, twice is once.

A folder that an export or another store wrote comes back to the same paths; any other folder's memories and entities go where
new ones go, its plain pages below `imported/`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mdmem.errors import ConflictFound, MdmemError, NotFound, Refused
from mdmem.memory.exporting import MARK
from mdmem.memory.placing import Imported, Placing
from mdmem.memory.remember import Memory, first_words, render, same_content

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.store import Store

MAX_BYTES = 4_000_000
STORE = ".mdmem.toml"
Tell = Callable[[int, int, str], None]


@dataclass
class Tree:
    """The markdown files at or below a place, in order; what was left out and what could not be looked at, with reasons."""

    files: list[Path] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)


def markdown_files(source: Path) -> Tree:
    """Return the markdown files of a file or folder. Hidden names and links are left out, and whole other stores and
    repositories below it: what is in these is theirs. Raises NotFound."""
    from mdmem.notes.scan import SKIPPED

    out = Tree()
    if source.is_file():
        out.files.append(source)
        return out
    if not source.is_dir():
        raise NotFound(f"no such file or folder: {source}")

    def unread(error: OSError) -> None:
        out.failed.append({"path": os.path.relpath(error.filename, source), "reason": error.strerror or str(error)})

    for folder, folders, names in os.walk(source, onerror=unread):
        here = Path(folder)
        inner = "" if here == source else _begins(here)
        if inner:
            out.left_out.append({"path": here.relative_to(source).as_posix(), "reason": inner})
            folders[:] = []
            continue
        for name in sorted(folders):
            if name in SKIPPED and not name.startswith("."):
                out.left_out.append({"path": (here / name).relative_to(source).as_posix(), "reason": "not a folder of notes"})
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED and name not in links)
        notes = [name for name in sorted(names) if name[0] != "." and name.lower().endswith((".md", ".markdown"))]
        for name in [*sorted(links), *notes]:
            if (here / name).is_symlink():
                path = (here / name).relative_to(source).as_posix()
                out.left_out.append({"path": path, "reason": "a symbolic link is not followed"})
            elif not (here / name).is_file():  # a pipe: reading it would never end
                out.left_out.append({"path": (here / name).relative_to(source).as_posix(), "reason": "not a regular file"})
            else:
                out.files.append(here / name)
    return out


def _begins(folder: Path) -> str:
    if os.path.lexists(folder / STORE):
        return "another mdmem store begins here; import it by itself"
    if os.path.lexists(folder / ".git"):
        return "another git repository begins here; import it by itself"
    return ""


def not_own(store: Store, source: Path) -> None:
    """Raise Refused for a source inside the store: what is there are notes already."""
    place = Path(os.path.realpath(source))
    if place == store.root or store.root in place.parents:
        hint = "mdmem list shows them; mdmem index refresh looks for new files"
        raise Refused(f"{source} lies in the store", why="the files there are notes already", hint=hint, code="own_folder")


def import_markdown(
    store: Store,
    source: Path,
    *,
    type_: str = "",
    scope: str = "",
    dry_run: bool = False,
    progress: Tell = lambda done, total, what: None,
) -> Imported:
    """Import every markdown file at `source`; one bad file never stops another. Commits once, at the end."""
    not_own(store, source)
    tree = markdown_files(source)
    placing = Placing(store, dry_run)
    out = placing.out
    out.left_out, out.failed = tree.left_out, tree.failed
    base = source if source.is_dir() else source.parent
    ours = source.is_dir() and any((source / mark).is_file() for mark in (MARK, STORE))
    with placing.going_on():
        for number, path in enumerate(tree.files):
            progress(number, len(tree.files), "")
            relative = path.relative_to(base).as_posix()
            try:
                if path.stat().st_size > MAX_BYTES:
                    raise MdmemError(f"larger than {MAX_BYTES:,} bytes")
                if ours:
                    put_back(placing, relative, path.read_bytes())
                else:
                    _one(placing, path.read_bytes(), relative, base.resolve().name, type_, scope)
            except (OSError, MdmemError, UnicodeError) as error:
                out.failed.append({"path": relative, "reason": str(error)})
    progress(len(tree.files), len(tree.files), "")
    return placing.done()


def put_back(placing: Placing, path: str, data: bytes) -> None:
    """Put a note of ours where it was. The same bytes there are `unchanged`; other bytes at its path or id raise
    ConflictFound."""
    from mdmem.notes.note import load
    from mdmem.notes.redact import redact

    try:
        gate = redact(data.decode("utf-8"))
    except UnicodeDecodeError:
        pass  # no text, so nothing to take out of it; it stays as it is
    else:
        if gate.findings:
            placing.out.redacted += len(gate.findings)
            data = gate.text.encode("utf-8")
    note = load(path, data)
    local = note.ok and note.scope == "local"
    there = placing.by_path(path, local)
    if there is not None:
        if there == data:
            placing.out.unchanged += 1
            return
        raise ConflictFound(f"{path} is there already with another content")
    identity = note.id if note.ok else ""
    if identity and (known := placing.by_id(identity, local)) is not None:
        if known.data == data:
            placing.out.unchanged += 1
            return
        raise _taken(placing, known)
    placing.put(path, data, identity, local)


def _taken(placing: Placing, note: Note) -> ConflictFound:
    """Return the error for an id that another text has; where it stands is said to who may read it."""
    from mdmem.recall.select import agent_scopes, may_read

    where = f", in {note.path}" if may_read(note.scope, agent_scopes(placing.store)) else ""
    return ConflictFound(f"the id {note.id} is there already with another content{where}")


def _one(placing: Placing, data: bytes, relative: str, folder: str, type_: str, scope: str) -> None:
    from mdmem.notes.note import load
    from mdmem.notes.redact import redact

    gate = redact(data.decode("utf-8"))  # a file that is not UTF-8 is named, not guessed at
    if gate.findings:
        placing.out.redacted += len(gate.findings)
        data = gate.text.encode("utf-8")
    note = load(relative, data)
    if not note.ok:
        problem = note.doc.problem
        raise MdmemError(problem.message if problem else "cannot be parsed")
    kind = str(note.get("kind") or "")
    if kind == "memory" or (not kind and not note.doc.has_block) or type_ or (not kind and _memory_type(note)):
        _memory(placing, note, type_, scope)
    else:
        _verbatim(placing, note, relative, folder)


def _memory_type(note: Note) -> bool:
    from mdmem.notes.schema import MEMORY_TYPES

    return note.type in MEMORY_TYPES


def _memory(placing: Placing, note: Note, type_: str, scope: str) -> None:
    """Take a file as a memory: its own bytes when it has an id, else rendered as `remember` would."""
    from mdmem.notes import names

    scope = str(note.scope or scope or placing.store.default_scope)
    title = note.title or first_words(note.body)
    memory = Memory(str(note.type or type_ or "fact"), note.body.strip("\n"), title, note.tags, scope)
    local = scope == "local"
    identity = note.id or names.memory_id("memory", scope, memory.text)
    existing = placing.by_id(identity, local)
    if existing is not None:
        if same_content(existing, memory) if not note.id else existing.data == note.data:
            placing.out.unchanged += 1
            return
        if note.id:
            raise ConflictFound(f"the id {identity} is there already with another content, in {existing.path}")
        identity = names.memory_id("memory", scope, memory.text, note.path)
        if placing.by_id(identity, local) is not None:
            placing.out.unchanged += 1
            return
    memory.extra = {k: v for k, v in note.doc.fields.items() if k not in _RENDERED}
    stem = PurePosixPath(note.path).stem
    if not note.id and names.slug(stem) not in (names.slug(title), *map(names.slug, note.aliases)):
        memory.extra["aliases"] = sorted({*note.aliases, stem})  # links by the file's old name still lead here
    data = note.data if note.id else render(placing.store, memory, identity)
    placing.put(names.memory_path(title, identity), data, identity, local, not note.id)


_RENDERED = frozenset({"id", "kind", "type", "title", "tags", "scope", "name"})


def _verbatim(placing: Placing, note: Note, relative: str, folder: str) -> None:
    """Take a file as it stands: an entity to its folder, any other note below a folder named for its source."""
    from mdmem.notes import names

    if note.kind == "entity" or note.get("kind") == "entity":
        path = names.entity_path(note.type or "entity", note.title)
    elif placing.store.mode == "embedded":
        raise MdmemError("not a memory or entity: inside a code repository only mdmem's folders are written to")
    else:
        path = f"imported/{names.slug(folder)}/{relative}"
    there = placing.by_path(path)
    if there is not None:
        if there == note.data:
            placing.out.unchanged += 1
            return
        raise ConflictFound(f"{path} is there already with another content")
    if note.id and (known := placing.by_id(note.id)) is not None:
        if known.data == note.data:
            placing.out.unchanged += 1
            return
        raise _taken(placing, known)
    placing.put(path, note.data, note.id)
