"""mdmem graph health: the graph at a glance."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.command("health")
@json_option
@click.pass_context
@examples("mdmem graph health", "mdmem graph health --json")
def command(ctx: click.Context, as_json: bool) -> None:
    """Count entities and edges, and say what a person should look at."""
    from mdmem.graph.health import health

    data = health(open_store(ctx))

    def named(counts: dict[str, int]) -> str:
        return ", ".join(f"{count} {clean(name) or '(none)'}" for name, count in counts.items()) or "none"

    def human() -> None:
        say(f"entities   {data['entities']} of {data['notes']} notes: {named(data['types'])}")
        say(f"edges      {data['edges']}: {named(data['relations'])}")
        say(f"lost       {named({name: count for name, count in data['states'].items() if name != 'ok' and count})}")
        say(f"isolated   {data['isolated']}")
        say(f"waiting    {data['waiting']}")
        say(f"stale      {data['stale']}")
        if data["summaries"] is not None:
            say(f"summaries  {data['summaries']:.0%}")
        for ring in data["rings"]:
            say(f"ring       {clean(' → '.join(ring))} wait for each other")
        say("healthy" if data["healthy"] else "look at it: mdmem graph reconcile")

    emit(data, as_json, human)
