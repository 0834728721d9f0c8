"""Which store a hook works for, found in microseconds: the answer of `mdmem.store`, kept with the stamps it rests on.

Opening a store properly reads TOML and costs four bare Python starts; an agent's turn makes dozens of hook calls. The
answer is kept in the user's own data folder and holds while every file that went into it, and every folder that had
none, looks the same. Knows nothing of notes.
"""

from __future__ import annotations

import os

from mdmem.data_home import data_folder
from mdmem.quickjson import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mdmem.store import Store

# Changed when the fields below change.
FORMAT = 2
# Launch folders remembered; the least recently added go first.
KEPT = 64


class Place:
    """A store as a hook needs it: paths as strings, the settings that hooks read, who we are."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.root: str = fields["root"]
        self.prefix: str = fields["prefix"]
        self.mode: str = fields["mode"]
        self.state: str = fields["state"]
        self.common: str = fields["common"]
        self.trusted: bool = fields["trusted"]
        self.scope: str = fields["scope"]
        self.agent: str = fields["agent"]
        self.device: str = fields["device"]
        self.owned: list[str] = fields["owned"]
        self.folders: list[str] = fields["folders"]
        self.patterns: list[str] | None = fields["patterns"]
        self.settings: dict[str, Any] = fields["settings"]
        self.start: str = fields["start"]
        # The user's other stores that are trusted: name, root, state, owned, patterns of each.
        self.others: list[dict[str, Any]] = fields["others"]

    @property
    def project(self) -> str:
        """The project that the session works on, '' when it works on none."""
        return self.scope[8:] if self.scope.startswith("project:") else ""

    def inside(self, path: str) -> str | None:
        """Return a file's path relative to the store when it is a note of the store, else None."""
        if not path.lower().endswith(".md"):
            return None
        real = os.path.realpath(path)
        if not real.startswith(self.root + os.sep):
            return None
        relative = real[len(self.root) + 1 :].replace(os.sep, "/")
        if any(part.startswith(".") for part in relative.split("/")):
            return None
        if self.owned == [""] or relative.split("/")[0] in self.owned:
            return relative
        return None

    def indexed_outside(self, path: str) -> bool:
        """Return whether a file lies in one of the user's `[[folders]]`."""
        real = os.path.realpath(path)
        return path.lower().endswith(".md") and any(real.startswith(folder + os.sep) for folder in self.folders)


def find_place(cwd: str) -> Place | None:
    """Return the trusted store for a session in `cwd`, None when there is none. Raises MdmemError for a broken setup."""
    start = _start(cwd)
    kept = os.path.join(data_folder(), "places.json")
    entries = _entries(kept)
    key = dumps([start, _environment()])
    entry = entries.get(key)
    if entry is not None and _holds(entry):
        return Place(entry["place"]) if entry["place"] else None
    fresh = _look(start)
    entries.pop(key, None)
    entries[key] = fresh
    while len(entries) > KEPT:
        entries.pop(next(iter(entries)))
    _keep(kept, entries)
    return Place(fresh["place"]) if fresh["place"] else None


def open_store(place: Place) -> Store:
    """Return the whole store object for a place (imports what that needs)."""
    from pathlib import Path

    from mdmem.store import Store

    return Store.open(place.root, cwd=Path(place.start))


def _start(cwd: str) -> str:
    project = os.environ.get("CLAUDE_PROJECT_DIR", "")
    # The sample of a session on another machine, or a folder that was removed under way.
    if project and not os.path.isdir(cwd) and os.path.isdir(project):
        cwd = project
    return os.path.realpath(cwd)


def _environment() -> list[str]:
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDECODE")
    mine = [f"{k}={v}" for k, v in os.environ.items() if k in names or (k.startswith("MDMEM_") and k != "MDMEM_HOOK")]
    return sorted(mine)


def _entries(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as stream:
            data = loads(stream.read(4 << 20))
        if data["format"] == FORMAT and isinstance(data["places"], dict):
            return dict(data["places"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return {}


def _keep(path: str, entries: dict[str, Any]) -> None:
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(dumps({"format": FORMAT, "places": entries}))
        os.replace(temporary, path)
    except OSError:
        # Only speed is lost.
        return


def stamp(path: str) -> list[int] | str | None:
    """Return what tells two states of a file apart, "dir" for a folder, None for nothing there."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if found.st_mode & 0o170000 == 0o040000:
        return "dir"
    return [found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino]


def _holds(entry: Any) -> bool:
    try:
        return all(stamp(path) == seen for path, seen in entry["stamps"].items())
    except (KeyError, AttributeError, TypeError):
        return False


def _look(start: str) -> dict[str, Any]:
    """Return {place: fields or None, stamps} by opening the store properly."""
    from pathlib import Path

    from mdmem.config import user_file
    from mdmem.errors import NotFound, Refused
    from mdmem.locate import find_git, trusted_file
    from mdmem.store import Store

    watched = {str(user_file()), str(trusted_file()), os.path.join(data_folder(), "device")}
    for folder in (start, os.environ.get("MDMEM_REPO", ""), _default_store()):
        if folder:
            watched |= _upwards(os.path.realpath(os.path.expanduser(folder)))
    session_git = find_git(Path(start))
    if session_git is not None:
        watched.add(str(session_git.common_dir / "config"))
    fields: dict[str, Any] | None = None
    try:
        store = Store.open(cwd=Path(start))
        root = str(store.root)
        watched |= {os.path.join(root, ".mdmem.toml"), os.path.join(str(store.location.git.top), ".git")}
        watched.add(str(store.location.git.common_dir / "config"))
        if store.trusted:
            fields = _fields(store, start)
            watched |= _other_files(store)
    except (NotFound, Refused):
        pass
    return {"place": fields, "stamps": {path: stamp(path) for path in sorted(watched)}}


def _default_store() -> str:
    from mdmem.config import load_config

    return str(load_config().get("default_store"))


def _fields(store: Store, start: str) -> dict[str, Any]:
    from mdmem.recall.select import agent_scopes

    config = store.config
    patterns = agent_scopes(store)
    folders = config.user.get("folders", [])
    outside = [str(f["path"]) for f in folders if isinstance(f, dict) and f.get("path")] if isinstance(folders, list) else []
    return {
        "root": os.path.realpath(store.root),
        "prefix": store.location.prefix,
        "mode": store.mode,
        "state": str(store.state_dir),
        "common": str(store.common_state_dir),
        "trusted": store.trusted,
        "scope": store.default_scope,
        "agent": store.identity.agent,
        "device": store.identity.device,
        "owned": list(store.owned),
        "patterns": None if patterns is None else list(patterns),
        "folders": [os.path.realpath(os.path.expanduser(path)) for path in outside],
        "settings": {
            "inject": str(config.get("hooks.inject")),
            "token_budget": int(config.get("hooks.token_budget")),
            "capture": bool(config.get("hooks.capture")),
            "serve": str(config.get("serve")),
        },
        "start": start,
        "others": _others(store),
    }


def _others(store: Store) -> list[dict[str, Any]]:
    from mdmem.federation import searched
    from mdmem.recall.select import agent_scopes

    found = []
    for name, other in searched(store):
        if other is not store:
            patterns = agent_scopes(other)
            one: dict[str, Any] = {"name": name, "root": os.path.realpath(other.root), "state": str(other.state_dir)}
            one |= {"owned": list(other.owned), "patterns": None if patterns is None else list(patterns)}
            found.append(one)
    return found


def _other_files(store: Store) -> set[str]:
    """Return the files whose coming or going would change which of the user's other stores there are."""
    from mdmem.federation import entries

    roots = [os.path.realpath(entry.path) for entry in entries(store)]
    return {os.path.join(root, name) for root in roots for name in (".mdmem.toml", ".git")}


def _upwards(start: str) -> set[str]:
    """Return the files whose coming or going would change which store is nearest, or which project this is."""
    found = set()
    folder = start
    while True:
        found.add(os.path.join(folder, ".mdmem.toml"))
        found.add(os.path.join(folder, ".git"))
        above = os.path.dirname(folder)
        if above == folder:
            return found
        folder = above
