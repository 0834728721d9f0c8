"""mdmem list: notes by their fields."""

from __future__ import annotations

from typing import Any

import click

from mdmem.cli.filters import filter_options, filters_of
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.command("list")
@filter_options
@click.option("--limit", "-n", type=click.IntRange(0), default=0, help="How many; 0 for all, the default.")
@click.option("--sort", type=click.Choice(["updated", "created", "title", "path"]), default="updated", help="Order.")
@json_option
@click.pass_context
@examples("mdmem list --type decision", "mdmem list --tag database --since 30d --json", "mdmem list --kind entity --sort title")
def command(ctx: click.Context, /, limit: int, sort: str, as_json: bool, **given: Any) -> None:
    """List notes by their fields, newest first."""
    from mdmem.recall.listing import as_row, select

    store = open_store(ctx)
    rows = [as_row(row) for row in select(store, filters_of(store, given), sort=sort, limit=limit)]

    def human() -> None:
        for row in rows:
            when = (row["updated"] or "")[:10]
            say(f"{when:<10}  [{clean(row['type'] or row['kind'])}] {clean(row['title'])}  ({clean(row['path'])})")
        if not rows:
            say("No notes.")

    emit({"notes": rows, "count": len(rows)}, as_json, human)
