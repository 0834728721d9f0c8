"""mdmem graph timeline: what happened to a note and around it."""

from __future__ import annotations

import click

from mdmem.cli.graph_lines import line_of
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.command("timeline")
@click.argument("reference", metavar="NOTE")
@click.option("--limit", "-n", type=click.IntRange(0), default=0, help="How many events; 0 for all.")
@json_option
@click.pass_context
@examples("mdmem graph timeline project-apollo", 'mdmem graph timeline "Hosting decision" --limit 10 --json')
def command(ctx: click.Context, reference: str, limit: int, as_json: bool) -> None:
    """Say what happened to a note and what was linked to it, newest first."""
    from mdmem.graph.timeline import timeline

    found = timeline(open_store(ctx), reference, limit)

    def human() -> None:
        say(line_of(found["note"]))
        for event in found["events"]:
            day = event["date"][:16].replace("T", " ")
            if event["event"] == "linked":
                say(f"  {day}  {clean(event['title'])} ({clean(event['from'])}) {event['rel']} this")
                continue
            say(f"  {day}  {event['event']} by {clean(event['who'])}: {clean(event['subject'])}")
            for change in event["changes"]:
                was = f"{clean(change['was'])} → " if change["was"] else ""
                say(f"      {change['field']}: {was}{clean(change['now']) or '(taken out)'}")
        if not found["events"]:
            say("  Nothing is recorded yet.")

    emit(found, as_json, human)
