"""mdmem check: look for what is wrong in notes."""

from __future__ import annotations

import os
from pathlib import Path

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.errors import NotFound
from mdmem.store import Store


def relative_paths(store: Store, given: tuple[str, ...]) -> list[str]:
    """Return paths of the store for files and folders that a person names, relative to here or to the store, and for notes by
    an id, the start of one, or a title. Raises NotFound and Ambiguous."""
    out: list[str] = []
    for name in given:
        for base in (Path.cwd(), store.root):
            full = Path(os.path.normpath(base / name))
            if os.path.lexists(full) and (full == store.root or store.root in full.parents):
                break
        else:
            out.append(_named(store, name))
            continue
        if full.is_dir():
            prefix = "" if full == store.root else full.relative_to(store.root).as_posix() + "/"
            out += [stat.path for stat in store.folder.scan() if stat.path.startswith(prefix)]
        else:
            out.append(full.relative_to(store.root).as_posix())
    return out


def _named(store: Store, name: str) -> str:
    from mdmem.recall.select import note_by

    try:
        store.index.refresh(embed_budget_s=0.0)
        row = note_by(store, name)
    except NotFound:
        raise NotFound(f"neither a file nor a note of the store: {name}", hint="mdmem list") from None
    if row["folder"]:
        raise NotFound(f"{name} is not a note of this store", hint="mdmem list")
    return str(row["path"])


@click.command("check")
@click.argument("paths", nargs=-1)
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@json_option
@click.pass_context
@examples("mdmem check", "mdmem check memories/ entities/project/apollo.md", "mdmem check mem-7q2m --json")
def command(ctx: click.Context, paths: tuple[str, ...], strict: bool, as_json: bool) -> None:
    """Look for notes that do not parse, do not validate, clash or point nowhere. Changes nothing.

    Exit code 1 when there is an error (with --strict: or a warning).
    """
    from mdmem.memory.check import check

    store = open_store(ctx)
    looked, found = check(store, relative_paths(store, paths) if paths else None)
    errors = [f for f in found if f.fails]

    def human() -> None:
        for finding in found:
            mark = "" if finding.fails else "warning: "
            say(f"{clean(finding.path)}:{finding.line}: {mark}{clean(finding.message)} [{finding.code}]")
        note(f"{looked} notes, {len(errors)} errors, {len(found) - len(errors)} warnings")

    emit({"checked": looked, "findings": [f.as_dict() for f in found]}, as_json, human)
    if errors or (strict and found):
        ctx.exit(1)
