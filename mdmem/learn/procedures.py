"""How things are done here: steps that come one after the other in several sessions become a procedure.

Read from the Steps part of session notes, so every device that has the same sessions finds the same procedures.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from mdmem.clock import read_stamp, stamp
from mdmem.learn.apply import change
from mdmem.recall.select import agent_scopes, may_read

if TYPE_CHECKING:
    from mdmem.learn.consolidate import Consolidated
    from mdmem.notes.note import Note
    from mdmem.store import Store

# Sessions in which the same steps must have come, and how many steps make a procedure.
OFTEN, SHORTEST, LONGEST = 3, 2, 6
# Sessions looked at, the newest ones.
SESSIONS = 300


def recurring(store: Store, out: Consolidated) -> None:
    """Write or renew a note for each run of steps that recurs; changed paths go into `out`."""
    from mdmem.memory.remember import find_id
    from mdmem.notes import names
    from mdmem.notes.frontmatter import render

    store.index.refresh(embed_budget_s=0.0)
    rows = store.index.catalog.rows(
        "SELECT path FROM notes WHERE kind = 'session' AND folder = '' AND state = 'ok' ORDER BY created DESC, path LIMIT ?",
        (SESSIONS,),
    )
    by_scope: dict[str, list[Note]] = defaultdict(list)
    for row in rows:
        note = store.folder.read(row["path"])
        if note.ok and "## Steps" in note.body:
            by_scope[note.scope or "shared"].append(note)
    patterns = agent_scopes(store)
    for scope, notes in sorted(by_scope.items()):
        if not may_read(scope, patterns):
            continue
        for steps, sessions in found_in(notes):
            shown = [sessions[0].body_steps[key] for key in steps]
            text = "Steps that recur here:\n\n" + "\n".join(f"{number}. {step}" for number, step in enumerate(shown, 1))
            identity = names.memory_id("memory", scope, "procedure " + " / ".join(steps))
            seen_in = sorted(one.note.id for one in sessions if one.note.id)
            existing = find_id(store, store.folder, identity)
            newest = max(one.note.created or "" for one in sessions)
            when = read_stamp(newest)
            if existing is not None:
                paths = []
                if existing.status in ("", "active"):
                    more = sorted({*existing.words("relates_to"), *seen_in})
                    paths = change(store, existing, {"relates_to": more}, when)
            else:
                title = f"How it is done here: {shown[0]} … {shown[-1]}"[:100]
                fields: dict[str, Any] = {"id": identity, "kind": "memory", "type": "procedure", "category": "pattern"}
                fields |= {"title": title, "scope": scope, "relates_to": seen_in, "source": seen_in[0], "confidence": "0.60"}
                fields |= {"importance": "0.60", "created": newest, "updated": newest if when is None else stamp(when)}
                path = names.memory_path(title, identity)
                store.folder.create(path, render(fields, text + "\n"))
                paths = [path]
            out.paths += paths
            out.procedures.append({"id": identity, "steps": shown, "sessions": len(sessions), "changed": bool(paths)})


class Steps:
    """The steps of one session's note: normalised, and as they are written."""

    def __init__(self, note: Note) -> None:
        self.note = note
        part = note.body.partition("## Steps")[2].partition("\n## ")[0]
        written = [line[2:].strip() for line in part.splitlines() if line.startswith("- ")]
        self.body_steps = {_normal(step): step for step in reversed(written)}
        self.order = [_normal(step) for step in written]


def _normal(step: str) -> str:
    text = re.sub(r"\d+(?:\.\d+)*", "#", step.lower())
    return " ".join(re.sub(r"[^\w#/.\u3400-\u9fff-]+", " ", text).split())


def found_in(notes: list[Note]) -> list[tuple[tuple[str, ...], list[Steps]]]:
    """Return (steps, sessions with them, oldest first) for each longest run that OFTEN sessions share."""
    sessions = sorted((Steps(note) for note in notes), key=lambda one: (one.note.created or "", one.note.path))
    places: dict[tuple[str, ...], list[Steps]] = defaultdict(list)
    for one in sessions:
        runs = set()
        for size in range(SHORTEST, LONGEST + 1):
            for start in range(len(one.order) - size + 1):
                run = tuple(one.order[start : start + size])
                if len(set(run)) == size:
                    runs.add(run)
        for run in runs:
            places[run].append(one)
    often = {run: where for run, where in places.items() if len(where) >= OFTEN}
    longest = [run for run in often if not any(len(other) > len(run) and _holds(other, run) for other in often)]
    return [(run, often[run]) for run in sorted(longest)]


def _holds(long: tuple[str, ...], short: tuple[str, ...]) -> bool:
    return any(long[start : start + len(short)] == short for start in range(len(long) - len(short) + 1))
