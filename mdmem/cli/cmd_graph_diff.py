"""mdmem graph diff: what became of the notes between two dates."""

from __future__ import annotations

from typing import Any

import click

from mdmem.cli.graph_lines import line_of, split, types_option
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.command("diff")
@click.argument("start", metavar="FROM")
@click.argument("end", metavar="[TO]", default="now", required=False)
@types_option
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Instead of entity, note, task and memory.")
@click.option("--stale-days", type=click.FloatRange(0), default=30, show_default=True, help="When open work counts as stale.")
@click.option("--limit", "-n", type=click.IntRange(0), default=10, show_default=True, help="Most changed and stale; 0: all.")
@json_option
@click.pass_context
@examples("mdmem graph diff 7d", "mdmem graph diff 2026-11-01 2026-11-30", "mdmem graph diff v1.0 HEAD --types project --json")
def command(
    ctx: click.Context,
    start: str,
    end: str,
    types: str,
    kinds: tuple[str, ...],
    stale_days: float,
    limit: int,
    as_json: bool,
) -> None:
    """Say what became of the notes between two dates or revisions: new, gone, status changes, newly blocked, newly done,
    most changed, stale.

    Read from git at both ends, so only what is committed counts. A bare day is taken whole.
    """
    from mdmem.graph.diff import diff
    from mdmem.graph.nodes import THINGS

    store = open_store(ctx)
    found = diff(store, start, end, kinds=kinds or THINGS, types=split(types), limit=limit, stale_days=stale_days)
    data = found.as_dict()

    def part(title: str, rows: list[dict[str, Any]], more: Any = lambda row: "") -> None:
        if rows:
            say(f"{title} ({len(rows)})")
        for row in rows:
            say(f"  {line_of(row)}{clean(more(row))}")

    def times(row: dict[str, Any]) -> str:
        return f"  {row['commits']} {'commit' if row['commits'] == 1 else 'commits'}"

    def human() -> None:
        say(f"{data['from']['date']} … {data['to']['date']}")
        part("New", data["new"])
        part("Gone", data["gone"])
        part("Moved", data["moved"], lambda row: f"  was {row['was']}")
        part("Status", data["status_changes"], lambda row: f"  was {row['was'] or 'none'}")
        part(
            "Newly blocked",
            data["newly_blocked"],
            lambda row: f"  by {', '.join(row['blocked_by'])}" if row["blocked_by"] else "",
        )
        part("Newly done", data["newly_done"])
        part("Most changed", data["most_changed"], times)
        if data["empty"]:
            say("Nothing changed.")
        part("Stale", data["stale"])

    emit(data, as_json, human)
