"""Where the store is, whose it is, and which git directory holds its state. Starts no process.

Hooks pay for this file on every event, so it imports nothing but the standard library's small parts.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mdmem.config import data_home, load_config, read_plain, read_toml
from mdmem.errors import MdmemError, NotFound, Refused, RefusedState, typed

SETTINGS = ".mdmem.toml"
OWNED = ("memories", "entities", "sessions", "tasks", "messages", "agents", "claude")


@dataclass(frozen=True)
class GitPlace:
    """A work tree: its top folder, its git directory, and the one shared by all its worktrees."""

    top: Path
    git_dir: Path
    common_dir: Path


@dataclass(frozen=True)
class Location:
    """A store that was found: `prefix` is the root relative to the git top ('' for a dedicated store)."""

    root: Path
    git: GitPlace
    prefix: str
    mode: str
    store_id: str
    remote: str
    trusted: bool
    notices: list[str] = field(default_factory=list)
    hindrance: Refused | None = None  # why it is only read, trusted or not: settings that this mdmem cannot make out

    @property
    def state_dir(self) -> Path:
        """The folder of what can be rebuilt; one for each work tree and store."""
        return self._below(self.git.git_dir)

    @property
    def common_state_dir(self) -> Path:
        """The folder of lock, spool, counters and log, shared by the work trees of one clone."""
        return self._below(self.git.common_dir)

    def _below(self, git_dir: Path) -> Path:
        base = git_dir / "mdmem"
        if not self.prefix:
            return base
        import hashlib  # loads OpenSSL: for a store inside another repository alone

        return base / hashlib.sha256(self.prefix.encode()).hexdigest()[:8]


def find_git(start: Path) -> GitPlace | None:
    """Return the work tree that `start` lies in, reading files only; None outside of one."""
    for folder in (start, *start.parents):
        dot = folder / ".git"
        try:
            if dot.is_dir():
                return GitPlace(folder, dot, _common(dot))
            if dot.is_file():
                text = read_plain(dot).decode("utf-8", "replace")
                if text.startswith("gitdir:"):
                    git_dir = Path(os.path.normpath(folder / text[7:].strip()))
                    return GitPlace(folder, git_dir, _common(git_dir))
        except OSError:
            continue
    return None


def _common(git_dir: Path) -> Path:
    try:
        text = read_plain(git_dir / "commondir").decode("utf-8", "replace").strip()
    except OSError:
        return git_dir
    return Path(os.path.normpath(git_dir / text))


_SECTION = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')


def remote_url(common_dir: Path) -> str:
    """Return the URL of `origin` (or of the first remote) as the clone's own config has it, '' if none."""
    try:
        text = read_plain(common_dir / "config").decode("utf-8", "replace")
    except OSError:
        return ""
    urls: dict[str, str] = {}
    name = None
    for line in text.splitlines():
        section = _SECTION.match(line)
        if section:
            name = section[2] if section[1].lower() == "remote" else None
        elif name is not None:
            key, equals, value = line.partition("=")
            if equals and key.strip().lower() == "url":
                urls.setdefault(name, value.strip().strip('"'))
    return urls.get("origin") or next(iter(urls.values()), "")


def project_name(start: Path) -> str:
    """Return the project that a folder belongs to: the last part of its git remote, else of its main root; '' outside git."""
    place = find_git(start)
    if place is None:
        return ""
    url = remote_url(place.common_dir)
    tail = re.split(r"[/:\\]", url.rstrip("/\\"))[-1] if url else ""
    tail = tail.removesuffix(".git")
    if not tail:
        main = place.common_dir.parent if place.common_dir.name == ".git" else place.top
        tail = main.name
    return re.sub(r"[^\w.-]+", "-", tail).strip("-.").lower()


def repository_name(location: Location) -> str:
    """Return the name of a store among those of a shared index: its remote as HOST/PATH, without scheme, user and port, else
    its id, else its folder. Clones of one repository have one name, whether made by ssh or by https; a store that is a folder
    of its repository is named with it, since there may be several."""
    url = _plain(remote_url(location.git.common_dir))
    url = url.removeprefix("file://")
    parts = re.match(r"(?:\w+://)([^/:]+)(?::\d+)?/+(.*)", url) or re.match(r"(?:[\w.-]+@)?([\w.-]{2,}):/*([^/].*)", url)
    named = f"{parts[1].lower()}/{parts[2]}" if parts else url
    if not named:
        return location.store_id or location.root.name
    return f"{named}/{location.prefix}" if location.prefix else named


def same_remote(one: str, other: str) -> bool:
    """Return whether two URLs name one repository: credentials, a final .git and slash aside."""
    return _plain(one) == _plain(other)


def _plain(url: str) -> str:
    url = re.sub(r"^(\w+://)[^/@]*@", r"\1", url.strip())
    return url.rstrip("/").removesuffix(".git").rstrip("/")


# --- trust ---------------------------------------------------------------------------------------


def trusted_file() -> Path:
    """Return the path of the user's list of trusted stores."""
    return data_home() / "trusted.json"


def trusted_stores() -> list[dict[str, str]]:
    """Return the entries {id, remote, path}; [] when the list is absent or damaged (then nothing is trusted)."""
    try:
        data = json.loads(trusted_file().read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    return [e for e in data if isinstance(e, dict)] if isinstance(data, list) else []


def is_trusted(store_id: str, remote: str, top: Path) -> bool:
    """Return whether this user's mdmem made, cloned or was told to trust this store; a linked work tree of it counts."""
    place = find_git(top)
    main = place.common_dir.parent if place is not None and place.common_dir.name == ".git" else top
    real = os.path.realpath(main)
    for entry in trusted_stores():
        if store_id and entry.get("id") == store_id:
            if entry.get("path") == real:
                return True
            if remote and entry.get("remote") and same_remote(entry["remote"], remote):
                return True
    return False


def trust(store_id: str, remote: str, top: Path) -> None:
    """Remember a store as trusted. Raises MdmemError when the list cannot be written."""
    from mdmem.locks import FileLock

    path = trusted_file()
    place = find_git(top)
    main = place.common_dir.parent if place is not None and place.common_dir.name == ".git" else top
    entry = {"id": store_id, "remote": _plain(remote), "path": os.path.realpath(main)}
    try:
        with FileLock(path.with_name("trusted.lock")):
            entries = [e for e in trusted_stores() if (e.get("id"), e.get("path")) != (entry["id"], entry["path"])]
            write_private(path, json.dumps([*entries, entry], indent=1).encode())
    except OSError as error:
        raise MdmemError(f"cannot write {path}", why=error.strerror or str(error)) from error


def write_private(path: Path, data: bytes) -> None:
    """Replace a file of the user's own (0600) in one step: temporary file, fsync, rename. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


# --- finding -------------------------------------------------------------------------------------

FORMAT = 1  # of a store, as .mdmem.toml names it
# Folders of the user's own are called by it.
_ID = re.compile(r"[A-Za-z0-9_-][\w.-]{0,99}", re.A)


def _owned_by_other(path: Path) -> str:
    """Return why a settings file found on the way up is not to be used, '' when it is fine."""
    found = os.lstat(path)
    if os.path.islink(path):
        return "is a symbolic link"
    if hasattr(os, "getuid") and found.st_uid not in (os.getuid(), 0):
        return "belongs to another user"
    return ""


def _newer(root: Path, written: Any) -> Refused | None:
    """Return why a store of this format is only read, None for one that is known: an older mdmem would undo what a newer one
    means by what it writes."""
    if written == FORMAT and not isinstance(written, bool):
        return None
    why = f"{SETTINGS} says format = {written!r}, and this mdmem knows {FORMAT}"
    what = f"the store at {root} is of another format, so it is only read"
    return Refused(what, why, "install a newer mdmem", code="newer_format")


def at(root: Path) -> Location:
    """Return the location for a folder that holds .mdmem.toml. Raises NotFound, Refused or MdmemError."""
    settings = root / SETTINGS
    try:
        why = _owned_by_other(settings)
    except OSError as error:
        raise NotFound(f"no store at {root}", why=error.strerror or "", hint="mdmem init", code="no_store") from error
    if why:
        raise Refused(f"{settings} {why}", hint="use a store of your own: mdmem -C DIR …", code="foreign_store")
    notices: list[str] = []
    hindrance: Refused | None = None
    table: Any = {}
    try:
        whole = read_toml(settings)
        table, hindrance = whole.get("store", {}), _newer(root, whole.get("format", FORMAT))
    except MdmemError as error:
        notices = [str(error)]
        hint = f"mend {settings} in an editor; {typed('git', '-C', root, 'diff', '--', SETTINGS)} shows what changed"
        hindrance = Refused(f"the settings of the store at {root} cannot be read, so it is only read", error.why, hint)
    table = table if isinstance(table, dict) else {}
    place = find_git(root)
    if place is None:
        raise NotFound(f"{root} is not inside a git repository", hint=typed("mdmem", "init", root), code="no_git")
    prefix = "" if root == place.top else root.relative_to(place.top).as_posix()
    mode = "embedded" if prefix or table.get("mode") == "embedded" else "dedicated"
    store_id = str(table.get("id", ""))
    if store_id and not _ID.fullmatch(store_id):
        notices.append(f"the store's id in {settings} is no name and is not used: {store_id[:40]!r}")
        store_id = ""
    remote = remote_url(place.common_dir)
    trusted = hindrance is None and is_trusted(store_id, remote, place.top)
    found = Location(root, place, prefix, mode, store_id, remote, trusted, notices, hindrance)
    for folder in dict.fromkeys((place.git_dir / "mdmem", place.common_dir / "mdmem", found.state_dir, found.common_state_dir)):
        if os.path.islink(folder):
            why = "what is written there would land elsewhere"
            raise Refused(f"{folder} is a symbolic link", why, "remove it: it is made anew", code="foreign_store")
    return found


def _upwards(start: Path) -> Path | None:
    for folder in (start, *start.parents):
        if os.path.lexists(folder / SETTINGS):
            return folder
    return None


def not_bare(folder: Path) -> None:
    """Raise RefusedState for a bare repository (or the inside of a git directory): there are no files to keep notes in."""
    if (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir():
        why = "it has no work tree, so no notes can lie in it"
        raise RefusedState(f"{folder} is a bare repository", why=why, hint=f"mdmem clone {folder} DIR")


def here(otherwise: Path) -> Path:
    """Return the folder that the program was called in, or `otherwise` when that folder is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return otherwise


def find(directory: str | os.PathLike[str] | None = None, cwd: Path | None = None) -> Location:
    """Return the store to use, by: `directory` (-C), MDMEM_REPO, the nearest trusted one upwards, the default store.

    An untrusted store upwards is used only when there is no default one. Raises NotFound or Refused.
    """
    named = directory or os.environ.get("MDMEM_REPO", "")
    if named:
        start = Path(os.path.realpath(os.path.expanduser(named)))
        root = _upwards(start)
        if root is None:
            not_bare(start)
            why = f"no {SETTINGS} in it or above"
            raise NotFound(f"no store at {named}", why, hint=typed("mdmem", "init", named), code="no_store")
        return at(root)
    start = Path(os.path.realpath(cwd or Path.cwd()))
    root = _upwards(start)
    near: Location | None = None
    refused: MdmemError | None = None
    if root is not None:
        try:
            near = at(root)
        except MdmemError as error:
            refused = error
    if near is not None and near.trusted:
        return near
    default = str(load_config().get("default_store"))
    if default:
        chosen = _upwards(Path(os.path.realpath(os.path.expanduser(default))))
        if chosen is not None:
            found = at(chosen)
            if near is not None and near.root != found.root:
                passed = f"the store at {near.root} is not trusted and was passed over"
                found.notices.append(f"{passed} ({typed('mdmem', '-C', near.root, 'trust')})")
            return found
    if near is not None:
        return near
    if refused is not None:
        raise refused
    raise NotFound(
        "no store here",
        why=f"no {SETTINGS} in this folder or above, and no default_store in the configuration",
        hint="mdmem quickstart, or mdmem init DIR",
        code="no_store",
    )
