"""From sessions to memories: the session's note, the facts drawn from it, and what they do to those that are there.

Run twice, it changes nothing the second time; run on two devices, it writes the same files on both: ids come from content and
session, dates from the turns, and nothing names the device. What is drawn from an older session than a note that stands is
placed before it, whatever the order in which sessions are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mdmem.clock import read_stamp, stamp
from mdmem.errors import ConflictFound, MdmemError
from mdmem.index.catalog import ALIAS, TITLE
from mdmem.learn import advice, log
from mdmem.learn.apply import change, fields_of, join_into, link_back, merge_into, with_item
from mdmem.learn.categories import Rules, load_rules
from mdmem.learn.compare import compare
from mdmem.learn.decide import Considered, Decision, candidates, decide, first_paragraph, statement_of
from mdmem.learn.extract import Candidate, Judged, extract
from mdmem.memory.write import commit
from mdmem.notes.redact import redact

if TYPE_CHECKING:
    from datetime import datetime

    from mdmem.learn.ask import Gist
    from mdmem.llm.model import Llm
    from mdmem.memory.remember import Memory
    from mdmem.memory.session_record import SessionRecord, Turn
    from mdmem.notes.note import Note
    from mdmem.store import Store


@dataclass
class Drawn:
    """One candidate and what became of it: created, unchanged, merged, joined, supersedes, superseded, contradicts or known."""

    text: str
    category: str
    line: int
    action: str
    id: str = ""
    path: str = ""
    why: str = ""


@dataclass
class Consolidated:
    """What a consolidation did, or (dry run) would do."""

    sessions: list[dict[str, Any]] = field(default_factory=list)
    drawn: list[Drawn] = field(default_factory=list)
    reconciled: list[dict[str, str]] = field(default_factory=list)
    procedures: list[dict[str, Any]] = field(default_factory=list)
    tasks: list[dict[str, str]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    committed: bool = False
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**self.__dict__, "drawn": [dict(one.__dict__) for one in self.drawn]}


def consolidate(
    store: Store,
    records: Iterable[SessionRecord],
    *,
    llm: Llm | None = None,
    dry_run: bool = False,
    load: bool = False,
    everything: bool = False,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> Consolidated:
    """Draw the memories from these sessions, compare what came by sync, look for steps that recur. One commit, at the end.

    `load`: a model that is not loaded may be loaded for finding neighbours. `everything`: compare also memories that were there
    before the first consolidation. A session that cannot be read is a notice."""
    from mdmem.learn.procedures import recurring
    from mdmem.learn.reconcile import reconcile

    out = Consolidated()
    rules = load_rules()
    ordered = sorted(records, key=lambda record: (record.started, record.session))
    for number, record in enumerate(ordered):
        progress(number, len(ordered), record.session[:8])
        try:
            _session(store, record, rules, out, llm, dry_run, load)
        except MdmemError as error:
            out.notices.append(f"session {record.session[:36]}: {error}")
    progress(len(ordered), len(ordered), "")
    if not dry_run:
        reconcile(store, out, load, everything)
        if llm is not None:
            from mdmem.learn.opinion import advise
            from mdmem.learn.review import doubts

            advise(store, llm, doubts(store), out)
        recurring(store, out)
        out.paths = list(dict.fromkeys(out.paths))
        if out.paths:
            done = commit(store, out.paths, f"consolidate: {len(ordered)} sessions, {len(out.paths)} notes")
            out.committed, out.reason = done.done, done.reason
    return out


def _session(
    store: Store, record: SessionRecord, rules: Rules, out: Consolidated, llm: Llm | None, dry_run: bool, load: bool
) -> None:
    from mdmem.learn.reflect import reflect
    from mdmem.memory.session_record import keep, note_id

    path, action = keep(store, record, dry_run)
    if action in ("created", "updated") and not dry_run:
        out.paths.append(path)
    identity = store.folder.read(path).id if path else note_id(record)
    turns = _recent(record.turns, int(store.config.get("extract.max_chars")))
    most = int(store.config.get("extract.max_facts"))
    found, judged = extract(turns, rules, most, int(store.config.get("extract.min_messages")))
    if llm is not None:
        from mdmem.learn.ask import with_llm

        if dry_run:
            from mdmem.learn.ask import preview

            out.requests.append(preview(llm, turns, rules, most))
        else:
            found, more, gist, notice = with_llm(llm, turns, found, rules, most)
            judged += more
            if path and record.local:
                out.paths += _say_gist(store, path, gist)
            if notice:
                out.notices.append(f"session {record.session[:36]}: {notice}")
    drawn = []
    for candidate in found:
        one = _draw(store, candidate, record, identity, llm, dry_run, load, out.paths)
        drawn.append(one)
    out.drawn += drawn
    tasks = reflect(store, turns, dry_run, out.paths)
    out.tasks += tasks
    out.sessions.append({"session": record.session, "note": identity, "path": path, "action": action, "drawn": len(drawn)})
    # A second run finds everything known: what the first one said of it is worth more.
    if not dry_run and not (drawn and all(one.action == "known" for one in drawn) and log.read(store, record.session)):
        log.write(store, record.session, record.scope or "shared", [*_told(judged, drawn), *tasks])


def _say_gist(store: Store, path: str, gist: Gist) -> list[str]:
    """Put what a session was for into its note, unless somebody has done so; only for a session of this device, since two
    devices would get two answers."""
    note = store.folder.read(path)
    values = {"summary": gist.goal, "overview": gist.outcome}
    fresh = {key: redact(value).text for key, value in values.items() if value and not note.text(key)}
    return change(store, note, fresh, read_stamp(note.updated or "")) if fresh else []


def _recent(turns: list[Turn], most: int) -> list[Turn]:
    """Return the latest turns of at most `most` characters together."""
    size = 0
    kept: list[Turn] = []
    for turn in reversed(turns):
        size += len(turn.text)
        if size > most and kept:
            break
        kept.append(turn)
    return kept[::-1]


def _told(judged: list[Judged], drawn: list[Drawn]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for one in judged:
        if one.outcome == "skipped":
            rows.append({"line": one.line, "who": one.who, "text": one.text, "outcome": "skipped", "why": one.why})
    for made in drawn:
        why = made.why or made.category
        rows.append({"line": made.line, "text": made.text[:200], "outcome": made.action, "why": why, "note": made.id})
    return sorted(rows, key=lambda row: row["line"])


def _draw(
    store: Store, candidate: Candidate, record: SessionRecord, session_note: str, llm: Llm | None, dry_run: bool, load: bool,
    paths: list[str],
) -> Drawn:  # fmt: skip
    """Keep one candidate as the write decision says."""
    from mdmem.memory.remember import checked, find_id
    from mdmem.notes import names

    memory = memory_of(candidate, record, session_note)
    checked(store, memory)
    out = Drawn(memory.text.split("\n")[0], candidate.category, candidate.lines[0], "")
    for salt in ("", record.session):
        out.id = names.memory_id("memory", memory.scope, candidate.text, salt)
        existing = find_id(store, store.folder, out.id)
        if existing is None:
            break
        gone = existing.status not in ("", "active")
        said = read_stamp(existing.updated or existing.created or "")
        if not gone or said is None or candidate.at <= said:
            out.path = existing.path
            out.action, out.why = "known", "it was drawn before" + (f", and is {existing.status}" if gone else "")
            return out
        # Said again after it was no longer so: it holds again, and that is a note of its own.
    considered = decide(store, memory, when=candidate.at, load=load)
    decision = considered.decision
    if decision.action not in ("unchanged", "merged"):  # the rules' word: no model was asked yet
        before = _known_before(store, memory, considered, candidate.at)
        if before is not None:
            out.id, out.path, out.action = before.id, before.path, "known"
            out.why = f"it was said before, and is {before.status}"
            return out
    if llm is not None and not dry_run:
        from mdmem.learn.opinion import advised

        decision = advised(llm, candidate.text, decision, when=candidate.at)
    out.action, out.why = decision.action, decision.why
    if decision.action in ("unchanged", "merged", "joined"):
        note = decision.notes[0]
        out.id, out.path = note.id, note.path
        if decision.action != "unchanged" and not dry_run:
            into = merge_into if decision.action == "merged" else join_into
            paths += into(store, note, memory, candidate.at)
        return out
    if not dry_run:
        store.keep_private(memory.scope)
        named = entities_in(store, memory)
        if named:
            memory.extra["relates_to"] = named
        out.path = _write(store, memory, out.id, candidate.at)
        paths += [out.path, *_link(store, out, decision, candidate.at)]
        if decision.words:
            advice.keep(store, store.folder.read(out.path), decision.said())
    return out


def _known_before(store: Store, memory: Memory, considered: Considered, at: datetime) -> Note | None:
    """Return the note that is no longer active and said the same at that time, None where there is none: without this, a repeat
    in an older session would be drawn anew each time."""
    from mdmem.learn.statement import read

    if considered.hits is None:
        return None
    statement = read(first_paragraph(memory.text))
    found = [hit.note for hit in considered.hits.hits]
    for note, _ in candidates(store, memory.scope, memory.type, "", found, None, retired=True):
        left = read_stamp(note.updated or "")
        same = compare(statement, statement_of(note)).kind in ("same", "narrower", "wider")
        if same and left is not None and at <= left:
            return note
    return None


def _link(store: Store, made: Drawn, decision: Decision, at: datetime) -> list[str]:
    """Link a new note with those that the decision is about; returns the paths changed.

    The later one of two always names the earlier one, and a change has the later one's date: so the bytes are the same in
    whatever order two sessions are read."""
    later = [note for note in decision.doubtful if (read_stamp(note.created or "") or at) > at]
    decision.doubtful = [note for note in decision.doubtful if note not in later]
    doubt, decision.doubt = decision.doubt, decision.doubt if decision.doubtful else ""
    dates = [at, *(moment for note in decision.notes if (moment := read_stamp(note.created or "")))]
    note = store.folder.read(made.path)
    given = fields_of(decision)
    for key, value in given.items():
        if isinstance(value, list):
            given[key] = sorted({*note.words(key), *value})
    paths = change(store, note, given, max(dates))
    paths += link_back(store, decision, made.id, at)
    for note in later:
        fields = {doubt: with_item(note, doubt, made.id), "review": with_item(note, "review", made.id)}
        paths += change(store, note, fields, read_stamp(note.created or ""))
    return paths


_APART = re.compile(r"[^\w-]+")


def entities_in(store: Store, memory: Memory) -> list[str]:
    """Return the ids of the entities of this scope, or shared ones, that a statement names by title or alias."""
    from mdmem.recall.select import agent_scopes, may_read

    patterns = agent_scopes(store)
    text = " " + _APART.sub(" ", first_paragraph(memory.text).lower()) + " "
    sql = (
        "SELECT n.id, n.scope, k.key FROM notes n JOIN names k ON k.note = n.rowid WHERE n.kind = 'entity' AND n.id != '' "
        "AND n.folder = '' AND COALESCE(n.status, '') NOT IN ('forgotten', 'archived', 'superseded') AND k.how IN (?, ?)"
    )
    found = set()
    for row in store.index.catalog.rows(sql, (TITLE, ALIAS)):
        name = _APART.sub(" ", row["key"].lower()).strip()
        whole = f" {name} " in text if name.isascii() else name in text
        if whole and len(name) > 1 and row["scope"] in ("", None, "shared", memory.scope) and may_read(row["scope"], patterns):
            found.add(row["id"])
    return sorted(found)


def memory_of(candidate: Candidate, record: SessionRecord, session_note: str) -> Memory:
    """Return a candidate as a memory: statement first, then the turn it was said in; `source` leads back to its lines."""
    from mdmem.memory.remember import Memory, first_words

    first, last = candidate.lines
    text = candidate.text
    if candidate.said:
        said = " ".join(candidate.said.split())
        text += f"\n\n> {candidate.who}: {said[:600]}" + (" …" if len(said) > 600 else "")
    extra: dict[str, Any] = {
        "summary": first_words(candidate.text, 120),
        "overview": candidate.text,
        "facts": candidate.facts,
        "session": record.session,
        "source": f"{session_note}#L{first}" + (f"-L{last}" if last != first else ""),
        "speaker": candidate.who,
        "confidence": f"{candidate.confidence:.2f}",
        "importance": f"{candidate.importance:.2f}",
    }
    return Memory(
        candidate.type, text, first_words(candidate.text), [], record.scope or "shared", candidate.category, extra=extra
    )


def _write(store: Store, memory: Memory, identity: str, at: datetime) -> str:
    """Write a note whose bytes depend on nothing but what was said and when; returns its path."""
    from mdmem.notes import names
    from mdmem.notes.frontmatter import render

    fields: dict[str, Any] = {"id": identity, "kind": "memory", "type": memory.type, "category": memory.category}
    fields |= {"title": memory.title, "scope": memory.scope}
    fields |= {key: value for key, value in memory.extra.items() if value not in ("", [], {}, None)}
    fields |= {"created": stamp(at), "updated": stamp(at)}
    path = names.memory_path(memory.title, identity)
    try:
        store.folder.create(path, render(fields, memory.text + "\n"))
    except ConflictFound:
        if store.folder.read(path).id != identity:
            raise
    return path


__all__ = ["Consolidated", "Decision", "Drawn", "consolidate"]
