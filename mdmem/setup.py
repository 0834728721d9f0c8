"""Making a store: its folder, its git repository, its two files, the merge driver, and trust."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mdmem.config import read_toml
from mdmem.errors import MdmemError, Refused
from mdmem.locate import OWNED, SETTINGS, GitPlace, Location, at, find_git, not_bare, remote_url, trust
from mdmem.store import untrusted

ATTRIBUTES = ".gitattributes"


@dataclass
class Made:
    """What `init` did. `created` names the files that are new, `committed` tells whether they are in a commit."""

    root: Path
    mode: str
    store_id: str
    created: list[str] = field(default_factory=list)
    committed: bool = False
    already: bool = False
    notices: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "store": str(self.root),
            "mode": self.mode,
            "id": self.store_id,
            "created": self.created,
            "committed": self.committed,
            "already": self.already,
            "notices": self.notices,
        }


def new_store_id() -> str:
    """Return a random id for a store."""
    return "store-" + secrets.token_hex(6)


def settings_text(store_id: str, mode: str) -> str:
    """Return the text of a new .mdmem.toml."""
    return (
        "# The settings of this store, shared by all its clones. Data only: nothing here can name a program or an address.\n"
        f'format = 1\n\n[store]\nid = "{store_id}"\nmode = "{mode}"\n'
    )


def attribute_lines(mode: str) -> list[str]:
    """Return the lines that .gitattributes must hold for notes of this store."""
    if mode == "dedicated":
        return ["*.md -text merge=mdmem"]
    return [f"/{folder}/**/*.md -text merge=mdmem" for folder in OWNED]


def init(directory: Path, remote: str = "", tell: Callable[[str], None] = lambda _: None) -> Made:
    """Make a store at `directory` (created when it is not there). Running it again mends what is missing.

    An empty folder, or one of markdown without git, becomes a dedicated store; inside another repository only
    mdmem's own folders are its. Raises Refused, UsageError or MdmemError; then nothing was made.
    """
    directory = Path(os.path.realpath(os.path.expanduser(directory)))
    if remote:
        from mdmem.repo.remotes import check_url

        check_url(remote)
    not_bare(directory)
    _not_home(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MdmemError(f"cannot make {directory}", why=error.strerror or str(error)) from error
    place = find_git(directory)
    if (directory / SETTINGS).exists() and place is not None:
        made = _again(directory)
    else:
        mode, foreign = _mode(directory, place)
        made = Made(directory, mode, new_store_id())
        if foreign:
            why = f"{foreign} is neither a note nor an attachment, so only mdmem's own folders are the store"
            made.notices.append(f'{why}; for every markdown file: mode = "dedicated" in {SETTINGS}, then mdmem init again')
        if place is None:
            from mdmem.repo.init import init_repo

            init_repo(directory)
        _write_files(made)
        _commit(made)
        location = at(directory)
        trust(made.store_id, remote or location.remote, location.git.top)
    location = at(directory)
    _driver(location, made)
    if remote:
        from mdmem.repo.git import Git
        from mdmem.repo.remotes import add_remote, remotes, set_remote

        git = Git(location.git.top)
        known = any(found.name == "origin" for found in remotes(git))
        (set_remote if known else add_remote)(git, "origin", remote, Path.cwd())
        trust(made.store_id, remote_url(location.git.common_dir), location.git.top)
    return made


def _not_home(directory: Path) -> None:
    """Raise Refused for the home folder and what it lies in: every markdown file below would be a note, and be pushed."""
    home = Path(os.path.realpath(os.path.expanduser("~")))
    if directory == home or directory in home.parents:
        what = "the home folder" if directory == home else "a folder that holds the home folder"
        why = f"each markdown file below {directory} would be a note of the store"
        raise Refused(f"{what} is no place for a store", why, hint="mdmem init ~/memory")


def _mode(directory: Path, place: GitPlace | None) -> tuple[str, str]:
    """Return the mode that fits a folder, and the path of the file that it is embedded for, '' for none."""
    if place is not None and place.top != directory:
        return "embedded", ""
    # A repository of notes and their attachments (a vault, a documentation folder) is a store as a whole.
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        here = Path(folder) == directory
        for name in files:
            if not (_NOTE_OR_ATTACHMENT.search(name) or name.startswith(".") or (here and name == "LICENSE")):
                return "embedded", os.path.relpath(os.path.join(folder, name), directory)
    return "dedicated", ""


# What lies in vaults of Obsidian, Logseq, Joplin and the like beside their notes.
_NOTE_OR_ATTACHMENT = re.compile(
    r"\.(md|markdown|txt|org|rtf|canvas|base|excalidraw|drawio|edn|css|bib|epub|pdf|docx?|xlsx?|pptx?|od[tsp]|[ct]sv|zip"
    r"|png|jpe?g|gif|svg|webp|avif|heic|bmp|tiff?|mp3|m4a|wav|ogg|flac|mp4|mov|mkv|webm)$",
    re.IGNORECASE,
)


def _again(directory: Path) -> Made:
    location = at(directory)
    if not location.trusted:
        raise untrusted(location)
    made = Made(directory, location.mode, location.store_id, already=True)
    missing = [line for line in attribute_lines(made.mode) if line not in _lines(directory / ATTRIBUTES)]
    if missing:
        _append(directory / ATTRIBUTES, missing)
        made.created.append(ATTRIBUTES)
        _commit(made)
    return made


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def _append(path: Path, lines: list[str]) -> None:
    old = path.read_bytes() if path.exists() else b""
    gap = b"" if not old or old.endswith(b"\n") else b"\n"
    with open(path, "ab") as stream:
        stream.write(gap + "".join(line + "\n" for line in lines).encode())


def _write_files(made: Made) -> None:
    try:
        missing = [line for line in attribute_lines(made.mode) if line not in _lines(made.root / ATTRIBUTES)]
        if missing:
            _append(made.root / ATTRIBUTES, missing)
            made.created.append(ATTRIBUTES)
        with open(made.root / SETTINGS, "x", encoding="utf-8") as stream:
            stream.write(settings_text(made.store_id, made.mode))
        made.created.append(SETTINGS)
    except OSError as error:
        raise MdmemError(f"cannot write to {made.root}", why=error.strerror or str(error)) from error


def _commit(made: Made) -> None:
    if made.mode == "embedded":
        made.notices.append(f"commit {' and '.join(made.created)} yourself: mdmem does not, among other files")
        return
    from mdmem.repo.commit import commit_paths
    from mdmem.repo.git import Git

    place = find_git(made.root)
    assert place is not None
    result = commit_paths(Git(place.top), list(made.created), "init: a store of notes")
    made.committed = result.done
    if not result.done and result.reason:
        made.notices.append(f"not committed yet: {result.reason}")


def _driver(location: Location, made: Made) -> None:
    from mdmem.repo.driver_install import install_driver
    from mdmem.repo.git import Git

    try:
        install_driver(Git(location.git.top), attribute_lines(location.mode))
    except MdmemError as error:
        made.notices.append(f"the merge driver is not installed: {error}")


def without_links(location: Location) -> None:
    """Raise Refused where a link stands among the state of a store: whoever packed it may have aimed it at the user's files."""
    for top in dict.fromkeys((location.git.git_dir / "mdmem", location.git.common_dir / "mdmem")):
        for folder, folders, files in os.walk(top):
            for name in (*folders, *files):
                if os.path.islink(path := os.path.join(folder, name)):
                    why = "what is written there would land elsewhere"
                    raise Refused(f"{path} is a symbolic link", why, "remove it: it is made anew", code="foreign_store")


def ensure_identity(location: Location) -> str:
    """Return the store's id; a store without one gets it in .mdmem.toml. Raises MdmemError."""
    if location.store_id:
        return location.store_id
    table = read_toml(location.root / SETTINGS)
    store_id = new_store_id()
    if "store" in table:
        raise MdmemError(f"{location.root / SETTINGS} has a [store] without an id", hint=f'add: id = "{store_id}"')
    _append(location.root / SETTINGS, ["", "[store]", f'id = "{store_id}"', f'mode = "{location.mode}"'])
    return store_id
