"""mdmem graph related: the notes around a note."""

from __future__ import annotations

import click

from mdmem.cli.graph_lines import line_of, rel_option, way_of
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import emit, json_option, say


@click.command("related")
@click.argument("reference", metavar="NOTE")
@click.option("--depth", type=click.IntRange(1), default=1, show_default=True, help="How many edges away.")
@rel_option
@click.option("--direction", type=click.Choice(["both", "out", "in"]), default="both", help="Only edges from it, or to it.")
@click.option("--limit", "-n", type=click.IntRange(0), default=20, show_default=True, help="How many; 0 for all.")
@json_option
@click.pass_context
@examples(
    "mdmem graph related project-apollo",
    "mdmem graph related project-apollo --depth 2 --rel-type part_of --rel-type blocked_by",
    'mdmem graph related "Hosting decision" --direction in --json',
)
def command(
    ctx: click.Context, reference: str, depth: int, rel: tuple[str, ...], direction: str, limit: int, as_json: bool
) -> None:
    """List the notes around a note, nearest first, each with the edges that led to it."""
    from mdmem.graph.related import related

    found = related(open_store(ctx), reference, depth=depth, rel=rel, direction=direction, limit=limit)

    def human() -> None:
        say(line_of(found.note))
        for row in found.found:
            last = row["via"][-1]
            arrow = f"-> {last['rel']}" if last["forward"] else f"<- {last['rel']}"
            say(f"{'  ' * row['depth']}({arrow}) {line_of(row)}")
            if row["depth"] > 1:
                say(f"{'  ' * row['depth']}    by {way_of(row['via'])}")
        if not found.found:
            say("  Nothing is related to it.")
        if found.cut:
            say(f"  … more than {limit}: --limit 0 for all")

    emit(found.as_dict(), as_json, human)
