"""mdmem fmt: the few changes of form that make notes merge well."""

from __future__ import annotations

import click

from mdmem.cli.cmd_check import relative_paths
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say


@click.command("fmt")
@click.argument("paths", nargs=-1)
@click.option("--ids", is_flag=True, help="Give an id to each memory, entity, task … that has none.")
@click.option("--check", "dry_run", is_flag=True, help="Say what would change, change nothing.")
@json_option
@click.pass_context
@examples("mdmem fmt", "mdmem fmt memories/ --ids", "mdmem fmt --check --json")
def command(ctx: click.Context, paths: tuple[str, ...], ids: bool, dry_run: bool, as_json: bool) -> None:
    """Bring notes into the form that merges well: one list item a line, quotes where a value holds ` #`.

    Nothing else is touched. Exit code 1 when a file was (or, with --check, would be) changed. Commits nothing.
    """
    from mdmem.memory.form import tidy

    store = open_store(ctx, need="read" if dry_run else "write")
    done = tidy(store, relative_paths(store, paths) if paths else None, ids=ids, dry_run=dry_run)

    def human() -> None:
        for path in done.changed:
            say(f"{'would change' if dry_run else 'changed'}: {clean(path)}")
        note(f"{done.looked} notes, {len(done.changed)} {'to change' if dry_run else 'changed'}")

    emit({"checked": done.looked, "changed": done.changed, "skipped": done.skipped, "dry_run": dry_run}, as_json, human)
    for row in done.skipped:
        note(f"skipped: {clean(row['path'])}: {clean(row['reason'])}")
    if done.changed:
        ctx.exit(1)
