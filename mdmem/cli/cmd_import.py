"""mdmem import: bring notes in from elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.cli.progress import progress


@click.command("import")
@click.argument("source", type=click.Path())
@click.option("--type", "type_", default="", help="Type of memories that name none (fact).")
@click.option("--scope", default="", help="Scope of memories that name none.")
@click.option("--dry-run", is_flag=True, help="Count, write nothing.")
@json_option
@click.pass_context
@examples("mdmem import ~/old-notes", "mdmem import decision.md --type decision", "mdmem import ~/vault --dry-run --json")
def command(ctx: click.Context, source: str, type_: str, scope: str, dry_run: bool, as_json: bool) -> None:
    """Bring markdown files in as notes: one file, or every file below a folder.

    Frontmatter is kept as it stands, secrets are taken out, ids stay. Doing it again changes nothing; a file that
    cannot be read is named and stops no other.
    """
    from mdmem.memory.importing import import_markdown

    store = open_store(ctx, need="write")
    with progress("Importing") as tell:
        done = import_markdown(store, Path(source).expanduser(), type_=type_, scope=scope, dry_run=dry_run, progress=tell)

    def human() -> None:
        verb = "Would import" if dry_run else "Imported"
        say(f"{verb} {done.created}, unchanged {done.unchanged}, failed {len(done.failed)}")

    emit({**done.as_dict(), "dry_run": dry_run}, as_json, human)
    for row in done.failed:
        note(f"failed: {clean(row['path'])}: {clean(row['reason'])}")
    if done.reason:
        note(f"note: not committed yet: {done.reason}")
    if done.failed:
        ctx.exit(1)
