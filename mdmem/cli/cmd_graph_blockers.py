"""mdmem graph blockers: what is blocked, by what, since when."""

from __future__ import annotations

import click

from mdmem.cli.graph_lines import line_of
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.command("blockers")
@click.option("--stale-days", type=click.FloatRange(0), default=3, show_default=True, help="Not updated for so long; 0: all.")
@click.option("--limit", "-n", type=click.IntRange(0), default=0, help="How many; 0 for all.")
@json_option
@click.pass_context
@examples("mdmem graph blockers", "mdmem graph blockers --stale-days 14 --json")
def command(ctx: click.Context, stale_days: float, limit: int, as_json: bool) -> None:
    """List what is blocked or waiting and was not updated lately, longest blocked first: by what, since when, and who
    waits for it in turn."""
    from mdmem.graph.blockers import blockers

    rows = blockers(open_store(ctx), stale_days, limit)

    def human() -> None:
        for row in rows:
            say(f"{line_of(row)}  since {row['since'][:10]}")
            for by in row["by"]:
                name = clean(by.get("title") or by["target"])
                state = "ended" if by["ended"] else by.get("status") or ("no such note" if "state" in by else "")
                say(f"    by {name}" + (f" ({clean(state)})" if state else ""))
            for other in row["blocks"]:
                say(f"    holds up {'indirectly ' if other['depth'] > 1 else ''}{clean(other['title'])} ({clean(other['id'])})")
            if row["cycle"]:
                say("    waits for itself in the end")
        if not rows:
            say(
                "Nothing is blocked." if not stale_days else f"Nothing has been blocked for {stale_days:g} days without a word."
            )

    emit({"blockers": rows, "count": len(rows), "stale_days": stale_days}, as_json, human)
