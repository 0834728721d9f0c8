"""mdmem query, mdmem stats: SQL over the notes, and the usual figures."""

from __future__ import annotations

import csv
import io
from typing import Any

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.errors import UsageError


def _tables(as_json: bool) -> None:
    from mdmem.recall.sql import MADE, TABLES

    data = {name: text for name, (text, _) in {**TABLES, **MADE}.items()}

    def human() -> None:
        for name, text in data.items():
            say(f"{name:<10} {text}")
        say("")
        say("Columns of one: mdmem query \"SELECT * FROM tags LIMIT 1\" --json; all of them stand in docs/query.md.")
        say("")
        say("bm25('words')      how well a note matches words; 0 for not at all")
        say("similar('words')   how near a note is in meaning (cosine)")
        say("decay(updated)     1 for now, half of it after each decay window")

    emit({"tables": data}, as_json, human)


@click.command("query")
@click.argument("statement", metavar="SELECT …", required=False)
@click.option("--format", "form", type=click.Choice(["table", "json", "ndjson", "csv"]), default="table", help="Output.")
@click.option("--timeout", default="10s", metavar="TIME", help="How long it may take.")
@click.option("--tables", is_flag=True, help="List the tables and functions.")
@json_option
@click.pass_context
@examples(
    'mdmem query "SELECT type, count(*) AS n FROM notes GROUP BY type ORDER BY n DESC"',
    "mdmem query \"SELECT title, bm25('deploy') AS score FROM notes WHERE bm25('deploy') > 0 ORDER BY score DESC LIMIT 5\"",
    "mdmem query \"SELECT tag, count(*) FROM tags GROUP BY tag\" --format csv",
    "mdmem query --tables",
)
def command(
    ctx: click.Context, statement: str | None, form: str, timeout: str, tables: bool, as_json: bool
) -> None:
    """Ask the notes with one SELECT. It can only read, and only what you may read.

    Full text, meaning, filters, dates and aggregates go together in one statement.
    """
    if tables:
        _tables(as_json)
        return
    if not statement:
        raise UsageError("give a SELECT", hint="mdmem query --tables")
    from mdmem.clock import seconds
    from mdmem.recall.sql import as_json_lines, printable, query

    answer = query(open_store(ctx), statement, seconds(timeout))
    if answer.cut:
        note(f"note: only the first {len(answer.rows)} rows")
    if as_json or form == "json":
        rows = [{name: printable(value) for name, value in row.items()} for row in answer.as_dicts()]
        emit({"columns": answer.columns, "rows": rows, "cut": answer.cut}, True, lambda: None)
    elif form == "ndjson":
        if answer.rows:
            say(as_json_lines(answer))
    elif form == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows([printable(value) for value in row] for row in answer.rows)
        say(text.getvalue().rstrip("\n"))
    else:
        _table(answer.columns, answer.rows)


def _table(columns: list[str], rows: list[tuple[Any, ...]], widest: int = 60) -> None:
    cells = [["" if value is None else clean(str(value)).replace("\n", " ") for value in row] for row in rows]
    cells = [[text if len(text) <= widest else text[: widest - 1] + "…" for text in row] for row in cells]
    widths = [max([len(name), *(len(row[place]) for row in cells)]) for place, name in enumerate(columns)]
    say("  ".join(name.ljust(width) for name, width in zip(columns, widths)).rstrip())
    say("  ".join("-" * width for width in widths))
    for row in cells:
        say("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


STATISTICS = {
    "kinds": "SELECT kind, count(*) AS notes, max(updated) AS last FROM notes GROUP BY kind ORDER BY notes DESC",
    "types": "SELECT type, count(*) AS notes FROM notes WHERE kind = 'memory' GROUP BY type ORDER BY notes DESC",
    "scopes": "SELECT coalesce(nullif(scope, ''), 'shared') AS scope, count(*) AS notes FROM notes GROUP BY 1 ORDER BY 2 DESC",
    "agents": "SELECT agent, device, notes, last_update FROM agents ORDER BY notes DESC LIMIT 20",
    "tags": "SELECT tag, count(*) AS notes FROM tags GROUP BY tag ORDER BY notes DESC, tag LIMIT 20",
    "months": "SELECT substr(created, 1, 7) AS month, count(*) AS notes FROM notes GROUP BY month ORDER BY month DESC LIMIT 12",
    "relations": "SELECT rel, count(*) AS edges, sum(target_note IS NULL) AS broken FROM edges GROUP BY rel ORDER BY 2 DESC",
}


@click.command("stats")
@json_option
@click.pass_context
@examples("mdmem stats", "mdmem stats --json")
def stats(ctx: click.Context, as_json: bool) -> None:
    """Show the usual figures: kinds, types, scopes, agents, tags, months, relations."""
    from mdmem.recall.sql import queries

    found = dict(zip(STATISTICS, queries(open_store(ctx), list(STATISTICS.values()))))

    def human() -> None:
        for name, answer in found.items():
            if answer.rows:
                say(f"{name}:")
                _table(answer.columns, answer.rows)
                say("")

    emit({name: answer.as_dicts() for name, answer in found.items()}, as_json, human)
