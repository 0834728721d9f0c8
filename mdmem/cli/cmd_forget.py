"""mdmem forget: take notes out of recall."""

from __future__ import annotations

from typing import Any

import click

from mdmem.cli.filters import filter_options, filters_of
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.errors import UsageError


@click.command("forget")
@click.argument("references", metavar="[NOTE]...", nargs=-1)
@click.option("--where", is_flag=True, help="Forget all notes that the filters below select.")
@filter_options
@click.option("--older-than", metavar="AGE", default="", help="With --where: not updated for so long, such as 30d.")
@click.option("--superseded-by", metavar="NOTE", default="", help="The note that replaces it; both are linked.")
@click.option("--purge", is_flag=True, help="Delete the file and its rows too. Git's history keeps it; the recipe is printed.")
@click.option("--dry-run", is_flag=True, help="Say what would be forgotten, change nothing.")
@json_option
@click.pass_context
@examples(
    'mdmem forget "Deploy on Thursdays"',
    "mdmem forget mem-4k2j7q --superseded-by mem-8xw2aa",
    "mdmem forget --where --type event --older-than 90d --dry-run",
)
def command(
    ctx: click.Context,
    /,
    references: tuple[str, ...],
    where: bool,
    older_than: str,
    superseded_by: str,
    purge: bool,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Take notes out of recall. They stay in the store and in git's history, marked `forgotten`.

    `recall --as-of DATE` still finds them as they were, and `mdmem set NOTE status=active` brings one back.
    """
    from mdmem.memory import forget as service

    store = open_store(ctx, need="write")
    filters = filters_of(store, given)
    wanted = list(references)
    if where:
        from mdmem.recall.listing import select

        if not filters.given() and not older_than:
            raise UsageError("--where needs a filter", why="without one it would mean every note", hint="--type event")
        rows = select(store, filters)
        if older_than:
            rows = service.older(rows, older_than, store)
        wanted += [row["path"] for row in rows]
    elif older_than or filters.given():
        raise UsageError("filters go with --where", hint="mdmem forget --where --type event --older-than 90d --dry-run")
    if not wanted and not where:
        raise UsageError("name a note to forget", hint="mdmem list")
    result = service.forget(store, wanted, superseded_by=superseded_by, purge=purge, dry_run=dry_run)

    def human() -> None:
        verb = "Would forget" if dry_run else ("Deleted" if purge else "Forgotten")
        for row in result.notes:
            say(f"{verb}: {clean(row['title'])}  [{clean(row['id'] or row['path'])}]")
        if not result.notes:
            say("Nothing to forget.")
        if purge and result.notes and not dry_run:
            say("")
            say(service.HISTORY_RECIPE)

    emit({**result.as_dict(), "dry_run": dry_run}, as_json, human)
    for row in result.failed:
        note(f"mdmem: {clean(row['message'])}")
    if result.reason:
        note(f"note: saved, not committed yet: {result.reason}")
    if result.failed:
        ctx.exit(1)
