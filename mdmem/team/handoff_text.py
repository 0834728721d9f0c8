"""A handoff as text: the paragraph by template, and the markdown that fits a budget of tokens. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mdmem.tokens import count_tokens

if TYPE_CHECKING:
    from mdmem.team.handoff import Handoff

NAMED = 3  # names in a sentence


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _names(rows: Sequence[dict[str, Any]], key: str = "title") -> str:
    shown = [str(row[key]) for row in rows[:NAMED]]
    more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    return ", ".join(shown) + more


def paragraph(handoff: Handoff) -> str:
    """Return the summary by template: the same for the same data."""
    if handoff.empty:
        return f"Nothing happened since {_moment(handoff.since)}, and nothing is open."
    out = []
    new = [row for row in handoff.changed if row["change"] == "new"]
    moved = [row for row in handoff.changed if "was" in row]
    rest = [row for row in handoff.changed if row["change"] == "changed" and "was" not in row]
    gone = [row for row in handoff.changed if row["change"] == "gone"]
    parts = [(new, "new note"), (rest, "changed note"), (gone, "note gone")]
    told = [f"{_count(len(rows), name, name.replace('note', 'notes'))} ({_names(rows)})" for rows, name in parts if rows]
    since = _moment(handoff.since)
    out.append(f"Since {since}: {'; '.join(told)}." if told else f"Since {since} no note came, changed or went.")
    if moved:
        out.append(
            " ".join(f"{row['title']} went from {row['was'] or 'no status'} to {row['status'] or 'none'}." for row in moved[:5])
        )
    if handoff.decisions:
        out.append(f"Decided: {_names(handoff.decisions)}.")
    if handoff.blockers:
        out.append(" ".join(_blocked(row) for row in handoff.blockers[:NAMED]))
    held = [row for row in handoff.tasks if row["claimed_by"]]
    free = [row for row in handoff.tasks if not row["claimed_by"]]
    if held:
        out.append("In work: " + ", ".join(f"{row['title']} ({row['claimed_by']})" for row in held[:NAMED]) + ".")
    if free:
        out.append(f"{_count(len(free), 'task')} open: {_names(free)}.")
    if handoff.messages:
        out.append(f"{_count(len(handoff.messages), 'unread message')}.")
    if handoff.next_steps:
        out.append("Next: " + "; ".join(row["step"].rstrip(".") for row in handoff.next_steps[:NAMED]) + ".")
    return " ".join(out)


def _blocked(row: dict[str, Any]) -> str:
    by = ", ".join(str(one.get("title") or one["target"]) for one in row["by"] if not one["ended"])
    how = "waits" if row["status"] == "waiting" else f"is {row['status']}"
    what = f" {'for' if row['status'] == 'waiting' else 'by'} {by}" if by else ""
    return f"{row['title']} {how}{what} since {row['since'][:10]}."


def _moment(text: str) -> str:
    return text[:16].replace("T", " ") + " UTC"


def _line(row: dict[str, Any]) -> str:
    status = f"{row['was'] or 'none'} → {row['status'] or 'none'}" if "was" in row else row["status"]
    parts = [row["change"], status]
    name = row["id"] or row["path"]
    return f"{row['title']} ({', '.join(part for part in parts if part)}) [{name}]"


def _task(row: dict[str, Any]) -> str:
    held = f", {row['claimed_by']}" if row["claimed_by"] else ""
    waits = f", waits for {', '.join(row['blocked_by'])}" if row["blocked_by"] else ""
    return f"{row['title']} ({row['status']}, {row['priority']}{held}{waits}) [{row['id'] or row['path']}]"


def _session(row: dict[str, Any]) -> str:
    touched = row["files"] or row["notes"]
    what = f"; touched {', '.join(touched[:5])}" if touched else ""
    told = f": {row['outcome']}" if row["outcome"] else ""
    who = f"{row['agent']}@{row['device']}".strip("@") or "somebody"
    return f"{row['updated'][:16].replace('T', ' ')} {who}, {row['title']}{told}{what}"


def _message(row: dict[str, Any]) -> str:
    return f"from {row['from']}: {row['subject']} [{row['id']}]"


def _decision(row: dict[str, Any]) -> str:
    return f"{row['title']} [{row['id'] or row['path']}]"


def markdown(handoff: Handoff, budget: int) -> str:
    """Return the handoff as markdown of at most `budget` tokens: every part keeps its first lines, and says how many were
    left out. The paragraph always stays."""
    parts: list[tuple[str, list[dict[str, Any]], Callable[[dict[str, Any]], str]]] = [
        ("Next steps", list(handoff.next_steps), lambda row: f"{row['step']} ({row['agent'] or row['from']})"),
        ("Blocked", handoff.blockers, _blocked),
        ("Tasks", handoff.tasks, _task),
        ("Unread messages", handoff.messages, _message),
        ("Decisions", handoff.decisions, _decision),
        ("Changed", handoff.changed, _line),
        ("Sessions", handoff.sessions, _session),
    ]
    shown = [(name, [" ".join(make(row).split()) for row in rows]) for name, rows, make in parts if rows]
    # One line for each part in turn, so that a long one does not starve the others.
    room = budget - count_tokens(handoff.summary) - sum(count_tokens(name) + 4 for name, _ in shown)
    taken = [0] * len(shown)
    step = True
    while step:
        step = False
        for place, (_, lines) in enumerate(shown):
            if taken[place] < len(lines):
                cost = count_tokens(lines[taken[place]]) + 1
                if cost <= room - 8:
                    room -= cost
                    taken[place] += 1
                    step = True
    out = [handoff.summary]
    for (name, lines), count in zip(shown, taken):
        if not count:
            continue
        out += ["", f"## {name}", "", *(f"- {line}" for line in lines[:count])]
        if count < len(lines):
            out.append(f"- … and {len(lines) - count} more")
    return "\n".join(out)
