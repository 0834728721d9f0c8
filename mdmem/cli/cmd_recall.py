"""mdmem recall: find notes by words and by meaning."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.filters import filter_options, filters_of
from mdmem.cli.opening import examples, open_store, say_notices
from mdmem.cli.output import clean, emit, json_option, note, say

if TYPE_CHECKING:
    from mdmem.recall.recall import Recall
    from mdmem.store import Store


@click.command("recall")
@click.argument("words", metavar="QUERY", nargs=-1, required=True)
@click.option("--limit", "-n", type=click.IntRange(1, 1000), default=None, help="How many results (5).")
@click.option("--keyword", is_flag=True, help="By words only (BM25).")
@click.option("--semantic", is_flag=True, help="By meaning only (embeddings).")
@click.option("--hybrid", is_flag=True, help="By both, the default.")
@click.option("--fusion", type=click.Choice(["minmax", "rrf"]), default=None, help="How the two are joined.")
@filter_options
@click.option("--store", multiple=True, metavar="NAME", help="Only this store of [[stores]]; may be given again.")
@click.option("--as-of", metavar="DATE", default="", help="Search the store as git had it then.")
@click.option("--all", "everything", is_flag=True, help="Superseded, forgotten and expired notes too.")
@click.option("--budget", type=click.IntRange(1), default=None, metavar="TOKENS", help="Print a context block that fits.")
@click.option("--explain", is_flag=True, help="Show what each step did to each result.")
@click.option("--query-syntax", is_flag=True, help="Read QUERY as Whoosh's query language (AND, OR, *, quotes).")
@json_option
@click.pass_context
@examples(
    'mdmem recall "which database do we use"',
    "mdmem recall 数据库 --type decision --since 90d",
    'mdmem recall "deploy blocker" --keyword --limit 10 --json',
    'mdmem recall "release plan" --as-of 2026-06-01 --budget 800',
)
def command(ctx: click.Context, /, words: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Find notes by words and by meaning, best first.

    The query is searched as it is: quotes, stars, AND and colons mean themselves. No match is not an error.
    """
    from mdmem.clock import parse_time
    from mdmem.federation import ask
    from mdmem.recall.query import Query

    mode = _mode(given)
    store = open_store(ctx)
    filters = filters_of(store, given, retired=given["everything"])
    limit = given["limit"] or int(store.config.get("recall.limit"))
    query = Query(
        " ".join(words),
        limit=limit,
        mode=mode,
        filters=filters,
        explain=given["explain"],
        as_of=parse_time(given["as_of"], store.clock.now(), end=True) if given["as_of"] else None,
        budget=given["budget"],
        query_syntax=given["query_syntax"],
        fusion=given["fusion"] or "",
    )
    found = ask(store, query, given["store"], only=bool(ctx.find_root().obj.get("directory")))
    say_notices(ctx, store)
    emit(found.as_dict(), as_json, lambda: _print(found, query))
    _given(store, found)
    for text in found.notices:
        note(f"note: {text}")


def _mode(given: dict[str, Any]) -> str:
    """Return the one mode that was asked for. Raises UsageError for several."""
    from mdmem.errors import UsageError
    from mdmem.recall.query import MODES

    chosen = [mode for mode in MODES if given[mode]]
    if len(chosen) > 1:
        raise UsageError(
            " and ".join(f"--{mode}" for mode in chosen) + " were given together",
            why="a search goes by words, by meaning, or by both, which is the default",
            hint="give one of them, or none",
        )
    return chosen[0] if chosen else "hybrid"


def _given(store: Store, found: Recall) -> None:
    """Inside an agent's session: note what it was shown, so that what it cites later counts as useful."""
    session = os.environ.get("CLAUDE_CODE_SESSION_ID") or os.environ.get("MDMEM_SESSION") or ""
    if session and store.trusted:
        from mdmem.memory import shown

        own = [hit for hit in found.results if not hit.store and hit.scope != "local"]
        shown.add(str(store.common_state_dir), session, [shown.line(hit.id or hit.path, hit.path, hit.title) for hit in own])


def _print(found: Recall, query: Any) -> None:
    if query.budget is not None:
        if found.context:
            say(clean(found.context))
        return
    if not found.results:
        say("Nothing found.")
    for hit in found.results:
        place = f"{hit.store}: " if hit.store else ""
        name = f"  [{clean(hit.id)}]" if hit.id else ""
        say(f"[{hit.type or hit.kind}] {clean(hit.title)}{name}")
        say(f"    {place}{clean(hit.path)}:{hit.start_line}-{hit.end_line}")
        for line in hit.snippet.splitlines():
            say(f"    > {clean(line)}")
        if query.explain:
            for step, value in hit.steps:
                say(f"      {step}: {value}")
        say("")
