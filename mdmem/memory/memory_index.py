"""Claude Code's MEMORY.md: a generated list between two marks, everything outside of them left as it is.

Claude loads the first 200 lines or 25,000 characters and is told to shrink the file from 80% of that on, so the generated
list stays below three quarters. A file that somebody's own line links is not listed again.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from mdmem.errors import MdmemError

if TYPE_CHECKING:
    from mdmem.store import Store

INDEX = "MEMORY.md"
BEGIN = "<!-- mdmem: generated list, rewritten by mdmem; your own lines go outside of it -->"
END = "<!-- mdmem: end of the generated list -->"

LINES, CHARACTERS = 150, 18_750
HOOK = 120

_BLOCK = re.compile(
    r"^<!-- mdmem: generated list\b[^\n]*\n.*?^<!-- mdmem: end of the generated list -->[^\n]*\n?", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"\]\(\s*<?([^()<>\s][^()<>]*?)>?\s*\)")


def own_text(text: str) -> str:
    """Return MEMORY.md without the generated list."""
    return _BLOCK.sub("", text)


def index_text(text: str, notes: list[tuple[str, str, str, str]]) -> str:
    """Return MEMORY.md with its list renewed from `notes`: (path, title, summary, updated); own lines are untouched.

    When not all fit, the most recently updated ones are listed. Sorted by path, so that two machines write the same.
    """
    own = own_text(text)
    linked = {target.removeprefix("./") for target in _LINK.findall(own)}
    wanted = [note for note in notes if note[0] not in linked]
    lines_left = LINES - len(own.splitlines()) - 2
    room = CHARACTERS - len(own) - len(BEGIN) - len(END) - 4
    listed: list[tuple[str, str]] = []
    for path, title, summary, _ in sorted(wanted, key=lambda n: (n[3], n[0]), reverse=True):
        line = _line(path, title, summary)
        if len(listed) < lines_left and len(line) + 1 <= room:
            listed.append((path, line))
            room -= len(line) + 1
    if not listed:
        return own if own != text else text
    block = "\n".join([BEGIN, *(line for _, line in sorted(listed)), END]) + "\n"
    if own == text:
        return own + ("" if not own or own.endswith("\n") else "\n") + block
    return _BLOCK.sub(lambda _: block, text, count=1) if len(_BLOCK.findall(text)) == 1 else own + block


def _line(path: str, title: str, summary: str) -> str:
    title = " ".join(title.replace("[", "(").replace("]", ")").split())
    target = f"<{path}>" if " " in path else path
    hook = " ".join(summary.split())
    if len(hook) > HOOK:
        hook = hook[:HOOK].rstrip() + "…"
    return f"- [{title}]({target})" + (f" — {hook}" if hook else "")


def refresh_index(store: Store, folder: str) -> bool:
    """Renew the list in `<folder>/MEMORY.md` of the store; returns whether the file changed. Does not commit."""
    notes = listed_notes(store, folder)
    path = f"{folder}/{INDEX}"
    if not store.folder.exists(path):
        if not notes:
            return False
        store.folder.create(path, index_text("", notes).encode())
        return True
    data = store.folder.read_bytes(path)
    new = index_text(data.decode("utf-8", "surrogateescape"), notes).encode("utf-8", "surrogateescape")
    if new == data:
        return False
    store.folder.write(path, new, hashlib.sha256(data).hexdigest())
    return True


def listed_notes(store: Store, folder: str) -> list[tuple[str, str, str, str]]:
    """Return (path below the folder, title, summary, updated) of each active note in a folder of the store."""
    notes = []
    for stat in store.folder.scan():
        if not stat.path.startswith(folder + "/") or stat.path == f"{folder}/{INDEX}":
            continue
        try:
            note = store.folder.read(stat.path)
        except MdmemError:
            continue
        if note.ok and (note.status or "active") in ("active", ""):
            notes.append((stat.path[len(folder) + 1 :], note.title, note.summary or "", note.updated or ""))
    return notes


def union(base: bytes | None, one: bytes, other: bytes) -> bytes:
    """Return the own lines of two MEMORY.md files merged as a list: what either removed since `base` goes, what either
    added stays, in the order of `one`, then the rest. The generated list is left out; it is made anew."""
    was, left, right = (own_text((data or b"").decode("utf-8", "surrogateescape")).splitlines() for data in (base, one, other))
    removed = {line for line in was if line.strip() and (line not in left or line not in right)}
    merged = [line for line in left if line not in removed]
    merged += [line for line in right if line.strip() and line not in removed and line not in left]
    text = "\n".join(merged) + ("\n" if merged else "")
    return text.encode("utf-8", "surrogateescape")
