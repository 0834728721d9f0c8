"""mdmem diff: what changed in the notes between two moments."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say
from mdmem.notes import quoting
from mdmem.notes.note import Note


@click.command("diff")
@click.argument("old", metavar="DATE|REV")
@click.argument("new", metavar="[DATE|REV]", default="now")
@json_option
@click.pass_context
@examples("mdmem diff yesterday", "mdmem diff 2026-05-01 2026-06-01", "mdmem diff 7d --json")
def command(ctx: click.Context, old: str, new: str, as_json: bool) -> None:
    """Say which notes came, went and changed between two dates or revisions, field by field.

    The second moment is now unless given. Only what is committed counts; `mdmem sync` commits what waits.
    """
    from mdmem.memory.syncing import owned_roots
    from mdmem.memory.timeline import moment
    from mdmem.recall.select import agent_scopes, may_read, unreadable
    from mdmem.repo.note_diff import diff_notes

    store = open_store(ctx)
    first, last = moment(store, old), moment(store, new)
    patterns, closed = agent_scopes(store), unreadable(store)

    def see(seen: Note) -> bool:
        return may_read(seen.scope, patterns) and not {store.from_git(seen.path), seen.id} & closed

    found = diff_notes(store.git, first, last, owned_roots(store), see) if last else []

    def human() -> None:
        for change in found:
            where = f" (was {clean(change.old_path)})" if change.old_path else ""
            say(f"{change.status:<8} {clean(change.title)}  [{clean(change.id or change.path)}]{where}")
            if change.status != "changed":
                continue
            for name, (before, after) in change.fields.items():
                shown = ("none" if value is None else clean(quoting.inline(value)) for value in (before, after))
                say("    " + f"{clean(name)}: " + " -> ".join(shown))
            for sign, lines in (("-", change.removed), ("+", change.added)):
                for line in lines[:10]:
                    say(f"    {sign} {clean(line)}")
                if len(lines) > 10:
                    say(f"    {sign} … {len(lines) - 10} more lines")
        if not found:
            say("No difference.")

    emit({"from": first, "to": last, "notes": [change.as_dict() for change in found]}, as_json, human)
