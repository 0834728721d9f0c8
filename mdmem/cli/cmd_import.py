"""mdmem import: bring notes in from elsewhere."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.cli.progress import progress

# What became of a pair, in words.
BECAME = {
    "update": "replaced",
    "wider": "replaced by a fuller text",
    "same": "said before",
    "narrower": "said before",
    "joined": "joined with the same in other words",
    "opposes": "contradicting (mdmem review)",
    "perhaps": "perhaps the same (mdmem review)",
}


@click.command("import")
@click.argument("source", type=click.Path())
@click.argument("path", type=click.Path(), required=False)
@click.option("--type", "type_", default="", help="Type of memories that name none (fact).")
@click.option("--scope", default="", help="Scope of memories that name none.")
@click.option("--no-llm", is_flag=True, help="Leave doubts to mdmem review; ask no language model.")
@click.option("--dry-run", is_flag=True, help="Count, write nothing.")
@json_option
@click.pass_context
@examples(
    "mdmem import ~/old-notes",
    "mdmem import decision.md --type decision",
    "mdmem import export.ndjson --dry-run --json",
    "mdmem import transcripts",
)
def command(
    ctx: click.Context, source: str, path: str | None, type_: str, scope: str, no_llm: bool, dry_run: bool, as_json: bool
) -> None:
    """Bring notes in: markdown files or folders, a zip, JSON, NDJSON, exports of other memory programs.

    Frontmatter is kept as it stands, secrets are taken out, ids stay. Doing it again changes nothing; a file that
    cannot be read is named and stops no other.

    `mdmem import transcripts [PATH]` makes a note of each session in Claude Code's transcripts, which Claude Code deletes
    after 30 days; PATH is a transcript or a folder of them.
    """
    if source == "transcripts" and (path or not Path(source).exists()):
        _transcripts(ctx, path, dry_run, as_json)
        return
    if path:
        raise click.UsageError("only `mdmem import transcripts` takes a second word")
    from mdmem.memory.import_records import import_any

    store = open_store(ctx, need="write")
    with progress("Importing") as tell:
        more = {"type_": type_, "scope": scope, "dry_run": dry_run, "progress": tell}
        done = import_any(store, Path(source).expanduser(), ask=not no_llm and not dry_run, **more)

    def human() -> None:
        verb = "Would import" if dry_run else "Imported"
        left = f", left out {len(done.left_out)}" if done.left_out else ""
        say(f"{verb} {done.created}, unchanged {done.unchanged}, failed {len(done.failed)}{left}")
        became = Counter(BECAME.get(row["outcome"], row["outcome"]) for row in done.decided)
        if became:
            say("  beside what was known: " + ", ".join(f"{count} {what}" for what, count in sorted(became.items())))

    emit({**done.as_dict(), "dry_run": dry_run}, as_json, human)
    for text in done.notices:
        note(f"note: decided by rules alone: {clean(text)}")
    for row in done.left_out:
        note(f"left out: {clean(row['path'])}: {clean(row['reason'])}")
    for row in done.failed:
        note(f"failed: {clean(row['path'])}: {clean(row['reason'])}")
    if done.reason:
        note(f"note: not committed yet: {done.reason}")
    if done.failed:
        ctx.exit(1)


def _transcripts(ctx: click.Context, path: str | None, dry_run: bool, as_json: bool) -> None:
    from mdmem.memory.transcripts import import_transcripts

    store = open_store(ctx, need="write")
    source = Path(path).expanduser() if path else None
    with progress("Reading transcripts") as tell:
        done = import_transcripts(store, source, dry_run=dry_run, progress=tell)

    def human() -> None:
        verb = "Would make" if dry_run else "Made"
        say(
            f"{verb} {done.created} session notes, renewed {done.updated}, unchanged {done.unchanged}, "
            f"without conversation {done.empty}, failed {len(done.failed)}"
        )

    emit({**done.as_dict(), "dry_run": dry_run}, as_json, human)
    for row in done.failed:
        note(f"failed: {clean(row['path'])}: {clean(row['reason'])}")
    if done.reason:
        note(f"note: not committed yet: {done.reason}")
    if done.failed:
        ctx.exit(1)
