"""mdmem dashboard: the page for people."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import emit, json_option, note, say
from mdmem.errors import MdmemError

if TYPE_CHECKING:
    from mdmem.web.server import Dashboard


@click.command("dashboard")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port on 127.0.0.1; 0: any free one.")
@click.option("--no-open", is_flag=True, help="Print the address only.")
@click.option("--export", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write the page to one file instead.")
@json_option
@click.pass_context
@examples("mdmem dashboard", "mdmem dashboard --port 8765 --no-open", "mdmem dashboard --export memory.html")
def command(ctx: click.Context, port: int, no_open: bool, target: Path | None, as_json: bool) -> None:
    """Look at the store in a browser: figures, search, graph, blockers, conflicts, timelines, devices.

    Serves this machine only, until Ctrl-C; the address holds a token that is good for this run. It writes nothing but the
    conflicts that you settle. With --export the page and its data become one file that works offline.
    """
    store = open_store(ctx)
    if target is not None:
        from mdmem.web.page import export

        done = export(store, target)
        emit(done, as_json, lambda: say(f"Wrote {done['path']}: {done['notes']} notes, {done['bytes'] // 1024} KB."))
        if done["left_out"]:
            note(f"note: {done['left_out']} notes are only counted in it: too many for one file")
        return
    from mdmem.web.server import Dashboard

    try:
        server = Dashboard(store, port)
    except OSError as error:
        raise MdmemError(f"port {port} cannot be used", why=error.strerror or str(error), hint="mdmem dashboard") from None
    found = {"url": server.url, "port": server.port, "store": str(store.root)}
    emit(found, as_json, lambda: say(f"{server.url}\nCtrl-C ends it."))
    opener = None if no_open or not sys.stdout.isatty() else _open(server)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        if opener is not None:
            opener.unlink(missing_ok=True)


def _open(server: Dashboard) -> Path | None:
    """Open the browser on a file of this user's own that leads to the page: other users see the arguments of a program."""
    from mdmem.config import runtime_dir

    file = runtime_dir() / f"dashboard-{server.port}.html"
    try:
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
            out.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={server.url}"><title>mdmem</title>')
        webbrowser.open(file.as_uri())
    except (OSError, webbrowser.Error):
        return None
    return file
