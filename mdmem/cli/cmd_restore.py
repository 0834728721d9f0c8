"""mdmem restore: bring back an old version of a note."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say


@click.command("restore")
@click.argument("reference", metavar="NOTE")
@click.option("--at", "when", metavar="DATE|REV", required=True, help="The moment whose version comes back.")
@json_option
@click.pass_context
@examples("mdmem restore mem-4k2j7q --at yesterday", "mdmem restore memories/old-mem-4k2j7q.md --at 1f3a9c2")
def command(ctx: click.Context, reference: str, when: str, as_json: bool) -> None:
    """Give a note the bytes that it had at a date or revision, as a new commit. A deleted note comes back.

    `mdmem history NOTE` lists the revisions, also of a note that is gone.
    """
    from mdmem.memory.timeline import restore

    done = restore(open_store(ctx, need="write"), reference, when)
    verb = "Restored" if done.changed else "Unchanged"
    emit(done.as_dict(), as_json, lambda: say(f"{verb}: {clean(done.path)} as of {done.rev[:10]}"))
    if done.reason and not done.committed:
        note(f"note: saved, not committed yet: {done.reason}")
