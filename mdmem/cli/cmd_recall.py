"""mdmem recall: find notes by words and by meaning."""

from __future__ import annotations

from typing import Any

import click

from mdmem.cli.filters import filter_options, filters_of
from mdmem.cli.found import show
from mdmem.cli.opening import examples, open_store, say_notices
from mdmem.cli.output import json_option


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
    show(store, found, as_json)


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
