"""Looking at notes without changing them: what does not parse, does not validate, does not resolve, is not portable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdmem.errors import NotFound, Refused
from mdmem.notes import values

if TYPE_CHECKING:
    from mdmem.store import Store


@dataclass(frozen=True, order=True)
class Found:
    """One finding: where, a stable code, what, and whether it fails the check (else it is a warning)."""

    path: str
    line: int
    code: str
    message: str
    fails: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        severity = "error" if self.fails else "warning"
        return {"path": self.path, "line": self.line, "code": self.code, "severity": severity, "message": self.message}


# What is worth saying and does not stop a commit.
WARNINGS = values.WARNINGS | {"dangling", "self", "ambiguous"}


_APART = "; delete one, or in the copy that says something else the line of its id, then: mdmem fmt --ids"


def check(store: Store, paths: Iterable[str] | None = None) -> tuple[int, list[Found]]:
    """Return (notes looked at, findings sorted by path and line). `paths` (relative to the store) narrows it."""
    from mdmem.notes.names import fold, unsafe_name
    from mdmem.notes.schema import validate
    from mdmem.recall.select import agent_scopes, may_read, nameable

    wanted = set(paths) if paths is not None else None
    found: list[Found] = []
    seen_ids: dict[str, str] = {}
    seen_names: dict[str, str] = {}
    looked = 0
    patterns = agent_scopes(store)
    may_name = nameable(store)
    files = sorted(stat.path for stat in store.folder.scan())
    for path in files:
        mine = wanted is None or path in wanted
        try:
            note = store.folder.read(path)
        except NotFound:
            continue  # gone since the folder was listed
        except Refused as error:
            if may_name(path):
                found.append(Found(path, 1, error.code, str(error)))
            continue
        if not may_read(note.scope, patterns):
            continue
        if note.id:
            first = seen_ids.setdefault(note.id, path)
            if first != path and (mine or first in (wanted or ())):
                found.append(Found(path, 1, "duplicate_id", f"has the same id as {first}: {note.id}{_APART}"))
        twin = seen_names.setdefault(fold(path), path)
        if twin != path and mine:
            found.append(Found(path, 1, "name_twin", f"differs from {twin} only in case or Unicode form"))
        if not mine:
            continue
        looked += 1
        why = unsafe_name(path)
        if why:
            found.append(Found(path, 1, "unsafe_name", why))
        found += [Found(path, p.line or 1, p.code, p.message, p.code not in WARNINGS) for p in validate(note)]
        found += _conflicts(path, note.data)
    for finding in store.folder.problems:
        if may_name(finding.path) and (wanted is None or finding.path in wanted):
            found.append(Found(finding.path, 1, finding.code, finding.message, finding.code not in WARNINGS))
    found += _edges(store, wanted)
    return looked, sorted(set(found))


def _conflicts(path: str, data: bytes) -> list[Found]:
    from mdmem.repo.merge_conflicts import find_conflicts

    out = []
    for conflict in find_conflicts(data):
        what = f"the field {conflict.field}" if conflict.field else f"the {conflict.name}"
        out.append(Found(path, conflict.line or 1, "conflict", f"{what} holds two versions; settle it: mdmem conflicts"))
    return out


def _edges(store: Store, wanted: set[str] | None) -> list[Found]:
    from mdmem.graph.nodes import links, ready

    among = ready(store)
    own = {row["rowid"]: row["path"] for row in store.index.catalog.rows("SELECT rowid, path FROM notes WHERE folder = ''")}
    out = []
    for link in links(store, among):
        path = own.get(link.src, "")
        if link.state != "ok" and path and (wanted is None or path in wanted):
            message = f"{link.rel}: {link.target!r} is {link.state}"
            out.append(Found(path, link.line or 1, link.state, message, link.state not in WARNINGS))
    return out
