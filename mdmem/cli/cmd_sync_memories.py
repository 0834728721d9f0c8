"""mdmem sync-memories: Claude Code's own memory folder and the store, both ways."""

from __future__ import annotations

from pathlib import Path

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say


@click.command("sync-memories")
@click.argument("project", type=click.Path(file_okay=False), default=".")
@click.option("--dry-run", is_flag=True, help="Say what would be done, write nothing.")
@json_option
@click.pass_context
@examples("mdmem sync-memories", "mdmem sync-memories ~/code/shop --dry-run", "mdmem sync-memories --json")
def command(ctx: click.Context, project: str, dry_run: bool, as_json: bool) -> None:
    """Sync Claude Code's own memory of a project with the store's folder claude/PROJECT, both ways.

    Only files that changed since the last sync are touched, by their hash. What both sides changed is merged; neither side is
    overwritten by the other's older state.
    """
    from mdmem.memory.automemory import sync_memories

    store = open_store(ctx, need="write")
    done = sync_memories(store, Path(project).expanduser().resolve(), dry_run=dry_run)

    def human() -> None:
        say(
            f"{done.project}: {len(done.to_store)} to the store, {len(done.to_claude)} to Claude, {len(done.merged)} merged, "
            f"{len(done.removed)} removed" + (" (nothing written)" if dry_run else "")
        )

    emit({**done.as_dict(), "dry_run": dry_run}, as_json, human)
    for name in done.conflicts:
        note(f"conflict: {clean(name)} holds both versions: mdmem conflicts")
    for row in done.failed:
        note(f"failed: {clean(row['path'])}: {clean(row['reason'])}")
    if done.reason:
        note(f"note: {clean(done.reason)}")
    if done.failed:
        ctx.exit(1)
