"""mdmem agents: who was last seen where, on what."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.command("agents")
@click.option("--last", default="", metavar="AGE", help="Only those seen since, such as 7d.")
@json_option
@click.pass_context
@examples("mdmem agents", "mdmem agents --last 7d --json")
def command(ctx: click.Context, last: str, as_json: bool) -> None:
    """List the agents of this store: who was last seen on which device, and on what."""
    from mdmem.clock import parse_time
    from mdmem.team.agents import agents

    store = open_store(ctx)
    rows = agents(store, parse_time(last, store.clock.now()) if last else None)

    def human() -> None:
        for row in rows:
            held = ", ".join(task["title"] for task in row["tasks"])
            what = f"on {held}" if held else row["doing"] or row["subject"]
            seen = row["seen"][:16].replace("T", " ") or "never seen"
            say(f"{seen:<16}  {clean(row['agent'])}@{clean(row['device'])}  {clean(what)}")
        if not rows:
            say("Nobody has been here yet.")

    emit({"agents": rows, "you": str(store.identity)}, as_json, human)
