"""mdmem status: the store at a glance."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, place, say


@click.command("status")
@json_option
@click.pass_context
@examples("mdmem status", "mdmem -C ~/memory status --json")
def command(ctx: click.Context, as_json: bool) -> None:
    """Say where the store is, what is in it, what waits for a commit or a push, and what needs you."""
    from mdmem.memory.overview import overview

    data = overview(open_store(ctx))

    def human() -> None:
        only = "" if data["trusted"] else ", read only" if data["hindrance"] else ", not trusted: read only"
        say(f"store      {place(data['store'])}  ({data['mode']}{only})")
        say(f"you        {data['identity']}")
        kinds = ", ".join(f"{count} {kind}" for kind, count in data["notes"].items()) or "none yet"
        say(f"notes      {kinds}")
        index = data["index"]
        waiting = index.get("waiting_for_vectors", 0)
        say(
            f"index      {index.get('notes', 0)} notes, {index.get('windows', 0)} windows"
            + (f", {waiting} wait for a vector" if waiting else "")
        )
        git = data["git"]
        say(
            f"git        {git['state']}, {git['uncommitted']} uncommitted, {git['unpushed']} unpushed"
            + (f" to {git['remote']}" if git["remote"] else ", no remote")
        )
        for name in ("bad", "conflicted"):
            for path in data[name]:
                say(f"{name:<10} {clean(path)}")
        for text in data["needs"]:
            say(f"todo       {clean(text)}")

    emit(data, as_json, human)
