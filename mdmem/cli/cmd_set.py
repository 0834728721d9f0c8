"""mdmem set: change fields of a note."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.errors import UsageError, typed


def _pairs(words: tuple[str, ...], what: str) -> dict[str, str]:
    out: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"not {what}: {word!r}", why="it needs an equals sign", hint="mdmem set NOTE priority=high")
        out[key.strip()] = value
    return out


def _lists(words: tuple[str, ...], what: str) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for word in words:
        for key, value in _pairs((word,), what).items():
            out.setdefault(key, []).extend(part.strip() for part in value.split(",") if part.strip())
    return out


@click.command("set")
@click.argument("reference", metavar="NOTE")
@click.argument("assignments", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--add", multiple=True, metavar="KEY=ITEM", help="Add to a list field.")
@click.option("--remove", multiple=True, metavar="KEY=ITEM", help="Take out of a list field.")
@click.option("--unset", multiple=True, metavar="KEY", help="Remove a field.")
@json_option
@click.pass_context
@examples(
    "mdmem set project-apollo status=blocked blocked_by=decision-hosting",
    "mdmem set memories/deploy-mem-4k2j.md --add tags=deploy --remove tags=draft",
    'mdmem set "Deploy on Thursdays" --unset expires',
)
def command(
    ctx: click.Context,
    reference: str,
    assignments: tuple[str, ...],
    add: tuple[str, ...],
    remove: tuple[str, ...],
    unset: tuple[str, ...],
    as_json: bool,
) -> None:
    """Change fields of a note's frontmatter; every other line stays as it is.

    NOTE is an id, an unambiguous prefix of one, a path or an exact title.
    """
    from mdmem.memory.change import set_fields

    store = open_store(ctx, need="write")
    values = _pairs(assignments, "a field and its value")
    if not (values or add or remove or unset):
        raise UsageError("nothing to change", hint=typed("mdmem", "set", reference, "priority=high"))
    result = set_fields(store, reference, values, _lists(add, "an addition"), _lists(remove, "a removal"), unset)

    def human() -> None:
        say(f"{'Changed' if result.changed else 'Unchanged'}: {clean(result.path)}")

    emit(result.as_dict(), as_json, human)
    if result.reason:
        note(f"note: saved, not committed yet: {result.reason}")
