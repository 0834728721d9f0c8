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


def check(store: Store, paths: Iterable[str] | None = None) -> tuple[int, list[Found]]:
    """Return (notes looked at, findings sorted by path and line). `paths` (relative to the store) narrows it."""
    from mdmem.notes.names import fold, unsafe_name
    from mdmem.notes.schema import validate
    from mdmem.recall.select import agent_scopes, may_read

    wanted = set(paths) if paths is not None else None
    found: list[Found] = []
    seen_ids: dict[str, str] = {}
    seen_names: dict[str, str] = {}
    looked = 0
    patterns = agent_scopes(store)
    hidden: set[str] = set()
    files = sorted(stat.path for stat in store.folder.scan())
    for path in files:
        mine = wanted is None or path in wanted
        try:
            note = store.folder.read(path)
        except NotFound:
            continue  # gone since the folder was listed
        except Refused as error:
            found.append(Found(path, 1, error.code, str(error)))
            continue
        if not may_read(note.scope, patterns):
            hidden.add(path)
            continue
        if note.id:
            first = seen_ids.setdefault(note.id, path)
            if first != path and (mine or first in (wanted or ())):
                found.append(Found(path, 1, "duplicate_id", f"has the same id as {first}: {note.id}"))
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
        if finding.path not in hidden and (wanted is None or finding.path in wanted):
            found.append(Found(finding.path, 1, finding.code, finding.message, finding.code not in WARNINGS))
    found += [finding for finding in _edges(store, wanted) if finding.path not in hidden]
    return looked, sorted(set(found))


def _conflicts(path: str, data: bytes) -> list[Found]:
    from mdmem.repo.merge_conflicts import find_conflicts

    out = []
    for conflict in find_conflicts(data):
        what = f"the field {conflict.field}" if conflict.field else f"the {conflict.name}"
        out.append(Found(path, conflict.line or 1, "conflict", f"{what} holds two versions; settle it: mdmem conflicts"))
    return out


def _edges(store: Store, wanted: set[str] | None) -> list[Found]:
    store.index.refresh(embed_budget_s=0)
    out = []
    rows = store.index.catalog.rows(
        "SELECT n.path, e.state AS code, e.line, e.rel, e.target FROM edges e JOIN notes n ON n.rowid = e.src "
        "WHERE e.state != 'ok' AND n.folder = ''"
    )
    for row in rows:
        if wanted is None or row["path"] in wanted:
            code = str(row["code"])
            message = f"{row['rel']}: {row['target']!r} is {code}"
            out.append(Found(row["path"], row["line"] or 1, code, message, code not in WARNINGS))
    return out
