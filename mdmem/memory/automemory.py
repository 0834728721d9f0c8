"""Claude Code's own memory folder and ours: a two-way sync by hash, merged three ways where both sides changed.

For each file the hashes of both sides at the last sync are kept with the text of that moment. A side whose hash is as it was
has nothing to say, so neither side is ever overwritten by the other's older state; what both changed is merged, and the merge
goes to both. A folder that cannot be read says nothing about its files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError, NotFound
from mdmem.locate import find_git, project_name, write_private
from mdmem.locks import FileLock
from mdmem.memory.edited import commit_edited
from mdmem.memory.memory_index import INDEX, index_text, listed_notes, refresh_index, union
from mdmem.memory.write import commit

if TYPE_CHECKING:
    from mdmem.store import Store

# What Claude Code reads of its folder: files up to this size, this many of them.
LARGEST = 100_000
MOST = 1000


@dataclass
class MemorySync:
    """What a sync did, by path: to the store, to Claude's folder, merged, removed; and what could not be done."""

    project: str
    folder: str
    to_store: list[str] = field(default_factory=list)
    to_claude: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    redacted: int = 0
    committed: bool = False
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(self.__dict__)


def claude_slug(root: Path) -> str:
    """Return the folder name that Claude Code gives a project: every character but ASCII letters and digits becomes `-`,
    beyond 200 characters cut and ended by a hash in base 36 (Java's String.hashCode, as JavaScript programs write it)."""
    text = str(root)
    slug = re.sub(r"[^A-Za-z0-9]", "-", text)
    if len(slug) <= 200:
        return slug
    number = 0
    data = text.encode("utf-16-le")
    for at in range(0, len(data), 2):
        number = (number * 31 + data[at] + 256 * data[at + 1]) & 0xFFFFFFFF
    number = abs(number - (1 << 32) if number >= 1 << 31 else number)
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return f"{slug[:200]}-{digits or '0'}"


def claude_memory(cwd: Path) -> Path:
    """Return Claude Code's own memory folder for a session in `cwd` (it need not exist): keyed by the main git root."""
    place = find_git(cwd)
    root = cwd
    if place is not None:
        root = place.common_dir.parent if place.common_dir.name == ".git" else place.top
    config = os.environ.get("CLAUDE_CONFIG_DIR")
    projects = (Path(config) if config else Path.home() / ".claude") / "projects"
    named = projects / claude_slug(root)
    if len(named.name) > 200 and not named.is_dir() and projects.is_dir():
        alike = [p for p in projects.iterdir() if p.name.startswith(named.name[:201])]
        if len(alike) == 1:
            named = alike[0]
    return named / "memory"


def store_folder(project: str) -> str:
    """Return the folder of the store, relative to it, where a project's native memory lives."""
    from mdmem.notes.names import slug

    return f"claude/{slug(project)}"


def sync_memories(store: Store, cwd: Path, dry_run: bool = False) -> MemorySync:
    """Sync Claude Code's memory of the project in `cwd` with the store. Raises NotFound outside of a project.

    One file that cannot be taken is named in `failed` and stops no other. Commits once, at the end.
    """
    project = project_name(cwd) or cwd.name
    if not project:
        raise NotFound("no project here", why="neither a git repository nor a named folder", hint="cd into the project")
    theirs = claude_memory(cwd)
    ours = store_folder(project)
    out = MemorySync(project, str(theirs))
    if os.path.realpath(theirs) == os.path.realpath(store.root / ours):
        out.reason = "Claude Code writes into the store already"
        return out
    base = _Base(store.common_state_dir / "automemory" / hashlib.sha256(str(theirs).encode()).hexdigest()[:16])
    with FileLock(base.folder / "lock"):
        left = _claude_files(theirs, out)
        right = _store_files(store, ours, out)
        base.load()
        if not left or not right:
            # A side that is not there, or is empty as a whole, was moved or is new: it says nothing about single files.
            base.known = {}
        # The list comes last: it is made from the files that the others have become.
        names = sorted({*left, *right, *base.known, INDEX}, key=lambda name: (name == INDEX, name))
        for name in names:
            path = f"{ours}/{name}"
            try:
                if name == INDEX and not dry_run and refresh_index(store, ours):
                    right[name] = store.folder.read_bytes(path)
                pair = _Pair(store, base, out, dry_run, name, path, theirs / name, left.get(name), right.get(name))
                pair.settle()
            except (OSError, MdmemError) as error:
                out.failed.append({"path": name, "reason": str(error)})
        if not dry_run:
            try:
                base.save()
            except OSError as error:
                # The files are where they belong; without a base the next sync merges more than it need.
                out.failed.append({"path": error.filename or str(base.folder), "reason": error.strerror or str(error)})
    if dry_run:
        return out
    touched = [*out.to_store, *out.to_claude, *out.merged, *out.removed]
    if touched:
        edited = commit_edited(store, [f"{ours}/{name}" for name in dict.fromkeys([*touched, INDEX])])
        out.committed = bool(edited.committed)
        out.reason = edited.reason or "; ".join(f"{path} is held back: {why}" for path, why in edited.held.items())
    return out


class _Base:
    """What both sides looked like at the last sync: hashes, and the text for merging."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[str, dict[str, str]] = {}

    def load(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            data = json.loads((self.folder / "base.json").read_text("utf-8"))
            self.known = {k: v for k, v in data.items() if isinstance(v, dict)}
        except (OSError, ValueError, AttributeError, RecursionError):
            # Without a base both versions count as new: more is merged, nothing is lost.
            self.known = {}

    def save(self) -> None:
        write_private(self.folder / "base.json", json.dumps(self.known, indent=1).encode())
        kept = {entry.get("text") for entry in self.known.values()}
        for path in self.folder.glob("*.text"):
            if path.stem not in kept:
                path.unlink(missing_ok=True)

    def text(self, name: str) -> bytes | None:
        try:
            return (self.folder / (self.known[name]["text"] + ".text")).read_bytes()
        except (KeyError, OSError):
            return None

    def put(self, name: str, left: bytes, right: bytes) -> None:
        text = _sha(right)
        write_private(self.folder / f"{text}.text", right)
        self.known[name] = {"claude": _sha(left), "store": _sha(right), "text": text}


def _sha(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _claude_files(folder: Path, out: MemorySync) -> dict[str, bytes]:
    """Return {relative path: bytes} of the markdown files below Claude's folder. Raises OSError when one cannot be listed."""
    found: dict[str, bytes] = {}
    if not folder.is_dir():
        return found

    def stop(error: OSError) -> None:
        raise MdmemError(f"cannot read {folder}", why=str(error), hint="nothing was changed")

    for top, folders, files in os.walk(folder, onerror=stop):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and not os.path.islink(os.path.join(top, f)))
        for file in sorted(files):
            path = Path(top, file)
            if not file.lower().endswith(".md") or path.is_symlink() or not path.is_file():
                continue
            name = path.relative_to(folder).as_posix()
            if path.stat().st_size > LARGEST or len(found) >= MOST:
                out.failed.append({"path": name, "reason": f"larger than {LARGEST:,} bytes, or too many files"})
                found[name] = _SKIP
                continue
            found[name] = path.read_bytes()
    return found


# Stands for a file that is there but is not taken part of the sync.
_SKIP = b"\0skip"


def _store_files(store: Store, ours: str, out: MemorySync) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    if not (store.root / ours).is_dir():
        return found
    for stat in store.folder.scan():
        if stat.path.startswith(ours + "/"):
            found[stat.path[len(ours) + 1 :]] = store.folder.read_bytes(stat.path)
    for path in store.folder.unread:
        if path == ours or path.startswith(ours + "/") or ours.startswith(path + "/"):
            raise MdmemError(f"cannot read {path}", hint="nothing was changed")
    return found


@dataclass
class _Pair:
    """One file on both sides: `left` in Claude's folder, `right` in the store; None where it is not there."""

    store: Store
    base: _Base
    out: MemorySync
    dry_run: bool
    name: str
    path: str
    theirs: Path
    left: bytes | None
    right: bytes | None

    def settle(self) -> None:
        """Bring both sides to the same text, or to none."""
        if self.left is _SKIP:
            return
        known = self.base.known.get(self.name, {})
        left_new = _sha(self.left) != known.get("claude", "")
        right_new = _sha(self.right) != known.get("store", "")
        if self.left is None and self.right is None:
            self.base.known.pop(self.name, None)
        elif self.left is not None and self.left == self.right:
            self._remember(self.left, self.left)
        elif left_new and right_new:
            self._both()
        elif left_new:
            self._to_store() if self.left is not None else self._gone()
        elif right_new:
            self._to_claude() if self.right is not None else self._gone()

    def _to_store(self) -> None:
        assert self.left is not None
        clean = _redacted(self.left, self.out)
        self.out.to_store.append(self.name)
        if not self.dry_run:
            self._put_store(clean)
            self._remember(self.left, clean)

    def _to_claude(self) -> None:
        assert self.right is not None
        self.out.to_claude.append(self.name)
        if not self.dry_run:
            self._put_claude(self.right)
            self._remember(self.right, self.right)

    def _gone(self) -> None:
        """One side removed what the other left as it was."""
        self.out.removed.append(self.name)
        if self.dry_run:
            return
        if self.left is None:
            self.store.folder.delete(self.path, _sha(self.right))
        elif self.theirs.exists() and self.theirs.read_bytes() == self.left:
            self.theirs.unlink()
        self.base.known.pop(self.name, None)

    def _both(self) -> None:
        """Both sides changed. Against a removal the edit stays."""
        if self.left is None:
            self._to_claude()
            return
        if self.right is None:
            self._to_store()
            return
        clean = _redacted(self.left, self.out)
        base = self.base.text(self.name)
        self.out.merged.append(self.name)
        if self.name == INDEX:
            own = union(base, clean, self.right).decode("utf-8", "surrogateescape")
            listed = index_text(own, listed_notes(self.store, self.path.rpartition("/")[0]))
            text = listed.encode("utf-8", "surrogateescape")
        else:
            from mdmem.repo.merge import merge

            result = merge(base, clean, self.right, self.path)
            text = result.text
            if result.conflicts:
                self.out.conflicts.append(self.name)
        if not self.dry_run:
            self._put_store(text)
            self._put_claude(text)
            self._remember(text, text)

    def _remember(self, left: bytes, right: bytes) -> None:
        if not self.dry_run:
            self.base.put(self.name, left, right)

    def _put_store(self, data: bytes) -> None:
        if self.right is None:
            self.store.folder.create(self.path, data)
        elif data != self.right:
            self.store.folder.write(self.path, data, _sha(self.right))

    def _put_claude(self, data: bytes) -> None:
        if data == self.left:
            return
        now = self.theirs.read_bytes() if self.theirs.exists() else None
        if now != self.left:
            raise MdmemError(f"{self.theirs.name} changed meanwhile", hint="mdmem sync-memories")
        write_private(self.theirs, data)


def _redacted(data: bytes, out: MemorySync) -> bytes:
    from mdmem.notes.redact import redact

    done = redact(data.decode("utf-8", "surrogateescape"))
    if not done.findings:
        return data
    out.redacted += len(done.findings)
    return done.text.encode("utf-8", "surrogateescape")


def adopt(store: Store, cwd: Path) -> MemorySync:
    """Bring what Claude Code remembers of a project into the store, and make the folder ready to be its memory folder.

    Returns the sync's outcome; the folder to name as autoMemoryDirectory is `store.root / store_folder(project)`.
    """
    out = sync_memories(store, cwd)
    ours = store_folder(out.project)
    (store.root / ours).mkdir(parents=True, exist_ok=True)
    if refresh_index(store, ours):
        done = commit(store, [f"{ours}/{INDEX}"], f"memories: list of {out.project}")
        out.committed, out.reason = done.done, done.reason
    return out
