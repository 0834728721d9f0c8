"""mdmem serve: the warm process."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples
from mdmem.cli.output import emit, json_option, say
from mdmem.errors import Refused


@click.command("serve")
@click.option("--detach", is_flag=True, help="Start it in the background and return.")
@click.option("--status", "look", is_flag=True, help="Say whether one runs.")
@click.option("--stop", is_flag=True, help="End the one that runs.")
@click.option("--idle", type=click.FloatRange(min=1), default=None, metavar="SECONDS", help="End after so much idleness.")
@json_option
@examples("mdmem serve --detach", "mdmem serve --status --json", "mdmem serve --stop")
def command(detach: bool, look: bool, stop: bool, idle: float | None, as_json: bool) -> None:
    """Keep the model and the indexes loaded, so that hooks and recall answer at once.

    One process per user, behind a socket that only this user can open. Sessions start it by themselves; it ends when idle for
    15 minutes. Everything works without it; MDMEM_SERVE=off turns it off.
    """
    from mdmem.warm import client, starting

    if not client.allowed():
        raise Refused("the warm process is turned off", why="MDMEM_SERVE says so", hint="unset MDMEM_SERVE")
    if look or stop:
        found = client.ask({"op": "stop" if stop else "status"}) or {}
        running = bool(found) and not stop
        emit({"running": running, **({} if stop else found)}, as_json, lambda: say(_line(found, stop)))
        return
    if detach:
        started = starting.start()
        emit({"running": True, "started": started}, as_json, lambda: say("Started." if started else "It runs already."))
        return
    from mdmem.warm.server import serve

    if not serve(idle=idle):
        emit({"running": True, "started": False}, as_json, lambda: say("It runs already."))


def _line(found: dict[str, object], stop: bool) -> str:
    if not found:
        return "No warm process runs."
    return "Stopped." if stop else f"Running as process {found['pid']}, {found['served']} requests served."
