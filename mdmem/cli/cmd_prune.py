"""mdmem prune: archive what expired, faded or is contradicted."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say


@click.command("prune")
@click.option("--tier", type=click.Choice(["working", "peripheral"]), default=None, help="Only notes of this tier.")
@click.option("--older-than", metavar="AGE", default="", help="Only notes not changed for so long, such as 90d.")
@click.option("--retier", is_flag=True, help="Also write the tiers that use and score call for.")
@click.option("--dry-run", is_flag=True, help="Say what would be archived, change nothing.")
@json_option
@click.pass_context
@examples("mdmem prune --dry-run", "mdmem prune --tier peripheral --older-than 90d", "mdmem prune --retier --json")
def command(ctx: click.Context, tier: str | None, older_than: str, retier: bool, dry_run: bool, as_json: bool) -> None:
    """Archive memories that expired, then those that faded, then those that a newer one contradicts.

    Pinned and core notes are never pruned, and nothing is deleted: an archived note stays in the store and in git's
    history, out of recall. `mdmem set NOTE status=active` brings it back.
    """
    from mdmem.memory.prune import prune

    result = prune(open_store(ctx, need="write"), tier or "", older_than, dry_run, retier)

    def human() -> None:
        verb = "Would archive" if dry_run else "Archived"
        for row in result.archived:
            say(f"{verb} ({row['reason']}): {clean(row['title'])}  [{clean(row['id'] or row['path'])}]  {clean(row['why'])}")
        for row in result.tiers:
            say(f"{'Would move' if dry_run else 'Moved'}: {clean(row['path'])}  {row['from']} → {row['to']}")
        if not result.archived and not result.tiers:
            say(f"Nothing to let go among {result.looked_at} memories.")

    emit({**result.as_dict(), "dry_run": dry_run}, as_json, human)
    for row in result.failed:
        note(f"mdmem: {clean(row['message'])}")
    if result.reason:
        note(f"note: saved, not committed yet: {result.reason}")
    if result.failed:
        ctx.exit(1)
