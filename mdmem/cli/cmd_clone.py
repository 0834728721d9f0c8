"""mdmem clone: a store from elsewhere, on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from mdmem.cli.opening import examples
from mdmem.cli.output import clean, emit, json_option, note, place, say
from mdmem.clock import seconds


@click.command("clone")
@click.argument("url")
@click.argument("directory", required=False)
@click.option("--timeout", metavar="TIME", default="10m", show_default=True, help="How long it may take.")
@json_option
@click.pass_context
@examples("mdmem clone git@example.org:me/memory.git", "mdmem clone https://example.org/team/notes.git ~/team-notes")
def command(ctx: click.Context, url: str, directory: str | None, timeout: str, as_json: bool) -> None:
    """Clone a store and trust it on this machine.

    An empty remote becomes a new store. Links in it are made text files, and it never asks for a password: set up ssh
    or a git credential helper first.
    """
    from mdmem.memory.syncing import clone_store, folder_of

    done = clone_store(url, Path(directory or folder_of(url)).expanduser(), Path.cwd(), seconds(timeout))

    def human() -> None:
        what = "Made a new store at" if done.made else "Cloned to"
        say(f"{what} {place(done.root)}")

    emit(done.as_dict(), as_json, human)
    for text in done.notices:
        note(f"note: {clean(text)}")
