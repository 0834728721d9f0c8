"""mdmem index: the search index beside the notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import emit, json_option, note, say
from mdmem.cli.progress import progress
from mdmem.clock import seconds
from mdmem.errors import MdmemError
from mdmem.index.refresh import Refreshed
from mdmem.repo.git import safe_text
from mdmem.store import Store

if TYPE_CHECKING:
    from mdmem.index.milvus_push import Pushed


@click.group("index")
@examples("mdmem index status", "mdmem index rebuild", "mdmem index verify --json", "mdmem index push")
def command() -> None:
    """Look at, refresh or rebuild the search index.

    It is derived from the notes and can be deleted at any time: the next command makes what it needs.
    """


@command.command("status")
@json_option
@click.pass_context
@examples("mdmem index status", "mdmem index status --json")
def status(ctx: click.Context, as_json: bool) -> None:
    """Say what the index holds and what still waits for a vector."""
    from mdmem.recall.select import agent_scopes, hidden

    store = open_store(ctx)
    store.index.refresh(embed_budget_s=0.0)
    data = store.index.status(hidden(store) if agent_scopes(store) is not None else None)

    def human() -> None:
        for key, value in data.items():
            say(f"{key}: {value}")

    emit(data, as_json, human)


def _say_done(store: Store, done: Refreshed, as_json: bool) -> None:
    from mdmem.recall.select import agent_scopes

    if agent_scopes(store) is not None:
        # How many files came and went, and which could not be read, is also about scopes that this agent may not read.
        emit({"busy": done.busy}, as_json, lambda: say("the index is up to date" if not done.busy else "another is at work"))
        return
    emit(done.as_dict(), as_json, lambda: say(done.line()))
    for text in done.notices:
        note(f"note: {text}")


@command.command("refresh")
@click.option("--no-vectors", is_flag=True, help="Words only; vectors are filled by later commands.")
@json_option
@click.pass_context
@examples("mdmem index refresh", "mdmem index refresh --no-vectors")
def refresh(ctx: click.Context, no_vectors: bool, as_json: bool) -> None:
    """Fold in files that changed, and embed what has no vector yet."""
    store = open_store(ctx)
    with progress("Indexing") as tell:
        done = store.index.refresh(embed_budget_s=0.0 if no_vectors else None, progress=tell)
    _say_done(store, done, as_json)


@command.command("rebuild")
@click.argument("part", type=click.Choice(["all", "catalog", "text", "vectors"]), default="all")
@json_option
@click.pass_context
@examples("mdmem index rebuild", "mdmem index rebuild vectors")
def rebuild(ctx: click.Context, part: str, as_json: bool) -> None:
    """Make the index, or one part of it, anew from the files."""
    store = open_store(ctx)
    store.index.rebuild(part)
    with progress("Indexing") as tell:
        done = store.index.refresh(embed_budget_s=None, progress=tell)
    _say_done(store, done, as_json)


@command.command("verify")
@json_option
@click.pass_context
@examples("mdmem index verify", "mdmem index verify --json")
def verify(ctx: click.Context, as_json: bool) -> None:
    """Compare the index with the files; exit code 1 when they differ."""
    from mdmem.recall.select import hidden

    store = open_store(ctx)
    store.index.refresh(embed_budget_s=0.0)
    problems = store.index.verify(hidden(store))
    data = {"problems": problems, "ok": not problems}

    def human() -> None:
        for text in problems:
            say(text)
        say("The index agrees with the files." if not problems else "Mend it: mdmem index rebuild")

    emit(data, as_json, human)
    if problems:
        ctx.exit(1)


@command.command("push")
@click.option("--all", "everything", is_flag=True, help="Write every note again, also after a rewritten history.")
@click.option("--allow-secret", "allow", metavar="PATH", multiple=True, help="Let this file pass the scan for secrets.")
@click.option("--branch", metavar="NAME", default="", help="The main branch, where it is not the one of the remote's HEAD.")
@click.option("--wait", metavar="TIME", default="0s", show_default=True, help="How long to wait for another writer.")
@click.option(
    "--repo", "repos", multiple=True, metavar="URL", help="Push this store (a folder or an address) instead; repeatable."
)
@json_option
@click.pass_context
@examples(
    "mdmem index push",
    "mdmem index push --wait 10m",
    "mdmem index push --repo git@example.org:team/notes.git --repo ~/vault",
    "mdmem index push --all",
)
def push(
    ctx: click.Context,
    everything: bool,
    allow: tuple[str, ...],
    branch: str,
    wait: str,
    repos: tuple[str, ...],
    as_json: bool,
) -> None:
    """Bring the notes of the current commit into the shared index.

    Run it after each merge on the main branch. Only what differs is written; what the commit does not hold is deleted. A push
    that was cut off is finished by the next one. One of several repositories that fails is named, and the others are pushed.
    docs/shared-index.md says how to set it up.
    """
    from mdmem.memory.sharing import push_store, store_of

    done: list[Pushed] = []
    failed: list[tuple[str, MdmemError]] = []
    waiting = seconds(wait)
    with progress("Pushing") as tell:
        for url in repos or [""]:
            try:
                store = store_of(url) if url else open_store(ctx)
                done.append(push_store(store, everything, tell, allow=allow, branch=branch, wait=waiting))
            except MdmemError as error:
                if len(repos) < 2:
                    raise
                failed.append((url, error))

    def human() -> None:
        for one in done:
            say(one.line())

    wrong = [{"repo": safe_text(url), **trouble.as_dict()} for url, trouble in failed]
    emit({"pushed": [one.as_dict() for one in done], **({"failed": wrong} if repos else {})}, as_json, human)
    for one in done:
        for text in one.notices:
            note(f"note: {text}")
    for url, trouble in failed:
        note(f"{safe_text(url)}: {trouble}" + (f" ({trouble.hint})" if trouble.hint else ""))
    if failed:
        ctx.exit(failed[0][1].exit_code)
