"""mdmem consolidate: draw memories from sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say, say_json
from mdmem.cli.progress import progress

if TYPE_CHECKING:
    from mdmem.learn.consolidate import Consolidated


@click.command("consolidate")
@click.option("--session", "sessions", multiple=True, metavar="ID", help="A session's id, its note, or a transcript's path.")
@click.option("--since", default="", metavar="DATE", help="Sessions that ended since then: 7d, 2026-11-01.")
@click.option("--transcripts", is_flag=True, help="Also sessions of which only Claude Code's transcript is left.")
@click.option("--all-notes", is_flag=True, help="Compare also memories from before the first consolidation, a part at a time.")
@click.option("--no-llm", is_flag=True, help="By rules alone, whatever is configured.")
@click.option("--dry-run", is_flag=True, help="Say what would be kept, and what would be sent to a language model.")
@json_option
@click.pass_context
@examples("mdmem consolidate --dry-run", "mdmem consolidate --since 7d", "mdmem consolidate --session 3f2a9c1e --json")
def command(
    ctx: click.Context,
    sessions: tuple[str, ...],
    since: str,
    transcripts: bool,
    all_notes: bool,
    no_llm: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Draw facts, decisions, preferences and procedures from sessions.

    Runs by itself when a session ends. Doing it twice changes nothing. Without a language model it goes by rules; with one,
    what it says is checked against the session's own words. `mdmem capture log` says what was kept and what was not.
    """
    from mdmem.clock import parse_time
    from mdmem.learn.consolidate import consolidate
    from mdmem.learn.sources import one_session, sessions_since
    from mdmem.llm.configured import load_llm

    store = open_store(ctx, need="read" if dry_run else "write")
    moment = parse_time(since, store.clock.now()) if since else None
    records = [one_session(store, one) for one in sessions] or sessions_since(store, moment, transcripts)
    llm = None if no_llm else load_llm(store.config, store.data_dir, store.clock)
    with progress("sessions") as tell:
        done = consolidate(store, records, llm=llm, dry_run=dry_run, load=True, everything=all_notes, progress=tell)
    emit(done.as_dict(), as_json, lambda: _print(done, dry_run))
    for text in done.notices:
        note(f"note: {clean(text)}")
    if done.reason:
        note(f"note: saved, not committed yet: {done.reason}")


def _print(done: Consolidated, dry_run: bool) -> None:
    say(f"{len(done.sessions)} sessions, {len(done.drawn)} statements worth keeping" + (" (dry run)" if dry_run else ""))
    for one in done.drawn:
        say(f"  {one.action:11} [{one.category}] {clean(one.text[:120])}  [{one.id}]")
        if one.why and one.action not in ("created", "known"):
            say(f"              {clean(one.why)}")
    for row in done.reconciled:
        say(f"  {row['outcome']:11} {row['note']} beside {row['other']}")
    for made in done.procedures:
        if made["changed"]:
            say(f"  procedure   {clean(' / '.join(made['steps']))}  [{made['id']}]")
    for task in done.tasks:
        say(f"  task {task['outcome']}: {task['change']} {clean(task['title'])}  [{task['task']}]")
    for request in done.requests:
        say("would be sent:")
        say_json(request)
