"""mdmem sessions: which sessions there were."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.command("sessions")
@click.option("--agent", default="", metavar="NAME[@DEVICE]", help="Only this agent's.")
@click.option("--last", default="7d", show_default=True, metavar="AGE", help="How far back; `all` for all.")
@click.option("--limit", "-n", type=click.IntRange(0), default=0, help="How many; 0 for all.")
@json_option
@click.pass_context
@examples("mdmem sessions", "mdmem sessions --agent claude-code@laptop --last 30d", "mdmem sessions --last all --json")
def command(ctx: click.Context, agent: str, last: str, limit: int, as_json: bool) -> None:
    """List sessions and logs, newest first. `mdmem session show ID` prints one with its commits."""
    from mdmem.clock import parse_time
    from mdmem.team.sessions import as_row, sessions

    store = open_store(ctx)
    since = None if last == "all" else parse_time(last, store.clock.now())
    rows = [as_row(row) for row in sessions(store, agent=agent, since=since, limit=limit)]

    def human() -> None:
        for row in rows:
            who = f"{row['agent']}@{row['device']}".strip("@") or "somebody"
            say(f"{row['updated'][:16].replace('T', ' ')}  [{who}] {clean(row['title'])}  ({clean(row['id'] or row['path'])})")
        if not rows:
            say("No sessions.")

    emit({"sessions": rows, "count": len(rows)}, as_json, human)
