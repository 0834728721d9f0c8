"""mdmem message, inbox, reply, ack, thread: words between agents."""

from __future__ import annotations

from typing import Any

import click

from mdmem.cli.opening import examples, open_store, stdin_text
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.errors import UsageError
from mdmem.team import messages


def _text(given: str) -> str:
    return stdin_text() if given == "-" else given


def _line(row: dict[str, Any]) -> str:
    mark = " " if row["read"] or row["mine"] else "●"
    kind = row["type"] if row["priority"] == "normal" else f"{row['type']}, {row['priority']}"
    text = clean(f"[{kind}] from {row['from']}: {row['subject']}")
    return f"{mark} {row['created'][:10]} {text}  ({clean(row['id'])})"


def _sent(result: Any, store: Any, as_json: bool) -> None:
    written, committed, reason = result
    row = {**messages.as_row(written, store), "committed": committed, "reason": reason}
    emit(row, as_json, lambda: say(f"Sent to {', '.join(row['to'])}: {clean(row['subject'])}  ({clean(row['id'])})"))
    if reason:
        note(f"note: saved, not committed yet: {reason}")


@click.group("message")
@examples('mdmem message send reviewer "Please look at the plan"', 'mdmem message send --all "The build is frozen" --ttl 2d')
def command() -> None:
    """Messages to other agents; they arrive with the next sync. Read them with `mdmem inbox`."""


@command.command("send")
@click.argument("words", metavar="[TO] SUBJECT [BODY|-]", nargs=-1, required=True)
@click.option("--all", "everyone", is_flag=True, help="To everybody; then leave TO out.")
@click.option("--type", "type_", default="note", help="note, question, request, warning …")
@click.option("--priority", default="normal", help="urgent, high, normal or low.")
@click.option("--thread", default="", metavar="ID", help="Continue a thread.")
@click.option("--ttl", default="", metavar="AGE", help="Ends after so long, such as 2d.")
@json_option
@click.pass_context
@examples(
    'mdmem message send reviewer "Please look at the plan"',
    'mdmem message send claude-code@laptop "Which port?" "The proxy needs it." --type question',
    'mdmem message send --all "The build is frozen" --ttl 2d',
)
def send(
    ctx: click.Context,
    words: tuple[str, ...],
    everyone: bool,
    type_: str,
    priority: str,
    thread: str,
    ttl: str,
    as_json: bool,
) -> None:
    """Send a message to an agent (NAME, or NAME@DEVICE) or to all."""
    rest = list(words)
    to = [messages.ALL] if everyone else rest.pop(0).split(",")
    if not 1 <= len(rest) <= 2:
        raise UsageError("give a receiver, a subject and perhaps a body", hint='mdmem message send NAME "subject" "body"')
    store = open_store(ctx, need="write")
    body = _text(rest[1]) if len(rest) == 2 else ""
    result = messages.send(store, to, rest[0], body, type_=type_, priority=priority, thread=thread, ttl=ttl)
    _sent(result, store, as_json)


@click.command("inbox")
@click.option("--unread", is_flag=True, help="Only what you have not acknowledged.")
@click.option("--all", "everything", is_flag=True, help="Also other agents' messages and expired ones.")
@click.option("--limit", "-n", type=click.IntRange(0), default=0, help="How many; 0 for all.")
@json_option
@click.pass_context
@examples("mdmem inbox", "mdmem inbox --unread --json")
def inbox(ctx: click.Context, unread: bool, everything: bool, limit: int, as_json: bool) -> None:
    """List the messages to you, unread first."""
    store = open_store(ctx)
    rows = [messages.as_row(m, store) for m in messages.inbox(store, unread=unread, everything=everything)]
    rows = rows[:limit] if limit else rows

    def human() -> None:
        for row in rows:
            say(_line(row))
        if not rows:
            say("No messages.")

    emit({"messages": rows, "unread": sum(not row["read"] for row in rows)}, as_json, human)


@click.command("reply")
@click.argument("reference", metavar="MESSAGE")
@click.argument("body", metavar="TEXT|-")
@json_option
@click.pass_context
@examples('mdmem reply msg-2026 "Port 8443."', "mdmem reply msg-2026 - < answer.txt")
def reply(ctx: click.Context, reference: str, body: str, as_json: bool) -> None:
    """Answer a message in its thread, and mark it as read."""
    store = open_store(ctx, need="write")
    _sent(messages.reply(store, reference, _text(body)), store, as_json)


@click.command("ack")
@click.argument("reference", metavar="MESSAGE")
@json_option
@click.pass_context
@examples("mdmem ack msg-2026", "mdmem ack msg-2026 --json")
def ack(ctx: click.Context, reference: str, as_json: bool) -> None:
    """Mark a message as read. The receipt travels with the next sync."""
    store = open_store(ctx, need="write")
    written, _, _ = messages.ack(store, reference)
    row = messages.as_row(written, store)
    emit(row, as_json, lambda: say(f"Read: {clean(row['subject'])}"))


@click.command("thread")
@click.argument("reference", metavar="MESSAGE")
@json_option
@click.pass_context
@examples("mdmem thread msg-2026", "mdmem thread msg-2026 --json")
def thread(ctx: click.Context, reference: str, as_json: bool) -> None:
    """Show a thread, oldest first."""
    store = open_store(ctx)
    rows = [messages.as_row(m, store) for m in messages.thread(store, reference)]

    def human() -> None:
        for row in rows:
            say(_line(row))
            for line in row["body"].splitlines():
                say(f"    {clean(line)}")

    emit({"messages": rows}, as_json, human)
