"""mdmem feedback: say whether a note helped."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.command("feedback")
@click.argument("reference", metavar="NOTE")
@click.argument("rating", type=click.Choice(["useful", "ignored", "wrong"]))
@json_option
@click.pass_context
@examples("mdmem feedback mem-4k2j7q useful", "mdmem feedback mem-4k2j7q wrong --json")
def command(ctx: click.Context, reference: str, rating: str, as_json: bool) -> None:
    """Say whether a note that was found helped. The rating is kept on this device; the note is not written to."""
    from mdmem.memory.feedback import rate

    data = rate(open_store(ctx), reference, rating)
    emit(data, as_json, lambda: say(f"Rated {clean(data['path'])}: {data['weight']:.2f} after {data['count']}"))
