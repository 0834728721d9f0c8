"""mdmem graph: questions about what belongs to what and what waits for what."""

from __future__ import annotations

import click

from mdmem.cli.lazy import LazyGroup
from mdmem.cli.opening import examples

# name → (module:attribute, one-line help)
BELOW: dict[str, tuple[str, str]] = {
    "search": ("mdmem.cli.cmd_graph_search:command", "Find entities by words and by meaning."),
    "related": ("mdmem.cli.cmd_graph_related:command", "The notes around a note."),
    "path": ("mdmem.cli.cmd_graph_path:command", "A shortest way between two notes."),
    "blockers": ("mdmem.cli.cmd_graph_blockers:command", "What is blocked, by what, since when."),
    "diff": ("mdmem.cli.cmd_graph_diff:command", "What became of the notes between two dates."),
    "timeline": ("mdmem.cli.cmd_graph_timeline:command", "What happened to a note and around it."),
    "reconcile": ("mdmem.cli.cmd_graph_reconcile:command", "Where graph and files do not fit."),
    "health": ("mdmem.cli.cmd_graph_health:command", "The graph at a glance."),
    "export": ("mdmem.cli.cmd_graph_export:command", "The graph as DOT, Mermaid or JSON."),
}
# Names that people know from elsewhere.
HIDDEN: dict[str, tuple[str, str]] = {
    "check-blockers": BELOW["blockers"],
    "semantic-diff": BELOW["diff"],
    "gen-handoff": ("mdmem.cli.cmd_handoff:command", ""),
}


class GraphGroup(LazyGroup):
    """The questions to the graph."""

    listed, hidden_names = BELOW, HIDDEN


@click.group("graph", cls=GraphGroup)
@examples(
    "mdmem graph related project-apollo --depth 2",
    "mdmem graph blockers",
    "mdmem graph diff 2026-11-01 2026-11-30",
)
def command() -> None:
    """Questions about what belongs to what and what waits for what.

    The edges come from the fields initiative, part_of, blocked_by, blocks, depends_on, relates_to, supersedes and
    contradicts, and from links in the text. NOTE is an id, an unambiguous prefix of one, a path, a title or an alias.
    """
