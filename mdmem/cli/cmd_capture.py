"""mdmem capture: what was kept of what was said."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.group("capture")
def command() -> None:
    """Look at what mdmem keeps of sessions.

    \b
    Examples:
      mdmem capture log
      mdmem capture log --session 3f2a9c1e --json
    """


@command.command("log")
@click.option("--session", default="", metavar="ID", help="Only this session; the start of its id is enough.")
@click.option("--kept", is_flag=True, help="Leave out what was skipped.")
@click.option("--limit", default=200, show_default=True, help="The last so many lines; 0 for all.")
@json_option
@click.pass_context
@examples("mdmem capture log", "mdmem capture log --session 3f2a9c1e --kept")
def log_command(ctx: click.Context, session: str, kept: bool, limit: int, as_json: bool) -> None:
    """Say of each sentence of a session what was made of it, and why.

    Kept on this device only, for the last 200 sessions that were consolidated.
    """
    from mdmem.learn.log import read

    rows = [row for row in read(open_store(ctx), session) if not kept or row.get("outcome") != "skipped"]
    rows = rows[-limit:] if limit > 0 else rows

    def human() -> None:
        if not rows:
            say("Nothing was consolidated on this device yet.")
        last = ""
        for row in rows:
            if row["session"] != last:
                last = row["session"]
                say(f"session {clean(last)}")
            who = f" {row['who']}" if row.get("who") else ""
            say(f"  {row.get('line', 0):5}{who} {row.get('outcome', '')}: {clean(str(row.get('text', ''))[:100])}")
            say(f"        {clean(str(row.get('why', '')))}" + (f"  [{row['note']}]" if row.get("note") else ""))

    emit(rows, as_json, human)
