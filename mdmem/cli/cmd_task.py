"""mdmem task: what is to be done, by whom, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.errors import UsageError
from mdmem.store import Store
from mdmem.team import claims, tasks, work


@click.group("task")
@examples('mdmem task add "Upgrade the database" --priority high', "mdmem task next", "mdmem task done task-20261130")
def command() -> None:
    """Tasks: open, claimed, active, blocked, done. Every step works offline and travels with sync.

    TASK is an id, an unambiguous prefix of one, a path or an exact title.
    """


def _say_lost(store: Store) -> list[dict[str, str]]:
    gone = claims.lost(store, work.all_of(store, "task"))
    for row in gone:
        note(f"note: your claim on {clean(row['title'])!r} is now {row['holder']}'s")
    return gone


def _say_unknown(store: Store, task: Any, given: Iterable[str]) -> None:
    for name in tasks.unknown(store, task, given):
        note(f"note: no note is named {clean(name)!r} yet; it is written down all the same")


def _line(row: dict[str, Any]) -> str:
    held = f"  @{row['claimed_by']}" if row["claimed_by"] else ""
    waits = f"  waits for {', '.join(row['blocked_by'])}" if row["blocked_by"] and row["status"] not in tasks.ENDED else ""
    return f"[{clean(row['status'])}/{clean(row['priority'])}] {clean(row['title'])}{held}{clean(waits)}  ({clean(row['id'])})"


def _show(task: Any, committed: bool, reason: str, as_json: bool) -> None:
    row = {**tasks.as_row(task), "committed": committed, "reason": reason}
    emit(row, as_json, lambda: say(_line(row)))
    if reason:
        note(f"note: saved, not committed yet: {reason}")


@command.command("add")
@click.argument("title")
@click.argument("text", default="", required=False)
@click.option("--priority", default="normal", help="urgent, high, normal or low.")
@click.option("--parent", default="", metavar="TASK", help="The task or entity that it is part of.")
@click.option("--blocked-by", multiple=True, metavar="NOTE", help="What it waits for; may be given again.")
@click.option("--tags", default="", help="Tags, comma-separated.")
@click.option("--due", default="", metavar="DATE", help="When it should be done.")
@click.option("--scope", default="", help="shared, agent:NAME, project:NAME …")
@json_option
@click.pass_context
@examples(
    'mdmem task add "Upgrade the database"',
    'mdmem task add "Deploy" --blocked-by "Upgrade the database" --priority high',
)
def add(
    ctx: click.Context,
    title: str,
    text: str,
    priority: str,
    parent: str,
    blocked_by: tuple[str, ...],
    tags: str,
    due: str,
    scope: str,
    as_json: bool,
) -> None:
    """Add a task."""
    from mdmem.clock import parse_time, stamp

    store = open_store(ctx, need="write")
    when = stamp(parse_time(due, store.clock.now(), end=True)) if due else ""
    more = {"priority": priority, "parent": parent, "due": when, "scope": scope}
    done = tasks.add(store, title, text, blocked_by=blocked_by, tags=tags.split(","), **more)
    _show(*done, as_json)
    _say_unknown(store, done[0], [*blocked_by, parent])


def _step(name: str, text: str, example: str, outcome: str = "") -> None:
    """Register a command for one step of a task's life."""

    @click.argument("reference", metavar="TASK")
    @click.option("--force", is_flag=True, help="Also when another agent holds it.")
    @json_option
    @click.pass_context
    def run(ctx: click.Context, /, reference: str, force: bool, as_json: bool, **given: Any) -> None:
        store = open_store(ctx, need="write")
        _say_lost(store)
        words = given.get("outcome") or given.get("reason") or ""
        done = tasks.step(store, reference, name, by=given.get("by") or (), outcome=words, force=force)
        _show(*done, as_json)
        _say_unknown(store, done[0], given.get("by") or ())

    run.__doc__ = text
    function = examples(example, f"{example} --json")(run)
    if outcome:
        function = click.option(f"--{outcome}", default="", help="In a few words.")(function)
    if name == "block":
        help_text = "What it waits for; may be given again."
        function = click.option("--by", multiple=True, metavar="NOTE", help=help_text)(function)
    command.command(name)(function)


_step("claim", "Say that you will do a task.", 'mdmem task claim "Upgrade the database"')
_step("start", "Claim a task and begin it.", "mdmem task start task-20261130")
_step("block", "Say that a task waits for something.", "mdmem task block Deploy --by 'Upgrade the database'", "reason")
_step("done", "End a task well.", 'mdmem task done Deploy --outcome "version 4 is live"', "outcome")
_step("fail", "End a task that did not work out.", 'mdmem task fail Deploy --reason "no access"', "reason")
_step("cancel", "End a task that is not needed any more.", "mdmem task cancel Deploy", "reason")
_step("release", "Give a claimed task back.", "mdmem task release Deploy")


@command.command("update")
@click.argument("reference", metavar="TASK")
@click.option("--status", default="", help="open, claimed, active, blocked, waiting, done, failed or cancelled.")
@click.option("--priority", default="", help="urgent, high, normal or low.")
@click.option("--title", default="", help="A new title.")
@click.option("--due", default="", metavar="DATE", help="When it should be done.")
@click.option("--note", "text", default="", help="Add a dated line to the task.")
@json_option
@click.pass_context
@examples('mdmem task update Deploy --note "waiting for the window on Thursday"', "mdmem task update Deploy --priority urgent")
def update(
    ctx: click.Context, reference: str, status: str, priority: str, title: str, due: str, text: str, as_json: bool
) -> None:
    """Change a task, or add a dated line to it."""
    from mdmem.clock import parse_time, stamp

    store = open_store(ctx, need="write")
    when = stamp(parse_time(due, store.clock.now(), end=True)) if due else ""
    values = {"status": status, "priority": priority, "title": title, "due": when}
    _show(*tasks.update(store, reference, {k: v for k, v in values.items() if v}, text), as_json)


@command.command("note")
@click.argument("reference", metavar="TASK")
@click.argument("text", metavar="TEXT|-")
@json_option
@click.pass_context
@examples('mdmem task note Deploy "The window is Thursday"', "mdmem task note Deploy - < findings.txt")
def add_note(ctx: click.Context, reference: str, text: str, as_json: bool) -> None:
    """Add a dated line to a task."""
    import sys

    store = open_store(ctx, need="write")
    words = sys.stdin.buffer.read().decode("utf-8", "replace") if text == "-" else text
    if not words.strip():
        raise UsageError("there is nothing to note", hint='mdmem task note Deploy "The window is Thursday"')
    _show(*tasks.update(store, reference, {}, words.strip()), as_json)


@command.command("list")
@click.option("--status", "statuses", multiple=True, help="Only this status; may be given again.")
@click.option("--all", "everything", is_flag=True, help="Ended ones too.")
@click.option("--mine", is_flag=True, help="Only those that you hold.")
@click.option("--limit", "-n", type=click.IntRange(0), default=0, help="How many; 0 for all.")
@json_option
@click.pass_context
@examples("mdmem task list", "mdmem task list --status blocked --json", "mdmem task list --mine")
def list_(ctx: click.Context, statuses: tuple[str, ...], everything: bool, mine: bool, limit: int, as_json: bool) -> None:
    """List tasks, the most urgent first."""
    store = open_store(ctx)
    gone = _say_lost(store)
    rows = [tasks.as_row(t) for t in tasks.listed(store, statuses=statuses, everything=everything, mine=mine)]
    rows = rows[:limit] if limit else rows

    def human() -> None:
        for row in rows:
            say(_line(row))
        if not rows:
            say("No tasks.")

    emit({"tasks": rows, "lost_claims": gone}, as_json, human)


@command.command("next")
@json_option
@click.pass_context
@examples("mdmem task next", "mdmem task next --json")
def next_(ctx: click.Context, as_json: bool) -> None:
    """Show the best task to do now: yours first, else the most urgent one that nothing blocks."""
    store = open_store(ctx)
    gone = _say_lost(store)
    found = tasks.next_task(store)
    row = tasks.as_row(found) if found else None
    emit({"task": row, "lost_claims": gone}, as_json, lambda: say(_line(row) if row else "Nothing is free to be done."))


@command.command("current")
@json_option
@click.pass_context
@examples("mdmem task current", "mdmem task current --json")
def current(ctx: click.Context, as_json: bool) -> None:
    """Show the tasks that you hold."""
    store = open_store(ctx)
    gone = _say_lost(store)
    rows = [tasks.as_row(t) for t in tasks.current(store)]

    def human() -> None:
        for row in rows:
            say(_line(row))
        if not rows:
            say("You hold no task.")

    emit({"tasks": rows, "lost_claims": gone}, as_json, human)
