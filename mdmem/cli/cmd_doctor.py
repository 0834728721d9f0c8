"""mdmem doctor: look at everything, mend what is safe."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Mend what is safe to mend, and say so.")
@click.option("--deep", is_flag=True, help="Also what takes long: secrets in the whole history.")
@click.option("--offline", is_flag=True, help="Do not ask the remote.")
@json_option
@click.pass_context
@examples("mdmem doctor", "mdmem doctor --fix", "mdmem doctor --deep --json")
def command(ctx: click.Context, fix: bool, deep: bool, offline: bool, as_json: bool) -> None:
    """Look at git, driver, hooks, model, index, files, clock and disk. Each finding has a code and a command.

    Exit code 1 when an error is left.
    """
    from mdmem.doctor.examine import examine, failed
    from mdmem.doctor.finding import OK, Look

    store = open_store(ctx)
    found = examine(Look(store, network=not offline, deep=deep), fix and store.trusted)

    def human() -> None:
        for finding in found:
            say(f"{finding.severity:<8} {clean(finding.message)} [{finding.code}]")
            if finding.fixed:
                say(f"         mended: {clean(finding.fixed)}")
            elif finding.command and finding.severity != OK:
                say(f"         try: {clean(finding.command)}")

    emit({"findings": [finding.as_dict() for finding in found], "ok": not failed(found)}, as_json, human)
    if failed(found):
        ctx.exit(1)
