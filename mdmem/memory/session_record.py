"""What is known of one agent session, from the spool or from a transcript, and the note that keeps it.

The note's id ends in letters made from the host's session id, so the same session is one file whichever way it came in.
A note that a person or a model has rewritten since is left alone: its body no longer has the digest that it was born with.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.clock import FixedClock, stamp
from mdmem.errors import ConflictFound

if TYPE_CHECKING:
    from mdmem.store import Store

# Lines in each part of the note, and characters in one line.
PROMPTS, FILES, PROBLEMS, DECISIONS, STEPS, KEYWORDS = 12, 30, 10, 8, 20, 10
LINE = 300
OUTCOME = 1500

_DECISION = re.compile(
    r"\b(?:decided?|decision|we(?:'ll| will| should)? (?:use|go with|keep|stay with|switch)|let'?s (?:use|go with|keep|switch)|"
    r"agreed|chose|chosen|instead of|from now on|always|never|prefer)\b|决定|改用|选择了?|采用|约定|统一用|"
    r"以后都|不要再|一律|优先",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"^[-*\s]*(?:\*\*)?(?:next(?: steps?)?|to ?do|下一步|待办)(?:\*\*)?\s*[:：]\s*(?:\*\*)?\s*(.+)$",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n+")


@dataclass
class Turn:
    """One thing said or done: by whom (user, assistant, tool), where in its file (line, from 1), when, and whether it worked.

    `agent`: the subagent that said it, when it was one."""

    who: str
    text: str
    line: int
    at: datetime
    ok: bool = True
    agent: str = ""


@dataclass
class SessionRecord:
    """A session's facts. Every text in it is redacted already. `local`: it took place on this device; a transcript may have
    come from elsewhere, and its note must be the same whoever makes it."""

    session: str
    started: datetime
    ended: datetime
    scope: str = ""
    cwd: str = ""
    title: str = ""
    prompts: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    summary: str = ""
    edited: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    tools: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    turns: list[Turn] = field(default_factory=list)
    local: bool = False

    @property
    def empty(self) -> bool:
        """True when there is nothing that a later reader could use."""
        return not self.prompts


def from_spool(session: str, records: list[dict[str, Any]], scope: str) -> SessionRecord | None:
    """Return the facts in a spool's records (see memory.spool), None when there are none."""
    times = [float(r["t"]) for r in records if isinstance(r.get("t"), (int, float))]
    if not times:
        return None
    out = SessionRecord(session, _moment(min(times)), _moment(max(times)), scope, local=True)
    for line, record in enumerate(records, 1):
        kind, text = record.get("k"), record.get("text")
        at = _moment(float(record["t"])) if isinstance(record.get("t"), (int, float)) else out.started
        agent = str(record.get("a") or "")
        if kind in ("prompt", "said") and isinstance(text, str):
            out.turns.append(Turn("user" if kind == "prompt" else "assistant", text, line, at, True, agent))
        if kind == "start":
            out.cwd = out.cwd or str(record.get("cwd", ""))
            out.scope = str(record.get("scope") or out.scope)
        elif kind == "end":
            out.scope = str(record.get("scope") or out.scope)
        elif kind == "prompt" and isinstance(text, str):
            out.prompts.append(text)
        elif kind == "said" and isinstance(text, str) and not record.get("a"):
            out.said.append(text)
        elif kind == "summary" and isinstance(text, str):
            out.summary = text
        elif kind == "dropped":
            out.dropped += int(record.get("count", 0))
        elif kind == "tool":
            add_tool(out, record)
            out.turns.append(Turn("tool", tool_line(record), line, at, record.get("ok") is not False, agent))
    return out


def add_tool(out: SessionRecord, record: dict[str, Any]) -> None:
    """Count one use of a tool, in the form of the spool's records."""
    tool = str(record.get("tool", ""))
    out.tools[tool] += 1
    files = [str(f) for f in record.get("files", [])] if isinstance(record.get("files"), list) else []
    if tool in ("Write", "Edit", "MultiEdit", "NotebookEdit") and record.get("ok"):
        out.edited += [f for f in files if f not in out.edited]
    if record.get("ok") is False:
        out.problems.append(": ".join(part for part in (tool_line(record), str(record.get("error", ""))) if part))


def tool_line(record: dict[str, Any]) -> str:
    """Return one use of a tool on one line: the tool, and what it was used for."""
    files = [str(f) for f in record.get("files", [])] if isinstance(record.get("files"), list) else []
    subject = str(record.get("what") or record.get("program") or ", ".join(files))
    return ": ".join(part for part in (str(record.get("tool", "")), subject) if part)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


# --- the note ------------------------------------------------------------------------------------


class _FromSession:
    """The random part of a session's id, made from the host's session id."""

    def __init__(self, session: str) -> None:
        self.bits = int.from_bytes(hashlib.sha256(session.encode("utf-8", "surrogatepass")).digest()[:5], "big")

    def getrandbits(self, k: int, /) -> int:
        return self.bits


def note_id(record: SessionRecord) -> str:
    """Return the id of a session's note: time of its start, then letters that depend on the session alone."""
    from mdmem.notes.names import time_id

    return time_id("ses", FixedClock(record.started), _FromSession(record.session))


def find_note(store: Store, record: SessionRecord) -> str | None:
    """Return the path of the note that a session has already, None when it has none. Reads folders, not the index."""
    ending = note_id(record)[-8:] + ".md"
    for folder in sorted(Path(store.root, "sessions").glob("*/*"), reverse=True):
        if not folder.is_dir():
            continue
        for path in folder.iterdir():
            if path.name.endswith(ending):
                return path.relative_to(store.root).as_posix()
    return None


def body(record: SessionRecord) -> str:
    """Return the text of a session's note, parts without content left out."""
    prompts = record.prompts
    if len(prompts) > PROMPTS:
        prompts = [*prompts[: PROMPTS // 2], *prompts[-(PROMPTS - PROMPTS // 2) :]]
    outcome = (record.summary or (telling(record.said)[-1] if record.said else "")).strip()
    if len(outcome) > OUTCOME:
        outcome = outcome[:OUTCOME].rstrip() + " …"
    parts = [
        ("Asked", _list(prompts)),
        ("Outcome", outcome),
        ("Decisions", _list(_decisions(record))),
        ("Problems", _list(list(dict.fromkeys(solved(record)))[:PROBLEMS])),
        ("Files", _list(record.edited[:FILES])),
        ("Steps", _list(_steps(record))),
        ("Next", _list(_next(record))),
        ("Words", ", ".join(keywords(record))),
    ]
    return "\n".join(f"## {name}\n\n{text}\n" for name, text in parts if text)


def telling(texts: list[str]) -> list[str]:
    """Return the texts that say something: without greetings, thanks and farewells; all where there are none but these."""
    from mdmem.memory.prompts import worth_searching

    return [text for text in texts if worth_searching(text)] or texts


def _list(lines: list[str]) -> str:
    return "\n".join(f"- {_line(line)}" for line in lines)


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LINE else text[:LINE].rstrip() + " …"


def _decisions(record: SessionRecord) -> list[str]:
    found: list[str] = []
    for text in [*record.prompts, *record.said]:
        for sentence in _SENTENCES.split(text):
            sentence = sentence.strip(" -*#>\t")
            if 8 <= len(sentence) <= LINE and _DECISION.search(sentence) and not sentence.endswith(("?", "？")):
                found.append(sentence)
    return list(dict.fromkeys(found))[:DECISIONS]


def _next(record: SessionRecord) -> list[str]:
    """Return the lines of the last message that say what comes next."""
    if not record.said:
        return []
    found = [match[1].strip() for match in _NEXT.finditer(telling(record.said)[-1])]
    return [line for line in found if len(line) >= 4][:5]


def solved(record: SessionRecord) -> list[str]:
    """Return the problems, each with what was done until the same step went well."""
    tools = [turn for turn in record.turns if turn.who == "tool"]
    failed = [number for number, turn in enumerate(tools) if not turn.ok]
    if len(failed) != len(record.problems):
        return record.problems
    out = []
    for problem, place in zip(record.problems, failed, strict=True):
        again = next((n for n in range(place + 1, len(tools)) if tools[n].text == tools[place].text), None)
        if again is not None and tools[again].ok:
            between = dict.fromkeys(turn.text for turn in tools[place + 1 : again] if turn.ok)
            problem += " → worked after " + "; ".join(list(between)[-3:]) if between else " → worked when tried again"
        out.append(problem)
    return out


def _steps(record: SessionRecord) -> list[str]:
    """Return what was run, in order; of a session with fewer than two steps nothing."""
    run = [turn.text.removeprefix("Bash: ") for turn in record.turns if turn.ok and turn.text.startswith("Bash: ")]
    steps = [step for number, step in enumerate(run) if number == 0 or step != run[number - 1]]
    return steps[-STEPS:] if len(steps) > 1 else []


def keywords(record: SessionRecord) -> list[str]:
    """Return the words that tell this session from any other talk, by BM25 over its turns (k1 1.2, no length norm)."""
    from mdmem.index.analyzer import stem, tokens
    from mdmem.memory.gate import telling_words

    texts = telling([turn.text for turn in record.turns if turn.who != "tool"])
    counts = [Counter(tokens(text)) for text in texts]
    worth: dict[str, float] = {}
    for text in texts:
        worth |= {term: weight for term, weight in telling_words(text) if weight == 1.0 and not term[0].isdigit()}
    written: dict[str, str] = {}
    for word in re.findall(r"[^\W\d_][\w.-]{2,30}", " ".join(texts)):
        written.setdefault(stem(word.lower()), word.lower().rstrip(".-"))
    scores: dict[str, float] = {}
    for term in worth:
        df = sum(term in count for count in counts)
        idf = math.log(1.0 + (len(counts) - df + 0.5) / (df + 0.5))
        total = sum(count[term] * 2.2 / (count[term] + 1.2) for count in counts if term in count)
        if sum(count[term] for count in counts) > 1:
            scores[term] = total * idf
    best = sorted(scores, key=lambda term: (-scores[term], term))[:KEYWORDS]
    return list(dict.fromkeys(written.get(term, term) for term in best))


def digest(text: str) -> str:
    """Return what tells whether a note's body is still the one that was generated."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def keep(store: Store, record: SessionRecord, dry_run: bool = False) -> tuple[str, str]:
    """Write or renew a session's note; returns (path, created | updated | unchanged | kept | empty). Does not commit.

    `kept`: somebody has rewritten the note, or it knows more turns than this record.
    """
    from mdmem.memory.remember import first_words
    from mdmem.notes import names
    from mdmem.notes.frontmatter import edit, render

    if record.empty:
        return "", "empty"
    text = body(record)
    path = find_note(store, record)
    if path is not None:
        note = store.folder.read(path)
        if not note.ok or digest(note.body) != note.text("digest") or int(note.text("turns") or 0) > len(record.prompts):
            return path, "kept"
        if note.text("digest") == digest(text):
            return path, "unchanged"
        if dry_run:
            return path, "updated"
        changes: dict[str, Any] = {"digest": digest(text), "turns": str(len(record.prompts)), "updated": stamp(record.ended)}
        store.folder.write(path, edit(note.data, changes, body=text), note.sha)
        return path, "updated"
    if dry_run:
        return "", "created"
    identity = note_id(record)
    path = names.session_path(identity, record.started)
    title = record.title or first_words(record.prompts[0])
    fields: dict[str, Any] = {
        "id": identity,
        "kind": "session",
        "title": title,
        "scope": record.scope or "shared",
        "session": record.session,
        "source": "claude-code",
        "turns": str(len(record.prompts)),
        "digest": digest(text),
        "created": stamp(record.started),
        "updated": stamp(record.ended),
    }
    if record.local:
        fields |= {"agent": store.identity.agent, "device": store.identity.device}
    try:
        store.folder.create(path, render(fields, text))
    except ConflictFound:
        # Another process was quicker with the same session.
        return path, "unchanged"
    return path, "created"
