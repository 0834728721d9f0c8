"""mdmem heartbeat: say that this agent is at work."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import emit, json_option, say


@click.command("heartbeat")
@click.option("--doing", default="", metavar="TEXT", help="What you are at, in a few words.")
@json_option
@click.pass_context
@examples("mdmem heartbeat", 'mdmem heartbeat --doing "Upgrading the database"')
def command(ctx: click.Context, doing: str, as_json: bool) -> None:
    """Say that this agent is at work. Kept on this device at most once a minute; the file that travels is written at most
    once a day."""
    from mdmem.team.agents import heartbeat

    data = heartbeat(open_store(ctx), doing)
    emit(data, as_json, lambda: say(f"{data['agent']} {'seen' if data['kept'] else 'seen already'} at {data['seen']}"))
