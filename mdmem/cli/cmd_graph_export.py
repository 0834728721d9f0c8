"""mdmem graph export: the graph as a picture or as data."""

from __future__ import annotations

import click

from mdmem.cli.graph_lines import rel_option, split, types_option
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import say, say_json


@click.command("export")
@click.option("--format", "form", type=click.Choice(["dot", "mermaid", "json"]), default="mermaid", help="The language.")
@types_option
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Instead of entity, note, task and memory.")
@rel_option
@click.option("--around", default="", metavar="NOTE", help="Only what lies around this note.")
@click.option("--depth", type=click.IntRange(1), default=2, show_default=True, help="How far around it.")
@click.option("--isolated", is_flag=True, help="Also notes without an edge.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.pass_context
@examples(
    "mdmem graph export > graph.mmd",
    "mdmem graph export --format dot --types project,initiative | dot -Tsvg > graph.svg",
    "mdmem graph export --around project-apollo --json",
)
def command(
    ctx: click.Context,
    form: str,
    types: str,
    kinds: tuple[str, ...],
    rel: tuple[str, ...],
    around: str,
    depth: int,
    isolated: bool,
    as_json: bool,
) -> None:
    """Print the graph as Mermaid, as DOT for Graphviz, or as JSON {nodes, edges}."""
    from mdmem.graph.export import dot, graph, mermaid
    from mdmem.graph.nodes import THINGS

    store = open_store(ctx)
    data = graph(store, kinds=kinds or THINGS, types=split(types), rel=rel, around=around, depth=depth, isolated=isolated)
    if as_json or form == "json":
        say_json(data)
    else:
        say(dot(data) if form == "dot" else mermaid(data))
