"""Several stores of one user: personal, team, project. Which are searched, and which one a new note goes to.

`[[stores]]` in the user's configuration names them: `name`, `path`, and if wanted `shared = true` (others read it) and
`scopes = ["project:x", …]` (notes of these scopes go there).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError, NotFound, Refused, typed
from mdmem.store import Store, is_private

if TYPE_CHECKING:
    from mdmem.recall.hit import Recall
    from mdmem.recall.query import Query

@dataclass(frozen=True)
class Entry:
    """One `[[stores]]` table."""

    name: str
    path: str
    shared: bool = False
    scopes: tuple[str, ...] = ()


def entries(store: Store) -> list[Entry]:
    """Return the stores that the user's configuration names; one that is written wrongly is left out with a notice."""
    tables: Any = store.config.user.get("stores", [])
    out: list[Entry] = []
    for table in tables if isinstance(tables, list) else []:
        name, path = (table.get("name"), table.get("path")) if isinstance(table, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(path, str) or not name or any(e.name == name for e in out):
            store.notices.append("a [[stores]] table needs a name of its own and a path; it was left out")
            continue
        scopes = table.get("scopes", [])
        patterns = tuple(str(scope) for scope in scopes) if isinstance(scopes, list) else ()
        out.append(Entry(name, os.path.expanduser(path), table.get("shared") is True, patterns))
    return out


def _open(entry: Entry, like: Store, need: str = "read") -> Store:
    return Store.open(entry.path, need=need, cwd=like.cwd, clock=like.clock)


def searched(store: Store, names: tuple[str, ...] = ()) -> list[tuple[str, Store]]:
    """Return (name, store) for each store to search: this one and every configured one, or the named ones.

    One that is missing or not trusted is left out with a notice. Raises NotFound for an unknown name."""
    known = {entry.name: entry for entry in entries(store)}
    for name in names:
        if name not in known:
            raise NotFound(f"no store is named {name}", why=f"known are {', '.join(known) or 'none'}", hint="see [[stores]]")
    here = next((e.name for e in known.values() if Path(os.path.realpath(e.path)) == store.root), "")
    out: list[tuple[str, Store]] = [] if names and here not in names else [(here, store)]
    for entry in known.values():
        if entry.name == here or (names and entry.name not in names):
            continue
        try:
            other = _open(entry, store)
        except MdmemError as error:
            store.notices.append(f"the store {entry.name} was left out: {error}")
            continue
        if not other.trusted:
            trusting = typed("mdmem", "-C", entry.path, "trust")
            store.notices.append(f"the store {entry.name} was left out: it is not trusted ({trusting})")
            continue
        if all(other.root != known_store.root for _, known_store in out):
            out.append((entry.name, other))
    return out


def target(store: Store, scope: str, name: str = "") -> tuple[str, Store]:
    """Return (name, store) that a new note of a scope goes to: the named one, the one whose scopes fit, else this one.

    A private scope (user, agent, local) never goes to a shared store: it goes to one that is not shared, or is refused."""
    known = entries(store)
    here = next((e for e in known if Path(os.path.realpath(e.path)) == store.root), Entry("", str(store.root)))
    if name:
        chosen = next((entry for entry in known if entry.name == name), None)
        if chosen is None:
            names = ", ".join(entry.name for entry in known) or "none"
            raise NotFound(f"no store is named {name}", why=f"known are {names}", hint="see [[stores]] in config.toml")
    else:
        fits = [entry for entry in known if any(fnmatchcase(scope, pattern) for pattern in entry.scopes)] if scope else []
        chosen = fits[0] if fits else here
    if chosen.shared and is_private(scope):
        own = next((e for e in (here, *known) if not e.shared), None)
        if name or own is None:
            raise Refused(
                f"a note of scope {scope} is not written to {chosen.name}",
                why="that store is shared with others",
                hint="choose a store of your own: --store NAME",
                code="private_note",
            )
        chosen = own
    return (chosen.name, store if chosen is here else _open(chosen, store, need="write"))


def ask(store: Store, query: Query, names: tuple[str, ...] = (), only: bool = False) -> Recall:
    """Return the answer to a query from every store of the user's (`only`: from this one), by the warm process where one
    store is asked."""
    from mdmem.warm.recalling import recall_warm

    asked = [("", store)] if (only or store.alone) and not names else searched(store, names)
    if not asked:
        raise NotFound("none of these stores can be searched", why="; ".join(store.notices[-3:]), hint="mdmem config list")
    found = recall_warm(asked[0][1], query) if len(asked) == 1 and not asked[0][0] else None
    if found is not None:
        return found
    from mdmem.recall.recall import recall_many  # not loaded where the warm process answers

    try:
        return recall_many(asked, query)
    finally:
        for _, other in asked:
            if other is not store:
                other.close()
