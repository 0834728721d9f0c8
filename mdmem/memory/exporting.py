"""Notes out of the store: as files, as one file of records, as a zip. What comes in again is identical, byte for byte."""

from __future__ import annotations

import base64
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mdmem.errors import MdmemError, Refused
from mdmem.recall.query import Filters
from mdmem.recall.select import rows

if TYPE_CHECKING:
    import sqlite3

    from mdmem.store import Store

FORMATS = ("markdown", "obsidian", "ndjson", "json", "es-bulk", "zip")
ONE_FILE = ("ndjson", "json", "es-bulk", "zip")
RECORD = "mdmem-note"
VERSION = 1
MARK = ".mdmem-export.json"  # says of a folder that its notes lie where they lay in the store
Tell = Callable[[int, int, str], None]


@dataclass
class Exported:
    """How many notes went where."""

    notes: int
    format: str
    destination: str

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(self.__dict__)


def record(row: sqlite3.Row, data: bytes) -> dict[str, Any]:
    """Return one note as a record: what the catalog knows of it for other programs, and its bytes for us."""
    names = ("id", "path", "kind", "type", "category", "title", "summary", "scope", "agent", "status", "created", "updated")
    out: dict[str, Any] = {"format": RECORD, "version": VERSION, **{name: row[name] or "" for name in names}}
    try:
        out["text"] = data.decode("utf-8")
    except UnicodeDecodeError:
        out["base64"] = base64.b64encode(data).decode("ascii")
    return out


def notes_of(store: Store, filters: Filters) -> list[sqlite3.Row]:
    """Return the rows that an export holds: what fits the filters, may be read, and lies in the store itself."""
    store.index.refresh(embed_budget_s=0.0)
    return [row for row in rows(store, filters, "ORDER BY n.path") if row["folder"] == "" and row["scope"] != "local"]


def export(
    store: Store,
    destination: Path | None,
    form: str,
    filters: Filters,
    stream: IO[bytes] | None = None,
    progress: Tell = lambda done, total, what: None,
) -> Exported:
    """Write the notes; `destination` None writes a one-file form to `stream`. Raises Refused or MdmemError."""
    found = notes_of(store, filters)
    if destination is not None:
        destination = Path(os.path.realpath(destination.expanduser()))
        if destination == store.root or store.root in destination.parents:
            raise Refused(f"{destination} lies inside the store", hint="name a place outside of it")
    try:
        if form in ("markdown", "obsidian"):
            if destination is None:
                raise MdmemError("a folder is needed", hint="mdmem export FOLDER")
            _tree(store, destination, found, form == "obsidian", progress)
        elif destination is None:
            assert stream is not None
            _write(store, stream, form, found, progress)
        else:
            _replace(destination, lambda target: _write(store, target, form, found, progress))
    except OSError as error:
        raise MdmemError(f"cannot write {destination}", why=error.strerror or str(error)) from error
    return Exported(len(found), form, str(destination or "-"))


def _each(store: Store, found: list[sqlite3.Row], progress: Tell) -> Iterator[tuple[sqlite3.Row, bytes]]:
    for number, row in enumerate(found):
        progress(number, len(found), "")
        yield row, store.folder.read_bytes(row["path"])


def _tree(store: Store, folder: Path, found: list[sqlite3.Row], obsidian: bool, progress: Tell) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(f"{folder} is not empty", hint="name a folder that is new or empty")
    for row, data in _each(store, found, progress):
        target = folder / row["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(json.dumps({"format": RECORD, "version": VERSION, "notes": len(found)}) + "\n")
    if obsidian:
        (folder / ".obsidian").mkdir(parents=True, exist_ok=True)
        (folder / ".obsidian" / "app.json").write_text('{"useMarkdownLinks": false, "newLinkFormat": "shortest"}\n')


def _replace(target: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file beside its place and move it there: a broken export never replaces a good one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(temporary, "xb") as stream:
            write(stream)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _write(store: Store, stream: IO[bytes], form: str, found: list[sqlite3.Row], progress: Tell) -> None:
    each = _each(store, found, progress)
    if form == "zip":
        # A zip is written backwards in places, so it is made whole before it goes to a pipe.
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for row, data in each:
                archive.writestr(zipfile.ZipInfo(row["path"], (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
        stream.write(whole.getvalue())
        return
    if form == "json":
        whole_list = {"format": RECORD, "version": VERSION, "notes": [record(row, data) for row, data in each]}
        stream.write(json.dumps(whole_list).encode() + b"\n")
        return
    for row, data in each:
        for line in _lines(form, record(row, data)):
            stream.write(line.encode() + b"\n")


def _lines(form: str, item: dict[str, Any]) -> Iterator[str]:
    if form == "es-bulk":
        yield json.dumps({"index": {"_index": "mdmem", "_id": item["id"] or item["path"]}})
    yield json.dumps(item)
