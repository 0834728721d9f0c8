"""mdmem session show: one session and its commits."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.group("session")
@examples("mdmem session show ses-20261130", "mdmem sessions --last 7d")
def command() -> None:
    """One session of an agent. `mdmem sessions` lists them."""


@command.command("show")
@click.argument("reference", metavar="ID")
@json_option
@click.pass_context
@examples("mdmem session show ses-20261130", "mdmem session show 1b9f2c4e-77d0-4a55 --json")
def show(ctx: click.Context, reference: str, as_json: bool) -> None:
    """Print a session's note and the commits made in it. ID is the note's, or the agent's own id of the session."""
    from mdmem.team.sessions import show as found_of

    data = found_of(open_store(ctx), reference)

    def human() -> None:
        who = f"{data['agent']}@{data['device']}".strip("@")
        say(f"{clean(data['title'])}  ({clean(data['id'] or data['path'])})")
        say(f"{who}, {data['created'][:16].replace('T', ' ')} to {data['updated'][:16].replace('T', ' ')}")
        say("")
        say(data["body"].rstrip("\n"))
        if data["commits"]:
            say("")
            say("Commits")
        for commit in data["commits"]:
            say(f"  {commit['rev'][:10]}  {commit['date'][:16].replace('T', ' ')}  {clean(commit['subject'])}")

    emit(data, as_json, human)
