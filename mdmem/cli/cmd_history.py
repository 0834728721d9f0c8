"""mdmem history: what happened to a note."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say

_VERBS = {"A": "made", "M": "changed", "D": "deleted", "R": "moved", "T": "changed", "C": "copied"}


@click.command("history")
@click.argument("reference", metavar="NOTE")
@click.option("--limit", type=click.IntRange(min=1), default=None, help="At most so many entries.")
@json_option
@click.pass_context
@examples("mdmem history mem-4k2j7q", 'mdmem history "Deploy on Thursdays" --limit 5', "mdmem history tasks/old.md --json")
def command(ctx: click.Context, reference: str, limit: int | None, as_json: bool) -> None:
    """List the commits that touched a note, newest first, through its renames.

    A note that is gone is named by its former path or id. `mdmem show NOTE --at REV` prints an old version.
    """
    from mdmem.memory.timeline import history

    store = open_store(ctx)
    path, found = history(store, reference, limit or 0)

    def human() -> None:
        for change in found:
            who = "@".join(filter(None, (change.trailers.get("Mdmem-Agent"), change.trailers.get("Mdmem-Device"))))
            verb = _VERBS.get(change.status, change.status)
            say(f"{change.rev[:10]}  {change.date}  {verb:<8} {clean(change.subject)}  [{clean(who or change.author)}]")
        if not found:
            say(f"{clean(path)} is in no commit yet.")

    rows = [
        {
            "rev": change.rev,
            "date": change.date,
            "status": change.status,
            "path": store.from_git(change.path) or change.path,
            "subject": change.subject,
            "author": change.author,
            "agent": change.trailers.get("Mdmem-Agent", ""),
            "device": change.trailers.get("Mdmem-Device", ""),
            "session": change.trailers.get("Mdmem-Session", ""),
        }
        for change in found
    ]
    emit({"path": path, "changes": rows}, as_json, human)
