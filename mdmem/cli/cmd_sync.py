"""mdmem sync: bring this clone and its remote together."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.clock import seconds


@click.command("sync")
@click.option("--dry-run", is_flag=True, help="Fetch and say what would happen; change nothing.")
@click.option("--no-push", is_flag=True, help="Commit, fetch and merge only.")
@click.option("--timeout", metavar="TIME", default="60s", show_default=True, help="For each exchange with the remote.")
@click.option("--allow-deletions", is_flag=True, help="Let a sync delete more than a fifth of the notes.")
@click.option("--join", is_flag=True, help="Accept a remote with a history of its own, or one that was rewritten.")
@click.option("--allow-secret", "allow", metavar="PATH", multiple=True, help="Let this file pass the scan for secrets.")
@click.option("--commit", "commit", is_flag=True, help="In a code repository: commit mdmem's own notes.")
@click.option("--push", "push", is_flag=True, help="In a code repository: commit, merge and push the branch.")
@json_option
@click.pass_context
@examples("mdmem sync", "mdmem sync --dry-run", "mdmem sync --no-push --timeout 10s", "mdmem -C ~/work/app sync --commit")
def command(
    ctx: click.Context,
    dry_run: bool,
    no_push: bool,
    timeout: str,
    allow_deletions: bool,
    join: bool,
    allow: tuple[str, ...],
    commit: bool,
    push: bool,
    as_json: bool,
) -> None:
    """Commit what is new, merge with the remote, and push.

    Both machines' changes stay. What cannot be decided is kept in the note and listed by `mdmem conflicts`. Offline, commits
    wait for the next sync. A state of git that is not known to be safe is refused by name and nothing is changed.
    Exit codes: 0 done (also offline), 1 a secret stopped something, 4 conflicts to settle, 6 refused.
    """
    from mdmem.memory.syncing import embedded_options, sync_store
    from mdmem.repo.sync_types import SyncOptions

    store = open_store(ctx, need="write")
    options = SyncOptions(
        dry_run=dry_run,
        push=not no_push,
        allow_deletions=allow_deletions,
        join=join,
        timeout=seconds(timeout),
        allow=frozenset(store.to_git(path) for path in allow),
    )
    if store.mode == "embedded":
        options = embedded_options(options, commit, push and not no_push)
    result = sync_store(store, options)
    if not dry_run:
        from mdmem.team import claims, work

        lost = claims.lost(store, work.all_of(store, "task"))
        result.notices += [f"your claim on {row['title']!r} is now {row['holder']}'s" for row in lost]

    def human() -> None:
        say(sentence(result.as_dict()))
        for conflict in result.conflicts:
            what = conflict.field or conflict.kind
            say(f"conflict: {clean(conflict.path)} ({clean(what)})")
        if result.conflicts:
            say("  settle with: mdmem conflicts, mdmem resolve NOTE --keep 1|2|both")

    emit(result.as_dict(), as_json, human)
    for held in result.held:
        note(f"held back: {clean(held.path)}:{held.line} looks like a secret ({held.kind})")
    if result.held:
        note("  mend it, write mdmem:allow-secret on its line, or: mdmem sync --allow-secret PATH")
    for text in result.notices:
        note(f"note: {clean(text)}")
    if result.state == "refused":
        note(f"mdmem: refused: {clean(result.reason)}")
    elif result.reason:
        note(f"note: {clean(result.reason)}")
    if result.hint:
        note(f"  try: {clean(result.hint)}")
    code = {"refused": 6, "conflict": 4}.get(result.state, 1 if result.held else 0)
    if code:
        ctx.exit(code)


def sentence(data: dict[str, object]) -> str:
    """Return the outcome in one line."""
    counts = data["counts"]
    assert isinstance(counts, dict)
    rows = (
        (counts.get("committed"), "note committed", "notes committed"),
        (data["pulled"], "commit from the remote", "commits from the remote"),
        (data["pushed"], "commit pushed", "commits pushed"),
        (data["waiting"], "commit waits for the remote", "commits wait for the remote"),
    )
    parts = [f"{count} {one if count == 1 else many}" for count, one, many in rows if count]
    state = str(data["state"])
    words = {"clean": "Nothing new", "offline": "Offline", "refused": "Refused", "conflict": "Merged, with conflicts"}
    head = words.get(state, state.capitalize())
    if data["dry_run"]:
        head = f"Would be: {head.lower()}"
    return head + (": " + ", ".join(parts) if parts else "") + "."
