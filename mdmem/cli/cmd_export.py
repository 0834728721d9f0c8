"""mdmem export: notes out of the store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from mdmem.cli.filters import filter_options, filters_of
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import emit, json_option, note, say
from mdmem.cli.progress import progress
from mdmem.errors import UsageError

ENDINGS = {".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "json", ".zip": "zip", ".bulk": "es-bulk"}


@click.command("export")
@click.argument("destination", type=click.Path())
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "obsidian", "ndjson", "json", "es-bulk", "zip"]),
    default=None,
    help="By the ending of DESTINATION, else markdown.",
)
@filter_options
@json_option
@click.pass_context
@examples(
    "mdmem export ~/notes-copy",
    "mdmem export notes.ndjson --type decision",
    "mdmem export - --format ndjson | gzip > notes.gz",
    "mdmem export notes.zip --kind memory",
)
def command(ctx: click.Context, /, destination: str, form: str | None, as_json: bool, **given: Any) -> None:
    """Write notes as a folder of markdown, an Obsidian vault, a zip, or one file of records (`-`: to stdout).

    `mdmem import` reads each of them back, byte for byte. Local notes are left out. Superseded and forgotten notes are in.
    """
    from mdmem.memory.exporting import ONE_FILE, export

    store = open_store(ctx)
    filters = filters_of(store, given, retired=True)
    chosen = form or ENDINGS.get(Path(destination).suffix.lower(), "markdown")
    if destination == "-" and (chosen not in ONE_FILE or as_json):
        raise UsageError("stdout takes one file of records, and not --json beside it", hint="mdmem export - --format ndjson")
    with progress("Exporting") as tell:
        target = None if destination == "-" else Path(destination)
        done = export(store, target, chosen, filters, sys.stdout.buffer, tell)
    if destination == "-":
        sys.stdout.buffer.flush()
        note(f"{done.notes} notes")
        return
    emit(done.as_dict(), as_json, lambda: say(f"Exported {done.notes} notes to {done.destination}"))
