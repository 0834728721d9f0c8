"""mdmem init: make a store."""

from __future__ import annotations

from pathlib import Path

import click

from mdmem.cli.opening import examples
from mdmem.cli.output import emit, json_option, note, place, say


@click.command("init")
@click.argument("directory", default=".", required=False)
@click.option("--remote", metavar="URL", default="", help="Where other machines meet: becomes the remote `origin`.")
@json_option
@click.pass_context
@examples(
    "mdmem init ~/memory",
    "mdmem init ~/memory --remote git@example.org:me/memory.git",
    "mdmem init        # in a code project: only mdmem's own folders are its",
)
def command(ctx: click.Context, directory: str, remote: str, as_json: bool) -> None:
    """Make a store of notes in a folder (created when it is not there).

    An empty folder or a vault of markdown becomes a store as a whole. Inside another git repository mdmem owns only
    its own folders, and never commits or pushes there by itself. Running it again mends what is missing.
    """
    from mdmem.setup import init

    chosen = (ctx.find_root().obj or {}).get("directory") if directory == "." else None
    made = init(Path(chosen or directory), remote)

    def human() -> None:
        if made.already:
            say(f"Already a store: {place(made.root)}")
        else:
            say(f"Made {'an' if made.mode == 'embedded' else 'a'} {made.mode} store at {place(made.root)}")
        for text in made.notices:
            note(f"note: {text}")
        if not made.already:
            say('Next: mdmem remember decision "…", then mdmem recall "…"')

    emit(made.as_dict(), as_json, human)
