"""The spool: what happened in a session, on this device only, until its session note is written.

One file of JSON lines per session under the clone's common state folder. Records:

    t  seconds since the epoch      h  first 16 hex digits of the SHA-256 of the rest (not for start, end, dropped)
    k  start (source, cwd, scope, transcript) | prompt (text) | tool (tool, files, what, program, ok, error) |
       said (text: the last message of a turn) | summary (text: Claude's own at compaction) | end (reason) |
       dropped (count: older records that gave way)
    a  the subagent, when it was one

Every text passed the redaction gate before it was cut and before it was written. Knows nothing of Claude's payloads.
"""

from __future__ import annotations

import os

from mdmem.memory import journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The same thing seen again within this many seconds is not written again.
SAME_WITHIN = 300.0
# Bytes of one session's file; beyond it the older half gives way.
LARGEST = 512 << 10
# Bytes at the end of the file in which a repeat is looked for.
TAIL = 64 << 10
# Characters that redaction looks at beyond those that are kept, so that a secret on the border is seen whole.
MARGIN = 32 << 10
# Days after which a session's file goes, noted or not.
EXPIRES = 30


def file_of(common: str, session: str) -> str:
    """Return the path of a session's file."""
    return os.path.join(common, "spool", safe(session) + ".jsonl")


def safe(session: str) -> str:
    """Return a session id as a file name; another one with the same letters gets another name."""
    if session.isascii() and 0 < len(session) <= 80 and session.replace("-", "").replace("_", "a").isalnum():
        return session
    return "s-" + _sha256(session.encode("utf-8", "surrogatepass"))[:24]


def keepable(text: str, limit: int) -> str:
    """Return `text` redacted, then cut to `limit` characters (the middle gives way); a note of failure when it cannot be
    redacted: nothing unredacted is ever kept."""
    window = text[: limit + MARGIN]
    try:
        from mdmem.notes.redact import redact

        clean: str = redact(window).text
    except Exception:
        return "(left out: it could not be redacted)"
    if len(clean) <= limit and len(window) == len(text):
        return clean
    if len(window) < len(text):
        # The end of the window may cut a secret in two, so only its beginning is kept.
        return clean[:limit].rstrip() + " …"
    head = limit * 2 // 3
    return clean[:head].rstrip() + " … " + clean[len(clean) - (limit - head) :].lstrip()


def add(common: str, session: str, record: dict[str, Any], now: float) -> bool:
    """Append a record whose texts are already redacted; returns False for a repeat. Raises OSError."""
    body = journal.line(record)
    marked = {"t": round(now, 3)}
    repeatable = record.get("k") not in ("start", "end")
    if repeatable:
        marked["h"] = _sha256(body)[:16]  # type: ignore[assignment]
    path = file_of(common, session)
    descriptor, held = journal.open_locked(path)
    try:
        if repeatable and _seen(descriptor, str(marked["h"]), now):
            return False
        data = journal.line({**marked, **record})
        if held and os.fstat(descriptor).st_size + len(data) > LARGEST:
            _make_room(descriptor, path, data, now)
        else:
            journal.write(descriptor, data)
    finally:
        os.close(descriptor)
    return True


def _seen(descriptor: int, digest: str, now: float) -> bool:
    size = os.fstat(descriptor).st_size
    tail = journal.read_at(descriptor, min(size, TAIL), max(0, size - TAIL))
    at = tail.rfind(b'"h":"' + digest.encode() + b'"')
    if at < 0:
        return False
    start = tail.rfind(b"\n", 0, at) + 1
    end = tail.find(b"\n", at)
    for found in journal.parse(tail[start : end if end >= 0 else len(tail)]):
        when = found.get("t")
        return isinstance(when, (int, float)) and 0 <= now - when < SAME_WITHIN
    return False


def _make_room(descriptor: int, path: str, data: bytes, now: float) -> None:
    """Rewrite the file with its first start and prompt, a mark, and the newer half. The caller holds the lock."""
    records = journal.parse(journal.read_at(descriptor, os.fstat(descriptor).st_size, 0))
    dropped = sum(int(r.get("count", 0)) for r in records if r.get("k") == "dropped")
    records = [r for r in records if r.get("k") != "dropped"]
    first = [next((r for r in records if r.get("k") == kind), None) for kind in ("start", "prompt")]
    kept: list[bytes] = []
    size = 0
    for record in reversed(records):
        line = journal.line(record)
        if size + len(line) > LARGEST // 2:
            break
        size += len(line)
        kept.append(line)
    newest = records[len(records) - len(kept) :]
    head = [r for r in first if r is not None and r not in newest]
    mark = {"t": round(now, 3), "k": "dropped", "count": dropped + len(records) - len(newest) - len(head)}
    whole = b"".join([*(journal.line(r) for r in head), journal.line(mark), *reversed(kept), data])
    _replace(path, whole)


def _replace(path: str, data: bytes) -> None:
    temporary = f"{path}.{os.getpid()}"
    new = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        journal.write(new, data)
    finally:
        os.close(new)
    os.replace(temporary, path)


def sessions(common: str) -> list[tuple[str, float]]:
    """Return (file name without ending, seconds since the epoch of the last write) of each session, oldest first."""
    found = []
    try:
        with os.scandir(os.path.join(common, "spool")) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl"):
                    found.append((entry.name[:-6], entry.stat().st_mtime))
    except OSError:
        return []
    return sorted(found, key=lambda pair: (pair[1], pair[0]))


def records(common: str, session: str) -> list[dict[str, Any]]:
    """Return a session's records in the order written."""
    return journal.read(file_of(common, session))


def drop(common: str, session: str) -> None:
    """Remove a session's file."""
    try:
        os.unlink(file_of(common, session))
    except FileNotFoundError:
        pass


def purge(common: str, texts: list[str]) -> int:
    """Take every record that holds one of `texts` out of all sessions' files; returns how many. Raises OSError."""
    # Records are ASCII JSON, so a text is looked for as JSON writes it, without its quotes.
    needles = [journal.line({"": text})[5:-3] for text in texts if text]
    gone = 0
    for name, _ in sessions(common):
        path = os.path.join(common, "spool", name + ".jsonl")
        descriptor, held = journal.open_locked(path, 10.0)
        try:
            if not held:
                raise OSError(f"{path} stays locked by another process")
            data = journal.read_at(descriptor, os.fstat(descriptor).st_size, 0)
            lines = data.splitlines(keepends=True)
            kept = [line for line in lines if not any(needle in line for needle in needles)]
            if len(kept) < len(lines):
                _replace(path, b"".join(kept))
                gone += len(lines) - len(kept)
        finally:
            os.close(descriptor)
    return gone


def expire(common: str, now: float) -> int:
    """Remove the files not written to for EXPIRES days; returns how many."""
    old = [name for name, last in sessions(common) if now - last > EXPIRES * 86400]
    for name in old:
        drop(common, name)
    return len(old)


def _sha256(data: bytes) -> str:
    try:
        # Loading OpenSSL through hashlib costs a fifth of a bare start; the built-in module costs nothing.
        from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            from hashlib import sha256
    return str(sha256(data).hexdigest())
