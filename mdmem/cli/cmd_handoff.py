"""mdmem handoff: what whoever comes next should know."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say


@click.command("handoff")
@click.option("--hours", default="8", show_default=True, metavar="HOURS", help="The window: 8, 36h, 2d.")
@click.option("--since", default="", metavar="REV|DATE", help="The window's beginning, instead.")
@click.option("--for", "for_agent", default="", metavar="AGENT", help="Who is to read it; only what this agent may read.")
@click.option("--synthesize", is_flag=True, help="Let the configured language model write the summary.")
@click.option("--budget", type=click.IntRange(100), default=2000, show_default=True, help="Tokens of the text.")
@click.option("--no-save", is_flag=True, help="Print it only.")
@json_option
@click.pass_context
@examples("mdmem handoff", "mdmem handoff --since yesterday --for reviewer", "mdmem handoff --hours 2d --synthesize --json")
def command(
    ctx: click.Context,
    hours: str,
    since: str,
    for_agent: str,
    synthesize: bool,
    budget: int,
    no_save: bool,
    as_json: bool,
) -> None:
    """Gather what changed, what was decided, what is blocked, open and unread, and the next step that each session left.

    It is kept as a note, so that the next session start shows it, also on another machine after a sync.
    """
    from mdmem.team import handoff as service
    from mdmem.team.handoff_text import markdown

    store = open_store(ctx, need="read" if no_save else "write")
    found = service.gather(store, since=since, hours=service.window(hours), for_agent=for_agent)
    if synthesize:
        service.synthesize(store, found)
    data = found.as_dict()
    if not no_save and not found.empty:
        written, committed, reason = service.keep(store, found, budget)
        data |= {"id": written.id, "path": written.path, "committed": committed, "reason": reason}
        if reason:
            note(f"note: saved, not committed yet: {reason}")
    data["markdown"] = markdown(found, budget)
    for text in found.notices:
        note(f"note: {clean(text)}")
    emit(data, as_json, lambda: say(data["markdown"]))
