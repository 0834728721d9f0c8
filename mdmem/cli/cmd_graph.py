"""mdmem graph: questions about what belongs to what and what waits for what."""

from __future__ import annotations

import importlib

import click

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
HIDDEN = {
    "check-blockers": BELOW["blockers"],
    "semantic-diff": BELOW["diff"],
    "gen-handoff": ("mdmem.cli.cmd_handoff:command", ""),
}


class GraphGroup(click.Group):
    """A group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(BELOW)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        entry = BELOW.get(name) or HIDDEN.get(name)
        if entry is None:
            return None
        module, _, attribute = entry[0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in BELOW.items()])


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
