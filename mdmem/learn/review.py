"""Pairs of memories that the write decision could not tell apart or could not choose between, and settling them.

The newer note of a pair names the older one in `review` and in `contradicts` or `relates_to`. A pair of which one is no
longer active is settled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdmem.errors import NotFound, UsageError
from mdmem.learn import advice
from mdmem.learn.apply import change, joined, retire, with_item
from mdmem.learn.compare import compare
from mdmem.learn.decide import statement_of
from mdmem.memory.write import commit, subject

if TYPE_CHECKING:
    from mdmem.notes.note import Note
    from mdmem.store import Store

# What may be said of a pair: the note is the newer one.
ANSWERS = {
    "keep-both": "both hold; they stay linked",
    "supersede": "the newer one takes the place of the older one",
    "reject": "the older one stays, the newer one is superseded by it",
    "merge": "the newer one's text is added to the older one",
    "unrelated": "they have nothing to do with each other; the link goes",
}


@dataclass(frozen=True)
class Doubt:
    """A pair that waits: the newer note, the older one, how they are linked, why it is in doubt, and what a language model that
    was asked about it says."""

    note: Note
    other: Note
    link: str
    why: str
    advice: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""

        def shown(note: Note) -> dict[str, str]:
            text = " ".join(note.body.split())[:300]
            return {"id": note.id, "path": note.path, "title": note.title, "text": text, "created": note.created or ""}

        out = {"note": shown(self.note), "other": shown(self.other), "link": self.link, "why": self.why}
        return out | ({"advice": self.advice} if self.advice else {})


def doubts(store: Store) -> list[Doubt]:
    """Return the pairs that wait for a decision and that this agent may read, oldest first."""
    from mdmem.recall.query import Filters
    from mdmem.recall.select import rows

    store.index.refresh(embed_budget_s=0.0)
    found = rows(store, Filters(kinds=("memory",), statuses=("active",)), "ORDER BY n.created, n.path")
    by_id = {row["id"]: row["path"] for row in found if row["id"] and not row["folder"]}
    out = []
    known = advice.read(store)
    for row in found:
        if '"review"' not in (row["fields"] or "") or row["folder"]:
            continue
        note = store.folder.read(row["path"])
        for identity in note.words("review") if note.ok else []:
            if identity in by_id:
                other = store.folder.read(by_id[identity])
                link = "contradicts" if identity in note.words("contradicts") else "relates_to"
                out.append(Doubt(note, other, link, _why(note, other), advice.word_on(known, note, other) or ""))
    return out


def _why(note: Note, other: Note) -> str:
    return compare(statement_of(note), statement_of(other)).why or "near in meaning"


def settle(store: Store, reference: str, answer: str, with_: str = "") -> dict[str, Any]:
    """Settle the doubts about a note (`with_`: the one about this other note).

    Returns {answer, note, others, paths, committed, reason}.
    Raises UsageError for an answer that is not known, NotFound where nothing is in doubt."""
    from mdmem.memory.change import find

    if answer not in ANSWERS:
        raise UsageError(f"no answer is named {answer!r}", why=f"it is one of {', '.join(ANSWERS)}", hint="mdmem review")
    note = find(store, reference)[1]
    other = find(store, with_)[1] if with_ else None
    pairs = [pair for pair in doubts(store) if note.id in (pair.note.id, pair.other.id)]
    if other is not None:
        pairs = [pair for pair in pairs if other.id in (pair.note.id, pair.other.id)]
    if not pairs:
        raise NotFound(f"nothing about {note.title!r} waits for review", hint="mdmem review")
    paths: list[str] = []
    for pair in pairs:
        # An earlier answer of this loop may have changed either note.
        newer, older = store.folder.read(pair.note.path), store.folder.read(pair.other.path)
        paths += settled(store, newer, older, answer)
    paths = list(dict.fromkeys(paths))
    done = commit(store, paths, subject("review", f"{answer} {note.title}"))
    others = sorted({one.id for pair in pairs for one in (pair.note, pair.other)} - {note.id})
    return {"answer": answer, "note": note.id, "others": others, "paths": paths, "committed": done.done, "reason": done.reason}


def settled(store: Store, newer: Note, older: Note, answer: str) -> list[str]:
    """Write what an answer means for a pair; returns the paths changed."""
    changes: dict[str, Any] = {
        "review": _without(newer, "review", older.id),
        "reviewed": with_item(newer, "reviewed", older.id),
    }
    if answer != "keep-both":
        links = [key for key in ("contradicts", "relates_to") if older.id in newer.words(key)]
        changes |= {key: _without(newer, key, older.id) for key in links}
    elif older.id in newer.words("contradicts"):
        changes["contradicts"] = _without(newer, "contradicts", older.id)
        changes["relates_to"] = with_item(newer, "relates_to", older.id)
    paths = []
    if answer == "supersede":
        changes["supersedes"] = with_item(newer, "supersedes", older.id)
        paths = retire(store, older, newer.id)
    elif answer in ("reject", "merge"):
        changes |= {"status": "superseded", "superseded_by": with_item(newer, "superseded_by", older.id)}
        kept = {"supersedes": with_item(older, "supersedes", newer.id)}
        text = older.body
        if answer == "merge" and newer.body.strip() not in text:
            said = statement_of(newer).text if newer.text("speaker") else newer.body.strip()
            text = (joined(older, said) if "\n" not in said else None) or f"{text.rstrip()}\n\n{newer.body.strip()}\n"
        paths = change(store, older, kept, body=text)
    return [*paths, *change(store, newer, changes)]


def _without(note: Note, key: str, item: str) -> list[str] | None:
    return [word for word in note.words(key) if word != item] or None
