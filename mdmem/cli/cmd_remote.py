"""mdmem remote: where this store meets others."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.group("remote")
@examples("mdmem remote list", "mdmem remote add origin git@example.org:me/memory.git", "mdmem remote remove origin")
def command() -> None:
    """List, add, change and remove the remotes that `mdmem sync` talks to."""


@command.command("list")
@json_option
@click.pass_context
@examples("mdmem remote list", "mdmem remote list --json")
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the remotes. Credentials in their URLs are not shown."""
    from mdmem.repo.remotes import remotes

    found = remotes(open_store(ctx).git)

    def human() -> None:
        for remote in found:
            say(f"{clean(remote.name)}\t{clean(remote.url)}")
        if not found:
            say("No remote. Add one: mdmem remote add origin URL")

    emit([{"name": remote.name, "url": remote.url} for remote in found], as_json, human)


@command.command("add")
@click.argument("name")
@click.argument("url")
@json_option
@click.pass_context
@examples("mdmem remote add origin git@example.org:me/memory.git", "mdmem remote add backup /mnt/usb/memory.git")
def add(ctx: click.Context, name: str, url: str, as_json: bool) -> None:
    """Add a remote."""
    from mdmem.repo.remotes import add_remote

    store = open_store(ctx, need="write")
    made = add_remote(store.git, name, url, store.cwd)
    emit({"name": made.name, "url": made.url}, as_json, lambda: say(f"Added {made.name}: {made.url}"))


@command.command("set")
@click.argument("name")
@click.argument("url")
@json_option
@click.pass_context
@examples("mdmem remote set origin git@example.org:me/new.git", "mdmem remote set origin https://example.org/me/new.git")
def set_(ctx: click.Context, name: str, url: str, as_json: bool) -> None:
    """Give a remote another URL."""
    from mdmem.repo.remotes import set_remote

    store = open_store(ctx, need="write")
    made = set_remote(store.git, name, url, store.cwd)
    emit({"name": made.name, "url": made.url}, as_json, lambda: say(f"{made.name} is now {made.url}"))


@command.command("remove")
@click.argument("name")
@json_option
@click.pass_context
@examples("mdmem remote remove origin", "mdmem remote remove backup --json")
def remove(ctx: click.Context, name: str, as_json: bool) -> None:
    """Forget a remote. Nothing there is changed."""
    from mdmem.repo.remotes import remove_remote

    remove_remote(open_store(ctx, need="write").git, name)
    emit({"name": name, "removed": True}, as_json, lambda: say(f"Removed {clean(name)}"))
