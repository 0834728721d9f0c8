"""What each tool does: one function a tool, from checked arguments to a markdown text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mdmem.errors import UsageError

if TYPE_CHECKING:
    from mdmem.recall.query import Filters
    from mdmem.store import Store


def _filters(store: Store, given: dict[str, Any]) -> Filters:
    from mdmem.clock import parse_time
    from mdmem.recall.query import filters_from

    names = {"type": "types", "kind": "kinds", "tag": "tags", "scope": "scopes", "status": "statuses"}
    options: dict[str, object] = {plural: (given[name],) for name, plural in names.items() if given.get(name)}
    if given.get("since"):
        options["since"] = parse_time(given["since"], store.clock.now())
    return filters_from(options)


def _quoted(text: str) -> str:
    from mdmem.recall.pack import neutral

    return "\n".join(f"> {line}" for line in neutral(text).splitlines() if line.strip())


def _line(text: str) -> str:
    from mdmem.recall.pack import one_line

    return one_line(text)


def _shown(store: Store, notes: Iterable[tuple[str, str, str]]) -> None:
    """Note that these notes (id, path, title) were shown, so that what an agent cites of them counts as useful."""
    from mdmem.memory import shown

    if store.trusted:
        lines = [shown.line(identity or path, path, title) for identity, path, title in notes]
        shown.add(str(store.common_state_dir), shown.OUTSIDE, lines)


def search(store: Store, given: dict[str, Any]) -> str:
    from mdmem.clock import parse_time
    from mdmem.federation import ask
    from mdmem.recall.query import Query

    as_of = parse_time(given["as_of"], store.clock.now(), end=True) if given.get("as_of") else None
    query = Query(
        given["query"],
        limit=given.get("limit", 5),
        mode=given.get("mode", "hybrid"),
        filters=_filters(store, given),
        as_of=as_of,
    )
    found = ask(store, query)
    _shown(store, ((hit.id, hit.path, hit.title) for hit in found.results if not hit.store and hit.scope != "local"))
    parts = [f"{len(found.results)} notes" if found.results else "Nothing found."]
    for hit in found.results:
        where = (f"{_line(hit.store)}: " if hit.store else "") + f"{_line(hit.path)}:{hit.start_line}-{hit.end_line}"
        parts.append(f"- **{_line(hit.title)}** [{_line(hit.type or hit.kind)}] `{_line(hit.id or hit.path)}` {where}")
        parts.append(_quoted(hit.snippet))
    return "\n".join([*parts, *(f"note: {text}" for text in found.notices)])


def get(store: Store, given: dict[str, Any]) -> str:
    from mdmem.recall.pack import neutral
    from mdmem.recall.shared_note import read_anywhere

    if given.get("at"):
        from mdmem.memory.past import note_at

        note, rev = note_at(store, given["note"], given["at"])
        head = f"{note.path} as of {rev[:10]}"
    else:
        note, origin = read_anywhere(store, given["note"])
        head = "" if origin is None else f"{note.path} ({origin.line()})"
        if origin is None:
            _shown(store, [(note.id or "", note.path, note.title)] if note.scope != "local" else [])
    return f"{_line(head or note.path)}\n\n{neutral(note.data.decode('utf-8', 'replace'))}"


def add(store: Store, given: dict[str, Any]) -> str:
    from mdmem.federation import target
    from mdmem.memory.remember import Memory, remember

    memory = Memory(
        given.get("type", "fact"),
        given["text"],
        given.get("title", ""),
        given.get("tags", []),
        given.get("scope", ""),
        given.get("category", ""),
        given.get("supersedes", ""),
        {"source": "mcp"},
        ask=True,
    )
    memory.scope = memory.scope or store.default_scope
    goal = target(store, memory.scope)[1]
    try:
        done = remember(goal.writable(), memory)
    finally:
        if goal is not store:
            goal.close()
    lines = [f"{done.action}: `{done.id}` {done.path}"]
    if done.why:
        about = ", ".join(f"`{item}`" for item in done.decided or done.review)
        told = _line(done.why) + (f": {about}" if about else "")
        lines.append(told + (" (waits for mdmem review)" if done.review else ""))
    if done.failed:
        lines.append(f"decided by rules alone: {_line(done.failed)}")
    if done.redacted:
        lines.append(f"taken out before saving: {', '.join(done.redacted)}")
    if done.reason:
        lines.append(f"saved, not committed yet: {done.reason}")
    lines += [f"related: `{row['id'] or row['path']}` {_line(row['title'])}" for row in done.related]
    return "\n".join(lines)


def update(store: Store, given: dict[str, Any]) -> str:
    from mdmem.memory.change import set_body, set_fields

    parts = ("set", "add", "remove", "unset", "text")
    if not any(given.get(name) for name in parts):
        raise UsageError("nothing to change", hint="give set, add, remove, unset or text")
    store.writable()
    lines = []
    if any(given.get(name) for name in parts[:-1]):
        fields = set_fields(
            store, given["note"], given.get("set"), given.get("add"), given.get("remove"), given.get("unset", ())
        )
        lines.append(f"{'changed' if fields.changed else 'unchanged'}: {fields.path}")
    if given.get("text"):
        body = set_body(store, given["note"], given["text"])
        lines.append(f"new text: {body.path}")
    return "\n".join(lines)


def forget(store: Store, given: dict[str, Any]) -> str:
    from mdmem.memory.forget import forget as service

    done = service(store.writable(), [given["note"]], superseded_by=given.get("superseded_by", ""))
    if done.failed:
        raise UsageError(done.failed[0]["message"])
    lines = [f"forgotten: `{row['id'] or row['path']}` {_line(row['title'])}" for row in done.notes]
    return "\n".join(lines) or "already forgotten"


def list_(store: Store, given: dict[str, Any]) -> str:
    from mdmem.recall.listing import select

    rows = select(store, _filters(store, given), limit=given.get("limit", 20))
    lines = [
        f"- {(row['updated'] or '')[:10]} [{_line(row['type'] or row['kind'] or '')}] {_line(row['title'] or '')} "
        f"`{_line(row['id'] or row['path'])}`"
        for row in rows
    ]
    return "\n".join(lines) or "No notes."


def related(store: Store, given: dict[str, Any]) -> str:
    from mdmem.graph.related import related as service

    found = service(store, given["note"], depth=given.get("depth", 1), limit=given.get("limit", 20))
    lines = []
    for row in found.found:
        name = _line(str(row.get("id") or row.get("path")))
        way = ", ".join(("→ " if step["forward"] else "← ") + str(step["rel"]) for step in row["via"])
        lines.append(f"- {_line(str(row.get('title', '')))} `{name}` ({_line(way)})")
    return "\n".join(lines) or "No relations."


def context(store: Store, given: dict[str, Any]) -> str:
    from mdmem.federation import ask
    from mdmem.recall.query import Query

    query = Query(given["query"], limit=20, budget=given.get("budget", 1500))
    found = ask(store, query)
    _shown(store, ((hit.id, hit.path, hit.title) for hit in found.results if not hit.store and hit.scope != "local"))
    return found.context or "Nothing found."


def handoff(store: Store, given: dict[str, Any]) -> str:
    from mdmem.team.handoff import gather
    from mdmem.team.handoff_text import markdown

    return markdown(gather(store, hours=float(given.get("hours", 8))), given.get("budget", 1500))


def task(store: Store, given: dict[str, Any]) -> str:
    from mdmem.team import tasks

    action = given["action"]

    def line(note: Any) -> str:
        row = tasks.as_row(note)
        held = f" @{row['claimed_by']}" if row["claimed_by"] else ""
        return f"- [{row['status']}/{row['priority']}] {_line(row['title'])}{held} `{row['id'] or row['path']}`"

    if action == "list":
        return "\n".join(map(line, tasks.listed(store))) or "No open tasks."
    if action == "next":
        found = tasks.next_task(store)
        return line(found) if found else "Nothing is free to be done."
    if not given.get("task"):
        raise UsageError("name the task", hint="task: an id, a title, or with add the new title")
    store.writable()
    if action == "add":
        more = {"priority": given.get("priority", "normal"), "blocked_by": given.get("blocked_by", [])}
        return line(tasks.add(store, given["task"], given.get("text", ""), **more)[0])
    done = tasks.step(store, given["task"], action, by=given.get("blocked_by", ()), outcome=given.get("text", ""))
    return line(done[0])


def message(store: Store, given: dict[str, Any]) -> str:
    from mdmem.team import messages

    action = given["action"]
    if action == "inbox":
        rows = [messages.as_row(note, store) for note in messages.inbox(store)]
        lines = []
        for row in rows:
            mark = "" if row["read"] else "● "
            lines.append(f"- {mark}{row['created'][:16]} from {_line(row['from'])}: **{_line(row['subject'])}** `{row['id']}`")
            lines += [_quoted(row["body"])] if row["body"] else []
        return "\n".join(lines) or "No messages."
    store.writable()
    if action == "send":
        if not given.get("to") or not given.get("subject"):
            raise UsageError("a message needs `to` and `subject`")
        sent = messages.send(store, given["to"].split(","), given["subject"], given.get("text", ""))[0]
        return f"sent: `{sent.id}`"
    if not given.get("message"):
        raise UsageError("name the message", hint="message: its id, from inbox")
    if action == "ack":
        return f"read: `{messages.ack(store, given['message'])[0].id}`"
    return f"sent: `{messages.reply(store, given['message'], given.get('text', ''))[0].id}`"


def sync(store: Store, given: dict[str, Any]) -> str:
    from mdmem.memory.syncing import sync_store
    from mdmem.repo.sync import SyncOptions

    result = sync_store(store.writable(), SyncOptions(push=given.get("push", True)))
    lines = [f"{result.state}: {result.pulled} commits from the remote, {result.pushed} pushed, {result.waiting} wait"]
    if result.reason:
        lines.append(result.reason)
    return "\n".join(lines + [f"conflict: {_line(str(found))}" for found in result.conflicts])


def query(store: Store, given: dict[str, Any]) -> str:
    from mdmem.recall.sql import as_json_lines
    from mdmem.recall.sql import query as service

    answer = service(store, given["sql"])
    text = as_json_lines(answer)
    return text[:60_000] + ("\n(cut)" if len(text) > 60_000 or answer.cut else "") if text else "No rows."


def feedback(store: Store, given: dict[str, Any]) -> str:
    from mdmem.memory.feedback import rate

    done = rate(store, given["note"], given["rating"])
    return f"rated `{done['id'] or done['path']}`: {done['weight']:.2f} after {done['count']}"


ACTIONS: dict[str, Callable[[Store, dict[str, Any]], str]] = {
    "memory_search": search,
    "memory_get": get,
    "memory_add": add,
    "memory_update": update,
    "memory_forget": forget,
    "memory_list": list_,
    "memory_related": related,
    "memory_context": context,
    "memory_feedback": feedback,
    "memory_handoff": handoff,
    "memory_task": task,
    "memory_message": message,
    "memory_sync": sync,
    "memory_query": query,
}
