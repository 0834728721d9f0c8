"""mdmem conflicts, mdmem resolve: what a merge could not decide."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.errors import typed


def _shown(text: str, limit: int = 400) -> str:
    return text if len(text) <= limit else text[:limit].rstrip() + " …"


@click.command("conflicts")
@json_option
@click.pass_context
@examples("mdmem conflicts", "mdmem conflicts --json")
def command(ctx: click.Context, as_json: bool) -> None:
    """List what a merge could not decide: both versions stand in the note until you settle it.

    Of a file that is no note, the two versions stand side by side (NAME.conflict-1a2b3c4d.EXT).

    No conflict is the usual answer.
    """
    from mdmem.memory.conflicts import as_data, conflicted, files_in_two

    store = open_store(ctx)
    rows = [as_data(found, conflicts) for found, conflicts in conflicted(store)]
    files = files_in_two(store)

    def human() -> None:
        for row in rows:
            say(f"{clean(row['path'])}  {clean(row['title'])}")
            for conflict in row["conflicts"]:
                say(f"  {clean(conflict['field'])}:")
                for version in conflict["versions"]:
                    origin = clean(" ".join(filter(None, (version["agent"], version["device"], version["updated"][:16]))))
                    text = "(removed)" if version["removed"] else _shown(version["text"])
                    say(f"    {version['number']}  {origin}" if origin else f"    {version['number']}")
                    for line in text.splitlines():
                        say(f"       | {clean(line)}")
            say(f"  settle it: {clean(typed('mdmem', 'resolve', row['id'] or row['path']))} --keep 1|2|both")
        for file in files:
            say(f"{clean(file['path'])}  the other version of {clean(file['of'])}")
            say("  settle it: put what is right into one of the two, delete the other, and commit with git")
        if not rows and not files:
            say("No conflicts.")

    emit({"notes": rows, "files": files, "count": sum(len(row["conflicts"]) for row in rows) + len(files)}, as_json, human)


@click.command("resolve")
@click.argument("reference", metavar="NOTE")
@click.option("--field", default="", help="Only this field (or `body`); all conflicts of the note by default.")
@click.option("--keep", required=True, metavar="1|2|both|deleted|VALUE", help="Which version stays, or the right value.")
@json_option
@click.pass_context
@examples(
    "mdmem resolve mem-4k2j7q --keep 1",
    "mdmem resolve mem-4k2j7q --field priority --keep high",
    "mdmem resolve memories/plan.md --field body --keep both",
)
def resolve(ctx: click.Context, reference: str, field: str, keep: str, as_json: bool) -> None:
    """Settle the conflicts of a note, and commit."""
    from mdmem.memory import conflicts

    result = conflicts.resolve(open_store(ctx, need="write"), reference, keep, field)

    def human() -> None:
        what = "Deleted" if result.deleted else "Settled"
        say(f"{what}: {clean(result.path)}" + (f" ({result.left} left)" if result.left else ""))

    emit(result.as_dict(), as_json, human)
    if result.reason:
        note(f"note: saved, not committed yet: {result.reason}")
