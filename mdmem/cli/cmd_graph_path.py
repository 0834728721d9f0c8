"""mdmem graph path: a shortest way between two notes."""

from __future__ import annotations

import click

from mdmem.cli.graph_lines import line_of, rel_option, way_of
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import emit, json_option, say


@click.command("path")
@click.argument("one", metavar="NOTE")
@click.argument("other", metavar="NOTE")
@rel_option
@json_option
@click.pass_context
@examples("mdmem graph path project-apollo person-ada", 'mdmem graph path task-2026 "Hosting decision" --json')
def command(ctx: click.Context, one: str, other: str, rel: tuple[str, ...], as_json: bool) -> None:
    """Show a shortest way between two notes, along edges in either direction."""
    from mdmem.graph.related import path

    found = path(open_store(ctx), one, other, rel=rel)

    def human() -> None:
        if not found["found"]:
            say("No way leads from one to the other.")
            return
        for row in found["notes"]:
            say(line_of(row))
        if found["steps"]:
            say(way_of(found["steps"]))

    emit(found, as_json, human)
