"""Whether a path may be touched at all: inside the store, through no symlink, in no other repository."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from mdmem.errors import Refused
from mdmem.notes.names import is_git

# Files of the store that are no notes and lie at its root.
OWN_FILES = (".mdmem.toml", ".gitattributes", ".gitignore")

# Windows: a folder that leads elsewhere without being a symlink.
_is_junction: Callable[[str], bool] = getattr(os.path, "isjunction", lambda path: False)


def inside(root: Path, owned: tuple[str, ...], path: str) -> Path:
    """Return the full path of a posix path relative to root; it need not exist.

    Raises Refused when it is absolute, leaves the root, names git's own folder, passes through or is a
    symlink, or lies in no owned folder.
    """
    parts = path.split("/")
    bad = (
        not path
        or "\0" in path
        or os.path.isabs(path)
        or any(part in ("", ".", "..") or is_git(part) for part in parts)
        or (os.sep != "/" and (os.sep in path or ":" in path))
    )
    if bad:
        raise Refused(f"not a path inside the store: {path!r}", code="unsafe_path")
    if not any(not own or path == own or path.startswith(own + "/") for own in owned) and path not in OWN_FILES:
        raise Refused(f"not in a folder of mdmem: {path}", code="unsafe_path")
    place = os.fspath(root)
    for part in parts:
        place = os.path.join(place, part)
        try:
            mode = os.lstat(place).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return root.joinpath(*parts)
        except OSError as error:
            raise Refused(f"cannot look at {path}", why=str(error.strerror), code="unreadable") from None
        if stat.S_ISLNK(mode) or _is_junction(place):
            raise Refused(f"a symbolic link is not followed: {path}", code="symlink")
    return Path(place)


def not_nested(root: Path, path: str) -> None:
    """Raise Refused when a folder on the way to path is the top of another git repository."""
    place = os.fspath(root)
    for part in path.split("/")[:-1]:
        place = os.path.join(place, part)
        if os.path.lexists(os.path.join(place, ".git")):
            raise Refused(f"another git repository begins at {part}", why=path, code="nested_repository")
