"""What a session was shown of the notes, and which of them its agent's words then cite: small files of lines, on this device.

Written and read by hooks that come every turn, so nothing is imported that costs. A line: key (id or path), path and title of a
note, between tabs. Losing one costs a count, so failures are silent."""

from __future__ import annotations

import os

from mdmem.memory.spool import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Bytes of a file of lines that are read; beyond it the file of what was shown outside of any session begins anew.
LARGEST = 1 << 20
OUTSIDE_LARGEST = 64 << 10
# Characters of a message that are looked at.
LOOKED_AT = 200_000
# A title shorter than this may stand in a text by chance; Chinese ones say more with fewer characters.
SHORT_TITLE, SHORT_WIDE_TITLE = 12, 6
# Where those note it who know of no session: the MCP server, which outlives the session that started it.
OUTSIDE = "@outside"


def line(key: str, path: str = "", title: str = "") -> str:
    """Return a note as a line of such a file, '' for one that has no key."""
    long = len(title) >= (SHORT_TITLE if title.isascii() else SHORT_WIDE_TITLE)
    parts = [key, path, title if long else ""]
    return "\t".join(" ".join(part.split()) for part in parts).rstrip("\t") if key and "\n" not in key else ""


def add(common: str, session: str, lines: Iterable[str]) -> None:
    """Note that these notes (lines) were shown to a session, or outside of any."""
    path = os.path.join(common, "given", session if session == OUTSIDE else safe(session))
    if session == OUTSIDE:
        try:
            if os.stat(path).st_size > OUTSIDE_LARGEST:
                os.replace(path, path + ".before")
        except OSError:
            pass
    append(path, lines)


def append(path: str, lines: Iterable[str]) -> None:
    """Add lines to a private file."""
    data = "".join(f"{one}\n" for one in lines if one and "\n" not in one).encode("utf-8", "replace")
    if not data:
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, flags, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError:
        return


def lines_of(path: str) -> list[str]:
    """Return the lines of such a file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(LARGEST).splitlines()
    except OSError:
        return []


def keys(common: str, session: str) -> list[str]:
    """Return the keys of what a session was shown by hooks and commands."""
    found = (lines_of(os.path.join(common, folder, safe(session))) for folder in ("given", "seen"))
    return list(dict.fromkeys(one.partition("\t")[0] for lines in found for one in lines))


def cite(common: str, session: str, text: str) -> list[str]:
    """Note which of the notes that were shown a message names by id, path or title; returns the keys that are new."""
    name = safe(session)
    files = [os.path.join(common, "seen", name)]
    files += [os.path.join(common, "given", one) for one in (name, OUTSIDE, OUTSIDE + ".before")]
    shown = dict.fromkeys(one for file in files for one in lines_of(file))
    if not shown:
        return []
    path = os.path.join(common, "cited", name)
    before = set(lines_of(path))
    folded = text[:LOOKED_AT].casefold()
    new: dict[str, None] = {}
    for one in shown:
        parts = one.split("\t")
        if parts[0] not in before and any(part and _stands(part.casefold(), folded) for part in parts):
            new[parts[0]] = None
    append(path, new)
    return list(new)


def _stands(name: str, text: str) -> bool:
    """Tell whether a name stands in a text as a whole: not `project-x` in `project-xy`."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(name) : at + len(name) + 1]
        if not (_goes_on(before) and _goes_on(name[0])) and not (_goes_on(after) and _goes_on(name[-1])):
            return True
        at = text.find(name, at + 1)
    return False


def _goes_on(char: str) -> bool:
    return char != "" and char.isascii() and (char.isalnum() or char in "-_")


def cited(common: str, session: str) -> list[str]:
    """Return the keys that a session's messages cited."""
    return list(dict.fromkeys(lines_of(os.path.join(common, "cited", safe(session)))))


def silent(common: str, before: float) -> list[str]:
    """Return the sessions (as file names) that cited something and whose last citation is older than `before`."""
    found = []
    try:
        with os.scandir(os.path.join(common, "cited")) as entries:
            for entry in entries:
                if entry.stat().st_mtime < before:
                    found.append(entry.name)
    except OSError:
        return []
    return sorted(found)


def drop(common: str, session: str) -> None:
    """Forget what a session was shown and cited."""
    for folder in ("given", "cited"):
        try:
            os.unlink(os.path.join(common, folder, safe(session)))
        except OSError:
            continue


def expire(common: str, before: float) -> None:
    """Remove what nobody looked at since `before`."""
    try:
        with os.scandir(os.path.join(common, "given")) as entries:
            for entry in entries:
                if entry.stat().st_mtime < before:
                    os.unlink(entry.path)
    except OSError:
        return


def purge(common: str, words: Iterable[str]) -> None:
    """Take every line out that holds one of these words: the id, path or title of a note that is to leave no trace. Raises
    OSError."""
    wanted = [" ".join(word.split()) for word in words if word.strip()]
    for folder in ("given", "seen", "cited"):
        place = os.path.join(common, folder)
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
            path = os.path.join(place, name)
            lines = lines_of(path)
            kept = [one for one in lines if not any(word in one for word in wanted)]
            if len(kept) < len(lines):
                os.unlink(path)
                append(path, kept)
