"""The write decision: what becomes of a new memory, seen beside the ones that are there.

    unchanged   one says the same, or all of it            merged      the new one says more: the old note gets its text
    supersedes  the new one takes the old one's place      superseded  the old one is the later of the two
    contradicts both stand, linked, and wait for review    created     nothing near, or a doubtful likeness to review
    joined      a language model says that both are one: the old note gets the new wording beside its own

Looked at: active memories of the same scope, first those with the same `fact_key`, then those that share words with it, then
those near in meaning where a model is at hand. Events and cases are never replaced: each of them happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mdmem.clock import read_stamp
from mdmem.errors import MdmemError
from mdmem.learn.compare import Verdict, compare
from mdmem.learn.nearness import Near, nearest
from mdmem.learn.statement import Statement, read

if TYPE_CHECKING:
    from datetime import datetime

    from mdmem.index.score import TextHits
    from mdmem.memory.remember import Memory
    from mdmem.notes.note import Note
    from mdmem.store import Store

# Notes read for comparison: by words, and all together.
BY_WORDS, AT_MOST = 8, 14
# Types of which each stands for itself.
HAPPENED = frozenset(("event", "case"))


@dataclass
class Decision:
    """What to do, with which notes, and why. `doubt` (the link of a doubtful pair): contradicts or relates_to.

    Where a language model was asked: `words` is what it said of each note, `failed` why it said nothing, `by` who decided;
    `linked` are the notes beside which the new one stands, `parted` those that it has nothing to do with."""

    action: str = "created"
    notes: list[Note] = field(default_factory=list)
    why: str = ""
    doubt: str = ""
    doubtful: list[Note] = field(default_factory=list)
    by: str = "rules"
    words: dict[str, str] = field(default_factory=dict)
    failed: str = ""
    linked: list[Note] = field(default_factory=list)
    parted: list[Note] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """Ids of the notes that are replaced, or that replace."""
        return sorted({note.id for note in self.notes if note.id})

    def said(self) -> list[tuple[Note, str]]:
        """Return the notes that a language model was asked about, with its word on each."""
        asked = (*self.doubtful, *self.notes, *self.linked, *self.parted)
        return [(note, self.words[note.id]) for note in asked if note.id in self.words]


@dataclass
class Considered:
    """A decision with the notes it looked at and the search by words that found them (for `related`)."""

    decision: Decision
    hits: TextHits | None = None
    looked: list[tuple[Note, Verdict]] = field(default_factory=list)


def decide(
    store: Store, memory: Memory, *, when: datetime | None = None, load: bool = False, looked: bool = False
) -> Considered:
    """Return what becomes of a checked memory. `when`: the moment it was said, where that is not now; `looked`: the index was
    brought up to the files just now. Never raises for an index that cannot be read: then nothing is near."""
    try:
        return _decide(store, memory, when, load, looked)
    except MdmemError:
        return Considered(Decision())


def _decide(store: Store, memory: Memory, when: datetime | None, load: bool, looked: bool) -> Considered:
    from mdmem.recall.select import agent_scopes, may_read

    if not may_read(memory.scope, agent_scopes(store)):
        return Considered(Decision())  # who may not read a scope learns nothing of what is in it
    if not looked:
        store.index.refresh(embed_budget_s=0.0)
    hits = store.index.text_hits(f"{memory.title} {memory.text[:2000]}", None, 4 * BY_WORDS)
    key = str(memory.extra.get("fact_key") or "").strip()
    near = nearest(store, memory.title, memory.text, load)
    notes = candidates(store, memory.scope, memory.type, key, [hit.note for hit in hits.hits], near)
    out = Considered(Decision(), hits)
    statement = read(first_paragraph(memory.text) if memory.extra.get("speaker") else memory.text.strip())
    for note, cosine in notes:
        verdict = verdict_on(statement, note, key, cosine, near[1] if near else 1.0)
        if verdict.kind in ("update", "opposes") and said_later(note, when):
            # Said before what stands there: then it is the one that was replaced.
            verdict = _turned(statement, note, key, verdict)
        out.looked.append((note, verdict))
    out.decision = _sum_up(out.looked)
    return out


def candidates(
    store: Store, scope: str, type_: str, key: str, by_words: list[int], near: Near | None, retired: bool = False
) -> list[tuple[Note, float | None]]:
    """Return (note, cosine or None) of the active memories that a new one of this scope and type is compared with; with
    `retired` of those that are no longer active."""
    cosines = near[0] if near else {}
    order = [*dict.fromkeys(by_words)][: 2 * BY_WORDS]
    wanted = [*order, *(note for note in cosines if note not in order)]
    marks = ", ".join("?" * len(wanted))
    # `+`: by rowid, not by way of every memory; only a fact_key has them all looked through.
    sql = (
        "SELECT rowid, path, type, fact_key, title FROM notes WHERE +kind = 'memory' AND folder = '' AND state = 'ok' "
        f"AND COALESCE(status, '') {'NOT ' if retired else ''}IN ('', 'active') AND COALESCE(NULLIF(scope, ''), 'shared') = ? "
        f"AND {f'(rowid IN ({marks}) OR fact_key = ?)' if key else f'rowid IN ({marks})'}"
    )
    rows = store.index.catalog.rows(sql, [scope, *wanted, *([key] if key else ())])
    place = {note: number for number, note in enumerate(wanted)}
    rows.sort(key=lambda row: (row["fact_key"] != key or not key, place.get(row["rowid"], 0), row["path"]))
    found: list[tuple[Note, float | None]] = []
    for row in rows[:AT_MOST]:
        if (row["type"] in HAPPENED) != (type_ in HAPPENED):
            continue
        note = store.folder.read(row["path"])
        if note.ok and note.id:
            found.append((note, cosines.get(row["rowid"])))
    return found


def statement_of(note: Note) -> Statement:
    """Return what a note states. One that was drawn from a session quotes the turn below its statement."""
    return read(_stated(note))


def _stated(note: Note) -> str:
    return first_paragraph(note.body) if note.text("speaker") else note.body.strip()


def first_paragraph(text: str) -> str:
    """Return a text up to its first empty line."""
    return text.strip().partition("\n\n")[0]


def verdict_on(statement: Statement, note: Note, key: str, cosine: float | None, limit: float) -> Verdict:
    """Return what a statement is to a note."""
    verdict = compare(statement, statement_of(note), cosine, limit)
    if statement.text in (" ".join(line.split()) for line in _stated(note).splitlines()):
        return Verdict("same", "these very words stand there")
    if note.type in HAPPENED and verdict.kind not in ("same", "narrower"):
        return Verdict("apart")
    if key and note.fact_key == key and verdict.kind not in ("same", "narrower", "wider"):
        return Verdict("update", f"the same fact_key, {key}")
    if verdict.kind in ("update", "opposes", "wider") and (note.pinned or note.path.startswith("claude/")):
        # A person put it there, or Claude Code keeps it: nothing happens to it without a word.
        return Verdict("opposes" if verdict.kind != "wider" else "perhaps", verdict.why)
    return verdict


def said_later(note: Note, when: datetime | None) -> bool:
    """Tell whether a note says what was said after `when`."""
    said = read_stamp(note.valid_from or note.created or "")
    return when is not None and said is not None and said > when


def _turned(statement: Statement, note: Note, key: str, verdict: Verdict) -> Verdict:
    back = compare(statement_of(note), statement)
    if (key and note.fact_key == key) or back.kind == "update":
        return Verdict("replaced", back.why or verdict.why)
    return Verdict("opposes", verdict.why) if back.kind == "opposes" else Verdict("apart")


def _sum_up(looked: list[tuple[Note, Verdict]]) -> Decision:
    """Return the one decision: what is said already is not said again; what is replaced is replaced, the rest is doubted."""

    def of(*kinds: str) -> list[tuple[Note, Verdict]]:
        return [pair for pair in looked if pair[1].kind in kinds]

    for kinds, action in ((("same", "narrower"), "unchanged"), (("replaced",), "superseded"), (("wider",), "merged")):
        found = of(*kinds)
        if found and not (action == "merged" and of("update", "opposes")):
            return Decision(action, [found[0][0]], found[0][1].why)
    updates, opposed, perhaps = of("update"), of("opposes"), of("perhaps")
    doubt = "contradicts" if opposed else "relates_to" if perhaps else ""
    unsure = [note for note, _ in (opposed or perhaps)]
    if updates:
        # What may only be alike is not doubted beside a plain replacement.
        link, besides = (doubt, unsure) if opposed else ("", [])
        return Decision("supersedes", [note for note, _ in updates], updates[0][1].why, link, besides)
    if opposed:
        return Decision("contradicts", [], opposed[0][1].why, doubt, unsure)
    if perhaps:
        return Decision("created", [], perhaps[0][1].why, doubt, unsure)
    return Decision()
