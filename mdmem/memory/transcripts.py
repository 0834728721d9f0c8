"""Claude Code's transcripts (JSON lines) as session records: users and assistants only, along the branch that counts.

The format is internal to Claude Code: unknown record types are skipped, a partial last line is left for the next read.
Whole requests, attachments and our own injected context are never read as conversation.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mdmem.clock import read_stamp
from mdmem.errors import MdmemError, NotFound
from mdmem.memory.prompts import from_machine
from mdmem.memory.session_record import SessionRecord, Turn, add_tool, keep, tool_line
from mdmem.memory.spool import keepable
from mdmem.memory.write import commit, subject

if TYPE_CHECKING:
    from mdmem.store import Store

# Bytes of one line; a longer one is a blob, not conversation.
LONGEST_LINE = 16 << 20
# Where a record keeps its line in the file, from 1.
LINE = " line"
# Characters kept of a prompt and of an answer.
PROMPT, SAID = 4000, 4000

_INJECTED = re.compile(r"<(mdmem-[\w-]+)[^<>]*>.*?(?:</\1>|\Z)", re.DOTALL)
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
_EXIT = re.compile(r"(?:Error: )?Exit code (\d{1,5})")


def transcripts_folder() -> Path:
    """Return where Claude Code keeps its transcripts."""
    config = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(config) if config else Path.home() / ".claude") / "projects"


def read_transcript(path: Path) -> SessionRecord | None:
    """Return the session in a transcript, None when it holds no conversation. Raises OSError."""
    tree: dict[str, str] = {}
    talk: dict[str, dict[str, Any]] = {}
    titles: dict[str, str] = {}
    last = ""
    for record in _lines(path):
        kind, identity = record.get("type"), record.get("uuid")
        if isinstance(kind, str) and kind in _TITLES and isinstance(record.get(_TITLES[kind]), str):
            titles[kind] = record[_TITLES[kind]]
        if not isinstance(identity, str):
            continue
        parent = record.get("parentUuid") or record.get("logicalParentUuid")
        tree[identity] = parent if isinstance(parent, str) else ""
        if kind in ("user", "assistant") and not record.get("isSidechain") and isinstance(record.get("message"), dict):
            talk[identity] = record
            last = identity
    chain: list[dict[str, Any]] = []
    seen: set[str] = set()
    while last and last not in seen:
        seen.add(last)
        if last in talk:
            chain.append(talk[last])
        last = tree.get(last, "")
    return _record(path, chain[::-1], titles) if chain else None


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    number = 0
    with _opened(path) as stream:
        while line := stream.readline(LONGEST_LINE):
            number += 1
            if not line.endswith(b"\n"):
                if len(line) < LONGEST_LINE:
                    # The last line may still be being written; whole, it counts.
                    yield from _parsed(line, number)
                    return
                while line and not line.endswith(b"\n"):
                    line = stream.readline(LONGEST_LINE)
                continue
            yield from _parsed(line, number)


def _opened(path: Path) -> IO[bytes]:
    """Open a transcript. Raises OSError, also for a name that is none and for a pipe or a device: reading one might never end,
    and the worker would close no session any more."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def _parsed(line: bytes, number: int) -> Iterator[dict[str, Any]]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(record, dict):
        record[LINE] = number
        yield record


def _record(path: Path, chain: list[dict[str, Any]], titles: dict[str, str]) -> SessionRecord | None:
    times = [moment for r in chain if (moment := _time(r)) is not None]
    if not times:
        return None
    session = path.stem if re.fullmatch(r"[0-9a-f-]{36}", path.stem) else str(chain[-1].get("sessionId") or path.stem)
    out = SessionRecord(session, min(times), max(times))
    out.cwd = next((r["cwd"] for r in chain if isinstance(r.get("cwd"), str)), "")
    title = titles.get("custom-title") or titles.get("ai-title") or titles.get("summary") or ""
    out.title = keepable(" ".join(title.split()), 100) if title else ""
    calls: dict[str, dict[str, Any]] = {}
    spoken = ""
    for record in chain:
        blocks = _blocks(record["message"].get("content"))
        if record["type"] == "user":
            if record.get("isCompactSummary"):
                out.summary = keepable(_text(blocks), 8000)
            elif not record.get("isMeta"):
                _user(out, record, blocks, calls)
        elif not record.get("isApiErrorMessage"):
            text = _text(blocks)
            # One record per block, the same message id: their texts are one message.
            if record["message"].get("id") == spoken and out.said and text:
                out.said[-1] = keepable(out.said[-1] + "\n" + text, SAID)
                next(turn for turn in reversed(out.turns) if turn.who == "assistant").text = out.said[-1]
            elif text:
                out.said.append(keepable(text, SAID))
                out.turns.append(Turn("assistant", out.said[-1], record[LINE], _time(record) or out.started))
                spoken = record["message"].get("id") or ""
            for block in blocks:
                if block.get("type") == "tool_use":
                    calls[str(block.get("id"))] = block
    return out


def _user(out: SessionRecord, record: dict[str, Any], blocks: list[dict[str, Any]], calls: dict[str, dict[str, Any]]) -> None:
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for block in results:
        call = calls.get(str(block.get("tool_use_id")))
        if call is not None:
            done = _call(call, block, out.cwd)
            add_tool(out, done)
            out.turns.append(Turn("tool", tool_line(done), record[LINE], _time(record) or out.started, bool(done["ok"])))
    if results:
        return
    text = _text(blocks)
    if text and not from_machine(text, record.get("promptSource")):
        out.prompts.append(keepable(text, PROMPT))
        out.turns.append(Turn("user", out.prompts[-1], record[LINE], _time(record) or out.started))


def _call(call: dict[str, Any], result: dict[str, Any], cwd: str) -> dict[str, Any]:
    given = call.get("input") if isinstance(call.get("input"), dict) else {}
    assert isinstance(given, dict)
    names = [given.get(key) for key in ("file_path", "notebook_path", "path")]
    failed = bool(result.get("is_error"))
    record: dict[str, Any] = {"tool": str(call.get("name", "")), "ok": not failed}
    record["files"] = [keepable(n.removeprefix(cwd + "/") if cwd else n, 300) for n in names if isinstance(n, str) and n]
    if isinstance(given.get("description"), str):
        record["what"] = keepable(given["description"], 200)
    if failed:
        text = _text(_blocks(result.get("content")))
        exited = _EXIT.match(text)
        # A shell's error repeats what was typed; only its exit code is kept.
        record["error"] = (f"exit code {exited[1]}" if exited else "") if record["tool"] == "Bash" else keepable(text, 300)
    return record


def _blocks(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _text(blocks: list[dict[str, Any]]) -> str:
    texts = [block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)]
    return _INJECTED.sub("", "\n".join(texts)).strip()


def _time(record: dict[str, Any]) -> datetime | None:
    value = record.get("timestamp")
    return read_stamp(value) if isinstance(value, str) else None


# --- importing -----------------------------------------------------------------------------------


@dataclass
class Transcripts:
    """What an import of transcripts did; `failed` names each file that could not be read, with the reason."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    empty: int = 0
    paths: list[str] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    committed: bool = False
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(self.__dict__)


def transcript_files(source: Path) -> list[Path]:
    """Return the session transcripts at or below `source`, sorted; those of subagents are left out. Raises NotFound."""
    if source.is_file():
        return [source]
    if not source.is_dir():
        raise NotFound(f"no such file or folder: {source}", hint="mdmem import transcripts PATH")
    found = source.rglob("*.jsonl")
    return sorted(p for p in found if not {"subagents", "tool-results"} & set(p.parts) and not p.is_symlink())


def import_transcripts(
    store: Store,
    source: Path | None = None,
    *,
    dry_run: bool = False,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> Transcripts:
    """Make a session note of each transcript; twice is once, a transcript that grew renews its note. One commit, at the end."""
    out = Transcripts()
    files = transcript_files(source or transcripts_folder())
    for number, path in enumerate(files):
        progress(number, len(files), path.stem[:8])
        try:
            _import_one(store, path, dry_run, out)
        except (OSError, MdmemError) as error:
            out.failed.append({"path": str(path), "reason": str(error)})
    progress(len(files), len(files), "")
    if out.paths:
        done = commit(store, out.paths, subject("import", f"{len(out.paths)} sessions"))
        out.committed, out.reason = done.done, done.reason
    return out


def _import_one(store: Store, path: Path, dry_run: bool, out: Transcripts) -> None:
    record = read_transcript(path)
    if record is None or record.empty:
        out.empty += 1
        return
    record.scope = scope_of(record.cwd)
    written, action = keep(store, record, dry_run)
    if action in ("created", "updated"):
        if not dry_run:
            out.paths.append(written)
        setattr(out, action, getattr(out, action) + 1)
    else:
        out.unchanged += 1


def scope_of(cwd: str) -> str:
    """Return the scope of a session that ran in this folder."""
    from mdmem.identity import plain
    from mdmem.locate import project_name

    # A folder that is gone still names its project by its last part.
    name = project_name(Path(cwd)) if cwd and os.path.isdir(cwd) else plain(os.path.basename(cwd))
    return f"project:{name}" if name else "shared"
