"""mdmem schema: the frontmatter's fields as JSON Schema."""

from __future__ import annotations

import json

import click

from mdmem.cli.opening import examples
from mdmem.cli.output import json_option, say


@click.command("schema")
@json_option
@examples("mdmem schema", "mdmem schema > note.schema.json")
def command(as_json: bool) -> None:
    """Print the JSON Schema (draft 7) of a note's frontmatter, for editors and other programs.

    It needs no store. With and without --json it prints the same document. docs/editors.md shows how editors use it.
    """
    from mdmem.notes.json_schema import json_schema

    say(json.dumps(json_schema(), indent=2, ensure_ascii=False))
