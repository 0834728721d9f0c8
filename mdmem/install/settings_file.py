"""One settings file of another program: read whole, changed as text, written in one step, or left as it is.

The byte order mark, the line ends and the final newline stay. A symbolic link is followed, so that a person's
collection of dotfiles keeps its file. Knows nothing of what stands in the file.
"""

from __future__ import annotations

import difflib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mdmem.errors import ConflictFound, MdmemError, Refused, WriteFailed

LARGEST = 16 << 20
_BOM = "\ufeff"


@dataclass
class SettingsFile:
    """A file as it was read: `data` is None when it does not exist; `text` is without the byte order mark."""

    path: Path
    target: Path
    data: bytes | None
    text: str
    bom: bool

    def write(self, text: str) -> bool:
        """Replace the text; returns False when nothing changed. Raises ConflictFound when somebody else wrote
        meanwhile, WriteFailed when the disk refuses."""
        data = ((_BOM if self.bom else "") + text).encode("utf-8")
        if data == self.data:
            return False
        if _bytes_of(self.target) != self.data:
            raise ConflictFound(f"{self.path} changed while it was being edited", hint="try again")
        try:
            _replace(self.target, data)
        except OSError as error:
            raise WriteFailed(f"cannot write {self.path}", why=error.strerror or str(error)) from error
        return True

    def delete(self) -> None:
        """Remove the file (and not what a symbolic link points to)."""
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise WriteFailed(f"cannot remove {self.path}", why=error.strerror or str(error)) from error

    def diff(self, text: str) -> str:
        """Return the change to `text` as a unified diff, '' for none."""
        old = self.text.splitlines(keepends=True)
        new = text.splitlines(keepends=True)
        lines = difflib.unified_diff(old, new, str(self.path), str(self.path), n=2)
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def read_settings(path: Path) -> SettingsFile:
    """Return the file at `path`, which need not exist. Raises Refused for a folder, a device, other than UTF-8 text
    or more than 16 MB."""
    target = Path(os.path.realpath(path))
    data = _bytes_of(target)
    if data is None:
        return SettingsFile(path, target, None, "", False)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{path} is not UTF-8 text", why="it was left as it is", hint="save it as UTF-8") from error
    bom = text.startswith(_BOM)
    return SettingsFile(path, target, data, text[1:] if bom else text, bom)


def _bytes_of(path: Path) -> bytes | None:
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise Refused(f"{path} is not a file")
        if found.st_size > LARGEST:
            raise Refused(f"{path} is larger than {LARGEST >> 20} MB")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise MdmemError(f"cannot read {path}", why=error.strerror or str(error)) from error


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mode = 0o600
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # pragma: no cover - folders cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
