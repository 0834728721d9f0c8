"""mdmem graph search: entities by words and by meaning."""

from __future__ import annotations

import click

from mdmem.cli.graph_lines import line_of, split, types_option
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import emit, json_option, note, say


@click.command("search")
@click.argument("query")
@types_option
@click.option("--days", type=click.IntRange(1), default=180, show_default=True, help="Updated in the last so many days.")
@click.option("--all-time", is_flag=True, help="However old.")
@click.option("--limit", "-n", type=click.IntRange(1), default=10, show_default=True, help="How many.")
@json_option
@click.pass_context
@examples('mdmem graph search "billing"', 'mdmem graph search "who owns deploys" --types person,team --all-time')
def command(ctx: click.Context, query: str, types: str, days: int, all_time: bool, limit: int, as_json: bool) -> None:
    """Find entities by words and by meaning."""
    from mdmem.graph.search import search

    store = open_store(ctx)
    found = search(store, query, types=split(types), days=None if all_time else days, limit=limit)
    for text in found["notices"]:
        note(f"note: {text}")

    def human() -> None:
        for row in found["results"]:
            say(line_of(row))
        if not found["results"]:
            say("No entity fits." if all_time else f"No entity of the last {days} days fits (--all-time looks further back).")

    emit(found, as_json, human)
