"""mdmem edit: open a note in the editor, then check and index it."""

from __future__ import annotations

import os
import shlex
import subprocess
from contextlib import ExitStack

import click

from mdmem.cli.opening import examples, open_store, say_notices
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.errors import MdmemError, UsageError, typed


def editor() -> list[str]:
    """Return the editor's command from VISUAL, EDITOR, or the first usual one that is installed; raises UsageError."""
    import shutil

    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if named:
        return shlex.split(named)
    for name in ("nano", "vim", "vi", "notepad"):
        found = shutil.which(name)
        if found:
            return [found]
    raise UsageError("no editor is set", hint="export EDITOR=nano")


@click.command("edit")
@click.argument("reference", metavar="NOTE")
@click.option("--lease", is_flag=True, help="Hold the note's lease across machines while the editor is open.")
@json_option
@click.pass_context
@examples(
    "mdmem edit project-apollo",
    "mdmem edit project-apollo --lease",
    'EDITOR="code --wait" mdmem edit "Deploy on Thursdays"',
)
def command(ctx: click.Context, reference: str, lease: bool, as_json: bool) -> None:
    """Open a note in your editor; check, index and commit it when the editor closes.

    A note that no longer parses stays as you left it: it is named, and found by its words until it is mended.
    """
    from mdmem.memory.change import find
    from mdmem.memory.leasing import holding, warning
    from mdmem.memory.write import commit, subject
    from mdmem.notes.redact import scan
    from mdmem.notes.schema import validate

    store = open_store(ctx, need="write")
    folder, before = find(store, reference)
    path = folder.root / before.path
    words = [*editor(), str(path)]
    try:
        with ExitStack() as held:
            if lease:
                taken = held.enter_context(holding(store, before))
                if taken.notice:
                    note(f"note: {taken.notice}")
            elif word := warning(store, before):
                store.notices.append(word)
                say_notices(ctx, store)
            code = subprocess.run(words, check=False).returncode
    except OSError as error:
        raise MdmemError(f"cannot start {words[0]}", why=error.strerror or "", hint="export EDITOR=nano") from error
    if code != 0:
        again = typed("mdmem", "edit", reference)
        raise MdmemError(f"the editor ended with exit code {code}; nothing was committed", hint=again)
    after = folder.read(before.path)
    changed = after.sha != before.sha
    problems = validate(after) if changed else []
    secrets = scan(after.data.decode("utf-8", "replace")) if changed else []
    committed, reason = not changed, ""
    if secrets:
        reason = f"line {secrets[0].line} looks like a secret ({secrets[0].kind}); it is not committed until that is mended"
    elif changed and folder is store.folder and after.ok:
        done = commit(store, [after.path], subject("edit", after.title))
        committed, reason = done.done, done.reason
    if changed:
        store.index.refresh()
    data = {
        "id": after.id or "",
        "path": after.path,
        "changed": changed,
        "committed": committed,
        "reason": reason,
        "problems": [{"code": p.code, "message": p.message, "line": p.line} for p in problems],
    }
    emit(data, as_json, lambda: say(f"{'Changed' if changed else 'Unchanged'}: {clean(after.path)}"))
    for problem in problems:
        note(f"{after.path}:{problem.line or 1}: {problem.message}")
    if reason:
        note(f"note: {reason}")
    if problems and not after.ok:
        ctx.exit(1)
