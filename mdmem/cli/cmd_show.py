"""mdmem show: one note, whole."""

from __future__ import annotations

from typing import Any

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.notes.note import Note


@click.command("show")
@click.argument("reference", metavar="NOTE")
@click.option("--at", metavar="DATE|REV", default="", help="As git had it at a date or revision.")
@click.option("--body", "body_only", is_flag=True, help="The body without the frontmatter.")
@json_option
@click.pass_context
@examples(
    "mdmem show mem-4k2j7q",
    'mdmem show "Deploy on Thursdays" --body',
    "mdmem show project-apollo --at 2026-06-01",
    "mdmem show 'example.org/team/notes: memories/deploys.md'",
)
def command(ctx: click.Context, reference: str, at: str, body_only: bool, as_json: bool) -> None:
    """Print one note as it stands in its file.

    NOTE is an id, an unambiguous prefix of one, a path or an exact title. What this store has not is looked for in the shared
    index, where one is configured, by its id or by the path that recall shows (REPOSITORY: PATH).
    """
    from mdmem.recall.shared_note import Origin, read_anywhere

    store = open_store(ctx)
    origin: Origin | None = None
    if at:
        from mdmem.memory.past import note_at

        found, rev = note_at(store, reference, at)
    else:
        (found, origin), rev = read_anywhere(store, reference), ""
    data = as_data(found)
    if rev:
        data["rev"] = rev
    if origin is not None:
        data["origin"] = origin.as_dict()
    text = found.body if body_only else found.data.decode("utf-8", "replace")
    emit(data, as_json, lambda: say(text.rstrip("\n")))
    if origin is not None:
        note(f"note: {clean(origin.line())}")
    if found.doc.problem is not None:
        note(f"note: {found.path}:{found.doc.problem.line or 1}: {found.doc.problem.message}")


def as_data(found: Note) -> dict[str, Any]:
    """Return a note as JSON data: its place, what its fields mean, the fields as written, the body."""
    problem = found.doc.problem
    return {
        "id": found.id or "",
        "path": found.path,
        "kind": found.kind,
        "type": found.type or "",
        "title": found.title,
        "scope": found.scope or "",
        "status": found.status or "",
        "tags": found.tags,
        "created": found.created or "",
        "updated": found.updated or "",
        "fields": found.doc.fields,
        "body": found.body,
        "body_line": found.doc.body_line,
        "problem": None if problem is None else {"code": problem.code, "message": problem.message, "line": problem.line},
    }
