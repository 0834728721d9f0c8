"""mdmem undo: take back the last commit that mdmem made."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say


@click.command("undo")
@click.argument("rev", required=False, default="")
@click.option("--dry-run", is_flag=True, help="Say what would be undone, change nothing.")
@json_option
@click.pass_context
@examples("mdmem undo", "mdmem undo --dry-run", "mdmem undo 1f3a9c2")
def command(ctx: click.Context, rev: str, dry_run: bool, as_json: bool) -> None:
    """Take back the last commit that mdmem made here (or REV), as a new commit of its own notes. Run again for the one before.

    Your own commits and files are left alone. A note that has changed again since is merged, or named when that clashes.
    """
    from mdmem.memory.timeline import undo

    done = undo(open_store(ctx, need="write"), rev, dry_run=dry_run)

    def human() -> None:
        say(f"{'Would undo' if dry_run else 'Undone'}: {clean(done.subject)}  [{done.rev[:10]}]")
        for path in done.paths:
            say(f"  {clean(path)}")

    emit({**done.as_dict(), "dry_run": dry_run}, as_json, human)
    if done.reason:
        note(f"note: {clean(done.reason)}")
