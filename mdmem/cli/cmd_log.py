"""mdmem log: one line per action."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.command("log")
@click.argument("action")
@click.argument("summary")
@click.option("--files", default="", metavar="FILE,…", help="Files that it touched, comma-separated.")
@click.option("--tags", default="", metavar="TAG,…", help="Tags, comma-separated.")
@json_option
@click.pass_context
@examples(
    'mdmem log fixed "The proxy drops idle connections" --files proxy/conn.go --tags bug',
    'mdmem log next "Measure the fix under load"',
)
def command(ctx: click.Context, action: str, summary: str, files: str, tags: str, as_json: bool) -> None:
    """Log what was done, in one line of this session's log. ACTION is a word; `next` is a step that is left.

    It travels with the next sync.
    """
    from mdmem.team.logbook import log

    store = open_store(ctx, need="write")
    written, line = log(store, action, summary, files=files.split(","), tags=tags.split(","))
    emit({"id": written.id, "path": written.path, "line": line}, as_json, lambda: say(clean(line)))
